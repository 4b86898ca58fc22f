"""Kinds of what only a fleet can see and no finding has: they have runbooks too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnKind:
    """What an alert is about that no row of `kinds.KINDS` covers."""

    slug: str
    title: str
    meaning: str
    usual: str

    @property
    def runbook(self) -> str:
        """Path of the runbook, relative to the documentation."""
        return f"docs/runbooks/{self.slug}.md"


OWN_KINDS: tuple[OwnKind, ...] = (
    OwnKind(
        "agent_absent",
        "Agent absent",
        "A node that had an agent lately has none that can be scraped.",
        "warning",
    ),
    OwnKind(
        "snapshot_old",
        "Agent stands still",
        "An agent answers, but what it exports is old.",
        "warning",
    ),
    OwnKind(
        "state_unsaved",
        "State not saved",
        "An agent cannot save what must survive its restart.",
        "warning",
    ),
    OwnKind(
        "sink_down",
        "Event broker away",
        "Agents do not reach the MQTT broker.",
        "warning",
    ),
    OwnKind(
        "detector_lost",
        "Sight lost",
        "A kind of finding that nodes could judge a day ago cannot be judged any more.",
        "warning",
    ),
    OwnKind(
        "clock_disagreement",
        "Clocks disagree",
        "Clocks of nodes are off, or kept by nobody: order over nodes is not judged.",
        "warning",
    ),
    OwnKind(
        "alert_budget",
        "Too much advice at once",
        "More ports carry advice than single faults can explain.",
        "critical",
    ),
)

BY_SLUG = {kind.slug: kind for kind in OWN_KINDS}
