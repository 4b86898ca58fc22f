"""Silences of Alertmanager, by its API v2: what is being worked on over many nodes."""

from __future__ import annotations

import http.client
import re
import ssl
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct, field

from fabricmon.errors import HostError
from fabricmon.fleet.options import Where

PREFIX = "fabricmon maintenance"
"""How the comment of each of our silences begins."""

TIMEOUT_SECONDS = 15.0
MAX_BYTES = 16 << 20
"""Size of an answer; thousands of silences are smaller."""

_OURS = "node|fleet"
_Answer = TypeVar("_Answer")


class SilenceMatcher(Struct, frozen=True, rename="camel"):
    """A label and what its value must be."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True


class Silence(Struct, frozen=True, rename="camel"):
    """A silence as the API has it; times are RFC 3339."""

    matchers: tuple[SilenceMatcher, ...]
    starts_at: str
    ends_at: str
    created_by: str
    comment: str


class _Status(Struct, frozen=True):
    state: str


class Standing(Struct, frozen=True, rename="camel"):
    """A silence that Alertmanager has."""

    id: str
    matchers: tuple[SilenceMatcher, ...]
    ends_at: str
    created_by: str
    comment: str
    status: _Status


class _Made(Struct, frozen=True):
    identity: str = field(name="silenceID")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is worked on; nodes may be patterns with ``*`` and ``?``."""

    cluster: str = ""
    leafs: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach Alertmanager: its URL and files with secrets, read when asked.

    ``authorization_file`` holds one line: ``Bearer TOKEN`` or ``Basic USER:PASSWORD``.
    """

    url: str
    authorization_file: Path | None = None
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def matchers_of(scope: Scope, where: Where) -> tuple[SilenceMatcher, ...]:
    """Return what alerts of this scope have in common; all of it must hold."""
    found = [SilenceMatcher("origin", _OURS, is_regex=True)]
    if scope.cluster:
        found.append(SilenceMatcher(where.cluster_label, scope.cluster))
    for label, names in (
        ("leaf", scope.leafs),
        ("rack", scope.racks),
        (where.node_label, scope.nodes),
    ):
        if names:
            found.append(_any_of(label, names))
    return tuple(found)


def _any_of(label: str, names: Iterable[str]) -> SilenceMatcher:
    patterns = [_pattern(name) for name in names]
    return SilenceMatcher(label, "|".join(patterns), is_regex=True)


def _pattern(name: str) -> str:
    """Return RE2 for a name with ``*`` and ``?``; all else is itself."""
    parts = re.split(r"([*?])", name)
    special = {"*": ".*", "?": "."}
    return "".join(special.get(part, re.escape(part)) for part in parts)


class Alertmanager:
    """One Alertmanager, asked over HTTP; every method raises `HostError`."""

    def __init__(self, access: Access) -> None:
        """Read the URL; raises `ValueError` if it is none."""
        parts = urlsplit(access.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{access.url!r} is no URL: write http://HOST:9093")
        self._access = access
        self._parts = parts
        self._path = parts.path.rstrip("/") + "/api/v2"

    def add(self, silence: Silence) -> str:
        """Make a silence; return its id."""
        body = msgspec.json.encode(silence)
        made: _Made = self._ask("POST", "/silences", _Made, body)
        return made.identity

    def list(self) -> tuple[Standing, ...]:
        """Return our silences that are not over, the next to end first."""
        found: tuple[Standing, ...] = self._ask(
            "GET", "/silences", tuple[Standing, ...]
        )
        ours = (
            each
            for each in found
            if each.comment.startswith(PREFIX) and each.status.state != "expired"
        )
        return tuple(sorted(ours, key=lambda each: each.ends_at))

    def end(self, identity: str) -> None:
        """End a silence now."""
        self._ask("DELETE", f"/silence/{quote(identity, safe='')}", None)

    def _ask(
        self, method: str, path: str, kind: type[_Answer] | None, body: bytes = b""
    ) -> Any:
        headers = {"Accept": "application/json"}
        if body:
            headers["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            headers |= _authorization(self._access.authorization_file)
            connection.request(method, self._path + path, body or None, headers)
            reply = connection.getresponse()
            data = reply.read(MAX_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise HostError(f"{self._access.url} does not answer: {error}") from None
        finally:
            connection.close()
        if reply.status != http.client.OK:
            said = data[:300].decode("utf-8", "replace").strip()
            raise HostError(f"{self._access.url} answers {reply.status}: {said}")
        if kind is None:
            return None
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HostError(f"{self._access.url} is no Alertmanager: {error}") from None

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        context = _context(self._access)
        return http.client.HTTPSConnection(
            host, port, timeout=TIMEOUT_SECONDS, context=context
        )


def _authorization(file: Path | None) -> dict[str, str]:
    """Return the header that a file holds; its content is told nowhere."""
    if file is None:
        return {}
    try:
        word, _, secret = file.read_text("utf-8").strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        raise HostError("cannot be read as text", path=str(file)) from None
    if word not in {"Bearer", "Basic"} or not secret.isprintable() or not secret:
        raise HostError(
            "write one line: Bearer TOKEN, or Basic USER:PASSWORD", path=str(file)
        )
    if word == "Basic":
        secret = b64encode(secret.encode()).decode()
    return {"Authorization": f"{word} {secret}"}


def _context(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.authority)
        if access.certificate is not None:
            context.load_cert_chain(access.certificate, access.key)
    except OSError as error:
        raise HostError(f"TLS cannot be set up: {error}") from None
    return context


def rfc3339(time: datetime) -> str:
    """Write a time as the API reads it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
