"""What a fault may ask of the fleet that it is put into, and its random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from fabricmon.sim.effects import SimPort


@dataclass(frozen=True, slots=True)
class Work:
    """A job uses a port: from ``start``, with data from ``first_step`` to ``end``."""

    job: str
    start: float
    first_step: float
    end: float


class Plan(Protocol):
    """What a fault may ask of the fleet that it is put into.

    ``slot_speed`` is in GT/s a lane.
    """

    duration: float
    line_rate_gbps: float
    is_infiniband: bool
    has_cnp: bool
    nodes: int
    rails: int
    sights: frozenset[str]
    slot_speed: float
    slot_width: int

    @property
    def shown(self) -> frozenset[str]:
        """What these machines let an agent see of a rail.

        Sights, meters that are counted where a sight shows it, and `STATE`.
        """

    def node_name(self, node: int) -> str:
        """Name of a node in traces."""

    def rail(self, node: int, rail: int) -> SimPort:
        """The port of a rail."""

    def storage(self, node: int) -> tuple[SimPort, ...]:
        """The storage ports of a node."""

    def management(self, node: int) -> SimPort | None:
        """The management port of a node."""

    def unused(self, node: int) -> tuple[SimPort, ...]:
        """Ports that nothing was ever plugged into."""

    def rate_text(self, port: SimPort, share: float = 1.0) -> str:
        """What ``rate`` says at this share of the line rate, by the profile."""

    def leaf(self, port: SimPort) -> str:
        """The leaf that a port hangs on."""

    def ports_of_leaf(self, leaf: str) -> tuple[SimPort, ...]:
        """Every port on a leaf."""

    def rack(self, node: int) -> tuple[int, ...]:
        """The nodes of the same rack."""

    def jobs_of(self, node: int) -> tuple[str, ...]:
        """Ids of the jobs that use a node."""

    def jobs_on(self, port: SimPort) -> tuple[str, ...]:
        """Ids of the jobs that use a port, whenever that is."""

    def work(self, port: SimPort) -> tuple[Work, ...]:
        """When jobs use a port, in order of their starts."""

    def job_start(self, job: str) -> float:
        """When the first step of a job begins."""

    def ack_seconds(self, job: str) -> float:
        """Time after which a job's connections miss an acknowledgement."""

    def retries(self, job: str) -> int:
        """How often they send again before they give up."""

    def peers(self, port: SimPort) -> tuple[SimPort, ...]:
        """Ports that exchange data with this one in its jobs' rings."""

    def netdev(self, port: SimPort) -> str:
        """Network device of a port."""

    def pci_address(self, port: SimPort) -> str:
        """PCI address of a port's device."""

    def address(self, node: int) -> str:
        """Out-of-band address of a node, as NCCL prints it."""


STATE: Final = "state"
"""In `Plan.shown`: state files tell of the link. Those of EFA always say ACTIVE."""


class Draw(Protocol):
    """The random numbers of one injection, from the seed and its place in the file."""

    def number(self, key: str, default: float | Sequence[float]) -> float:
        """The magnitude ``key`` of the injection, else drawn from ``default``."""

    def uniform(self, low: float, high: float) -> float:
        """A number between."""

    def pick(self, many: Sequence[int]) -> int:
        """One of many."""

    def poisson(self, mean: float) -> int:
        """A count."""

    def gap(self, mean: float) -> float:
        """A time to the next event of a Poisson process."""
