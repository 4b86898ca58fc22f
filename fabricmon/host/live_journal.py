"""The kernel's log as journald keeps it, for agents that may not open /dev/kmsg.

Who is in the group ``systemd-journal`` may read it without a capability. One
``journalctl`` follows it as long as the agent lives; it is started only where the
journal can be read, and its output is read without ever waiting. What programs wrote is
left out by fields that none of them can set (systemd.journal-fields(7)).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from math import inf
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder

from fabricmon.host.protocol import KernelLine
from fabricmon.parse.kmsg import concerns
from fabricmon.parse.text import decimal

RETRY_SECONDS = 60.0
"""A journal that cannot be read, or whose reader ended, is tried again so rarely."""

MOST_PAST_LINES = 5000
"""Lines of this boot that are asked for at the start; ``/dev/kmsg`` has about as many."""

MOST_BYTES = 1024 * 1024
"""Read in one call (10 ms); the rest waits, and journalctl with it."""

LONGEST_LINE_BYTES = 64 * 1024
"""journalctl leaves a text of more than 4 KiB out, so no line is longer."""

_CHUNK_BYTES = 64 * 1024
_REAP_SECONDS = 1.0
_STORES = ("/var/log/journal", "/run/log/journal")
_MICRO = 1e-6


class _Entry(Struct):
    """One entry; a text that is no UTF-8 comes as its octets, one too long as null.

    ``micros`` are of the monotonic clock: when journald read it, milliseconds later.
    """

    micros: str = field(name="__MONOTONIC_TIMESTAMP")
    text: str | list[int] | None = field(name="MESSAGE", default=None)


_DECODER = Decoder(_Entry)


class JournalLog:
    """Follows the kernel's lines in a journal; one thread may use it at a time."""

    def __init__(self, prefix: str = "") -> None:
        """Start nothing yet; ``prefix`` stands before every path."""
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        self._retry_at = -inf
        self._followed: str | None = None
        self._look_at = -inf
        self._rest = b""
        self._skipping = False
        self._newest = self._known = -1  # microseconds: told, and told by the last one

    @property
    def is_followed(self) -> bool:
        """Whether a reader runs, so that it knows what was told."""
        return self._process is not None

    def lines(self, now: float) -> tuple[KernelLine, ...] | None:
        """Return what is new, None where it cannot be read; ``now`` as monotonic."""
        if self._process is not None and now >= self._look_at:
            self._look_at = now + RETRY_SECONDS
            if self._folder() != self._followed:  # made persistent, or flushed late
                self.close()
                self._retry_at = now
        if self._process is None and not self._start(now):
            return None
        data, has_ended = self._read()
        found = tuple(self._lines_of(data, now))
        if has_ended:
            self.close()
            self._retry_at = now + RETRY_SECONDS
            return found or None
        return found

    def close(self) -> None:
        """End the reader."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)

    def _start(self, now: float) -> bool:
        """Start a reader, and tell whether there is one."""
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        folder, boot = self._folder(), self._word("/proc/sys/kernel/random/boot_id")
        program = shutil.which("journalctl")
        if folder is None or program is None or not boot:
            return False
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- words of our own
                (
                    program,
                    f"--directory={folder}",
                    "--follow",
                    f"--lines={MOST_PAST_LINES}",
                    "--output=json",
                    "--output-fields=MESSAGE",
                    "--quiet",
                    f"_BOOT_ID={boot.replace('-', '')}",
                    "_TRANSPORT=kernel",
                    "SYSLOG_FACILITY=0",
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError:
            return False
        self._rest, self._skipping, self._known = b"", False, self._newest
        self._followed, self._look_at = folder, now + RETRY_SECONDS
        if self._process.stdout is not None:
            os.set_blocking(self._process.stdout.fileno(), False)
        return True

    def _folder(self) -> str | None:
        """Return where the node's journal lies that was written to last, if readable.

        A follower without the right would wait for ever, and look like a quiet kernel.
        """
        machine = self._word("/etc/machine-id")
        found: list[tuple[float, str]] = []
        for store in _STORES:
            folder = f"{self._prefix}{store}/{machine}"
            path = f"{folder}/system.journal"
            if machine and os.access(path, os.R_OK):
                with suppress(OSError):
                    found.append((Path(path).stat().st_mtime, folder))
        return max(found)[1] if found else None

    def _word(self, path: str) -> str:
        with (
            suppress(OSError),
            Path(self._prefix + path).open(encoding="ascii", errors="replace") as file,
        ):
            return file.read(64).strip()
        return ""

    def _read(self) -> tuple[bytes, bool]:
        """Return what is there, and whether the reader has ended."""
        process, room = self._process, MOST_BYTES
        parts: list[bytes] = []
        if process is None or process.stdout is None:
            return b"", True
        while room > 0:
            try:
                part = os.read(process.stdout.fileno(), min(room, _CHUNK_BYTES))
            except BlockingIOError:
                break
            except OSError:
                return b"".join(parts), True
            if not part:
                return b"".join(parts), True
            parts.append(part)
            room -= len(part)
        return b"".join(parts), False

    def _lines_of(self, data: bytes, now: float) -> list[KernelLine]:
        *whole, rest = (self._rest + data).split(b"\n")
        if self._skipping and whole:
            del whole[0]
            self._skipping = False
        self._skipping = self._skipping or len(rest) > LONGEST_LINE_BYTES
        self._rest = b"" if self._skipping else rest
        lines = (self._line_of(each, now) for each in whole if each)
        return [line for line in lines if line is not None]

    def _line_of(self, data: bytes, now: float) -> KernelLine | None:
        """Return an entry as a line, None for what was told or is nobody's business."""
        try:
            entry = _DECODER.decode(data)
            text = entry.text or ""
            octets = text.encode() if isinstance(text, str) else bytes(text)
        except (DecodeError, ValidationError, ValueError):
            return None
        micros = decimal(entry.micros)
        if micros is None or micros <= self._known:
            return None
        self._newest = max(self._newest, micros)
        if not concerns(octets):
            return None
        return KernelLine(min(micros * _MICRO, now), octets.decode("utf-8", "replace"))
