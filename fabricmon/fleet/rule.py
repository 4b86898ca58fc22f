"""What a rule is: a recording, an alert, a group of them evaluated together.

Expressions are written with `Names` and `Options` already filled in, so that a rule is
plain PromQL for any engine that speaks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TRAINING = "training"
"""Label that recordings and alerts give to the training job.

Agents call it ``job``, as Prometheus calls its target: where the scraper honours labels
it stays ``job``, else it becomes ``exported_job``. The first recordings accept both.
"""


class Notice(StrEnum):
    """Who hears of an alert: the label ``notice``, by which Alertmanager routes.

    A page is critical, to be acted on, with a job on the port; a ticket is anything
    else to be acted on; the rest is for information.
    """

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Label:
    """A label of an alert that the expression does not bring."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A series that other rules and dashboards read, ``level:metric:operation``.

    ``level`` is how deep it stands: 1 reads only what agents export, 2 reads level 1,
    and so on. A backfill takes one pass for each.
    """

    record: str
    expr: str
    meaning: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert: when it fires, for whom, and what it says.

    ``kind`` is a row of `kinds.KINDS`, or a word of `fleet.own_kinds` for what only a
    fleet can see. ``for_seconds`` is how long the expression must hold, ``keep_seconds``
    how long the alert goes on after it. ``labels`` are added to those of the expression,
    which must bring ``severity``, ``role`` and ``action`` unless they are here. Without
    a ``notice`` the expression brings that label too.
    ``summary`` and ``description`` are templates of Prometheus: which end, since when,
    how much; ``is_not`` says what it is not. ``dashboard`` is the uid of a dashboard.
    """

    name: str
    kind: str
    expr: str
    notice: Notice | None
    summary: str
    description: str
    is_not: str
    for_seconds: float = 0
    keep_seconds: float = 0
    labels: tuple[Label, ...] = ()
    dashboard: str = "fabricmon-fleet"

    @property
    def runbook(self) -> str:
        """Path of the runbook, relative to the documentation."""
        return f"docs/runbooks/{self.kind}.md"

    @property
    def own_labels(self) -> tuple[Label, ...]:
        """Return all labels that it adds to those of its expression."""
        notice = self.notice
        told = () if notice is None else (Label("notice", notice.value),)
        return (Label("kind", self.kind), *told, *self.labels)


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that one evaluation takes in order, every ``interval_seconds``."""

    name: str
    interval_seconds: float
    rules: tuple[Recording | Alert, ...]

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Return its alerts."""
        return tuple(rule for rule in self.rules if isinstance(rule, Alert))

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """Return its recordings."""
        return tuple(rule for rule in self.rules if isinstance(rule, Recording))


@dataclass(frozen=True, slots=True)
class Matcher:
    """A label and the pattern that its whole value must match (RE2)."""

    label: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While a source alert fires, its targets with equal labels are not told.

    Alertmanager's configuration and the replay of a fleet are both made of these.
    """

    reason: str
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]
