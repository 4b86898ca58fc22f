"""Everything that the records of a trace up to some moment say of the node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import msgspec

from fabricmon.host.carrier import CarrierWatch
from fabricmon.host.node_logs import Logs
from fabricmon.host.node_statistics import DriverStatistics
from fabricmon.host.protocol import CommandOutput, KernelLine
from fabricmon.host.trace import Bridging, Module, Printed, TraceRecord
from fabricmon.host.tree import ImpossibleError, Tree, as_bytes, attempt
from fabricmon.model import HealthReporter, LinkEvent
from fabricmon.value import Value

BOOT_ID = "/proc/sys/kernel/random/boot_id"
UPTIME = "/proc/uptime"

MAX_WAITING = 10_000
"""Link events and kernel log lines that wait to be fetched; the oldest go first."""

MAX_DURATION = 1e9
"""Longer delays and steps of the clock (31 years) are damage."""

_Item = TypeVar("_Item")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Command(Value, frozen=True):
    """What a command prints and how many seconds it takes."""

    output: CommandOutput
    seconds: float

    def within(self, seconds: float) -> CommandOutput:
        """Return the output if it comes in time; else nothing, and no exit status."""
        in_time = self.seconds <= seconds or self.output.exit_status is None
        return self.output if in_time else CommandOutput(b"", b"", None)

    def printed(self) -> Printed:
        """Return it as a trace has it."""
        return Printed(
            stdout=self.output.stdout.decode("utf-8", "surrogateescape"),
            stderr=self.output.stderr.decode("utf-8", "surrogateescape"),
            exit=self.output.exit_status,
            seconds=self.seconds,
        )


class _Uptime:
    """/proc/uptime: its first number grows with time."""

    __slots__ = ("_seconds", "_since", "_text")

    def __init__(self, text: bytes, since: float) -> None:
        self._text = text
        self._since = since
        self._seconds = float(text.split()[0])

    def text(self, now: float) -> bytes:
        if now <= self._since:
            return self._text
        rest = self._text.lstrip().partition(b" ")[2]
        return b"%.2f %b" % (self._seconds + now - self._since, rest or b"\n")


class Node:
    """The state of a node; `apply` moves it on, everything else asks it.

    ``boots`` counts the reboots; ``wall_offset`` sums the steps of the wall clock.
    """

    def __init__(self, boot_id: str) -> None:
        self.tree = Tree()
        self.statistics = DriverStatistics(self.tree)
        self.logs = Logs(self.tree)
        self.boots = 0
        self.boot_id = boot_id
        self.wall_offset = 0.0
        self.clock_error: float | None = None
        self._watch = CarrierWatch(self.tree)
        self._events: deque[LinkEvent] = deque(maxlen=MAX_WAITING)
        self._kernel_lines: deque[KernelLine] = deque(maxlen=MAX_WAITING)
        self._commands: dict[str, Command] = {}
        self._slow: dict[str, float] = {}
        self._hangs: dict[str, float] = {}
        self._modules: dict[str, Module] = {}
        self._bridging: dict[str, Bridging] = {}
        self._reporters: dict[str, dict[str, str]] = {}
        self._uptime_set: float | None = None
        attempt(self._show_boot_id, [(boot_id,)])

    def apply(self, record: TraceRecord) -> list[str]:
        """Make a record's changes; return what could not be done, and why.

        Files first, in the order of the format, then driver statistics, then the rest.
        """
        complaints = self.tree.apply(record)
        complaints += self.statistics.apply(record)
        if UPTIME in record.set:
            self._start_uptime(record.t)
        if self._watch.concerns(record):
            self._events += self._watch.look(record.t)
        if record.boot_id is not None:
            complaints += attempt(self._boot, [(record.boot_id, record.t)])
        complaints += attempt(self._set_slow, record.slow.items())
        complaints += attempt(self._set_hang, record.hang.items())
        complaints += self.logs.apply(record)
        self._kernel_lines += (KernelLine(record.t, text) for text in record.kmsg)
        complaints += attempt(self._set_command, record.command.items())
        _merge(self._modules, record.module)
        _merge(self._bridging, record.dcb)
        self._set_reporters(record)
        complaints += attempt(self._step_clock, [("wall_step", record.wall_step)])
        if record.clock_error is not None:
            self.clock_error = record.clock_error
        return complaints

    def whole(self, now: float, t: float) -> TraceRecord:
        """Return the record of ``t`` that makes this node of an empty one.

        But for its logs, its boot and the time on its wall clock.
        """
        known = self._commands.items()
        return msgspec.structs.replace(
            self.tree.whole(now),
            t=t,
            ethtool=self.statistics.whole(now),
            command={name: command.printed() for name, command in known},
            module=dict(self._modules),
            dcb=dict(self._bridging),
            devlink={place: dict(each) for place, each in self._reporters.items()},
            clock_error=self.clock_error,
        )

    def link_events(self, now: float) -> tuple[LinkEvent, ...]:
        """Return the changes of network devices since the last call."""
        if self._watch.is_moving:
            self._events += self._watch.look(now)
        return _drain(self._events)

    @property
    def has_link_events(self) -> bool:
        """Tell whether changes of network devices wait to be fetched."""
        return bool(self._events)

    def put_back(
        self, events: Iterable[LinkEvent], lines: Iterable[KernelLine]
    ) -> None:
        """Let what was fetched wait again, before what has come since."""
        self._events.extendleft(reversed(tuple(events)))
        self._kernel_lines.extendleft(reversed(tuple(lines)))

    def postpone_events(self, since: float, until: float) -> None:
        """Let events since then be heard at ``until``: nobody listened before."""
        events = _drain(self._events)
        self._events += (
            event if event.at < since else replace(event, at=until) for event in events
        )

    def is_up(self, netdev: str) -> bool | None:
        """Tell whether a network device is up, None if it does not say."""
        return self._watch.up(netdev)

    def kernel_log(self) -> tuple[KernelLine, ...]:
        """Return the kernel's log lines since the last call."""
        return _drain(self._kernel_lines)

    def command(self, name: str) -> Command | None:
        """Return what a command prints, None if it is not installed."""
        return self._commands.get(name)

    def module(self, port: str) -> Module | None:
        """Return the transceiver of a port such as ``mlx5_0/1``."""
        return self._modules.get(port)

    def bridging(self, netdev: str) -> Bridging | None:
        """Return the data centre bridging of a network device."""
        return self._bridging.get(netdev)

    def reporters(self, address: str) -> tuple[HealthReporter, ...]:
        """Return the health reporters of a PCI device."""
        states = self._reporters.get(address, {})
        return tuple(HealthReporter(name, state) for name, state in states.items())

    @property
    def has_delays(self) -> bool:
        """Tell whether any read takes time."""
        return bool(self._slow or self._hangs)

    def delay(self, path: str) -> float:
        """Return how long reading this takes now; a pending hang is over then."""
        key = self.tree.place(path)
        return self._hangs.pop(key, 0.0) or self._slow.get(key, 0.0)

    def _boot(self, boot_id: str, at: float) -> None:
        if boot_id == self.boot_id:
            return
        self.boot_id = boot_id
        self.boots += 1
        self._events.clear()
        self._kernel_lines.clear()
        if self._uptime_set != at:
            self.tree.writable(UPTIME).move(_Uptime(b"0.00 0.00\n", at))
        self._show_boot_id(boot_id)

    def _show_boot_id(self, boot_id: str) -> None:
        if boot_id:
            self.tree.put_text(BOOT_ID, f"{boot_id}\n")

    def _start_uptime(self, at: float) -> None:
        self._uptime_set = at
        file = self.tree.file(UPTIME)
        if file is not None and isinstance(file.content, bytes):
            with suppress(ValueError, IndexError):  # no number: it stands still
                file.move(_Uptime(file.content, at))

    def _set_slow(self, path: str, seconds: float) -> None:
        self._slow[self.tree.place(path)] = _duration(seconds)
        self._slow = {path: delay for path, delay in self._slow.items() if delay}

    def _set_hang(self, path: str, seconds: float) -> None:
        self._hangs[self.tree.place(path)] = _duration(seconds)

    def _set_command(self, name: str, printed: Printed) -> None:
        _duration(printed.seconds)
        output = CommandOutput(
            as_bytes(printed.stdout), as_bytes(printed.stderr), printed.exit
        )
        self._commands[name] = Command(output, printed.seconds)

    def _set_reporters(self, record: TraceRecord) -> None:
        for address, states in record.devlink.items():
            if states is None:
                self._reporters.pop(address, None)
            else:
                self._reporters.setdefault(address, {}).update(states)

    def _step_clock(self, _name: str, seconds: float) -> None:
        if abs(self.wall_offset + seconds) > MAX_DURATION:
            raise ImpossibleError(f"{seconds:.6g} is too far for a clock")
        self.wall_offset += seconds


def _drain(waiting: deque[_Item]) -> tuple[_Item, ...]:
    items = tuple(waiting)
    waiting.clear()
    return items


def _merge(known: dict[str, _Struct], news: dict[str, _Struct | None]) -> None:
    """Take over the fields that are given; null forgets all of them."""
    for name, item in news.items():
        before = known.pop(name, None)
        if item is not None:
            given = {
                field: value
                for field in item.__struct_fields__
                if (value := getattr(item, field)) is not None
            }
            known[name] = msgspec.structs.replace(before, **given) if before else item


def _duration(seconds: float) -> float:
    if not 0 <= seconds <= MAX_DURATION:
        raise ImpossibleError(f"{seconds:.6g} s is no duration")
    return seconds
