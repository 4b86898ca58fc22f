"""What many events of a storm have in common, kept once."""

from __future__ import annotations

from typing import TypeVar, cast

from msgspec.structs import replace

from fabricmon.parse.log_event import LogEvent, LogField

MOST_SHARED = 2048
"""Texts, and tuples of fields, that are known; then it begins anew."""

T = TypeVar("T")


class Shared:
    """Gives for what is equal one object: of each line of a storm its parts are new."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._texts: dict[str, str] = {}
        self._fields: dict[object, tuple[LogField, ...]] = {}

    def event(self, event: LogEvent) -> LogEvent:
        """Return the same event, made of texts and fields that are shared."""
        return replace(
            event,
            device=self.text(event.device),
            peer=self.text(event.peer),
            status=self.text(event.status),
            comm=self.text(event.comm),
            host=self.text(event.host),
            job=self.text(event.job),
            fields=self._same(event.fields),
        )

    def text(self, value: T) -> T:
        """Return an equal text that is known already; what is no text as it is."""
        if not isinstance(value, str):
            return value
        if len(self._texts) >= MOST_SHARED:
            self._texts.clear()
        return cast("T", self._texts.setdefault(value, value))

    def _same(self, fields: tuple[LogField, ...]) -> tuple[LogField, ...]:
        if not fields:
            return fields
        if len(self._fields) >= MOST_SHARED:
            self._fields.clear()
        key = (fields, *(type(each.value) for each in fields))  # 1 is not 1.0
        return self._fields.setdefault(key, fields)
