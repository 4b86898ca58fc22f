"""The files that ``fabricmon logs`` reads, piece by piece, also compressed ones."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from fabricmon.runtime.logging import printable

PIECE = 1 << 20
"""Bytes read at once; memory does not grow with a file."""

STANDARD_INPUT = "-"

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ERASE = "\r\x1b[K"


class Bar:
    """A line on standard error that grows with what was read; only on a terminal."""

    WIDTH = 30
    STEP = 1 << 22  # bytes between two drawings

    def __init__(self, total: int) -> None:
        """Know how much there is to read."""
        self._total = total
        self._done = 0
        self._drawn = 0
        self._on = sys.stderr.isatty() and total >= self.STEP

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def advance(self, number: int) -> None:
        """Draw that so many more bytes were read."""
        self._done += number
        if self._on and self._done - self._drawn >= self.STEP:
            self._drawn = self._done
            share = min(self._done / self._total, 1.0)
            marks = "#" * int(share * self.WIDTH)
            done, total = (f"{size / 1e6:,.0f}" for size in (self._done, self._total))
            self._write(f"\r[{marks:{self.WIDTH}}] {share:4.0%} {done}/{total} MB")

    def clear(self) -> None:
        """Take the line away."""
        if self._on:
            self._write(_ERASE)

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


@dataclass(slots=True)
class Problems:
    """What could not be read, said once each, one line each."""

    count: int = 0
    _unsaid: list[str] = field(default_factory=list)

    def add(self, path: str, why: str) -> None:
        """Note it and go on."""
        self.count += 1
        self._unsaid.append(f"fabricmon logs: {printable(path)}: {printable(why)}")

    def tell(self, bar: Bar | None = None) -> None:
        """Say what is new, not in the middle of the bar."""
        if self._unsaid and bar is not None:
            bar.clear()
        for line in self._unsaid:
            print(line, file=sys.stderr)
        self._unsaid.clear()


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and the file or folder given that led to it."""

    path: str
    given: str


def find(names: list[str], problems: Problems) -> Iterator[Found]:
    """Yield the files that are named or lie below named folders, in order.

    Links to folders are not followed: they may lead round in circles. What is no plain
    file below a folder is left out; a name given is opened whatever it is. A folder
    without any file is a problem.
    """
    for name in names:
        if name == STANDARD_INPUT or not _holds(Path.is_dir, Path(name)):
            yield Found(name, name)
            continue
        before, files_found = problems.count, 0

        def refuse(error: OSError) -> None:
            problems.add(str(error.filename), error.strerror or str(error))

        for folder, folders, files in os.walk(name, onerror=refuse):
            folders.sort()
            for path in (Path(folder, file) for file in sorted(files)):
                if _holds(Path.is_file, path):
                    files_found += 1
                    yield Found(str(path), name)
        if not files_found and problems.count == before:
            problems.add(name, "no log there")


def _holds(question: Callable[[Path], bool], path: Path) -> bool:
    """Ask something of a path; where nobody may look it is not so."""
    try:
        return question(path)
    except OSError:
        return False


def size_of(files: list[Found]) -> int:
    """Return the bytes that these files have, 0 for what has none to tell."""
    total = 0
    for path in (file.path for file in files):
        try:
            total += 0 if path == STANDARD_INPUT else Path(path).stat().st_size
        except OSError:
            continue  # the reader says it
    return total


def pieces(name: str, problems: Problems, bar: Bar) -> Iterator[bytes]:
    """Yield a file's content; what cannot be read is said and ends it."""
    try:
        if name == STANDARD_INPUT:
            yield from _content(sys.stdin.buffer, bar)
        else:
            with Path(name).open("rb") as stream:
                yield from _content(stream, bar)
    except OSError as error:
        problems.add(name, error.strerror or str(error))
    except _DamagedError as error:
        problems.add(name, str(error))


class _DamagedError(Exception):
    """Compressed data that breaks off or is none; what came before was read."""


def _content(stream: BinaryIO, bar: Bar) -> Iterator[bytes]:
    first = stream.read(PIECE)
    bar.advance(len(first))
    if first.startswith(_GZIP):
        yield from _unzipped(first, stream, bar)
        return
    while first:
        yield first
        first = stream.read(PIECE)
        bar.advance(len(first))


def _unzipped(data: bytes, stream: BinaryIO, bar: Bar) -> Iterator[bytes]:
    """Yield what gzip members hold, never more than a piece at once.

    A small file may hold gigabytes: memory stays bounded, time is the user's.
    """
    member = zlib.decompressobj(_GZIP_WINDOW)
    while data:
        try:
            text = member.decompress(data, PIECE)
        except zlib.error as error:
            raise _DamagedError(f"damaged gzip, read up to there ({error})") from error
        if text:
            yield text
        data = member.unconsumed_tail
        if member.eof:
            data = member.unused_data.lstrip(b"\0")  # padding of tape blocks
            if data or (data := _next(stream, bar).lstrip(b"\0")):
                if not data.startswith(_GZIP[: len(data)]):
                    raise _DamagedError("text behind the gzip data is not read")
                member = zlib.decompressobj(_GZIP_WINDOW)
            continue
        data = data or _next(stream, bar)
    if text := member.flush():
        yield text
    if not member.eof:
        raise _DamagedError("gzip breaks off, read up to there")


def _next(stream: BinaryIO, bar: Bar) -> bytes:
    data = stream.read(PIECE)
    bar.advance(len(data))
    return data
