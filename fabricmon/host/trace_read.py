"""Read a trace as a stream, and survive whatever stands in it.

A line that cannot be used is a `TraceProblem` and the next one is read; where only a
part of a line is wrong, only that part is left out. Only a header that cannot be used
ends it all, with a `TraceError`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import BufferedReader
from math import isfinite
from pathlib import Path
from types import NoneType, TracebackType, UnionType
from typing import Any, BinaryIO, Self, cast, get_args, get_origin

import msgspec

from fabricmon.errors import TraceError
from fabricmon.host.node import MAX_DURATION
from fabricmon.host.trace import VERSION, Header, TraceProblem, TraceRecord

MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is skipped: the reader's memory is bounded."""

MAX_PROBLEMS = 1000
"""Problems that are kept; more are only counted."""

MAX_JUMP_SECONDS = 7 * 86400.0
"""A record later than that after the one before, or after the ``gap`` of that, is
damaged: every poll in between is played, which takes minutes for a week and would take
days for a year."""

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n\0"  # zeros: what a power cut leaves at the end of a file
_READ_ERRORS = (OSError, EOFError, zlib.error)

_FIELDS = msgspec.structs.fields(TraceRecord)
_NEEDLES = tuple(f'"{item.encode_name}"'.encode() for item in _FIELDS)
_decode = msgspec.json.Decoder(TraceRecord).decode

_NO_TEXT = "holds what no text can hold"
_Say = Callable[[str], None]


class TraceReader:
    """The records of one trace, in order of time, read as they are asked for.

    ``line`` is the number of the line that was read last.

    Raises:
        TraceError: The file cannot be opened or its header cannot be used.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.line = 0
        self.problem_count = 0
        self._problems: list[TraceProblem] = []
        self._last = 0.0
        self._heard = 0.0  # until when what was read so far says something
        self._is_far = False
        self._torn = False
        self._raw = _open(self.path)
        self._file: BinaryIO = self._raw
        try:
            self._file = self._decompressed()
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    @property
    def problems(self) -> tuple[TraceProblem, ...]:
        """What could not be used so far: the first `MAX_PROBLEMS` of it."""
        return tuple(self._problems)

    def complain(self, message: str) -> None:
        """Note that something in the current line cannot be used."""
        self.problem_count += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(TraceProblem(self.path, self.line, message))

    def __iter__(self) -> Iterator[TraceRecord]:
        return self

    def __next__(self) -> TraceRecord:
        while (line := self._next_line()) is not None:
            record = self._record(line)
            if record is not None:
                return record
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Close the file; what was read stays known."""
        self._file.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _decompressed(self) -> BinaryIO:
        """Return the lines; the first bytes, not the name, say how they are kept."""
        with suppress(OSError):  # that the first read will meet again, and say
            if self._raw.peek(len(_GZIP)).startswith(_GZIP):
                return cast("BinaryIO", gzip.GzipFile(fileobj=self._raw))
        return self._raw

    def _next_line(self) -> bytes | None:
        """Return the next line that is not blank, None at the end."""
        while not self._file.closed:
            self.line += 1
            try:
                line = self._file.readline(MAX_LINE_BYTES)
                if len(line) == MAX_LINE_BYTES and line[-1:] != b"\n":
                    self.complain(f"longer than {MAX_LINE_BYTES} bytes, skipped")
                    self._skip_line()
                    continue
            except _READ_ERRORS as error:
                self.complain(f"cannot read on, the trace ends here: {error}")
                return None
            if not line:
                return None
            self._torn = line[-1:] != b"\n"
            if stripped := line.strip(_BLANKS):
                return stripped
        return None

    def _skip_line(self) -> None:
        while (rest := self._file.readline(MAX_LINE_BYTES)) and rest[-1:] != b"\n":
            pass

    def _read_header(self) -> Header:
        line = self._next_line()
        if line is None:
            found = [problem.message for problem in self._problems]
            raise self._bad_header(f"no header: {(found or ['the file is empty'])[-1]}")
        try:
            raw = _load(line.removeprefix(_BYTE_ORDER_MARK), self.complain)
        except (ValueError, RecursionError) as error:
            raise self._bad_header(f"the header is not JSON: {error}") from None
        if not isinstance(raw, dict) or "fabricmon_trace" not in raw:
            raise self._bad_header("the first line is no trace header")
        version = raw["fabricmon_trace"]
        if isinstance(version, bool) or version != VERSION:
            raise self._bad_header(
                f"version {version!r:.40} of the format is not known, only {VERSION}"
            )
        return self._header(raw)

    def _bad_header(self, message: str) -> TraceError:
        return TraceError(message, path=self.path, line=self.line)

    def _header(self, raw: dict[str, Any]) -> Header:
        start = self._start(raw.pop("start", None))
        kept = _keep(raw, Header, self.complain)
        if not kept.get("node"):
            name = Path(self.path).name.removesuffix(".gz").removesuffix(".jsonl")
            kept["node"] = name.removesuffix(".trace") or "node"
            self.complain(f"node: not given, taken from the file: {kept['node']}")
        for name in ("node", "boot_id"):
            text = kept.get(name, "")
            kept[name] = text.encode("utf-8", "replace").decode()
            if kept[name] != text:
                self.complain(f"{name}: holds what no text can hold, now {kept[name]}")
        return Header(**{**kept, "start": start})

    def _start(self, text: object) -> float:
        try:
            moment = datetime.fromisoformat(str(text).upper())
            if moment.tzinfo is None:
                self.complain("start: no offset from UTC, taken as UTC")
                moment = moment.replace(tzinfo=UTC)
            return moment.timestamp()
        except (ValueError, OverflowError):
            self.complain(f"start: {text!r:.40} is no RFC 3339 time, taken as 1970")
            return 0.0

    def _record(self, line: bytes) -> TraceRecord | None:
        record: TraceRecord | None
        try:
            record = _decode(line)
            # The decoder lets the last of two equal keys hold without a word.
            if any(line.count(needle) > 1 for needle in _NEEDLES):
                record = self._salvage(line)
        except (msgspec.MsgspecError, RecursionError):
            record = self._salvage(line)
        return None if record is None else self._in_order(record)

    def _salvage(self, line: bytes) -> TraceRecord | None:
        """Take what is sound of a line that is not wholly so."""
        try:
            raw = _load(line, self.complain)
        except (ValueError, RecursionError) as error:
            place = "the last line, perhaps torn: " if self._torn else ""
            self.complain(f"{place}not JSON: {error}")
            return None
        if not isinstance(raw, dict):
            self.complain("not an object")
            return None
        kept = _keep(raw, TraceRecord, self.complain)
        if "t" not in kept:
            second = "fabricmon_trace" in raw
            self.complain("a second header" if second else "no time (t), not used")
            return None
        return TraceRecord(**kept)

    def _in_order(self, record: TraceRecord) -> TraceRecord | None:
        if self._is_beyond(record.t):
            return None
        if record.t < self._last:
            self.complain(
                f"t: {record.t:.6g} is before {self._last:.6g}, taken as that"
            )
            record = msgspec.structs.replace(record, t=self._last)
        self._last = record.t
        gap = record.gap or 0.0
        is_gap = 0 < gap <= MAX_DURATION
        self._heard = max(self._heard, record.t + gap if is_gap else record.t)
        return record

    def _is_beyond(self, t: float) -> bool:
        """Tell whether a record is too far away; say so of the first in a row."""
        jump = t - self._heard
        was_far, self._is_far = self._is_far, jump > MAX_JUMP_SECONDS
        if self._is_far and was_far:
            self.problem_count += 1
        elif self._is_far:
            days = MAX_JUMP_SECONDS / 86400
            self.complain(
                f"t: {t:.6g} is {jump:.6g} s after what was last told, more than "
                f"{days:.0f} days: not used, nor what follows it so late (where the "
                "agent did not run, the record before has a `gap`)"
            )
        return self._is_far


def _open(path: str) -> BufferedReader:
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"cannot be read: {reason}", path=path) from None


def _load(line: bytes, say: _Say) -> Any:
    """Decode JSON with lone surrogates; say which keys appear twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen: set[str] = set()
            for name, _ in items:
                if name in seen:
                    say(f"{name!r:.80} appears twice, the last one holds")
                seen.add(name)
        return found

    return json.loads(
        _text(line), object_pairs_hook=pairs, parse_constant=_refuse, parse_float=_real
    )


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        # Written raw, either as encoded surrogates or as the bytes they stand for.
        try:
            return line.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return line.decode("utf-8", "surrogateescape")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _real(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ValueError(f"{digits:.40} is no number")
    return value


def _keep(
    raw: dict[str, Any], struct: type[msgspec.Struct], say: _Say
) -> dict[str, Any]:
    """Return the fields of ``struct`` that ``raw`` holds, without what is wrong."""
    kept = {}
    for item in msgspec.structs.fields(struct):
        name = item.encode_name
        if name in raw:
            try:
                kept[item.name] = _sound(raw[name], item.type, name, say)
            except _UnusableError as error:
                say(str(error))
    return kept


class _UnusableError(Exception):
    """A value that is not what its place asks for."""


def _sound(value: Any, wanted: Any, place: str, say: _Say) -> Any:
    """Return ``value`` as ``wanted``; leave out and say what is wrong inside it."""
    try:
        return msgspec.convert(_whole(value), wanted)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        inner = _container(wanted)
        if inner is None or not isinstance(value, get_origin(inner)):
            why = error if isinstance(error, msgspec.ValidationError) else _NO_TEXT
            raise _UnusableError(f"{place}: {why}, not used") from None
    parts: list[tuple[Any, Any]] = []
    for name, part in value.items() if isinstance(value, dict) else enumerate(value):
        try:
            there = f"{place}: {name!s:.200}"
            parts.append((name, _sound(part, get_args(inner)[-1], there, say)))
        except _UnusableError as error:
            say(str(error))
    return dict(parts) if isinstance(value, dict) else [part for _, part in parts]


def _container(wanted: Any) -> Any:
    """Return the list or mapping type that ``wanted`` is, or may be besides null."""
    options = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    real = [option for option in options if option is not NoneType]
    found = real[0] if len(real) == 1 else None
    return found if get_origin(found) in {dict, list} else None


def _whole(value: Any) -> Any:
    """Write a real number without fraction as an integer, also in a list."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_whole(part) for part in value] if isinstance(value, list) else value
