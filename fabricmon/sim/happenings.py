"""What happens to a job: its flows, and what breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from fabricmon.sim.effects import SimPort


class Activity(StrEnum):
    """What a job does."""

    IDLE = "idle"
    INIT = "init"
    COMPUTE = "compute"
    COMMUNICATE = "communicate"
    CHECKPOINT = "checkpoint"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Limit:
    """The port that paces a rail below what it wants: as a receiver, sender or both."""

    port: SimPort
    share: float
    receives: bool
    sends: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """What a job carries from ``t`` on: a share of the line rate for each rail."""

    t: float
    activity: Activity
    members: tuple[int, ...]
    shares: tuple[float, ...]
    limits: tuple[Limit | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """A run of the job begins to connect."""

    t: float
    run: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AckTimeouts:
    """Every queue pair between these ports and the silent one resends."""

    t: float
    rail: int
    ports: tuple[SimPort, ...]
    silent: SimPort


@dataclass(frozen=True, slots=True)
class RetriesExceeded:
    """The retries are used up: queue pairs of these ports towards ``silent`` died."""

    t: float
    rail: int
    ports: tuple[SimPort, ...]
    silent: SimPort


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over; ``failed`` unless it was done or told to end.

    ``crashed`` is the node whose crash ended it.
    """

    t: float
    run: int
    members: tuple[int, ...]
    failed: bool
    crashed: int | None = None


Happening: TypeAlias = Flow | Started | AckTimeouts | RetriesExceeded | Ended
