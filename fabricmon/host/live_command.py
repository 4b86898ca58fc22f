"""Run the few known tools, bounded in time and in what they print."""

from __future__ import annotations

import errno
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import IO

from fabricmon.host.live_files import failure
from fabricmon.host.protocol import CommandOutput, ReadError

TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType({"ibstat": ("ibstat",)})
"""Every command that is run to its end, by the name that sources use."""

OUTPUT_BYTES = 1024 * 1024
"""Kept of each of the two outputs; the rest is read, dropped and counted."""

_CHUNK_BYTES = 64 * 1024
_REAP_SECONDS = 1.0  # for a killed process to go; one in the kernel's hands stays
_FOLDERS = ("/usr/sbin", "/sbin")  # where tools lie that a service's PATH may lack


class Commands:
    """Runs tools in sessions of their own, without a shell; used from many threads."""

    def __init__(self, tools: Mapping[str, tuple[str, ...]] = TOOLS) -> None:
        self._tools = tools
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._abandoned: list[subprocess.Popen[bytes]] = []
        self._dropped_bytes = 0
        self._abandonments = 0

    @property
    def dropped_bytes(self) -> int:
        """Bytes of output beyond the limit, all commands together."""
        return self._dropped_bytes

    @property
    def abandonments(self) -> int:
        """Commands that did not end when killed: the kernel held them."""
        return self._abandonments

    def run(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Run a tool for at most ``seconds``; ENOENT if it is unknown or not installed.

        Returns at the latest a second after that, with what was printed until then.
        EBUSY while one that was killed is still there: more would only pile up.
        """
        deadline = time.monotonic() + seconds
        self._abandoned = [left for left in self._abandoned if left.poll() is None]
        if self._abandoned:
            return failure(errno.EBUSY)
        words = self._tools.get(name)
        program = _find(words[0]) if words else None
        if words is None or program is None:
            return failure(errno.ENOENT)
        try:
            process = subprocess.Popen(  # noqa: S603 -- words of a fixed table
                (program, *words[1:]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={"LC_ALL": "C", "PATH": _search_path()},
                start_new_session=True,
            )
        except OSError as error:
            return failure(error.errno)
        self._running[process.pid] = process
        try:
            return self._finish(process, deadline)
        finally:
            self._running.pop(process.pid, None)

    def close(self) -> None:
        """End what still runs."""
        for process in tuple(self._running.values()):
            _kill(process)

    def _finish(
        self, process: subprocess.Popen[bytes], deadline: float
    ) -> CommandOutput:
        streams = (process.stdout, process.stderr)
        outputs = [_Output(stream) for stream in streams if stream is not None]
        ended = _drain(outputs, deadline)
        self._dropped_bytes += sum(output.dropped for output in outputs)
        status = _wait(process, deadline - time.monotonic()) if ended else None
        if status is None:
            _kill(process)
            status = _wait(process, _REAP_SECONDS)
            if status is None:
                self._abandonments += 1
                self._abandoned.append(process)
        killed = status == -signal.SIGKILL
        stdout, stderr = (bytes(output.kept) for output in outputs)
        return CommandOutput(stdout, stderr, None if killed else status)


class _Output:
    """One of the two outputs of a command, as far as it is kept."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.kept = bytearray()
        self.dropped = 0

    def take(self) -> bool:
        """Read what is there; False at the end."""
        chunk = os.read(self.stream.fileno(), _CHUNK_BYTES)
        room = OUTPUT_BYTES - len(self.kept)
        self.kept += chunk[:room]
        self.dropped += max(len(chunk) - room, 0)
        return bool(chunk)


def _drain(outputs: list[_Output], deadline: float) -> bool:
    """Read outputs until they end or time is up, and close them; True if they ended.

    They may outlive the tool: its children can hold them open.
    """
    with selectors.DefaultSelector() as selector:
        for output in outputs:
            selector.register(output.stream, selectors.EVENT_READ, output)
        left = deadline - time.monotonic()
        while selector.get_map() and left > 0:
            for key, _ in selector.select(left):
                if not key.data.take():
                    selector.unregister(key.fileobj)
            left = deadline - time.monotonic()
        ended = not selector.get_map()
    for output in outputs:
        output.stream.close()
    return ended


def _find(program: str) -> str | None:
    return shutil.which(program, path=_search_path())


def _search_path() -> str:
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *_FOLDERS))


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    with suppress(subprocess.TimeoutExpired):
        return process.wait(max(seconds, 0))
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children; it may have gone by itself meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
