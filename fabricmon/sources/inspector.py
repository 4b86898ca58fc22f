"""Files of NCCL's Inspector: how local ranks fare in collectives and transfers.

Ranks of one collective wait for each other, so the late rank is the one that waits
least: its execution time is the shortest. That takes the ranks of all nodes to see, so
each node exports its own and a rule on Prometheus compares them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from fabricmon.config import Config
from fabricmon.host.protocol import Host, LogFile, ReadError
from fabricmon.model import CollectiveRate, CollectiveRates, Target
from fabricmon.parse.inspector import (
    MAX_RECORD,
    Operation,
    parse_operations,
    parse_prometheus,
    size_class,
)
from fabricmon.sources.node_jobs import host_name
from fabricmon.value import Value

PROMETHEUS = ".prom"
FOLDER = "nccl-inspector-"
"""How the folder of a job begins; the job's number follows."""

MAX_FILES = 64  # a process each
POLL_BYTES = 1 << 20
"""Read in one poll, of all files: a process writes some hundred bytes a second."""

FILE_BYTES = 256 << 10
"""Of a file that is far ahead only its newest are read: rates are samples."""

MAX_SAMPLES = 64  # of one series
MAX_SERIES = 1024  # held; `inspector.series` of them are exported
MAX_PROBLEMS = 4
AHEAD_SECONDS = 60.0  # a stamp that is later than this is no time of ours


class _Series(Value, frozen=True):
    """What makes samples comparable: one rank, collective, size class and peer."""

    comm: str
    rank: int
    collective: str
    size_class: str
    size: int
    peer: int | None
    ranks: int | None
    nodes: int | None
    job: str | None


class _Sample(Value, frozen=True):
    """One operation; ``at`` is Unix time."""

    at: float
    seconds: float | None
    bus_bandwidth: float | None


class _Cursor(Value, frozen=True):
    """How far a file was read, and the record at its end that is not whole yet."""

    serial: str
    offset: int
    modified: float
    rest: bytes = b""
    wrong: int = 0


class _Kept(Value, frozen=True):
    """What one poll hands to the next; nothing in it is changed."""

    cursors: dict[str, _Cursor]
    samples: dict[_Series, tuple[_Sample, ...]]


_NOTHING = _Kept({}, {})


def poll(host: Host, target: Target, config: Config) -> tuple[CollectiveRates, ...]:
    """Read what is new in the files and return the rates of the newest window."""
    kept = target.carried if isinstance(target.carried, _Kept) else _NOTHING
    files, problems = _files(host, config)
    if not files and not kept.samples:
        return (CollectiveRates(host.monotonic(), (), _NOTHING, problems),)
    look = _Look(host, kept, host_name(host))
    for number, file in enumerate(files):
        look.read(file, number)
    now = host.wall()
    samples = _merged(kept.samples, look.found, now, config.inspector.window_seconds)
    return (
        CollectiveRates(
            at=host.monotonic(),
            rates=tuple(_rates(samples))[: config.inspector.series],
            cursors=_Kept(look.cursors, samples),
            problems=(*problems, *look.problems[:MAX_PROBLEMS]),
        ),
    )


def _files(host: Host, config: Config) -> tuple[tuple[LogFile, ...], tuple[str, ...]]:
    """Return the files that are there, by path, and what may not be looked at."""
    found: dict[str, LogFile] = {}
    problems = []
    for pattern in config.inspector.paths:
        listing = host.find_logs(pattern, MAX_FILES)
        found |= {file.path: file for file in listing.files}
        if listing.denied is not None:
            problems.append(f"{listing.denied}: not readable for fabricmon")
    newest = sorted(found.values(), key=lambda file: -file.modified)[:MAX_FILES]
    return tuple(sorted(newest, key=lambda file: file.path)), tuple(problems)


class _Look:
    """One poll over all files, within its bytes."""

    def __init__(self, host: Host, kept: _Kept, node: str | None) -> None:
        """Go on from what was kept."""
        self._host = host
        self._kept = kept
        self._node = node
        self._left = POLL_BYTES
        self.cursors: dict[str, _Cursor] = {}
        self.found: list[tuple[_Series, _Sample]] = []
        self.problems: list[str] = []

    def read(self, file: LogFile, number: int) -> None:
        """Read what is new in a file; ``number`` stands for the rank that it hides."""
        name = file.path.rpartition("/")[2]
        cursor = self._kept.cursors.get(file.path)
        if cursor is not None and cursor.serial != file.serial:
            cursor = None
        if name.endswith(PROMETHEUS):
            cursor = self._read_metrics(file, cursor, number)
        elif self._is_ours(name.rpartition("-pid")[0]):
            cursor = self._read_records(file, cursor)
        if cursor is not None:
            self.cursors[file.path] = cursor
            if cursor.wrong:
                text = f"{file.path}: {cursor.wrong} records that cannot be understood"
                self.problems.append(text)

    def _is_ours(self, host: str | None) -> bool:
        """Tell whether a rank ran here: a folder may be shared by all nodes of a job."""
        if not host or self._node is None:
            return True
        return host.partition(".")[0].lower() == self._node.lower()

    def _read_records(self, file: LogFile, cursor: _Cursor | None) -> _Cursor | None:
        begin = _Cursor(file.serial, 0, file.modified)
        if cursor is None or cursor.offset > file.size:  # new, or cut
            cursor = begin
        offset, rest = cursor.offset, cursor.rest
        skips = file.size - offset > FILE_BYTES
        if skips:
            offset, rest = file.size - FILE_BYTES, b""
        size = min(file.size - offset, self._left)
        if size <= 0:
            return cursor
        data = self._host.read_log(file.path, file.serial, offset, size)
        if isinstance(data, ReadError):
            self.problems.append(f"{file.path}: {data.errno}")
            return cursor
        self._left -= len(data)
        read = offset + len(data)
        if skips:
            data = data.partition(b"\n")[2]  # the first line is torn
        told = parse_operations(rest + data)
        self._take(file, told.found)
        return _Cursor(
            file.serial, read, file.modified, told.rest, cursor.wrong + told.wrong
        )

    def _read_metrics(
        self, file: LogFile, cursor: _Cursor | None, number: int
    ) -> _Cursor | None:
        """Read a file that is written anew each time; it names a GPU and no rank."""
        if cursor is not None and cursor.modified == file.modified:
            return cursor
        size = min(MAX_RECORD, self._left)
        data = self._host.read_log(file.path, file.serial, 0, size)
        if isinstance(data, ReadError):
            self.problems.append(f"{file.path}: {data.errno}")
            return cursor
        self._left -= len(data)
        told = parse_prometheus(data, number)
        self._take(file, told.found)
        return _Cursor(file.serial, len(data), file.modified, wrong=told.wrong)

    def _take(self, file: LogFile, operations: Iterable[Operation]) -> None:
        wall = self._host.wall()
        job = _job(file.path)
        for each in operations:
            if each.rank is not None and self._is_ours(each.host):
                at = wall if each.at is None else each.at
                if at <= wall + AHEAD_SECONDS:
                    sample = _Sample(at, each.seconds, each.bus_bandwidth)
                    self.found.append((_series(each, each.rank, job), sample))


def _job(path: str) -> str | None:
    """Return the job that the folder is named after; ``unknown-jobid`` is none."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    name = folder.removeprefix(FOLDER)
    return name if name != folder and name.isdecimal() else None


def _series(each: Operation, rank: int, job: str | None) -> _Series:
    return _Series(
        comm=each.comm,
        rank=rank,
        collective=each.collective,
        size_class=size_class(each.size),
        size=1 << max(each.size, 1).bit_length() - 1,
        peer=each.peer,
        ranks=each.ranks,
        nodes=each.nodes,
        job=job,
    )


def _merged(
    known: dict[_Series, tuple[_Sample, ...]],
    found: Sequence[tuple[_Series, _Sample]],
    now: float,
    window: float,
) -> dict[_Series, tuple[_Sample, ...]]:
    """Add what is new, drop what is older than the window, keep what is bounded."""
    merged: defaultdict[_Series, list[_Sample]] = defaultdict(list)
    for series, samples in known.items():
        merged[series] += samples
    for series, sample in found:
        if series in merged or len(merged) < MAX_SERIES:
            merged[series].append(sample)
    fresh = {
        series: tuple(s for s in samples[-MAX_SAMPLES:] if now - s.at <= window)
        for series, samples in merged.items()
    }
    return {series: samples for series, samples in fresh.items() if samples}


def _rates(samples: dict[_Series, tuple[_Sample, ...]]) -> Iterator[CollectiveRate]:
    """Yield the medians, large messages first: they show the links."""
    ordered = sorted(
        samples,
        key=lambda s: (-s.size, s.comm, s.collective, s.rank, s.peer or 0),
    )
    for series in ordered:
        seconds = [s.seconds for s in samples[series] if s.seconds is not None]
        rates = [s.bus_bandwidth for s in samples[series] if s.bus_bandwidth]
        yield CollectiveRate(
            comm=series.comm,
            rank=series.rank,
            collective=series.collective,
            size_class=series.size_class,
            operations=len(samples[series]),
            bus_bandwidth=median(rates) if rates else None,
            seconds=median(seconds) if seconds else None,
            peer=series.peer,
            ranks=series.ranks,
            nodes=series.nodes,
            job=series.job,
        )
