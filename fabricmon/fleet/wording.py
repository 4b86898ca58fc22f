"""Pieces of what alerts say, as templates of Prometheus.

Label values are shown, never parsed; in a query of a template they are quoted by
``%q``, because names of nodes and devices come from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricmon.fleet.names import EXPORTED, Names
from fabricmon.fleet.rule import TRAINING

END = (
    '{{ if eq $labels.role "culprit" }}, fault at this end'
    '{{ else if eq $labels.role "victim" }}, this end only suffers'
    "{{ else }}, place not known{{ end }}"
)
"""Which end is to blame."""

SINCE = (
    '{{ if gt $value 0.0 }}, since {{ (toTime $value).Format "15:04:05 MST" }}{{ end }}'
)
"""Since when, where the value of the expression is a time; 0 is not known."""

SINCE_DAY = (
    "{{ if gt $value 0.0 }}It began at "
    '{{ (toTime $value).Format "2006-01-02 15:04:05 MST" }}. {{ end }}'
)
"""The same with its day, as a sentence."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How much: a query for one number, and the words around it.

    In ``query``, ``<metric>`` stands for the series of the alert's place. ``text`` is
    the sentence, ``%s`` in it the number as ``form`` shows it. Increases are
    extrapolated by Prometheus, so counts of events are rounded.
    """

    query: str
    text: str
    form: str = "humanize"


def place(names: Names) -> str:
    """Return the place that an alert is about: node, device and port, where they are."""
    node = f"{{{{ $labels.{names.node} }}}}"
    return (
        f"{node}{{{{ with $labels.device }}}} {{{{ . }}}}{{{{ end }}}}"
        "{{ with $labels.port }}/{{ . }}{{ end }}"
    )


def surroundings(names: Names) -> str:
    """Return where the place is as far as that is known, and what is advised."""
    parts = ("device", "port", "netdev", "rail", "leaf", "rack", TRAINING)
    words = {"netdev": "interface", TRAINING: "job"}
    shown = "".join(
        f"{{{{ with $labels.{label} }}}}, {words.get(label, label)} {{{{ . }}}}"
        "{{ end }}"
        for label in parts
    )
    return (
        f"Place: node {{{{ $labels.{names.node} }}}}{shown}. "
        "Severity {{ $labels.severity }}, advice {{ $labels.action }}."
    )


def lower_first(title: str) -> str:
    """Return a title to stand within a sentence; names such as NCCL stay."""
    is_name = title[1:2].isupper()
    return title if is_name else title[:1].lower() + title[1:]


def measured(names: Names, measure: Measure, labels: Sequence[str]) -> str:
    """Return the sentence of a measure at the place that ``labels`` tell."""
    query, used = located(names, measure.query, labels)
    arguments = " ".join(f"$labels.{label}" for label in used)
    text = measure.text.replace("%s", f"{{{{ . | first | value | {measure.form} }}}}")
    return f"{{{{ with printf `{query}` {arguments} | query }}}}{text} {{{{ end }}}}"


def located(
    names: Names, query: str, labels: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Put series into the ``<metric>`` of a query, chosen by those labels they have.

    Also returns the labels in the order in which ``%q`` stands for their values.
    """
    head, *rest = query.split("<fabricmon_")
    text, used = head, []
    for part in rest:
        stem, _, tail = part.partition(">")
        metric = f"fabricmon_{stem}"
        known = EXPORTED[metric] | {names.cluster, names.node}
        chosen = [label for label in labels if label in known]
        text += names.series(metric, ",".join(f"{label}=%q" for label in chosen)) + tail
        used += chosen
    return text, tuple(used)
