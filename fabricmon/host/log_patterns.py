"""Which paths a pattern of the shell leads to, whatever the folders are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from fabricmon.host.protocol import LogFile, LogListing, ReadError

MOST_NAMES = 50_000
"""Names that one pattern may make us look at: a home folder with a million files."""

_WILD = frozenset("*?[")
_DENIED = frozenset({"EACCES", "EPERM"})

Names = Callable[[str], tuple[str, ...] | ReadError]
"""Lists a folder."""

Look = Callable[[str], LogFile | ReadError]
"""Says what a log file is; EINVAL for what is no regular file."""


@dataclass(slots=True)
class _Walk:
    """One pattern on its way through the folders."""

    names: Names
    seen: int = 0
    left_out: int = 0
    denied: str | None = None
    paths: list[str] = field(default_factory=list)

    def follow(self, folder: str, parts: tuple[str, ...]) -> None:
        """Go on from a folder; literal names are taken as they are."""
        for index, part in enumerate(parts):
            if is_wild(part):
                self._match(folder, part, parts[index + 1 :])
                return
            folder = f"{folder}/{part}"
        self.paths.append(folder)

    def _match(self, folder: str, part: str, rest: tuple[str, ...]) -> None:
        names = self.names(folder or "/")
        if isinstance(names, ReadError):
            if names.errno in _DENIED:
                self.denied = self.denied or folder
            return
        allowed = max(MOST_NAMES - self.seen, 0)
        self.seen += len(names)
        self.left_out += max(len(names) - allowed, 0)
        for name in names[:allowed]:
            hidden = name.startswith(".") and not part.startswith(".")
            if not hidden and fnmatchcase(name, part):
                self.follow(f"{folder}/{name}", rest)


def is_wild(pattern: str) -> bool:
    """Tell whether a pattern may match more than one path."""
    return not _WILD.isdisjoint(pattern)


def literal(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return "".join(f"[{each}]" if each in _WILD else each for each in text)


def find_logs(pattern: str, limit: int, names: Names, look: Look) -> LogListing:
    """Return the regular files that match a pattern, the newest ``limit`` of them."""
    walk = _Walk(names)
    parts = tuple(part for part in pattern.split("/") if part not in {"", "."})
    if ".." not in parts:
        walk.follow("", parts)
    denied = walk.denied
    files = []
    for path in walk.paths:
        found = look(path)
        if isinstance(found, LogFile):
            files.append(found)
        elif found.errno in _DENIED:
            denied = denied or path
    kept = newest(files, limit)
    return LogListing(kept, len(files) - len(kept) + walk.left_out, denied)


def newest(files: Iterable[LogFile], limit: int) -> tuple[LogFile, ...]:
    """Return the files that were written last, at most ``limit``."""
    by_age = sorted(files, key=lambda file: (-file.modified, file.path))
    return tuple(by_age[:limit])
