"""A node whose logs are read, and lines of them, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.catalogue import Directory, FaultClass, Group, Signal
from fabricmon.detect.flaps import Flaps
from fabricmon.detect.link_state import LinkState
from fabricmon.detect.nccl import NcclErrors
from fabricmon.model import (
    Incident,
    LogEvent,
    LogSeverity,
    Part,
)
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, read_log
from tests import views
from tests.node import Node

PEER = "10.20.0.7"
RETRIES = {
    file: views.spec(
        file,
        signal,
        directory=Directory.HW_COUNTERS,
        group=Group.HARDWARE,
        fault_class=FaultClass.RETRY,
    )
    for file, signal in (
        ("local_ack_timeout_err", Signal.ACK_TIMEOUT),
        ("req_transport_retries_exceeded", Signal.RETRIES_EXCEEDED),
        ("req_rnr_retries_exceeded", Signal.NOT_READY_EXCEEDED),
    )
}
FILES = ("link_downed", "carrier_down_count", "symbol_error", *RETRIES)


def event(kind: str = "ib_completion_error", **known: Any) -> LogEvent:
    """Return an event of a running job; by default a status 12 on mlx5_3."""
    values: dict[str, Any] = {
        "kind": kind,
        "severity": LogSeverity.CRITICAL,
        "rule": "C1",
        "file": "/var/log/nccl/a.log",
        "line_number": 1,
        "offset": 0,
        "status": 12,
        "device": "mlx5_3",
        "peer": PEER,
        "pid": 100,
        "host": "node-1",
        "job": "42",
        "library": "nccl",
        "library_version": "2.23.4",
    }
    return LogEvent(**(values | known))


def context(kind: str, **known: Any) -> LogEvent:
    """Return a line that tells of no fault."""
    plain = {"severity": LogSeverity.INFO, "status": None, "device": None, "peer": None}
    return event(kind, **(plain | known))


def port_event(text: str, **known: Any) -> LogEvent:
    """Return an asynchronous event of a port."""
    values = {"status": text, "port": 1, "peer": None, "rule": "A1"}
    return event("ib_async_event", **(values | known))


def started(rank: int) -> tuple[LogEvent, ...]:
    """Return the start of a rank that sends by the NIC of its own number."""
    head = f"node-1:{100 + rank}:{200 + rank} [{rank}] NCCL INFO"
    nics = " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(8))
    text = (
        f"{head} NET/IB : Using {nics} [RO]; OOB eth0:10.20.0.1<0>\n"
        f"{head} ncclCommInitRankConfig comm 0x5{rank} rank {rank} nranks 16 cudaDev "
        f"{rank} nvmlDev {rank} busId {rank}b000 commId 0x12 - Init START\n"
        f"{head} Channel 00/0 : {rank}[{rank}] -> {rank + 8}[{rank}] [send] "
        f"via NET/IB/{rank}/GDRDMA\n"
    )
    batch = read_log(text.encode(), NEW_LOG, "a.log", RuleTable.of(), final=True)
    return tuple(replace(each, job="42") for each in batch.events)


class Logged(Node):
    """A node with eight rails whose logs are read."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("files", FILES)
        super().__init__(LinkState, Flaps, NcclErrors, begin=False, **options)
        self.specs |= RETRIES
        self.step_all()

    def hear(self, *events: LogEvent) -> None:
        """Read these lines, and look at what follows for a moment."""
        self.logged = list(events)
        self.step_all(1)
        self.run(4, each=1)

    @property
    def error(self) -> Incident:
        """The open error."""
        return self.open_of("nccl_error")

    def signals(self, kind: str = "nccl_error") -> list[str]:
        """The names of the evidence of an open finding."""
        return [item.signal for item in self.open_of(kind).finding.evidence]

    @property
    def part(self) -> Part:
        """The part that the open error gives this node."""
        return self.error.finding.part
