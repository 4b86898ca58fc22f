"""Log lines inside JSON objects: Docker, journald, and the shippers' usual shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fabricmon.parse.log_stamp import unix_seconds
from fabricmon.value import Value

if TYPE_CHECKING:
    from fabricmon.parse.log_told import Told

_DOCKER_KEYS = frozenset({"log", "stream", "time", "attrs"})
_TEXT_KEYS = ("log", "MESSAGE", "message", "msg")
_TIME_KEYS = ("time", "@timestamp", "timestamp")
_MICROSECONDS = 1_000_000
_MOST_DIGITS = 18  # of a 63-bit number


class Inside(Value, frozen=True):
    """A text out of an object; ``more`` of the message follows in the same stream."""

    text: str
    stream: str = ""
    more: bool = False


def json_message(text: str, told: Told) -> Inside | None:
    """Return the message in an object and tell what stands beside it; None if none."""
    try:
        document = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    for key in _TEXT_KEYS:
        if key in document:
            message = _text(document[key])
            if message is not None:
                return _inside(document, key, message, told)
    return None


def _inside(document: dict[str, Any], key: str, message: str, told: Told) -> Inside:
    """Tell what an object says beside its message."""
    if key == "MESSAGE":
        _journal(document, told)
        return Inside(message)
    for name in _TIME_KEYS:
        if isinstance(stamp := document.get(name), str):
            told.at(unix_seconds(stamp))
            break
    _kubernetes(document.get("kubernetes"), told)
    if key == "log" and document.keys() <= _DOCKER_KEYS and "stream" in document:
        stream = _text(document["stream"]) or ""
        return Inside(message, stream, more=not message.endswith("\n"))
    return Inside(message)


def _journal(document: dict[str, Any], told: Told) -> None:
    """Tell what fields of the journal say."""
    told.at(journal_time(_text(document.get("__REALTIME_TIMESTAMP"))))
    told.host = told.host or _text(document.get("_HOSTNAME"))
    told.pid = whole_number(_text(document.get("_PID"))) or told.pid


def journal_time(text: str | None) -> float | None:
    """Return Unix seconds of a time stamp of the journal, which is in microseconds."""
    number = whole_number(text)
    return None if number is None else number / _MICROSECONDS


def whole_number(text: str | None) -> int | None:
    """Return a number of a usual length, None for anything else."""
    if (
        text is None
        or len(text) > _MOST_DIGITS
        or not (text.isascii() and text.isdigit())
    ):
        return None
    return int(text)


def _kubernetes(document: object, told: Told) -> None:
    """Tell pod and namespace as Fluentd and Fluent Bit add them."""
    if isinstance(document, dict):
        told.pod = _text(document.get("pod_name")) or told.pod
        told.namespace = _text(document.get("namespace_name")) or told.namespace
        told.host = _text(document.get("host")) or told.host


def _text(value: object) -> str | None:
    """Return a text, also one that came as octets; the first of several."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        if isinstance(value[0], str):
            return value[0]
        try:
            return bytes(value).decode("utf-8", "replace")
        except (TypeError, ValueError):
            return None
    return None
