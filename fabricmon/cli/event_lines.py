"""Messages as lines: for people, with colour on a terminal, or as JSON Lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from fabricmon.cli.event_fleet import (
    LARGEST_PAYLOAD,
    FindingMessage,
    PortMessage,
    StatusMessage,
    clock,
    shown,
    where,
)
from fabricmon.sinks.mqtt_client import Message
from fabricmon.sinks.mqtt_topics import Place

EVENT_SCHEMA = "fabricmon.event/1"

_RED, _YELLOW, _GREEN, _DIM, _BOLD = "31", "33", "32", "2", "1"
_COLOURS = {
    "critical": _RED, "down": _RED, "offline": _RED,
    "warning": _YELLOW, "degraded": _YELLOW, "unknown": _YELLOW,
    "healthy": _GREEN, "online": _GREEN, "resolved": _GREEN, "info": _DIM,
}  # fmt: skip


def wants_colour(choice: str, stream: TextIO) -> bool:
    """Tell whether to colour: as asked for, else on a terminal (no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR")


class Lines:
    """Prints one line for each event."""

    def __init__(self, *, colour: bool) -> None:
        """Write to standard output."""
        self._colour = colour

    def event(self, place: Place, told: Struct) -> None:
        """Print what a message says."""
        who = f"{shown(place.cluster)}/{shown(place.node)}"
        if isinstance(told, FindingMessage):
            self._finding(who, told)
        elif isinstance(told, StatusMessage):
            since = f"since {clock(told.since)}"
            self._line(_now(), who, self._painted(shown(told.state, 12), 8), since)
        elif isinstance(told, PortMessage):
            state = "/".join(shown(s) for s in (told.state, told.phys_state) if s)
            port = f"{shown(place.device)}/{shown(place.port)}"
            reasons = "; ".join(shown(each) for each in told.reasons[:2])
            verdict = self._painted(shown(told.verdict, 12), 8)
            self._line(_now(), who, verdict, f"port {port}", state, reasons)

    def unreadable(self, place: Place, why: str) -> None:
        """Print that a message says nothing."""
        who = f"{shown(place.cluster)}/{shown(place.node)}"
        what = f"{shown(place.what)} that cannot be read: {why}"
        self._line(_now(), who, self._painted("unknown", 8), what)

    def table(self, rows: Iterable[tuple[str, ...]]) -> None:
        """Print rows in columns."""
        lines = list(rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for number, row in enumerate(lines):
            cells = zip(row, widths, strict=True)
            if number == 0:
                texts = [self._code(cell.ljust(width), _BOLD) for cell, width in cells]
            else:
                texts = [self._painted(cell, width) for cell, width in cells]
            print("  ".join(texts).rstrip(), flush=True)

    def _finding(self, who: str, told: FindingMessage) -> None:
        over = told.state == "resolved"
        severity = self._painted(shown(told.severity, 12), 8)
        state = self._painted(shown(told.state, 12), 8) if over else told.state[:8]
        action = "" if told.action == "none" or over else f"[{shown(told.action)}]"
        trial = "(shadow)" if told.dry_run else ""
        what = f"{shown(told.kind)} {where(told.subject)}"
        self._line(
            clock(told.time), who, severity, shown(state) if not over else state, what,
            *(action, trial, shown(told.summary)),
        )  # fmt: skip

    def _line(self, *parts: str) -> None:
        print("  ".join(part for part in parts if part).rstrip(), flush=True)

    def _painted(self, word: str, width: int) -> str:
        code = _COLOURS.get(word)
        text = word.ljust(width)
        return text if code is None else self._code(text, code)

    def _code(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text


def as_json(place: Place, message: Message, received: float) -> str:
    """Return a message as one line of JSON in ASCII: nothing in it acts on a terminal."""
    about: dict[str, Any] = {
        "schema": EVENT_SCHEMA,
        "received": datetime.fromtimestamp(received, UTC).isoformat(),
        "cluster": place.cluster,
        "node": place.node,
        "what": place.what,
        "device": place.device,
        "port": place.port,
        "retained": message.retained,
    }
    if len(message.payload) > LARGEST_PAYLOAD:
        return json.dumps(about | {"payload": None, "error": "too large"})
    if not message.payload:
        return json.dumps(about | {"payload": None})
    try:
        payload = msgspec.json.decode(message.payload)
        return json.dumps(about | {"payload": payload})
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return json.dumps(about | {"payload": None, "error": "not JSON"})


def say(text: str) -> None:
    """Tell the operator something that is no event."""
    print(f"fabricmon events: {text}", file=sys.stderr, flush=True)


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}Z"
