"""Small fleets for tests of the simulator, and what their nodes count over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fabricmon.host.protocol import ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.sim.effects import Effect, SimPort
from fabricmon.sim.host import simulated_host
from fabricmon.sim.scenario import JobPlan, Scenario
from fabricmon.sim.staging import Stage

WORD = 4
SAMPLE = 0.1


def stage(*effects: Effect, seed: int = 1, **keys: Any) -> Stage:
    """Return a fleet of four nodes without noise that runs for five minutes."""
    usual: dict[str, Any] = {"nodes": 4, "duration": 300.0, "noise": 0.0}
    scenario = Scenario(name="test", summary="A test.", **(usual | keys))
    return Stage(scenario, seed, effects)


def steady_job(**keys: Any) -> JobPlan:
    """Return a job of two seconds of computing and one of communication."""
    usual: dict[str, Any] = {"start": 0.0, "init": 5.0, "step": 3.0, "load": 0.99,
                             "communication": 1 / 3}  # fmt: skip
    return JobPlan(**(usual | keys))


@dataclass(frozen=True)
class Rates:
    """Octets a second of a port, one for each tenth of a second."""

    samples: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean in Gb/s."""
        return 8e-9 * sum(self.samples) / len(self.samples)

    @property
    def busy(self) -> float:
        """Share of samples in which it carries anything to speak of."""
        return sum(8e-9 * each > 4 for each in self.samples) / len(self.samples)

    @property
    def p99(self) -> float:
        """99th percentile in Gb/s."""
        return 8e-9 * sorted(self.samples)[int(0.99 * len(self.samples))]


def path(port: SimPort, file: str) -> str:
    """Return the path of a file of a port."""
    return f"/sys/class/infiniband/{port.device}/ports/{port.port}/{file}"


def number(host: ReplayHost, file: str) -> int:
    """Return the number in a file."""
    raw = host.read(file)
    assert not isinstance(raw, ReadError), (file, raw)
    return int(raw)


def text(host: ReplayHost, file: str) -> str:
    """Return the text in a file, or the errno."""
    raw = host.read(file)
    return raw.errno if isinstance(raw, ReadError) else raw.decode().strip()


def series(
    made: Stage, node: int, files: Sequence[str], times: Iterable[float]
) -> list[tuple[int, ...]]:
    """Return what files of a node hold at some times."""
    host = simulated_host(made, node)
    found = []
    for t in times:
        host.advance(t)
        found.append(tuple(number(host, file) for file in files))
    return found


def rates(
    made: Stage, ports: Sequence[SimPort], begin: float, end: float
) -> list[Rates]:
    """Return what ports of one node receive, in samples of a tenth of a second."""
    files = [path(port, "counters/port_rcv_data") for port in ports]
    count = round((end - begin) / SAMPLE)
    times = [begin + SAMPLE * number for number in range(count + 1)]
    rows = series(made, ports[0].node, files, times)
    return [
        Rates(
            tuple(
                (after[place] - before[place]) * WORD / SAMPLE
                for before, after in pairwise(rows)
            )
        )
        for place in range(len(files))
    ]
