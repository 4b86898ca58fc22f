"""Calls the site's script, without a shell: one at a time, bounded in every way.

It gets two arguments, a node's name and a reason of one line, and the finding as JSON
on its standard input. It runs in a session of its own, so that it can be ended with all
that it started.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import msgspec

from fabricmon.gate.decision import Outcome
from fabricmon.gate.journal import Ended
from fabricmon.gate.report import NODE, Report
from fabricmon.gate.settings import Script
from fabricmon.scheduler_advice import reason

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GRACE_SECONDS = 0.3
"""Between asking the script to end and ending it."""

_CHUNK_BYTES = 65536
_LOOK_SECONDS = 0.1  # how often it is looked whether the process is there
_REAP_SECONDS = 0.5  # for a killed process to go; one in the kernel's hands stays


@dataclass(frozen=True, slots=True)
class Call:
    """What the script is called with."""

    arguments: tuple[str, ...]
    input: bytes


def call_of(script: str, report: Report) -> Call:
    """Return what a finding's call is made of; ValueError for a name of no node."""
    node = report.node or ""
    if NODE.fullmatch(node) is None:
        raise ValueError(node)
    arguments = (script, node, reason((report.finding,)))
    return Call(arguments, msgspec.json.encode(report.finding) + b"\n")


class Runner:
    """Runs one call at a time; `stop` may come from another thread."""

    def __init__(self) -> None:
        """Run nothing."""
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End what runs; nothing is run any more."""
        self._stopping.set()
        process = self._process
        if process is not None:
            _signal(process, signal.SIGTERM)

    def run(self, call: Call, script: Script) -> Ended:
        """Run it until it ends, or its time is up."""
        if self._stopping.is_set():
            return Ended(Outcome.FAILED, output="the gate stops: not started")
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell; see `call_of`
                call.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"LC_ALL": "C", "PATH": PATH, **script.environment},
                start_new_session=True,
            )
        except OSError as error:
            why = f"cannot be started: {error.strerror or error}"
            return Ended(Outcome.FAILED, output=why)
        self._process = process
        try:
            return self._finish(process, call, script)
        finally:
            self._process = None

    def _finish(
        self, process: subprocess.Popen[bytes], call: Call, script: Script
    ) -> Ended:
        deadline = time.monotonic() + script.timeout_seconds
        exchange = _Exchange(process, call.input, script.output_bytes)
        status = None
        exchange.run(deadline, self._stopping)
        while status is None and not self._stopping.is_set():
            left = deadline - time.monotonic()
            status = _wait(process, min(left, _LOOK_SECONDS))
            if left <= 0:
                break
        if status is None:
            _signal(process, signal.SIGTERM)
            _wait(process, GRACE_SECONDS)
        _signal(process, signal.SIGKILL)  # also what it left behind
        _wait(process, _REAP_SECONDS)
        output = exchange.kept.decode("utf-8", "replace")
        if self._stopping.is_set() and status != 0:
            return Ended(Outcome.INTERRUPTED, status, output)
        if status is None:
            return Ended(Outcome.TIMEOUT, None, output)
        outcome = Outcome.DONE if status == 0 else Outcome.FAILED
        return Ended(outcome, status, output)


class _Exchange:
    """Gives a process its input and keeps the beginning of its output."""

    def __init__(
        self, process: subprocess.Popen[bytes], given: bytes, most: int
    ) -> None:
        self.kept = bytearray()
        self._process = process
        self._left = memoryview(given)
        self._most = most

    def run(self, deadline: float, stopping: threading.Event) -> None:
        """Return once the output or the process has ended, or time is up."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:  # both were asked for
            return
        with (
            stdin as given,
            stdout as told,
            selectors.DefaultSelector() as selector,
        ):
            os.set_blocking(given.fileno(), False)
            selector.register(given, selectors.EVENT_WRITE, self._give)
            selector.register(told, selectors.EVENT_READ, self._take)
            while not stopping.is_set() and self._process.poll() is None:
                left = deadline - time.monotonic()
                if left <= 0 or told not in _streams(selector):
                    break
                for key, _ in selector.select(min(left, _LOOK_SECONDS)):
                    if not key.data(key.fileobj):
                        selector.unregister(key.fileobj)
                        if key.fileobj is given:
                            given.close()
            self._drain(told)

    def _give(self, stream: IO[bytes]) -> bool:
        try:
            self._left = self._left[os.write(stream.fileno(), self._left) :]
        except OSError:  # it reads no more, which is its right
            return False
        return bool(self._left)

    def _take(self, stream: IO[bytes]) -> bool:
        chunk = os.read(stream.fileno(), _CHUNK_BYTES)
        self.kept += chunk[: self._most - len(self.kept)]
        return bool(chunk)

    def _drain(self, stream: IO[bytes]) -> None:
        """Take what is there already, and wait for nothing."""
        os.set_blocking(stream.fileno(), False)
        with suppress(OSError):
            while len(self.kept) < self._most and self._take(stream):
                pass


def _streams(selector: selectors.BaseSelector) -> list[object]:
    return [key.fileobj for key in selector.get_map().values()]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    with suppress(subprocess.TimeoutExpired):
        return process.wait(max(seconds, 0))
    return None


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the process and its children; it may have gone by itself meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
