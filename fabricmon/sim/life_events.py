"""What happens in healthy life, how often, and to how many: a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from fabricmon.sim.draw import magnitude
from fabricmon.sim.scenario import Injection, Magnitude

MONTH = 30.0  # days
_DRAINED = 20.0
"""Seconds between the end of the jobs and what they ended for, as N01 to N03 have it."""

Parameters = dict[str, Magnitude | str | bool]

PROFILES_IN_USE = {
    "H100-IB-NDR-8x400": 0.35,
    "H100-RoCE-8x400-DCQCN": 0.3,
    "A100-HDR-8x200": 0.15,
    "RoCE-8x400-PFC-only": 0.08,
    "EFA": 0.07,
    "B300-multiplane": 0.05,
}
"""Shares of the profiles among nodes: estimates."""


def draw_profile(random: Random) -> str:
    """Return a profile, each as often as there are nodes of it."""
    names, shares = tuple(PROFILES_IN_USE), tuple(PROFILES_IN_USE.values())
    return random.choices(names, shares)[0]


@dataclass(frozen=True, slots=True)
class Happens:
    """Something that happens now and then: a negative of the catalogue, ``per_day``.

    The rate is per node, or for all of them together with ``of_all``; where it is a
    span, lives differ. ``length`` are seconds, ``after`` those that are kept behind it.
    What takes no time of its own happens while other things go on. Thinned, a node has
    ``most_kept`` of it: what is judged over hours would see those of days together.
    """

    name: str
    what: str
    per_day: Magnitude
    length: Magnitude = 1.0
    after: float = 45.0
    of_all: bool = False
    takes_time: bool = True
    ends_jobs: bool = False
    most_kept: float = inf
    never_on: frozenset[str] = frozenset()
    only_ethernet: bool = False
    parameters: Callable[[float, Random], Parameters] = lambda _length, _random: {}

    def fits(self, profile: str, *, is_ethernet: bool) -> bool:
        """Tell whether it can happen to a profile."""
        return profile not in self.never_on and (is_ethernet or not self.only_ethernet)

    def occasion(self, at: float, node: int | None, random: Random) -> Occasion:
        """Draw one of it."""
        length = magnitude(random, self.length)
        return Occasion(self, at, length, node, self.parameters(length, random))


@dataclass(frozen=True, slots=True)
class Occasion:
    """One thing that happens, in seconds of life."""

    kind: Happens
    at: float
    length: float
    node: int | None
    parameters: Parameters = field(default_factory=dict)

    @property
    def until(self) -> float:
        """When it is over."""
        return self.at + self.length

    def later(self, earliest: float) -> Occasion:
        """Return it, ``earliest`` at the earliest."""
        return replace(self, at=max(self.at, earliest))

    def injection(self, at: float, duration: float) -> Injection:
        """Return it as a scenario has it, at a moment of that."""
        return Injection(
            what=self.kind.what,
            node=self.node,
            onset=at,
            end=min(at + self.length, duration),
            parameters=self.parameters,
        )


@dataclass(frozen=True, slots=True)
class Always:
    """Something that is so all the time in a share of all fleets."""

    kind: Happens
    share: float

    def always(self, duration: float) -> Injection:
        """Return it as a scenario has it."""
        parameters = self.kind.parameters(duration, Random(0))
        return Injection(
            what=self.kind.what, onset=1.0, end=duration, parameters=parameters
        )


def _boot(length: float, _: Random) -> Parameters:
    return {"boot": length - _DRAINED - 1}


def _rack(length: float, random: Random) -> Parameters:
    spread = random.uniform(30.0, 180.0)
    return {"spread": spread, "boot": max(length - spread - _DRAINED - 1, 60.0)}


def _training(length: float, _: Random) -> Parameters:
    return {"boot": length / 3, "window": length / 2}


def _gap(length: float, _: Random) -> Parameters:
    return {"gap": length}


def _reload(_: float, random: Random) -> Parameters:
    return {
        "keeps_pma": random.random() < 0.5,  # noqa: PLR2004 - both variants of N03
        "scope": random.choice(("node", "device")),
    }


def _update(_: float, random: Random) -> Parameters:
    return {"every": random.uniform(120, 200), "gone": (5, 15)}


def _clear(length: float, _: Random) -> Parameters:
    return {"every": length}


_EFA = frozenset({"EFA"})
_PLANES = frozenset({"EFA", "B300-multiplane"})

EVENTS: tuple[Happens, ...] = (
    # "reboots 1-4 per node-month"; of them 214 nodes' in waves of a rack in one case
    Happens("reboot", "N01", (0.4 / MONTH, 2 / MONTH), (141, 621), 180,
            ends_jobs=True, parameters=_boot),
    Happens("reboot with training", "N16", (0.2 / MONTH, 0.8 / MONTH), (360, 1200),
            120, ends_jobs=True, never_on=_EFA, parameters=_training),
    Happens("rack reboot", "N02", (0.4 / MONTH, 1.2 / MONTH), (300, 700), 180,
            of_all=True, ends_jobs=True, parameters=_rack),
    Happens("driver reload", "N03", (0.3 / MONTH, 2 / MONTH), 120, 120,
            ends_jobs=True, parameters=_reload),
    Happens("rolling update", "N29", 0.3 / MONTH, 900, 120, of_all=True,
            ends_jobs=True, never_on=_PLANES, parameters=_update),
    Happens("leaf upgrade", "N28", 0.3 / MONTH, (300, 660), 120, of_all=True,
            ends_jobs=True, never_on=_EFA,
            parameters=lambda length, _: {"down": (length - 20) / 1.05}),
    Happens("agent restart", "N30", (1 / MONTH, 4 / MONTH), (5, 600), 90,
            parameters=_gap),
    Happens("starved agent", "N31", 4 / MONTH, (120, 300), 60),
    Happens("slow compute", "N47", 1 / MONTH, (300, 900), of_all=True),
    Happens("benchmark", "N36", 1 / MONTH, (180, 600), of_all=True),
    Happens("warm room", "N41", 1 / MONTH, (900, 1800), of_all=True, never_on=_EFA,
            parameters=lambda length, _: {"ramp": length * 0.8}),
    # Within what is kept anyhow
    Happens("clock step", "N32", 1 / MONTH, 310, takes_time=False),
    Happens("counters cleared", "N04", 2 / MONTH, 30, takes_time=False,
            parameters=_clear),
    Happens("read errors", "N15", 1.0, (4, 12), takes_time=False, never_on=_EFA),
    Happens("management bounce", "N13", 1 / MONTH, (1, 20), takes_time=False,
            most_kept=2),
    Happens("interrupted job's log", "N44", 4 / MONTH, 120, takes_time=False),
    Happens("missed poll", "N31", 4.0, (10, 20), takes_time=False,
            parameters=_gap),
)  # fmt: skip
"""What happens to nodes."""

ALWAYS: tuple[Always, ...] = (
    Always(Happens("job starts", "N18", 0), 1.0),
    Always(Happens("storage bursts", "N12", 0, never_on=_EFA), 0.3),
    Always(Happens("reordering", "N24", 0, only_ethernet=True), 0.25),
    Always(Happens("damaged bits", "N40", 0, never_on=_EFA), 0.1),
    Always(Happens("counters cleared for ever", "N04", 0, never_on=_EFA), 0.05),
    Always(Happens("saturated", "N05", 0, never_on=_EFA), 0.05),
    Always(Happens("restricted function", "N14", 0, never_on=_EFA), 0.1),
    Always(Happens("static background", "N39", 0, never_on=_EFA), 0.1),
    Always(Happens("narrow slots", "N43", 0, never_on=_EFA), 0.1),
    Always(Happens("power saving", "N42", 0, never_on=_PLANES), 0.1),
)
"""What fleets are like: shares are estimates."""
