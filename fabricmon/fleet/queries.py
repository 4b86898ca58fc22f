"""Range queries to a Prometheus on the loopback interface, and rendered templates."""

from __future__ import annotations

import html
import http.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from fabricmon.errors import HostError
from fabricmon.fleet.programs import LOOPBACK

MOST_POINTS = 10_000
"""Prometheus refuses more than 11,000 points a series in one range query."""
_TIMEOUT_SECONDS = 900.0
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Span:
    """Evaluations from ``begin`` to ``end``, both included, Unix seconds."""

    begin: int
    end: int


class Sampled(Struct, frozen=True):
    """One series of a range query; values as text, by time."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(Struct, frozen=True):
    result: list[Sampled] = []


class _Reply(Struct, frozen=True):
    status: str
    data: _Data = _Data()
    error: str = ""


class Client:
    """Asks one Prometheus, over one connection."""

    def __init__(self, port: int) -> None:
        """Connect at the first question."""
        self._connection = http.client.HTTPConnection(
            LOOPBACK, port, timeout=_TIMEOUT_SECONDS
        )
        self._decode = msgspec.json.Decoder(_Reply).decode

    def __enter__(self) -> Self:
        """Ask within a ``with``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self._connection.close()

    def query_range(self, expr: str, span: Span, step: int) -> list[Sampled]:
        """Evaluate an expression every ``step`` seconds; raises `HostError`."""
        found: dict[frozenset[tuple[str, str]], Sampled] = {}
        for begin in range(span.begin, span.end + 1, step * MOST_POINTS):
            end = min(span.end, begin + step * (MOST_POINTS - 1))
            for series in self._query(expr, begin, end, step):
                key = frozenset(series.metric.items())
                found.setdefault(key, Sampled(series.metric, [])).values.extend(
                    series.values
                )
        return list(found.values())

    def console(self, name: str, parameters: Mapping[str, str]) -> str:
        """Render a console template; raises `HostError`."""
        path = f"/consoles/{name}?{urlencode(parameters, errors='replace')}"
        return html.unescape(self._ask("GET", path).decode("utf-8", "replace"))

    def _query(self, expr: str, begin: int, end: int, step: int) -> Sequence[Sampled]:
        form = urlencode({"query": expr, "start": begin, "end": end, "step": step})
        body = self._ask("POST", "/api/v1/query_range", form)
        try:
            reply = self._decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HostError(f"this is no answer of prometheus: {error}") from None
        if reply.status != "success":
            raise HostError(f"prometheus does not evaluate {expr}: {reply.error}")
        return reply.data.result

    def _ask(self, method: str, path: str, form: str | None = None) -> bytes:
        try:
            self._connection.request(method, path, form, _FORM if form else {})
            reply = self._connection.getresponse()
            body = reply.read()
        except (OSError, http.client.HTTPException) as error:
            raise HostError(f"prometheus does not answer: {error}") from None
        if form is None and reply.status != http.client.OK:
            raise HostError(f"prometheus answers {reply.status}: {body[:500]!r}")
        return body
