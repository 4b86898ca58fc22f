"""Drop files: a job's prolog or init container says where its logs are.

Only log paths and settings of the libraries are believed; whoever may write there
says nothing about the node.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.parse.library_settings import (
    MOST_CHARACTERS,
    MOST_SETTINGS,
    NamedValue,
    is_setting,
)
from fabricmon.value import Value

FOLDER = "jobs"
MOST_FILES = 256
MOST_ENTRIES = 256  # in one file
MOST_PATHS = 64  # of one job
MOST_PIDS = 1024  # of one job

_SHAPE = 'write a list such as [{"job": "1234", "logs": ["/scratch/1234/*.log"]}]'
_REMEDIES = {
    **dict.fromkeys(("EINVAL", "EISDIR"), "put a regular file there"),
    "EFBIG": "keep it below 64 KiB",
}
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class DropFile(Value, frozen=True):
    """What a file says of one job."""

    job: str
    pids: tuple[int, ...] = ()
    logs: tuple[str, ...] = ()
    settings: tuple[NamedValue, ...] = ()


class DropFiles(Value, frozen=True):
    """All that the files say, and what in them could not be understood."""

    jobs: tuple[DropFile, ...] = ()
    problems: tuple[str, ...] = ()


class _Entry(msgspec.Struct):
    """One entry; keys that later versions add are passed over."""

    job: str | int
    pids: tuple[int, ...] = ()
    logs: tuple[str, ...] = ()
    settings: dict[str, str | int | float | bool] = {}


def read_drop_files(host: Host, config: Config) -> DropFiles:
    """Read every file; a bad entry costs only itself, no folder is no job."""
    folder = f"{config.run_folder.rstrip('/')}/{FOLDER}"
    names = host.names(folder)
    if isinstance(names, ReadError):
        absent = names.errno == "ENOENT"
        problem = f"{folder}: {names.errno}: make it readable for fabricmon"
        return DropFiles((), () if absent else (problem,))
    files = [name for name in names if name.endswith(".json")]
    found: list[DropFile] = []
    problems: list[str] = []
    for name in files[:MOST_FILES]:
        path = f"{folder}/{name}"
        raw = host.read(path)
        if isinstance(raw, ReadError):
            if raw.errno != "ENOENT":  # else the job has just ended
                remedy = _REMEDIES.get(raw.errno, "make it readable for fabricmon")
                problems.append(f"{path}: {raw.errno}: {remedy}")
            continue
        told = parse_drop_file(raw, path)
        found += told.jobs
        problems += told.problems
    if len(files) > MOST_FILES:
        problems.append(f"{folder}: more than {MOST_FILES} files: remove old ones")
    return DropFiles(tuple(found), tuple(problems))


def parse_drop_file(raw: bytes, path: str) -> DropFiles:
    """Return the jobs of one file: a list of entries, or a single one."""
    try:
        single = raw.lstrip().startswith(b"{")
        entries = (
            [msgspec.Raw(raw)]
            if single
            else msgspec.json.decode(raw, type=list[msgspec.Raw])
        )
    except _DAMAGE as error:
        return DropFiles((), (f"{path}: {error}: {_SHAPE}",))
    jobs = []
    problems = []
    for number, entry in enumerate(entries[:MOST_ENTRIES], start=1):
        try:
            jobs.append(_job(msgspec.json.decode(entry, type=_Entry)))
        except _DAMAGE as error:
            problems.append(f"{path}: entry {number}: {error}: {_SHAPE}")
    return DropFiles(tuple(jobs), tuple(problems[:1]))


def _job(entry: _Entry) -> DropFile:
    return DropFile(
        job=str(entry.job)[:MOST_CHARACTERS],
        pids=tuple(pid for pid in entry.pids if pid > 0)[:MOST_PIDS],
        logs=tuple(path for path in entry.logs if path.startswith("/"))[:MOST_PATHS],
        settings=tuple(_settings(entry))[:MOST_SETTINGS],
    )


def _settings(entry: _Entry) -> Iterator[NamedValue]:
    for name, value in entry.settings.items():
        if is_setting(name):
            text = str(int(value)) if isinstance(value, bool) else str(value)
            yield NamedValue(name, text[:MOST_CHARACTERS])
