"""A node whose rails a test plays: duty and rate of each, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fabricmon.config import Config
from fabricmon.detect.straggler import Stragglers
from fabricmon.model import Burst, Finding, JobUse, JobView, PortInfo, View
from tests.node import RAILS
from tests.views import START, make_view, port_view

LINE = 400e9 / 8
"""Bytes per second of a 400 Gb/s link."""
SAMPLES = 16
STEP = 1 / (SAMPLES - 1)


@dataclass
class Rails:
    """Windows of all rails, one after the other, through the detector.

    ``play`` takes the share of a window that each rail is busy, and its rate as a share
    of the line. ``every`` seconds lie between windows of 3 s.
    """

    infos: Sequence[PortInfo] = RAILS
    config: Config = field(default_factory=Config)
    every: float = 30.0
    now: float = START
    jobs: tuple[JobUse, ...] = ()
    parts: dict[str, object] = field(default_factory=dict)
    ports: dict[str, dict[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.detector = Stragglers(self.config)
        self.bursts: tuple[Burst, ...] = ()

    def play(
        self, busy: Sequence[float], rate: Sequence[float], times: int = 1
    ) -> list[Finding]:
        """Let windows pass, return what holds after the last."""
        found: list[Finding] = []
        for _ in range(times):
            self.now += self.every
            self.bursts = tuple(self._bursts(busy, rate))
            found = list(self.detector.judge(self.view()))
        return found

    def view(self) -> View:
        """Return the view of this moment."""
        ports = tuple(
            port_view(info, **self.ports.get(info.id.device, {})) for info in self.infos
        )
        view = make_view(self.now, ports=ports, bursts=self.bursts)
        return replace(view, job=JobView(jobs=self.jobs), **self.parts)  # type: ignore[arg-type]

    def _bursts(self, busy: Sequence[float], rate: Sequence[float]) -> Iterable[Burst]:
        for info, share, speed in zip(self.infos, busy, rate, strict=True):
            for direction in ("transmitted", "received"):
                p99 = speed * LINE if share else 0.0
                mean = share * p99
                yield Burst(
                    info.id, direction, self.now - 3, self.now, SAMPLES, share, p99,
                    mean, 0,
                )  # fmt: skip


def healthy(rails: int = 8, busy: float = 6 * STEP, rate: float = 0.85) -> tuple[
    list[float], list[float]
]:  # fmt: skip
    """Return equal rails."""
    return [busy] * rails, [rate] * rails


def slow(
    which: int, rails: int = 8, *, busy: float = 10 * STEP, rate: float = 0.47
) -> tuple[list[float], list[float]]:
    """Return rails of which one needs longer at a lower rate."""
    duty, speed = healthy(rails)
    duty[which], speed[which] = busy, rate
    return duty, speed
