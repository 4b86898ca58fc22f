"""The last minutes that the agent kept: copied before it writes on or removes them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from fabricmon.config import Config
from fabricmon.errors import TraceError
from fabricmon.host.segments import FOLDER, Segment, segments_in
from fabricmon.host.trace_write import PART
from fabricmon.sources.job_files import FOLDER as DROP_FILES
from fabricmon.sources.node_jobs import CGROUPS, POD_LOGS
from fabricmon.support.joining import Source, header_of

_OFF = "no history is kept (history.minutes)"


@dataclass(frozen=True, slots=True)
class LastMinutes:
    """The recordings of a history in order, or a ``note`` why there are none."""

    sources: tuple[Source, ...] = ()
    note: str | None = None
    until: float = 0.0  # Unix seconds


def job_paths(config: Config) -> tuple[str, ...]:
    """Return what tells who runs here: drop files, cgroups, pods."""
    own = f"{config.run_folder.rstrip('/')}/{DROP_FILES}"
    found = (own, CGROUPS, POD_LOGS, config.jobs.kubelet_socket)
    return tuple(path for path in found if path)


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
    for each in _newest(found, config.history.minutes * 60, most_bytes):
        copy = _copied(each, folder)
        if copy is not None:
            follows = before is not None and _follows(before, each)
            sources.append(Source(copy, follows=follows, restarts=not follows))
            before = each
    if not sources:
        return LastMinutes(note="the history is empty")
    return LastMinutes(tuple(sources), until=sources[-1].path.stat().st_mtime)


def _follows(before: Segment, after: Segment) -> bool:
    same = before.life == after.life
    return same and before.number + 1 == after.number


def _newest(found: list[Segment], seconds: float, most_bytes: int) -> list[Segment]:
    """Return the last segments that reach so far back and have room."""
    taken: list[Segment] = []
    newest = room = 0.0
    for each in reversed(found):
        try:
            status = each.path.stat()
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


def _copied(segment: Segment, folder: Path) -> Path | None:
    """Copy a segment, also if it was completed meanwhile; None if it is of no use."""
    whole = segment.path.with_name(segment.path.name.removesuffix(PART))
    copy = folder / whole.name
    for path in (segment.path, whole):
        try:
            shutil.copy2(path, copy)  # with the time of its end
            header_of(copy)
        except (OSError, TraceError):  # removed, or nothing was written yet
            continue
        return copy
    return None
