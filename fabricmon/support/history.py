"""The last minutes that the agent kept: copied before it writes on or removes them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.config import Config
from fabricmon.errors import TraceError
from fabricmon.host.segments import FOLDER, Segment, segments_in
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import PART
from fabricmon.host.tree_links import Links
from fabricmon.sources.job_files import FOLDER as DROP_FILES
from fabricmon.sources.maintenance import FILE as PLAN
from fabricmon.sources.node_jobs import CGROUPS, POD_LOGS
from fabricmon.support.joining import Source, header_of

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1 << 20
_OFF = "no history is kept (history.minutes)"


@dataclass(frozen=True, slots=True)
class LastMinutes:
    """The recordings of a history in order, or a ``note`` why there are none."""

    sources: tuple[Source, ...] = ()
    note: str | None = None
    until: float = 0.0  # Unix seconds


def job_paths(config: Config, sources: list[Source]) -> tuple[str, ...]:
    """Return what tells who runs here: drop files, cgroups, pods.

    Also where they were by the configurations that recordings were made with, and where
    links led: a recording that goes on from another one has places instead of paths.
    """
    found = [CGROUPS, POD_LOGS]
    for tree in _configurations(config, sources):
        if run_folder := _text(tree, "run_folder"):
            found.append(f"{run_folder.rstrip('/')}/{DROP_FILES}")
        found.append(_text(tree.get("jobs"), "kubelet_socket"))
    return _with_places(filter(None, found), sources)


def plan_paths(config: Config, sources: list[Source]) -> tuple[str, ...]:
    """Return where it was written who works on what, by any of these configurations."""
    found = []
    for tree in _configurations(config, sources):
        if run_folder := _text(tree, "run_folder"):
            found.append(f"{run_folder.rstrip('/')}/{PLAN}")
        found.append(_text(tree, "maintenance_file"))
    return _with_places(filter(None, found), sources)


def _configurations(config: Config, sources: list[Source]) -> Iterator[dict[str, Any]]:
    yield msgspec.to_builtins(config)
    for source in sources:
        yield header_of(source.path).config or {}


def _with_places(paths: Iterable[str], sources: list[Source]) -> tuple[str, ...]:
    """Return paths, and where links led at any time that were on the way or below."""
    found: dict[str, None] = dict.fromkeys(paths)
    for source in sources:
        links = Links()
        with TraceReader(source.path) as reader:
            for record in reader:
                own = []
                for path, target in record.link.items():
                    place = links.own(path)
                    if isinstance(place, str):
                        links.put(place, target)
                        own.append(place)
                if own:
                    found |= _led(links, found)
                    found |= _led(links, [p for p in own if _is_below(p, found)])
    return tuple(found)


def _led(links: Links, paths: Iterable[str]) -> dict[str, None]:
    places = [links.follow(path) for path in paths]
    return {place: None for place in places if isinstance(place, str) and place}


def _is_below(place: str, folders: Iterable[str]) -> bool:
    return any(place.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _text(tree: object, key: str) -> str:
    value = tree.get(key) if isinstance(tree, dict) else None
    return value if isinstance(value, str) else ""


def take_history(config: Config, folder: Path, most_bytes: int) -> LastMinutes:
    """Copy what the agent kept into a folder, the newest ``most_bytes`` of it."""
    if not config.history.minutes:
        return LastMinutes(note=_OFF)
    try:
        found = segments_in(Path(config.state_folder, FOLDER))
    except FileNotFoundError:
        return LastMinutes(note="the history is empty")
    except OSError as error:
        return LastMinutes(note=f"the history cannot be read: {error.strerror}")
    sources: list[Source] = []
    before: Segment | None = None
    trouble = None
    for each in _newest(found, config.history.minutes * 60, most_bytes):
        try:
            copy = _copied(each, folder, most_bytes)
        except OSError as error:
            trouble = f"{each.path.name} cannot be copied: {error.strerror}"
            continue
        if copy is not None:
            follows = before is not None and _follows(before, each)
            sources.append(Source(copy, follows=follows, restarts=not follows))
            before = each
    if not sources:
        return LastMinutes(note=trouble or "the history is empty")
    until = sources[-1].path.stat().st_mtime
    return LastMinutes(tuple(sources), trouble, until)


def _follows(before: Segment, after: Segment) -> bool:
    same = before.life == after.life
    return same and before.number + 1 == after.number


def _newest(found: list[Segment], seconds: float, most_bytes: int) -> list[Segment]:
    """Return the last segments that reach so far back and have room."""
    taken: list[Segment] = []
    newest = room = 0.0
    for each in reversed(found):
        try:
            status = each.path.lstat()
        except OSError:  # just removed, or just completed: then it is the last one
            if not taken:
                taken.append(each)
            continue
        newest = newest or status.st_mtime
        room += status.st_size
        if taken and (room > most_bytes or newest - status.st_mtime > seconds > 0):
            break
        taken.append(each)
    return taken[::-1]


def _copied(segment: Segment, folder: Path, most_bytes: int) -> Path | None:
    """Copy a segment, also if it was completed meanwhile; None if it is of no use.

    Raises `OSError` for one that is there and cannot be copied.
    """
    whole = segment.path.with_name(segment.path.name.removesuffix(PART))
    copy = folder / whole.name
    for path in (segment.path, whole):
        try:
            _copy(path, copy, most_bytes)
            header_of(copy)
        except (FileNotFoundError, TraceError):  # removed, or not yet written
            continue
        return copy
    return None


def _copy(path: Path, copy: Path, most_bytes: int) -> None:
    """Copy what a file holds now, with the time when it was written.

    The folder is the agent's, and this may be root: what is there in the place of a
    file is not read, nor more of one than has room. Raises `OSError`.
    """
    with os.fdopen(os.open(path, _FLAGS), "rb") as source:
        status = os.fstat(source.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, "is no regular file")
        left = min(status.st_size, most_bytes)
        try:
            with copy.open("wb") as target:
                while left > 0 and (block := source.read(min(left, _BLOCK))):
                    target.write(block)
                    left -= len(block)
        except OSError:
            with suppress(OSError):
                copy.unlink()
            raise
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
