"""What the gate is told: a finding, whoever brought it. Pure."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from fabricmon.finding_document import FindingDocument
from fabricmon.model import IncidentState

Source = Literal["alertmanager", "mqtt"]

LONGEST = 256
"""Characters of a word that is kept: names of hosts have 253 at most."""

NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""Names of nodes that a script is ever told: no option, no path, nothing of a shell."""

CAUSES = frozenset({"common_cause", "fabric_suspect", "fabric_control", "alert_budget"})
"""Kinds that say that what fails around them fails for a reason of its own."""

MANY_ABSENT = "agent_absent"
"""Such an alert without a node tells that many agents are gone: much is unknown."""


class Report(Struct, frozen=True, kw_only=True):
    """A finding as it came in.

    ``id`` is unique over all sources. ``node`` is whom it is about, or who saw it where
    it is about a leaf, a rail or the fabric. ``origin`` is ``fleet`` where a comparison
    of nodes found it. ``noticed`` is false where the site's rules tell it to nobody,
    as for places that somebody works on.
    """

    id: str
    source: Source
    cluster: str
    node: str | None
    finding: FindingDocument
    origin: Literal["node", "fleet"] = "node"
    rack: str | None = None
    noticed: bool = True

    @property
    def is_open(self) -> bool:
        """Tell whether the condition holds."""
        return self.finding.state != IncidentState.RESOLVED.value

    @property
    def is_cause(self) -> bool:
        """Tell whether it explains findings of nodes."""
        kind = self.finding.kind
        if kind == MANY_ABSENT:
            return self.origin == "fleet" and self.node is None
        return kind in CAUSES

    @property
    def port(self) -> tuple[str | None, str | None, int | None]:
        """The place that it is about."""
        subject = self.finding.subject
        return self.node, subject.device, subject.port


class Batch(Struct, frozen=True):
    """What came in with one message.

    ``cut`` tells that the sender left some out; ``unusable`` counts what is no finding.
    """

    reports: tuple[Report, ...] = ()
    cut: bool = False
    unusable: int = 0


def word(text: object) -> str:
    """Return a text as one bounded line in which nothing acts."""
    shown = str(text)[:LONGEST]
    if shown.isascii() and shown.isprintable():
        return shown
    plain = shown.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in plain)


def optional_word(text: object) -> str | None:
    """Return the same; None where there is nothing."""
    return word(text) if text not in {None, ""} else None
