"""What a fault may ask of the fleet that it is put into, and its random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fabricmon.sim.effects import SimPort


class Plan(Protocol):
    """What a fault may ask of the fleet that it is put into."""

    duration: float
    line_rate_gbps: float
    is_infiniband: bool
    has_cnp: bool
    nodes: int
    rails: int
    sights: frozenset[str]

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

    def job_start(self, job: str) -> float:
        """When the first step of a job begins."""

    def peers(self, port: SimPort) -> tuple[SimPort, ...]:
        """Ports that exchange data with this one in its jobs' rings."""

    def netdev(self, port: SimPort) -> str:
        """Network device of a port."""

    def pci_address(self, port: SimPort) -> str:
        """PCI address of a port's device."""

    def address(self, node: int) -> str:
        """Out-of-band address of a node, as NCCL prints it."""


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
