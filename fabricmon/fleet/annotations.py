"""What alerts say: the templates of their summaries, rendered by Prometheus itself.

A console template has the functions of an alert's annotations, and takes the labels
as parameters of the page. Queries within it see the present, not the replay: they
belong into descriptions, which are not rendered.
"""

from __future__ import annotations

import html
import re

from fabricmon.fleet.firing import Firing
from fabricmon.fleet.queries import Client
from fabricmon.fleet.rule import Alert

_VALUE = "__value"
_HEAD = (
    "{{ $labels := .Params }}"
    '{{ $value := query (printf "vector(%s)" .Params.__value) | first | value }}'
)
_ACTION = re.compile(r"(\{\{.*?\}\})", re.DOTALL)


def console_text(alert: Alert) -> str:
    """Return the console template that says what an alert says."""
    return _HEAD + _plain(alert.summary)


def said(client: Client, number: int, firing: Firing) -> str:
    """Return what the alert of console ``number`` says; raises `HostError`."""
    parameters = {each.name: each.value for each in firing.labels}
    parameters[_VALUE] = repr(firing.life.value)
    return client.console(f"{number}.html", parameters).strip()


def _plain(template: str) -> str:
    """Escape what stands beside the actions: the console is a page, this is text."""
    parts = _ACTION.split(template)
    return "".join(
        part if part.startswith("{{") else html.escape(part, quote=False)
        for part in parts
    )
