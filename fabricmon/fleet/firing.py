"""One time that an alert fired, and when people heard of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fabricmon.fleet.alert_life import Life
from fabricmon.fleet.rule import Alert, Label


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that an alert fired: its rule, labels and life, and what it says.

    ``labels`` are all that Prometheus would send, sorted by name, none of them empty;
    times are Unix seconds.
    """

    alert: Alert
    labels: tuple[Label, ...]
    life: Life
    summary: str = ""

    def label(self, name: str) -> str:
        """Return a label's value, empty where there is no such label."""
        return next((each.value for each in self.labels if each.name == name), "")

    @property
    def ended(self) -> float:
        """When it was over, infinite while it is not."""
        return inf if self.life.ended is None else self.life.ended


@dataclass(frozen=True, slots=True)
class Heard:
    """An alert and when people heard of it, None where they never did.

    ``resolved`` is when they heard that it is over. ``silenced`` says what inhibited
    it at a flush, if anything.
    """

    firing: Firing
    told: float | None
    resolved: float | None = None
    silenced: str | None = None
