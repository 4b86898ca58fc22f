"""The bundle: one compressed archive that only its owner can read, and its manifest."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

SCHEMA = "fabricmon.support/1"
FOLDER = "fabricmon-support"
MANIFEST = "MANIFEST.json"
TRACE = "node.trace.jsonl.gz"

MOST_PART_BYTES = 4 * 1024 * 1024
"""Of one text in the bundle; of a log the end is kept."""

MOST_TRACE_BYTES = 48 * 1024 * 1024
"""Of the recording, compressed: some hours of a node with eight ports."""

_PART = ".part"
_MODE = 0o600


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the manifest: what is in the bundle, or why it is not."""

    name: str
    file: str | None = None
    bytes: int = 0
    note: str | None = None
    error: str | None = None


class Content(msgspec.Struct, frozen=True):
    """What a part is made of; ``note`` says what is missing in it."""

    data: bytes
    note: str | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle is, and what became of each of its parts."""

    schema: str = SCHEMA
    created: str
    node: str
    version: str
    anonymised: bool
    with_logs: bool
    parts: tuple[Part, ...]


class Bundle:
    """Writes the archive; it has its name once it is whole.

    Raises:
        OSError: The file is there already, or cannot be written.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}{_PART}")
        if path.exists() and not force:
            raise FileExistsError(17, "is there: name another, or --force", str(path))
        self._part.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._part, flags, _MODE)
        self._stream = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._stream, mode="w:gz")  # noqa: SIM115 - closed with the bundle
        self._is_whole = False
        self.parts: list[Part] = []

    def add(self, name: str, file: str, make: Callable[[], Content]) -> None:
        """Add a part; one that fails costs only itself."""
        try:
            content = make()
        except Exception as error:  # noqa: BLE001 - a bundle is for what went wrong
            said = " ".join(str(error).split()) or type(error).__name__
            self.parts.append(Part(name, error=said[:400]))
            return
        data, note = content.data, content.note
        if len(data) > MOST_PART_BYTES:
            note = f"only the last {MOST_PART_BYTES} of {len(data)} bytes"
            data = data[-MOST_PART_BYTES:]
        self._write(file, data)
        self.parts.append(Part(name, file, len(data), note))

    def add_file(self, name: str, file: str, path: Path, note: str | None) -> None:
        """Add a file as it is."""
        self._write(file, path.read_bytes())
        self.parts.append(Part(name, file, path.stat().st_size, note))

    def fail(self, name: str, error: str) -> None:
        """Note a part that cannot be had."""
        self.parts.append(Part(name, error=error))

    def finish(self, manifest: bytes) -> None:
        """Add the manifest and give the archive its name."""
        self._write(MANIFEST, manifest)
        self._tar.close()
        self._stream.close()
        self._part.replace(self._path)
        self._is_whole = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_whole:
            return
        # A full disk fails each of them, and what was begun is removed all the same.
        for end in (self._tar.close, self._stream.close, self._part.unlink):
            with suppress(OSError):
                end()

    def _write(self, file: str, data: bytes) -> None:
        entry = tarfile.TarInfo(f"{FOLDER}/{file}")
        entry.size, entry.mode, entry.mtime = len(data), _MODE, int(time.time())
        self._tar.addfile(entry, io.BytesIO(data))


def trace_in(path: Path, folder: Path) -> Path | None:
    """Take the recording out of a bundle into a folder; None if it is no bundle.

    Nothing else is taken out, whatever the archive says of names and links. Raises
    `OSError` for a bundle without a recording.
    """
    try:
        archive = tarfile.open(path, "r:gz")  # noqa: SIM115 - closed below
    except (tarfile.TarError, OSError, EOFError):
        return None
    with archive:
        try:
            for entry in archive:
                if entry.name == f"{FOLDER}/{TRACE}" and entry.isfile():
                    own = Path(tempfile.mkdtemp(dir=folder))
                    return _taken(archive, entry, own / TRACE)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise OSError(5, f"is damaged: {error}", str(path)) from None
    raise OSError(2, "holds no recording: see its MANIFEST.json", str(path))


def _taken(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> Path:
    stream = archive.extractfile(entry)
    if stream is None or entry.size > 2 * MOST_TRACE_BYTES:
        raise tarfile.TarError("its recording is too large")
    with stream, target.open("wb") as out:
        while chunk := stream.read(1 << 20):
            out.write(chunk)
    return target
