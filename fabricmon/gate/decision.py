"""What is decided of a finding, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fabricmon.gate.report import Report


class Verdict(StrEnum):
    """What becomes of a finding."""

    REFUSE = "refuse"  # it can never be acted on as it stands
    HOLD = "hold"  # not now
    ACT = "act"


class Reason(StrEnum):
    """Why: the first that applies, in this order."""

    NODE_NAME = "node_name"
    CLUSTER = "cluster"
    NODE = "node"
    ORIGIN = "origin"
    KIND = "kind"
    ROLE = "role"
    SHADOW = "shadow"
    NOTICE = "notice"
    SEVERITY = "severity"
    ACTION = "action"
    MAINTENANCE = "maintenance"
    NODE_OUT = "node_out"
    COOLDOWN = "cooldown"
    OVERFLOW = "overflow"
    INPUT_LOST = "input_lost"
    AGENT_OFFLINE = "agent_offline"
    SETTLING = "settling"
    FLEET_CAUSE = "fleet_cause"
    COMMON_CAUSE = "common_cause"
    BUSY = "busy"
    BUDGET = "budget"
    BUDGET_WINDOW = "budget_window"
    CLEAR = "clear"  # nothing speaks against it


HOLDS = (
    Reason.MAINTENANCE,
    Reason.NODE_OUT,
    Reason.COOLDOWN,
    Reason.OVERFLOW,
    Reason.INPUT_LOST,
    Reason.AGENT_OFFLINE,
    Reason.SETTLING,
    Reason.FLEET_CAUSE,
    Reason.COMMON_CAUSE,
    Reason.BUSY,
    Reason.BUDGET,
    Reason.BUDGET_WINDOW,
)
"""Reasons that pass by themselves."""


class Outcome(StrEnum):
    """How an action ended."""

    DONE = "done"
    FAILED = "failed"  # the script said that it did not, or could not be started
    TIMEOUT = "timeout"  # it was killed: what it did is not known
    INTERRUPTED = "interrupted"  # the gate was told to stop meanwhile
    UNKNOWN = "unknown"  # the gate died meanwhile
    DRY_RUN = "dry_run"  # nothing was called


UNSURE = frozenset({Outcome.TIMEOUT, Outcome.INTERRUPTED, Outcome.UNKNOWN})
"""The node may be out: it counts as out, and is not acted on again."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided of one finding; ``detail`` is for people."""

    report: Report
    verdict: Verdict
    reason: Reason
    detail: str = ""


@dataclass(slots=True)
class Known:
    """A finding that was told; times are Unix seconds of the gate's clock.

    ``first`` is when it was first told as open, ``changed`` when it last said something
    new, ``told`` when it was last repeated, ``resolved`` when it was told to be over.
    """

    report: Report
    first: float
    changed: float
    told: float
    resolved: float | None = None


@dataclass(slots=True)
class Out:
    """A node that was acted on and is not back.

    ``against`` are the open findings that speak against it, ``well`` since when there
    are none.
    """

    node: str
    since: float
    outcome: Outcome
    against: set[str] = field(default_factory=set)
    well: float | None = None

    @property
    def is_dry(self) -> bool:
        """Tell whether nothing was really done."""
        return self.outcome is Outcome.DRY_RUN


@dataclass(frozen=True, slots=True)
class Attempt:
    """An action that was begun."""

    node: str
    at: float
    is_dry: bool


@dataclass(frozen=True, slots=True)
class Sight:
    """What else is known at the moment of a judgement.

    ``worked_on`` are patterns of nodes under maintenance, None where that cannot be
    read. ``lost`` are sources that are not connected.
    """

    worked_on: tuple[str, ...] | None = ()
    lost: frozenset[str] = frozenset()
