"""Hours of simulated storm through one agent: what it keeps must not grow.

Every hour the same things happen to another rail: a storm of flaps, a storm of pause,
bursts of bit errors, a driver that reloads, a device that goes and comes, corrected PCIe
errors, noise and rubbish in the logs of a job, which is killed and starts again. What
is weighed is all that can be reached from the pipeline and from the exposition,
without the simulator: objects and their bytes.

What a link did is remembered for a day, its last 300 outages and the last 4096 peers
by number: it takes days until these memories are full. They are made small here
(`small_memories`), so that they are full within hours: then nothing may grow.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import ceil, isnan
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)

from soak_report import growing, slope

from fabricmon.config_load import build
from fabricmon.pipeline import Pipeline
from fabricmon.replaying import Replay
from fabricmon.sim.host import simulated_host
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import Injection, JobPlan, Scenario
from fabricmon.sim.staging import Stage
from fabricmon.sinks.exposition import Exposition

HOUR = 3600.0
PROFILE = "H100-RoCE-8x400-DCQCN"
WARM_HOURS = 4
"""Small memories are full by then."""

MEMORIES = {
    "fabricmon.detect.downs": {"_DAY_SECONDS": HOUR},
    "fabricmon.detect.flap_track": {"MOST_OUTAGES": 4},
    "fabricmon.stories.roster": {"_CAUSES": 4, "MAX_PROCESSES": 8, "MAX_NODES": 4},
    "fabricmon.sources.log_owners": {"MOST_OWNERS": 8},
}
"""What is remembered for longer than a soak lasts, by module, and what it is here."""

_SHARED = (
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    CodeType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
"""What belongs to the program and not to what it remembers."""

GROWTH_BAR_KIB = 1.0
"""An hour may add so much beyond doubt: a megabyte in six weeks of storm."""

SCRAPE_SECONDS = 900.0

MINUTE = 60.0
_STORM: tuple[tuple[str, float, float | None, dict[str, float | bool]], ...] = (
    ("N44", 2, 56, {"every": 30}),
    ("F07", 5, 14, {"length": 500}),
    ("F34", 17, 20, {}),
    ("F04", 22, 25, {}),
    ("N03", 28, None, {}),
    ("F24", 33, 35, {}),
    ("F22", 38, 41, {}),
    ("N45", 43, None, {"length": 200_000}),
    ("F06", 45, 50, {"flaps": 4}),
    ("N19", 55, None, {"again": True}),
)
"""Class, minutes of the hour at which it begins and ends, magnitudes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept at the end of an hour."""

    hour: float
    objects: int
    octets: int
    incidents: int
    series: int
    resident_mib: float


def scenario(hours: float, profile: str = PROFILE, nodes: int = 2) -> Scenario:
    """Return so many hours of storm; the first node is hit by all of it."""
    rails = len(PROFILES[profile].compute)
    begun = range(ceil(hours))
    return Scenario(
        name="soak",
        summary="A storm without end",
        profile=profile,
        nodes=nodes,
        duration=hours * HOUR,
        jobs=(JobPlan(),),
        inject=tuple(
            each
            for hour in begun
            for each in _hour(hour, rails)
            if (each.end or each.onset) < hours * HOUR
        ),
    )


def _hour(hour: int, rails: int) -> Iterator[Injection]:
    for number, (what, begin, end, parameters) in enumerate(_STORM):
        yield Injection(
            what=what,
            node=0,
            rail=(hour + number) % rails,
            onset=hour * HOUR + begin * MINUTE,
            end=None if end is None else hour * HOUR + end * MINUTE,
            parameters=dict(parameters),
        )


@contextmanager
def small_memories() -> Iterator[None]:
    """Let agents that are made meanwhile remember less."""
    before = []
    for name, values in MEMORIES.items():
        module = import_module(name)
        for key, value in values.items():
            before.append((module, key, getattr(module, key)))
            setattr(module, key, value)
    try:
        yield
    finally:
        for module, key, value in before:
            setattr(module, key, value)


class Storm:
    """One agent through a storm; `play` lets it live, ``kept`` says what it kept."""

    def __init__(
        self,
        hours: float,
        config: Mapping[str, object] | None = None,
        profile: str = PROFILE,
        nodes: int = 2,
        tell: Callable[[Kept], None] = lambda _kept: None,
    ) -> None:
        stage = Stage(scenario(hours, profile, nodes))
        loaded = build(dict(config or {}), (), ())
        host = simulated_host(stage, 0)
        self._host = host
        self._replay = Replay(host, loaded, watcher=self)
        self._outside = (host, host.header, stage, self)
        self._exposition = Exposition(loaded.config, clock=host.monotonic)
        self._tell = tell
        self._scraped = self._weighed = 0.0
        self._series = 0
        self.kept: list[Kept] = []
        self.kinds: Counter[str] = Counter()
        self.extra: list[object] = []
        """What is weighed beside the agent: for whoever tests the scales."""

    @property
    def pipeline(self) -> Pipeline:
        """The node as it stands."""
        return self._replay.pipeline

    def play(self) -> Storm:
        """Live through all of it."""
        for change in self._replay.changes():
            self.kinds[change.incident.finding.kind] += 1
        return self

    def runs(self, pipeline: Pipeline, until: float) -> None:
        """Scrape now and then, weigh once an hour."""
        if until >= self._scraped + SCRAPE_SECONDS:
            self._scraped = until
            self._exposition.publish(pipeline.snapshot)
            text = self._exposition.render().body
            self._series = sum(not line.startswith(b"#") for line in text.splitlines())
        if until >= self._weighed + HOUR - 1:
            self._weighed += HOUR
            self._weigh(pipeline)

    def silent(self, until: float) -> None:
        """Nobody scrapes an agent that does not run."""

    def _weigh(self, pipeline: Pipeline) -> None:
        gc.collect()
        objects, octets = weigh((pipeline, self._exposition, self.extra), self._outside)
        kept = Kept(
            hour=self._weighed / HOUR,
            objects=objects,
            octets=octets,
            incidents=len(pipeline.snapshot.incidents),
            series=self._series,
            resident_mib=_resident_mib(),
        )
        self.kept.append(kept)
        self._tell(kept)


def weigh(roots: Iterable[object], outside: Iterable[object]) -> tuple[int, int]:
    """Return how many objects can be reached, and their bytes."""
    seen = {id(each) for each in outside}
    waiting = [each for each in roots if id(each) not in seen]
    seen.update(id(each) for each in waiting)
    objects = octets = 0
    while waiting:
        each = waiting.pop()
        objects += 1
        octets += sys.getsizeof(each)
        for other in gc.get_referents(each):
            if id(other) not in seen and not isinstance(other, _SHARED):
                seen.add(id(other))
                waiting.append(other)
    return objects, octets


def growth(kept: Sequence[Kept], value: Callable[[Kept], float]) -> tuple[float, float]:
    """Return what is added per simulated hour after the first ones, and how sure."""
    return slope(
        [each.hour * HOUR for each in kept],
        [value(each) for each in kept],
        WARM_HOURS * HOUR + 1,
    )


QUANTITIES: tuple[tuple[str, Callable[[Kept], float]], ...] = (
    ("kept objects", lambda kept: kept.objects),
    ("kept KiB", lambda kept: kept.octets / 1024),
    ("open incidents", lambda kept: kept.incidents),
    ("series", lambda kept: kept.series),
    ("resident MiB, simulator included", lambda kept: kept.resident_mib),
)


def storm(hours: float) -> bool:
    """Play and print a table; return whether nothing grows."""
    begun = time.process_time()
    with small_memories():
        played = Storm(hours, tell=_print).play()
    spent = time.process_time() - begun
    told = ", ".join(f"{kind} {n}" for kind, n in played.kinds.most_common())
    print(f"{hours:g} h of storm in {spent:.0f} s; changes: {told}")
    if not played.kept:
        print("too short to tell: what is kept is weighed at the end of each hour")
        return True
    print("| | fourth hour | last | most | growth a simulated hour (95 %) |")
    print("|---|---|---|---|---|")
    for name, value in QUANTITIES:
        values = [value(each) for each in played.kept]
        grows, off = growth(played.kept, value)
        begin = values[min(WARM_HOURS, len(values)) - 1]
        print(
            f"| {name} | {begin:,.1f} | {values[-1]:,.1f} | {max(values):,.1f} "
            f"| {growing(grows, off)} |"
        )
    grows, off = growth(played.kept, lambda kept: kept.octets / 1024)
    holds = not grows - off > GROWTH_BAR_KIB
    word = "too short to tell" if isnan(grows) else "holds" if holds else "MISSED"
    print(f"{word}: bar {GROWTH_BAR_KIB:g} KiB an hour")
    return holds


def _print(kept: Kept) -> None:
    print(
        f"hour {kept.hour:.0f}: {kept.objects:,} objects, {kept.octets / 1024:,.0f} KiB, "
        f"{kept.incidents} open, {kept.series} series, {kept.resident_mib:.1f} MiB",
        flush=True,
    )


def _resident_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
