"""An answer in time, whatever the kernel does with the reads that it takes."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

_CHUNK_BYTES = 64 * 1024
_MOST_BYTES = 64 * 1024 * 1024
_FAILED = 1


def within(seconds: float, work: Callable[[], bytes]) -> bytes | None:
    """Return what ``work`` returns, None if that takes longer or fails.

    It works in a child, because a process with a read that the kernel holds cannot even
    be killed, and whoever waits for it waits with it: this one leaves it behind. The
    child keeps none of the standard streams open, so that nobody waits for these.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, reading, writing)
    os.close(writing)
    try:
        answer = _read(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
    return answer if _end(child) == 0 else None


def _work(work: Callable[[], bytes], reading: int, writing: int) -> None:
    status = _FAILED
    try:
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        left = memoryview(work())
        while left:
            left = left[os.write(writing, left) :]
        status = 0
    finally:
        os._exit(status)


def _read(reading: int, deadline: float) -> bytes | None:
    """Read to the end; None if that does not come in time."""
    found = bytearray()
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            break
        chunk = os.read(reading, _CHUNK_BYTES)
        if not chunk:
            return bytes(found)
        found += chunk
        if len(found) > _MOST_BYTES:
            break
    return None


def _end(child: int) -> int | None:
    """Return the child's status, None if it has to be killed; never wait for that."""
    with suppress(ChildProcessError):
        for _ in range(100):  # it has nothing left to do but end
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(child, signal.SIGKILL)
    return None
