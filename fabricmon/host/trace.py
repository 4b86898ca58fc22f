"""The trace format: what a node looked like over time, one JSON object a line.

The contract is "Trace" in the formats document; the fields here are its keys. A
record says what changes at ``t``; what it does not name stays as it is. Texts hold
bytes that are not UTF-8 as lone surrogates, as ``surrogateescape`` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import Any, Protocol

from msgspec import Struct, field

from fabricmon.value import Value

VERSION = 1
"""Format version that is written, and the only one that is read."""

ETHTOOL = "ethtool:"
"""Stands before a network device where ``err`` means its driver statistics."""

MAX_NUMBER = 1 << 64
"""Numbers beyond the widest counter are no measurement."""

LONGEST_CLOCK_ERROR = 16.0
"""Seconds of ``clock_error`` that stand for a clock that nothing keeps: as a kernel
says it (``NTP_PHASE_LIMIT``)."""


class TraceProblem(Value, frozen=True):
    """Something in a trace that could not be used; ``line`` counts from 1."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        """Write it as compilers do."""
        return f"{self.path}:{self.line}: {self.message}"


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Line 1. ``start`` is the wall time of t = 0 in Unix seconds.

    ``topology`` and ``config`` are as their own readers take them. Where
    ``tells_links`` is false, no link events reached the agent (a container).
    """

    node: str
    boot_id: str = ""
    start: float = 0.0
    topology: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    peers: dict[str, str] = {}
    tells_links: bool = True


class Ramp(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A number that moves evenly, whole at all times, never above ``ceiling``."""

    value: int
    per_second: float
    ceiling: int | None = None

    def value_after(self, seconds: float) -> int:
        """Return the number so long after the start: value + floor(rate x time)."""
        value = self.value + floor(self.per_second * seconds)
        ceiling = self.ceiling
        return value if ceiling is None or value < ceiling else ceiling

    @property
    def is_possible(self) -> bool:
        """Tell whether every part is within what a counter can hold."""
        parts = (self.value, self.per_second, self.ceiling or 0)
        return all(abs(part) <= MAX_NUMBER for part in parts)


class Printed(Struct, frozen=True, omit_defaults=True):
    """What a command prints and how long it takes; null ``exit``: it was ended."""

    stdout: str = ""
    stderr: str = ""
    exit: int | None = 0
    seconds: float = 0.0


class Module(Struct, frozen=True, omit_defaults=True):
    """Transceiver diagnostics of a port; powers in dBm and bias in mA, by lane."""

    temperature_c: float | None = None
    rx_power_dbm: tuple[float | None, ...] | None = None
    tx_power_dbm: tuple[float | None, ...] | None = None
    bias_ma: tuple[float | None, ...] | None = None
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None


class Bridging(Struct, frozen=True, omit_defaults=True):
    """Data centre bridging of a network device; ``ecn`` is as its driver names it.

    An empty ``dscp_to_priority`` is that of a port that goes by the tag of a frame.
    """

    pfc_enabled: tuple[int, ...] | None = None
    ecn: dict[str, Any] | None = None
    dscp_to_priority: dict[str, int] | None = None


class TraceRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every line but the first: what changes ``t`` seconds after the start."""

    t: float
    deleted: list[str] = field(default_factory=list, name="del")
    dir: list[str] = []
    link: dict[str, str] = {}
    set: dict[str, str] = {}
    ramp: dict[str, Ramp] = {}
    err: dict[str, str] = {}
    ethtool: dict[str, dict[str, int | Ramp] | None] = {}
    slow: dict[str, float] = {}
    hang: dict[str, float] = {}
    kmsg: list[str] = []
    append: dict[str, str] = {}
    truncate: list[str] = []
    rotate: dict[str, str] = {}
    command: dict[str, Printed] = {}
    boot_id: str | None = None
    module: dict[str, Module | None] = {}
    dcb: dict[str, Bridging | None] = {}
    devlink: dict[str, dict[str, str] | None] = {}
    clock_error: float | None = None
    wall_step: float = 0.0
    gap: float | None = None
    restart: bool = False


class Records(Protocol):
    """A header and the records after it, in order of time: read, or just made."""

    @property
    def header(self) -> Header:
        """Line 1."""

    @property
    def problems(self) -> tuple[TraceProblem, ...]:
        """What could not be used so far, or the first of it."""

    @property
    def problem_count(self) -> int:
        """How much could not be used so far."""

    def complain(self, message: str) -> None:
        """Note that something in the record just given cannot be used."""

    def __iter__(self) -> Iterator[TraceRecord]:
        """Iterate over itself."""

    def __next__(self) -> TraceRecord:
        """Return the next record."""

    def close(self) -> None:
        """Give up what the records come from."""
