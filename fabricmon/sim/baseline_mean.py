"""Outliers of mean throughput, over nodes and over rails, and nothing else.

The usual dashboard rule, with the numbers that fit it best: robust z = (x - median) /
max(1.4826 MAD, 5 % of the median), an outlier from 4 on, in 6 of 10 windows
(``health-systems``, algorithm A5). It is given the job's nodes, which a dashboard
often does not have.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fabricmon.finding_document import FindingDocument
from fabricmon.model import Action, PortId, Severity
from fabricmon.sim.baseline_counting import Remembered
from fabricmon.sim.baseline_ledger import Ledger, Verdict
from fabricmon.sim.baseline_node import PeerNode
from fabricmon.sim.truth import FleetFile

LIMIT = 4.0
SCALE = 1.4826  # of the median absolute deviation to a standard deviation
FLOOR = 0.05  # of the median
HITS, WINDOWS = 6, 10
LEAST = 4  # fewer have no outlier
BUSY_BYTES_PER_SECOND = 0.5e9  # 1 % of 400 Gb/s: below that nothing runs

_FILES = ("counters/port_xmit_data", "counters/port_rcv_data")
_WORD = 4  # octets
_VERDICT = Verdict("straggler_link", Severity.WARNING, Action.INSPECT)


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean bytes per second of a rail of a node in the window that ends at ``t``."""

    t: float
    port: PortId
    rail: int
    rate: float


class MeanMeter:
    """Measures the means of one node; one window is one poll."""

    name = "mean-throughput"
    seconds = 30.0

    def __init__(self) -> None:
        self._last: dict[tuple[PortId, str], Remembered] = defaultdict(Remembered)
        self.means: list[Mean] = []

    def poll(self, node: PeerNode) -> None:
        """Measure once."""
        for rail, port in enumerate(node.watched):
            rates = []
            for file in _FILES:
                value = node.counter(port.id, file)
                move = self._last[port.id, file].move(node.now, value)
                if move is not None and not move.is_reset:
                    rates.append(move.per_second * _WORD)
            if rates:
                self.means.append(Mean(node.now, port.id, rail, sum(rates)))


def outliers(
    means: Mapping[str, Sequence[Mean]], fleet: FleetFile, start: float
) -> Iterator[FindingDocument]:
    """Judge all nodes' means together; ``start`` is Unix seconds of t = 0."""
    ledgers = {node: Ledger(MeanMeter.name, node, start) for node in means}
    recent: dict[tuple[str, PortId], deque[bool]] = defaultdict(
        lambda: deque(maxlen=WINDOWS)
    )
    for t, window in sorted(_windows(means).items()):
        odd = _odd(window, fleet, t)
        for node, mean in window:
            hits = recent[node, mean.port]
            hits.append((node, mean.port) in odd)
            if sum(hits) >= HITS:
                ledgers[node].tell(t, mean.port, _VERDICT, "mean_throughput", mean.rate)
            elif not any(hits):
                ledgers[node].close(t, mean.port, _VERDICT.kind)
    for ledger in ledgers.values():
        yield from ledger.documents


def robust_z(values: Sequence[float]) -> list[float]:
    """Return how far each value is from the median, in robust standard deviations."""
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    scale = max(SCALE * spread, FLOOR * abs(middle))
    return [(value - middle) / scale if scale else 0.0 for value in values]


def _windows(
    means: Mapping[str, Sequence[Mean]],
) -> dict[float, list[tuple[str, Mean]]]:
    windows = defaultdict(list)
    for node, many in means.items():
        for mean in many:
            windows[round(mean.t / MeanMeter.seconds) * MeanMeter.seconds].append(
                (node, mean)
            )
    return windows


def _odd(
    window: Sequence[tuple[str, Mean]], fleet: FleetFile, t: float
) -> frozenset[tuple[str, PortId]]:
    """Return the ports that are outliers in their rail or in their node."""
    groups = defaultdict(list)
    for node, mean in window:
        groups[f"node {node}"].append((node, mean))
        for job in fleet.jobs:
            if node in job.nodes and job.start <= t - MeanMeter.seconds <= t <= job.end:
                groups[f"job {job.id} rail {mean.rail}"].append((node, mean))
    return frozenset(
        (node, mean.port)
        for group in groups.values()
        if _is_busy(group)
        for (node, mean), z in zip(
            group, robust_z([mean.rate for _, mean in group]), strict=True
        )
        if abs(z) >= LIMIT
    )


def _is_busy(group: Sequence[tuple[str, Mean]]) -> bool:
    middle = median(mean.rate for _, mean in group)
    return len(group) >= LEAST and middle >= BUSY_BYTES_PER_SECOND
