"""The files of a node in memory: links, folders, moving numbers, errors.

A tree is what the records of a trace up to some moment make of it. It is read far
more often than it changes, so the file behind a path is remembered until a link or a
deletion may have put another one there. Paths are absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import ETHTOOL, Ramp, TraceRecord
from fabricmon.host.tree_links import MAX_PATH, Links
from fabricmon.host.tree_motion import Motion, Moving

_ABSENT = ReadError("ENOENT")
_IS_FOLDER = ReadError("EISDIR")
_NO_FOLDER = ReadError("ENOTDIR")
_NOWHERE = frozenset({"ELOOP", "ENAMETOOLONG", "ENOENT", "ENOTDIR"})
_ROOT = ""


class File:
    """One file; ``content`` is None where ``motion`` says what it holds.

    Something that only an error is known of is ``bare``: it may be a folder, and is
    one once something lies in it. ``serial`` tells it from others, as an inode number does.
    """

    __slots__ = ("bare", "content", "motion", "serial")

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self.content: bytes | ReadError | None = b""
        self.motion: Motion | None = None
        self.bare = False

    def read(self, now: float) -> bytes | ReadError:
        """Return the content at ``now``."""
        if self.content is None and self.motion is not None:
            return self.motion.text(now)
        return self.content or b""

    def way(self) -> ReadError:
        """Return the error of a path that leads on from here."""
        error = self.content
        if isinstance(error, ReadError) and error.errno in _NOWHERE:
            return error
        return _ABSENT if self.bare else _NO_FOLDER

    def hold(self, content: bytes) -> None:
        """Hold exactly this from now on."""
        self.content, self.motion, self.bare = content, None, False

    def move(self, motion: Motion) -> None:
        """Hold what ``motion`` says from now on."""
        self.content, self.motion, self.bare = None, motion, False


class ImpossibleError(Exception):
    """A change that the tree as it stands does not allow; says why."""


class Tree:
    """Files, folders and links; starts empty."""

    def __init__(self) -> None:
        self._links = Links()
        self._files: dict[str, File] = {}
        self._folders: dict[str, set[str]] = {_ROOT: set()}
        self._kept = {_ROOT}  # folders that exist also while empty
        self._errors: dict[str, ReadError] = {}
        self._found: dict[str, File] = {}  # by path as asked for
        self._serials = count(1)

    def read_many(self, paths: Sequence[str], now: float) -> list[bytes | ReadError]:
        """Read files in order; numbers that move are as at ``now``."""
        find = self._found.get
        contents: list[bytes | ReadError] = []
        add = contents.append
        for path in paths:
            file = find(path)
            if file is None:
                add(self.read(path, now))
            elif (content := file.content) is not None:
                add(content)
            else:
                add(file.read(now))
        return contents

    def read(self, path: str, now: float) -> bytes | ReadError:
        """Read one file as it is at ``now``."""
        file = self._found.get(path)
        if file is None:
            place = self._links.follow(path)
            if isinstance(place, ReadError):
                return place
            file = self._files.get(place)
            if file is None:
                return self._missing(place)
            self._found[path] = file
        return file.read(now)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """List a folder, sorted."""
        place = self._links.follow(path)
        if isinstance(place, ReadError):
            return place
        if place in self._errors:
            return self._errors[place]
        names = self._folders.get(place)
        if names is not None:
            return tuple(sorted(names))
        return _NO_FOLDER if place in self._files else self._missing(place)

    def target(self, path: str) -> str | None:
        """Follow every link; None if that leads nowhere."""
        place = self._links.follow(path)
        if isinstance(place, ReadError):
            return None
        file = self._files.get(place)
        if file is None:
            return (place or "/") if place in self._folders else None
        error = file.content
        nowhere = isinstance(error, ReadError) and error.errno in _NOWHERE
        return None if nowhere else place

    def place(self, path: str) -> str:
        """Return where a path leads, itself where it leads nowhere; a key."""
        place = self._links.follow(path)
        return path if isinstance(place, ReadError) else place

    def file(self, path: str) -> File | None:
        """Return the file behind a path, None if there is none."""
        return self._files.get(self.place(path))

    def is_folder(self, path: str) -> bool:
        """Tell whether a path leads to a folder."""
        return self.place(path) in self._folders

    def has(self, path: str) -> bool:
        """Tell whether the last name of a path is there, if only as a link."""
        place = self._links.own(path)
        if isinstance(place, ReadError):
            return False
        at = (self._files.get(place), self._links.at(place), self._folders.get(place))
        return at != (None, None, None)

    def is_link(self, path: str) -> bool:
        """Tell whether the last name of a path is a link itself."""
        place = self._links.own(path)
        return isinstance(place, str) and self._links.at(place) is not None

    def error(self, path: str) -> ReadError | None:
        """Return the error that a record gave a path or ``ethtool:NETDEV``."""
        return self._errors.get(path if _is_device(path) else self.place(path))

    def _missing(self, place: str) -> ReadError:
        """Say why there is no file at a place."""
        if place in self._folders:
            return _IS_FOLDER
        if place in self._errors:
            return self._errors[place]
        while place:
            place = place.rpartition("/")[0]
            file = self._files.get(place)
            if file is not None:
                return file.way()
        return _ABSENT

    def apply(self, record: TraceRecord) -> list[str]:
        """Make a record's changes to files; return what could not be done, and why.

        The order is that of the format: del, dir, link, set, ramp, err.
        """
        since = record.t
        moving = ((path, ramp, since) for path, ramp in record.ramp.items())
        return [
            *attempt(self.delete, ((path,) for path in record.deleted)),
            *attempt(self.keep_folder, ((path,) for path in record.dir)),
            *attempt(self.put_link, record.link.items()),
            *attempt(self.put_text, record.set.items()),
            *attempt(self.put_ramp, moving),
            *attempt(self.fail, record.err.items()),
        ]

    def whole(self, now: float) -> TraceRecord:
        """Return what makes this tree of an empty one; what moves stands still."""
        errors = {place: error.errno for place, error in self._errors.items()}
        texts: dict[str, str] = {}
        for place, file in self._files.items():
            content = file.read(now)
            if isinstance(content, bytes):
                texts[place] = content.decode("utf-8", "surrogateescape")
            else:
                errors[place] = content.errno
                if not file.bare:
                    texts[place] = ""
        empty = {place for place, names in self._folders.items() if not names}
        folders = sorted((self._kept | empty) - {_ROOT})
        links = self._links.all()
        return TraceRecord(t=now, dir=folders, link=links, set=texts, err=errors)

    def put_text(self, path: str, text: str) -> None:
        """Let a file hold exactly this text; lone surrogates are raw bytes."""
        content = as_bytes(text)
        if not _is_device(path):
            self.writable(path).hold(content)
        self._end_error(path)

    def put_ramp(self, path: str, ramp: Ramp, since: float) -> None:
        """Let a file hold a number that moves from ``since`` on."""
        if not ramp.is_possible:
            raise ImpossibleError("numbers that no counter can hold")
        if not _is_device(path):
            self.writable(path).move(Moving(ramp, since))
        self._end_error(path)

    def fail(self, path: str, errno: str) -> None:
        """Let reading this file or listing this folder fail."""
        if not errno:
            raise ImpossibleError("an errno without name")
        error = ReadError(errno)
        if _is_device(path):
            self._errors[path] = error
            return
        place = _changeable(path, self._links.follow(path))
        file = self._files.get(place)
        if file is None and place not in self._folders:
            file = self._create(place)
            file.bare = True
        if file is not None:
            file.content = error
        self._errors[place] = error

    def delete(self, path: str) -> None:
        """Take a file, a link or a folder with all in it away; nothing if absent.

        A link goes, not what it leads to, as with ``rm -r``: a driver that lets go of
        a device does not vanish with it.
        """
        if _is_device(path):
            self._end_error(path)
            return
        place = _changeable(path, self._links.own(path))
        doomed = [place]
        while doomed:
            gone = doomed.pop()
            self._links.drop(gone)
            self._files.pop(gone, None)
            self._errors.pop(gone, None)
            self._kept.discard(gone)
            doomed += [f"{gone}/{name}" for name in self._folders.pop(gone, ())]
        self._drop_name(place)
        self._found.clear()

    def keep_folder(self, path: str) -> None:
        """Let a folder exist, also while empty; it can be listed."""
        place = self._links.follow(path)
        if place != _ROOT:
            place = _changeable(path, place)
        self._ensure_folder(place)
        self._kept.add(place)
        self._errors.pop(place, None)

    def put_link(self, path: str, target: str) -> None:
        """Let a path be a link; it replaces a file or an empty folder."""
        if not 0 < len(target) <= MAX_PATH:
            raise ImpossibleError("a link needs a target, of at most 4,096 characters")
        place = _changeable(path, self._links.own(path))
        if self._links.at(place) != target:
            self._make_way(place)
            self._files.pop(place, None)
            self._errors.pop(place, None)
            self._add_name(place)
            self._links.put(place, target)
            self._found.clear()

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; it stays the same file and replaces what is there."""
        source = _changeable(old, self._links.own(old))
        place = _changeable(new, self._links.own(new))
        file = self._files.get(source)
        if file is None:
            raise ImpossibleError("no such file")
        if place != source:
            self._make_way(place)
            self.delete(new)
            self._add_name(place)
            self._files[place] = file
            self.delete(old)

    def writable(self, path: str) -> File:
        """Return the file at a path, made where it does not exist."""
        file = self._found.get(path)
        if file is None:
            place = _changeable(path, self._links.follow(path))
            file = self._files.get(place) or self._create(place)
            self._found[path] = file
        return file

    def _end_error(self, path: str) -> None:
        if self._errors:
            self._errors.pop(path if _is_device(path) else self.place(path), None)

    def _create(self, place: str) -> File:
        self._make_way(place)
        self._add_name(place)
        file = self._files[place] = File(next(self._serials))
        return file

    def _make_way(self, place: str) -> None:
        """Let an empty folder make way for a file or link."""
        names = self._folders.get(place)
        if names:
            raise ImpossibleError("there is a folder, and it is not empty")
        if names is not None:
            del self._folders[place]
            self._kept.discard(place)

    def _add_name(self, place: str) -> None:
        folder, _, name = place.rpartition("/")
        self._ensure_folder(folder)
        self._folders[folder].add(name)

    def _ensure_folder(self, place: str) -> None:
        wanted = []
        while place not in self._folders:
            file = self._files.get(place)
            if file is not None and not file.bare:
                raise ImpossibleError(f"{place} is a file, not a folder")
            wanted.append(place)
            place = place.rpartition("/")[0]
        for folder in reversed(wanted):
            if self._files.pop(folder, None) is not None:
                self._found.clear()
            parent, _, name = folder.rpartition("/")
            self._folders[parent].add(name)
            self._folders[folder] = set()

    def _drop_name(self, place: str) -> None:
        """Take a name out of its folder, and folders that are empty then.

        Of one that cannot be listed nobody knows that it is empty: it stays.
        """
        while place:
            folder, _, name = place.rpartition("/")
            names = self._folders.get(folder)
            if names is None:
                return
            names.discard(name)
            if names or folder in self._kept or folder in self._errors:
                return
            del self._folders[folder]
            place = folder


def attempt(
    change: Callable[..., None], arguments: Iterable[tuple[Any, ...]]
) -> list[str]:
    """Make changes one by one; return why some could not be made."""
    complaints = []
    for each in arguments:
        try:
            change(*each)
        except ImpossibleError as error:
            complaints.append(f"{each[0]:.200}: {error}, not used")
    return complaints


def as_bytes(text: str) -> bytes:
    """Turn a text of a trace into bytes; raise `ImpossibleError` if it is none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ImpossibleError("holds a surrogate that stands for no byte") from None


def _is_device(path: str) -> bool:
    return path.startswith(ETHTOOL)


def _changeable(path: str, place: str | ReadError) -> str:
    if path[:1] != "/":
        raise ImpossibleError("not an absolute path")
    if isinstance(place, ReadError):
        raise ImpossibleError(f"leads nowhere ({place.errno})")
    if place == _ROOT:
        raise ImpossibleError("that is the root")
    return place
