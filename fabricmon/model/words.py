"""Words of findings and verdicts, ordered where they are compared."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Role(StrEnum):
    """What a port is for; only compute ports form rails."""

    COMPUTE = "compute"
    STORAGE = "storage"
    MANAGEMENT = "management"
    UNKNOWN = "unknown"


class Severity(IntEnum):
    """How bad; ordered, so that the worst is the maximum."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """The word used in findings and labels."""
        return self.name.lower()


class Part(StrEnum):
    """The part that a place plays in a fault."""

    CULPRIT = "culprit"
    VICTIM = "victim"
    OBSERVER = "observer"


class Action(StrEnum):
    """Advice to whoever sees the fleet; anything but NONE needs local evidence."""

    NONE = "none"
    INSPECT = "inspect"
    DRAIN_AFTER_JOB = "drain_after_job"
    DRAIN_NOW = "drain_now"


class Verdict(IntEnum):
    """The state of a port or node in one word; the numbers are exported."""

    HEALTHY = 0
    UNKNOWN = 1
    DEGRADED = 2
    DOWN = 3

    @property
    def word(self) -> str:
        """The word used in documents."""
        return self.name.lower()


class Mark(IntEnum):
    """How far the increase of a counter may be trusted."""

    OK = 0
    FIRST = 1
    RESET = 2
    SATURATED = 3
    GAP = 4
