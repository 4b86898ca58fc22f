"""What a source is: a synchronous poll of one target, cheap and without state."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from fabricmon.config import Config, Periods
from fabricmon.host.protocol import Host
from fabricmon.model import Record, Target
from fabricmon.value import Value


class Scope(StrEnum):
    """What a source is polled for."""

    NODE = "node"  # once; the target has no HCA
    DEVICE = "device"  # each listed device, its HCA perhaps not known yet
    HCA = "hca"  # each device whose identity is known


class Lane(StrEnum):
    """Where a poll runs; a read that hangs holds only its own lane."""

    NODE = "node"  # reads that cannot reach firmware
    DEVICE = "device"  # one lane per RDMA device
    DRIVER = "driver"  # driver statistics: one netdev at a time on the node
    TOOL = "tool"  # commands
    LOG = "log"  # log files: the file system of a log may hang
    JOB = "job"  # jobs and processes


Poll = Callable[[Host, Target, Config], tuple[Record, ...]]


class Source(Value, frozen=True):
    """One row of the registry."""

    name: str
    scope: Scope
    lane: Lane
    period: Callable[[Periods], float]
    poll: Poll
