"""The only door to the node: the live node, a recorded trace and the simulator.

Paths are absolute as seen on the node; the host puts its root before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fabricmon.model import LinkEvent


@dataclass(frozen=True, slots=True)
class ReadError:
    """A read that failed; ``errno`` is a name such as ``EINVAL``."""

    errno: str


@dataclass(frozen=True, slots=True)
class Statistic:
    """One driver statistic of a network device, as ``ethtool -S`` names it."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a tool printed; ``exit_status`` is None when it was ended at its deadline."""

    stdout: bytes
    stderr: bytes
    exit_status: int | None


class Host(Protocol):
    """What sources may ask of a node. Every call may block, none writes."""

    @property
    def firmware_reads(self) -> int:
        """Reads so far that reached the firmware of a device."""

    @property
    def tells_links(self) -> bool:
        """Whether `link_events` tells of changes; else states must be polled."""

    def monotonic(self) -> float:
        """Seconds that never jump; the clock of all windows."""

    def wall(self) -> float:
        """Unix seconds; may jump."""

    def boot_id(self) -> str:
        """Identity of the running boot, empty if the node does not say."""

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file whole; ``firmware_reads`` is its cost to the device."""

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files one after the other, in order, as fast as the kernel allows."""

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder, sorted."""

    def target(self, path: str) -> str | None:
        """Path with every symbolic link followed, None if it does not exist."""

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics of a network device."""

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Changes of network devices since the last call."""

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Run one of the known tools (``ibstat``), never longer than ``seconds``."""
