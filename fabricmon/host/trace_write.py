"""Write a trace, as `trace_read` reads it."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from fabricmon.host.trace import VERSION, Header, TraceRecord

PART = ".part"
"""What the name ends with until the trace is complete."""

LEVEL = 6
"""Of compression: gzip's own choice."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PRIVATE, _USUAL = 0o600, 0o666  # what the umask leaves of it
_BUFFER_BYTES = 256 * 1024
_DIGITS = 6  # microseconds
_NAMES = tuple(
    (item.name, item.encode_name) for item in msgspec.structs.fields(TraceRecord)
)
_encode = msgspec.json.Encoder().encode


class TraceWriter:
    """Writes ``PATH.part`` and gives it its name at the end; ``.gz`` compresses.

    A trace that was cut short keeps the name with ``.part`` and can be read. One that is
    ``private`` only its owner can read: what jobs and the kernel log is in it. The
    lower the ``level`` of compression, from 1 to 9, the less time it takes.

    Raises:
        OSError: From any call; the writer can then only be closed.
    """

    def __init__(
        self,
        path: str | Path,
        header: Header,
        *,
        private: bool = False,
        level: int = LEVEL,
    ) -> None:
        self._path = Path(path)
        self._part = self._path.with_name(self._path.name + PART)
        self._part.unlink(missing_ok=True)  # never written through: it may be a link
        descriptor = os.open(self._part, _FLAGS, _PRIVATE if private else _USUAL)
        self._raw = os.fdopen(descriptor, "wb", _BUFFER_BYTES)
        self._out: BinaryIO | gzip.GzipFile = self._raw
        if self._path.suffix == ".gz":
            # No time and no name within: the same trace gives the same bytes.
            self._out = gzip.GzipFile("", "wb", level, self._raw, mtime=0)
        self._write(_header(header))

    def write(self, record: TraceRecord) -> None:
        """Write one record; its ``t`` may not be before that of the last one."""
        self._write(_line(record))

    def flush(self) -> None:
        """Hand everything to the system, so that a reader sees it."""
        self._out.flush()
        self._raw.flush()

    def close(self) -> None:
        """Complete the trace: it has its name when this returns."""
        if not self._raw.closed:
            try:
                self._close()
            finally:
                self._raw.close()
            self._part.replace(self._path)

    def abandon(self) -> None:
        """Close without completing; what was written so far stays, as ``.part``."""
        for close in (self._close, self._raw.close):
            with suppress(OSError):  # a full disk: what was lost is lost
                close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._out.write(_encode(line) + b"\n")
        except UnicodeEncodeError:  # lone surrogates, which msgspec does not write
            self._out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _close(self) -> None:
        if self._out is not self._raw:
            self._out.close()


def _header(header: Header) -> dict[str, Any]:
    start = datetime.fromtimestamp(header.start, UTC).isoformat()
    fields = msgspec.to_builtins(header)
    fields["start"] = start.replace("+00:00", "Z")
    return {"fabricmon_trace": VERSION, **fields}


def _line(record: TraceRecord) -> dict[str, Any]:
    line: dict[str, Any] = {"t": round(record.t, _DIGITS)}
    fields = msgspec.to_builtins(record)
    line.update((key, value) for key, value in fields.items() if key != "t")
    if "ramp" in line:
        line["ramp"] = {path: _bare(ramp) for path, ramp in line["ramp"].items()}
    for netdev, figures in line.get("ethtool", {}).items():
        if figures is not None:
            line["ethtool"][netdev] = {n: _bare(f) for n, f in figures.items()}
    return line


def _bare(figure: Any) -> Any:
    """Leave out a ceiling that is none: the format knows no null there."""
    return figure[:2] if isinstance(figure, list) and figure[-1] is None else figure
