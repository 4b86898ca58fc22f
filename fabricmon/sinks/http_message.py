"""Requests and responses of HTTP, as few of them as fixed paths need."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import NamedTuple
from urllib.parse import urlsplit

from fabricmon.value import Value

MOST_OCTETS = 8192
"""Length of a request with its headers; Prometheus sends some 300 octets."""


END_OF_HEAD = (b"\r\n\r\n", b"\n\n")
"""What the head of a request ends with."""

_MOST_DIGITS = 18  # of a length; no body has that many octets

KNOWN_REQUESTS = 16
"""Requests that are remembered: a scraper sends the same one each time."""


class Header(NamedTuple):
    """One header field of a response."""

    name: str
    value: str


SECURITY = (
    Header("Cache-Control", "no-store"),
    Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    Header("Referrer-Policy", "no-referrer"),
    Header("X-Content-Type-Options", "nosniff"),
    Header("X-Frame-Options", "DENY"),
)
"""What every response carries unless its own headers say otherwise."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a route is told; header fields that were not sent are empty.

    ``body`` is what came with a POST, empty otherwise.
    """

    path: str
    query: str
    accept: str
    accept_encoding: str
    host: str
    authorization: str = field(default="", repr=False)
    body: bytes = field(default=b"", repr=False)


class Incoming(Value, frozen=True):
    """A request as it was understood; without one, ``failure`` says what is wrong."""

    method: str
    request: Request | None = None
    failure: HTTPStatus = HTTPStatus.BAD_REQUEST
    length: int | None = None
    """Octets of its body as it announces them; None where it does not."""


class Response(Value, frozen=True):
    """What a route answers."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[Header, ...] = ()


def plain(status: HTTPStatus, *headers: Header) -> Response:
    """Return a response that says its status and no more."""
    return Response(
        f"{status.value} {status.phrase}\n".encode(), status, headers=headers
    )


def reply(response: Response, *, body: bool = True) -> bytes:
    """Write a response as octets."""
    fields = {
        "Date": formatdate(usegmt=True),
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Connection": "close",
        **dict(SECURITY),
        **dict(response.headers),
    }
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    head = "\r\n".join((*lines, "", "")).encode("latin-1", "replace")
    return head + response.body if body else head


def split(received: bytes) -> tuple[bytes, bytes]:
    """Part the head of a request, its empty line included, from what follows."""
    ends = [at + len(mark) for mark in END_OF_HEAD if (at := received.find(mark)) >= 0]
    end = min(ends, default=len(received))
    return received[:end], received[end:]


@lru_cache(KNOWN_REQUESTS)
def parse(head: bytes) -> Incoming:
    """Read a request line with its headers."""
    parsed = _Parsed(head)
    if parsed.errors:
        return Incoming(parsed.command, failure=parsed.errors[0])
    try:
        return Incoming(parsed.command, parsed.request(), length=parsed.length())
    except ValueError:
        return Incoming(parsed.command)


class _Parsed(BaseHTTPRequestHandler):
    """A request as the standard library reads it."""

    def __init__(self, head: bytes) -> None:  # no socket: the base class is not started
        self.errors: list[HTTPStatus] = []
        self.rfile = BytesIO(head)
        self.raw_requestline = self.rfile.readline(MOST_OCTETS)
        self.requestline = self.command = self.request_version = ""
        if not self.parse_request():
            self.errors.append(HTTPStatus.BAD_REQUEST)
        elif self.request_version == "HTTP/0.9":
            self.errors.append(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)

    def send_error(self, code: int, *_texts: object, **_more: object) -> None:
        """Keep the error instead of sending it."""
        self.errors.append(HTTPStatus(code))

    def request(self) -> Request:
        """Return what routes may know; raises ValueError for a target that is none."""
        target = urlsplit(self.path)
        return Request(
            path=target.path,
            query=target.query,
            accept=self._field("Accept"),
            accept_encoding=self._field("Accept-Encoding"),
            host=self._field("Host"),
            authorization=self._field("Authorization"),
        )

    def length(self) -> int | None:
        """Return how long the body is; None where that is not said, or not plainly."""
        told = self.headers.get_all("Content-Length", [])
        if len(told) != 1 or self.headers.get("Transfer-Encoding") is not None:
            return None
        digits = told[0].strip()
        is_number = digits.isascii() and digits.isdecimal()
        return int(digits) if is_number and len(digits) <= _MOST_DIGITS else None

    def handle_expect_100(self) -> bool:
        """Promise nothing: a client that waits for that sends its body soon anyway."""
        return True

    def _field(self, name: str) -> str:
        """Return a header field on one line, also if it came folded."""
        return " ".join(self.headers.get(name, "").split())
