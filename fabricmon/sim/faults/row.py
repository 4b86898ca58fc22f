"""What a class of the catalogue is: one row, from which truth and manual derive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from fabricmon.sim.effects import Made
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection, Sight


class Group(StrEnum):
    """Classes that lead to the same people and tools: rows of a confusion matrix.

    Mixing up answers within a group costs less than mixing up groups. No class is of
    `TELEMETRY`, but findings are: of what the monitor cannot see.
    """

    LINK = "link"
    FLAP = "flap/down"
    PCIE = "pcie"
    HOST = "host"
    PAUSE = "pause origin"
    CONGESTION = "congestion"
    FABRIC = "fabric"
    REMOTE = "remote"
    STRAGGLER = "straggler"
    CONFIG = "config"
    NOT_NETWORK = "not-network"
    TELEMETRY = "telemetry"


class Known(StrEnum):
    """How well a magnitude is known."""

    SOURCE = "S"
    """Documented in a source that the fault catalogue names."""
    DERIVED = "D"
    """Derived by arithmetic."""
    ESTIMATE = "E"
    """An engineering estimate, to be calibrated on hardware."""


class Scaling(StrEnum):
    """What becomes of a parameter when the magnitude of the fault is multiplied."""

    NONE = "no"
    TIMES = "multiplied"
    SHORTER = "divided"
    """Fewer of it is more of the fault: gaps between events."""
    LOSS = "its distance to 1 is multiplied"
    """A share of the capacity that is left."""


class Fabric(StrEnum):
    """Where a class can be."""

    BOTH = "any"
    INFINIBAND = "InfiniBand"
    ETHERNET = "RoCE"


Value: TypeAlias = float | tuple[float, float] | str | bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A magnitude of a class.

    ``default`` is a number, the two ends of a distribution uniform in the logarithm,
    a word out of ``words``, or a switch. ``low`` and ``high`` bound what may be given.
    """

    name: str
    default: Value
    unit: str
    meaning: str
    known: Known = Known.ESTIMATE
    scaling: Scaling = Scaling.NONE
    low: float = 0.0
    high: float = float("inf")
    words: tuple[str, ...] = ()


Needs: TypeAlias = tuple[tuple[Sight | Meter | Literal["state"], ...], ...]
"""Of each group one is needed: a sight, a meter that the machines count and a sight
shows, or state files that tell (`planning.STATE`). An empty group is never there."""

NOT_SEEN: Needs = ((),)
"""Nothing of a node shows it."""

Make: TypeAlias = Callable[[Injection, Plan, Draw], Made]
"""Turns an injection into effects and truth; raises `ConfigError`."""


@dataclass(frozen=True, slots=True)
class FaultClass:
    """A fault class (``F01`` to ``F57``) or a negative (``N01`` to ``N50``).

    ``accept`` are the kinds that answer it, none for a negative; ``deadline`` seconds
    are the most that may pass from the complete signature to such an answer.
    ``needs`` is what its signature shows in. ``by_vote``: only several nodes together
    can tell; ``by_traffic``: only while a job uses the place. A negative that is not
    ``silent`` may be told as a warning, but nobody may be blamed.
    """

    id: str
    title: str
    group: Group
    make: Make
    accept: tuple[str, ...] = ()
    deadline: float = 0.0
    needs: Needs = (("sysfs",),)
    by_vote: bool = False
    by_traffic: bool = False
    fabric: Fabric = Fabric.BOTH
    parameters: tuple[Parameter, ...] = ()
    silent: bool = True

    @property
    def is_negative(self) -> bool:
        """Whether it is no fault of the fabric: nobody may be blamed."""
        return self.id.startswith("N")

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name."""
        return next((each for each in self.parameters if each.name == name), None)

    def is_visible(self, shown: frozenset[str]) -> bool:
        """Tell whether the signature is in what these machines show (`Plan.shown`)."""
        return all(shown.intersection(any_of) for any_of in self.needs)
