"""The saved state on disk: one small file, replaced as a whole or not at all."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from errno import EACCES, EAGAIN, errorcode
from pathlib import Path

from fabricmon.saved import (
    MAX_BYTES,
    SavedState,
    UnusableStateError,
    decode,
    encode,
)
from fabricmon.value import Value

FILE = "state.msgpack"
LOCK = ".lock"
"""Locked by the one agent that saves to a folder."""

_NEW = f".{FILE}.new"
_TAKEN = frozenset({EACCES, EAGAIN})


class StoreProblem(Value, frozen=True):
    """Why a state could not be saved or taken back, in one line for a human.

    ``errno`` is a name such as ENOSPC, None where the file's contents are at fault.
    """

    path: str
    message: str
    errno: str | None = None

    def __str__(self) -> str:
        """Say where, what and, if the kernel refused, with which error."""
        why = f" ({self.errno})" if self.errno else ""
        return f"{self.path}: {self.message}{why}"


class Store:
    """Reads and replaces the state file of one folder; errors are values."""

    def __init__(self, folder: str) -> None:
        """Touch nothing yet; the folder is made when first saved to."""
        self._folder = Path(folder)
        self._path = self._folder / FILE
        self._lock: int | None = None

    @property
    def path(self) -> str:
        """The state file."""
        return str(self._path)

    def load(self) -> SavedState | StoreProblem | None:
        """Return the saved state, None if there is none, or why it is of no use."""
        try:
            raw = _read(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._refused(
                error, "cannot be read, starting without the saved state"
            )
        if len(raw) > MAX_BYTES:
            return StoreProblem(self.path, f"ignored: larger than {MAX_BYTES} bytes")
        try:
            return decode(raw)
        except UnusableStateError as error:
            return StoreProblem(self.path, f"ignored: {error}")

    def save(self, state: SavedState) -> StoreProblem | None:
        """Replace the file; on an error the one before stays as it is."""
        try:
            raw = encode(state)
        except UnusableStateError as error:
            return StoreProblem(self.path, f"not saved: {error}")
        if len(raw) > MAX_BYTES:
            return StoreProblem(self.path, f"not saved: {len(raw)} bytes are too many")
        new = self._folder / _NEW
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._holds_folder():
                message = "not saved: another agent saves here; give each its own"
                return StoreProblem(self.path, f"{message} state_folder")
            _write(new, raw)
            new.replace(self._path)
            _sync_folder(self._folder)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            return self._refused(
                error, "not saved: open incidents would be told again after a restart"
            )
        return None

    def close(self) -> None:
        """Leave the folder to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _holds_folder(self) -> bool:
        """Take the folder until `close`; False while another process has it.

        Two agents that replace one file would save each other's half of it.
        """
        if self._lock is None:
            lock = _open_lock(self._folder / LOCK)
            if not holds(lock):
                os.close(lock)
                return False
            self._lock = lock
        return True

    def _refused(self, error: OSError, message: str) -> StoreProblem:
        name = errorcode.get(error.errno or 0, str(error.errno))
        return StoreProblem(self.path, message, name)


def holds(descriptor: int) -> bool:
    """Lock what is open, until it is closed; False while another process has it.

    A file system without locks keeps out nobody.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN
    return True


def _open_lock(path: Path) -> int:
    """Open the lock; one that another user left in our folder is replaced."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        path.unlink()
        return os.open(path, flags, 0o600)


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _write(path: Path, raw: bytes) -> None:
    """Write a file that only its owner can read, down to the disk.

    What a crash left under this name is removed first, so that a file of others or a
    link is never written through.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
