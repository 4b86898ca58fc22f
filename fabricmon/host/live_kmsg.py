"""The kernel's log, read from /dev/kmsg without ever waiting (Documentation/ABI).

It takes CAP_SYSLOG where ``kernel.dmesg_restrict`` is 1. Each read gives one record:
priority, number, microseconds since boot and flags, then the text. Records of programs
(a facility other than the kernel's) are passed over, and so is every line that cannot
be about an RDMA device: it never leaves this file.
"""

from __future__ import annotations

import errno
import os
from math import inf

from fabricmon.host.live_files import failure
from fabricmon.host.protocol import KernelLine, ReadError
from fabricmon.parse.kmsg import concerns
from fabricmon.parse.text import decimal
from fabricmon.value import Value

RETRY_SECONDS = 60.0
"""A log that could not be opened is tried again so rarely."""

MOST_RECORDS = 5000
"""Records of one call (20 ms); the rest waits in the kernel's buffer."""

_RECORD_BYTES = 16 * 1024  # the kernel gives at most 8 KiB, and EINVAL for less room
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FACILITY = 8  # priority = 8 x facility + level
_MICRO = 1e-6
_NONE = -1  # no descriptor


class Record(Value, frozen=True):
    """One record; ``seconds`` are of the kernel's log clock, near monotonic time."""

    number: int
    seconds: float
    is_of_kernel: bool
    text: bytes


def parse_record(data: bytes) -> Record | None:
    """Take a record apart; None for what is none."""
    head, separator, rest = data.partition(b";")
    fields = head.decode("ascii", "replace").split(",")
    if not separator or len(fields) < 3:  # noqa: PLR2004 - a fourth holds flags
        return None
    priority, number, micros = (decimal(field) for field in fields[:3])
    if priority is None or number is None or micros is None:
        return None
    text = rest.partition(b"\n")[0]  # what follows are keys and values
    return Record(number, micros * _MICRO, priority < _FACILITY, text)


class KernelLog:
    """Reads on in the log; one thread may use it at a time."""

    def __init__(self, path: str) -> None:
        """Open nothing yet."""
        self._path = path
        self._descriptor = _NONE
        self._error: ReadError | None = None
        self._retry_at = -inf
        self._next = 0  # the number of the record that comes next
        self._drained_at = 0.0

    def lines(self, now: float) -> tuple[KernelLine, ...] | ReadError:
        """Return what is new; ``now`` is monotonic seconds."""
        if self._descriptor == _NONE and not self._open(now):
            return self._error or failure(errno.EIO)
        found: list[KernelLine] = []
        for _ in range(MOST_RECORDS):
            try:
                data = self._read()
            except OSError as error:
                self._fail(failure(error.errno), now)
                return self._error or failure(error.errno)
            if data is None:
                self._drained_at = now
                break
            found += self._lines_of(data, now)
        return tuple(found)

    def close(self) -> None:
        """Close the log; the next call opens it anew, from its beginning."""
        if self._descriptor != _NONE:
            os.close(self._descriptor)
            self._descriptor = _NONE

    def _open(self, now: float) -> bool:
        if now < self._retry_at:
            return False
        try:
            self._descriptor = os.open(self._path, _FLAGS)
        except OSError as error:
            self._fail(failure(error.errno), now)
            return False
        return True

    def _fail(self, error: ReadError, now: float) -> None:
        self.close()
        self._error, self._retry_at = error, now + RETRY_SECONDS

    def _read(self) -> bytes | None:
        """Return the next record; nothing where there is none; empty where some went.

        EPIPE means that records were overwritten: the next read goes on behind them.
        """
        try:
            return os.read(self._descriptor, _RECORD_BYTES) or None
        except BlockingIOError:
            return None
        except BrokenPipeError:
            return b""

    def _lines_of(self, data: bytes, now: float) -> list[KernelLine]:
        record = parse_record(data)
        if record is None or record.number < self._next:
            return []
        lost = record.number - self._next if self._next else 0
        self._next = record.number + 1
        # The log's clock drifts against monotonic time by seconds a day.
        at = min(max(record.seconds, self._drained_at), now)
        found = [KernelLine(at, "", lost)] if lost else []
        if record.is_of_kernel and concerns(record.text):
            found.append(KernelLine(at, record.text.decode("utf-8", "replace")))
        return found
