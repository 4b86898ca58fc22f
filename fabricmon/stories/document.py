"""Events of logs as documents that other programs read: ``fabricmon.logevent/1``. Pure."""

from __future__ import annotations

import math

from msgspec import Struct

from fabricmon.finding_document import rfc3339
from fabricmon.parse.log_event import LogEvent

SCHEMA = "fabricmon.logevent/1"

_LEAST, _MOST = -(2**63), 2**63 - 1  # what readers of JSON take


class LogEventDocument(Struct, frozen=True, kw_only=True):
    """One event; every key is always there, null where the log does not say."""

    schema: str = SCHEMA
    kind: str
    severity: str
    device: str | None
    port: int | str | None
    peer: str | None
    peer_port: int | str | None
    status: int | str | None
    cause: str | None
    rank: int | str | None
    comm: str | None
    pid: int | str | None
    host: str | None
    library: str | None
    library_version: str | None
    file: str
    line_number: int
    offset: int
    time: str | None
    count: int
    root: bool
    fields: dict[str, int | float | str | None]
    rule: str
    job: str | None


def log_event_document(event: LogEvent) -> LogEventDocument:
    """Return an event as others read it."""
    return LogEventDocument(
        kind=_text(event.kind),
        severity=event.severity.value,
        device=_maybe(event.device),
        port=_number(event.port),
        peer=_maybe(event.peer),
        peer_port=_number(event.peer_port),
        status=_value(event.status),
        cause=_maybe(event.cause),
        rank=_number(event.rank),
        comm=_maybe(event.comm),
        pid=_number(event.pid),
        host=_maybe(event.host),
        library=_maybe(event.library),
        library_version=_maybe(event.library_version),
        file=_text(event.file),
        line_number=event.line_number,
        offset=event.offset,
        time=None if event.time is None else rfc3339(event.time),
        count=event.count,
        root=event.root,
        fields={_text(item.name): _plain(item.value) for item in event.fields},
        rule=_text(event.rule),
        job=_maybe(event.job),
    )


def _text(text: str) -> str:
    """Make a text JSON can hold: bytes that are not UTF-8 are lone surrogates here."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _maybe(text: str | None) -> str | None:
    return None if text is None else _text(text)


def _number(value: int | None) -> int | str | None:
    """Write a number that JSON's readers could not hold as text."""
    return value if value is None or _LEAST <= value <= _MOST else str(value)


def _value(value: int | str | None) -> int | str | None:
    return _text(value) if isinstance(value, str) else _number(value)


def _plain(value: float | str) -> int | float | str | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _value(value)
