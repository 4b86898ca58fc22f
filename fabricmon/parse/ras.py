"""Reports of NCCL's RAS, as saved from its client: text, JSON, and what it watched.

RAS compares over TCP how many operations each rank has launched. It does not see
whether data flows: a report without errors proves nothing of the fabric.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fabricmon.parse.log_event import LogEvent, LogField, LogLine, LogSeverity
from fabricmon.parse.nccl import LogContext, RuleTable, recognise
from fabricmon.parse.nccl_codes import result_name
from fabricmon.parse.text import lines
from fabricmon.value import Value

MOST_OCTETS = 16 << 20  # of a report: some 30,000 ranks
MOST_EVENTS = 1000  # of a report
_MOST_NAME = 255
# Seen in reports of 2.28: the comma behind the last number of a missing rank is missing.
_NO_COMMA = re.compile(r'("nvml_dev": \d{1,6})(\s{1,80}"status")')
_MOST_NUMBER = (1 << 63) - 1  # what a reader of JSON can be relied on to hold
_IN_PROGRESS = 7  # ncclInProgress, as the state of an initialisation
_DOCUMENT = "ras"  # stands for a row in events of a JSON document

Json = Mapping[str, Any]


class RasRank(Value, frozen=True):
    """A rank in a report; ``operations`` are its launches by collective."""

    rank: int | None
    host: str | None
    pid: int | None
    missing: bool = False
    dead: bool = False
    state: str = "RUNNING"
    error: int = 0
    operations: tuple[tuple[str, int], ...] = ()


class RasCommunicator(Value, frozen=True):
    """A communicator in a report, with the ranks that it tells of."""

    comm: str | None
    size: int | None
    ranks: tuple[RasRank, ...]


@dataclass(frozen=True, slots=True)
class RasReport:
    """A report in JSON; ``timeouts`` counts processes that answered RAS late."""

    version: str | None
    communicators: tuple[RasCommunicator, ...]
    timeouts: int | None = None
    watched: tuple[Json, ...] = field(default=(), repr=False)


def ras_events(text: str, file: str) -> tuple[LogEvent, ...]:
    """Return what a saved report says; nothing where it is none.

    A text report is read with the rows of the log rule table, each line of it.
    """
    report = parse_ras_json(text)
    if report is None:
        return tuple(_text_events(text[:MOST_OCTETS], file))[:MOST_EVENTS]
    return tuple(_json_events(report, file))[:MOST_EVENTS]


def parse_ras_json(text: str) -> RasReport | None:
    """Return a report in JSON (one object, or the objects of what was watched)."""
    if len(text) > MOST_OCTETS or not text.lstrip().startswith("{"):
        return None
    found = list(_objects(_NO_COMMA.sub(r"\1,\2", text)))
    if not found:
        return None
    first = found[0]
    if isinstance(first.get("communicators"), list):
        return _report(first)
    watched = tuple(each for each in found if _peer_event(each))
    return RasReport(None, (), watched=watched) if watched else None


def _objects(text: str) -> Iterator[Json]:
    """Yield the objects that follow each other, up to the first that is none."""
    decoder = json.JSONDecoder()
    place = 0
    while (place := text.find("{", place)) >= 0:
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value


def _report(document: Json) -> RasReport:
    ras = _object(document.get("ras"))
    communicators = tuple(
        RasCommunicator(
            _text(each.get("hash")), _number(each.get("size")), tuple(_ranks(each))
        )
        for each in _list(document.get("communicators"))
    )
    version = _text(document.get("nccl_version"))
    return RasReport(version, communicators, _number(ras.get("timeouts_count")))


def _ranks(communicator: Json) -> Iterator[RasRank]:
    for each in _list(communicator.get("ranks")):
        status = _object(each.get("status"))
        counts = _object(each.get("collective_counts"))
        yield RasRank(
            _number(each.get("rank")),
            _text(each.get("host")),
            _number(each.get("pid")),
            state=_state(status),
            error=_number(status.get("async_error")) or 0,
            operations=tuple(
                (str(name)[:_MOST_NAME], count)
                for name, value in counts.items()
                if (count := _number(value)) is not None
            ),
        )
    for each in _list(communicator.get("missing_ranks")):
        status = _object(each.get("status"))
        yield RasRank(
            _number(each.get("rank")),
            _text(each.get("host")),
            _number(each.get("pid")),
            missing=True,
            dead=status.get("considered_dead") is True,
        )


def _state(status: Json) -> str:
    """Return the word that the text report has for these flags."""
    if status.get("abort_flag") is True:
        return "ABORT"
    if status.get("destroy_flag") is True or status.get("finalize_called") is True:
        return "FINALIZE"
    return "INIT" if status.get("init_state") == _IN_PROGRESS else "RUNNING"


def _json_events(report: RasReport, file: str) -> Iterator[LogEvent]:
    for communicator in report.communicators:
        yield from _communicator_events(report, communicator, file)
    for each in report.watched:
        yield from _watched(each, file)


def _communicator_events(
    report: RasReport, communicator: RasCommunicator, file: str
) -> Iterator[LogEvent]:
    found = [
        *_missing(report, communicator, file),
        *_behind(report, communicator, file),
        *_failed(report, communicator, file),
    ]
    yield from found
    if not found:
        states = sorted({rank.state for rank in communicator.ranks}) or ["UNKNOWN"]
        yield _event(
            "ras_summary",
            LogSeverity.INFO,
            report,
            communicator,
            file,
            status=f"{','.join(states)}/OK",
        )


def _missing(
    report: RasReport, communicator: RasCommunicator, file: str
) -> Iterator[LogEvent]:
    for rank in communicator.ranks:
        if rank.missing:
            kind = "ras_dead" if rank.dead else "ras_incomplete"
            bad = LogSeverity.CRITICAL if rank.dead else LogSeverity.WARNING
            yield _event(kind, bad, report, communicator, file, rank=rank)


def _behind(
    report: RasReport, communicator: RasCommunicator, file: str
) -> Iterator[LogEvent]:
    """Yield each collective that ranks have launched differently often."""
    names = {name for rank in communicator.ranks for name, _ in rank.operations}
    for name in sorted(names):
        counted = [
            (count, rank)
            for rank in communicator.ranks
            for each, count in rank.operations
            if each == name
        ]
        least, last = min(counted, key=lambda pair: pair[0])
        most = max(count for count, _ in counted)
        if least != most:
            yield _event(
                "ras_mismatch",
                LogSeverity.WARNING,
                report,
                communicator,
                file,
                rank=last,
                status=f"{least}/{most}",
                fields={"collective": name, "least": least, "most": most},
            )


def _failed(
    report: RasReport, communicator: RasCommunicator, file: str
) -> Iterator[LogEvent]:
    for rank in communicator.ranks:
        if rank.error:
            name = result_name(rank.error)
            yield _event(
                "async_error",
                LogSeverity.ERROR,
                report,
                communicator,
                file,
                rank=rank,
                fields={"result": rank.error, "result_name": name or ""},
            )


def _event(
    kind: str,
    severity: LogSeverity,
    report: RasReport,
    communicator: RasCommunicator,
    file: str,
    *,
    rank: RasRank | None = None,
    status: str | None = None,
    fields: Mapping[str, str | int] | None = None,
) -> LogEvent:
    told: dict[str, str | int] = dict(fields or {})
    if rank is not None and rank.pid is not None:
        told["process"] = rank.pid
    if communicator.size is not None:
        told["ranks"] = communicator.size
    return LogEvent(
        kind=kind,
        severity=severity,
        rule=_DOCUMENT,
        file=file,
        line_number=1,
        offset=0,
        peer=rank.host if rank else None,
        status=status,
        rank=rank.rank if rank else None,
        comm=communicator.comm,
        library="ras",
        library_version=report.version,
        fields=tuple(LogField(name, value) for name, value in told.items()),
    )


def _text_events(text: str, file: str) -> Iterator[LogEvent]:
    table, context = _table(), LogContext()
    offset = 0
    for number, line in enumerate(lines(text), 1):
        found = recognise(LogLine(line, number, offset), file, context, table)
        context = found.context
        offset += len(line.encode("utf-8", "replace")) + 1
        yield from (event for event in found.events if event.library == "ras")


@cache
def _table() -> RuleTable:
    return RuleTable.of()


def _watched(told: Json, file: str) -> Iterator[LogEvent]:
    """Yield the event of one watched object, by the row for its name in text."""
    name = _peer_event(told)
    line = LogLine(f'"event": "{name}"', 1, 0)
    host = next(filter(None, (_text(told.get(key)) for key in _HOST_KEYS)), None)
    for event in recognise(line, file, LogContext(), _table()).events:
        yield LogEvent(
            kind=event.kind,
            severity=event.severity,
            rule=event.rule,
            file=file,
            line_number=1,
            offset=0,
            peer=host,
            status=event.status,
            library="ras",
            fields=tuple(_watched_fields(told)),
        )


_HOST_KEYS = ("node", "host", "address")


def _watched_fields(told: Json) -> Iterator[LogField]:
    pid = _number(told.get("pid"))
    if pid is not None:
        yield LogField("process", pid)


def _peer_event(told: Json) -> str | None:
    for key in ("event", "type", "name"):
        value = _text(told.get(key))
        if value and value.startswith("PEER_"):
            return value
    return None


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Iterator[Json]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _MOST_NUMBER else None
    return None


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode()[:_MOST_NAME]
