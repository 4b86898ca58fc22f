"""An HTTP server for a few fixed paths, in threads of its own and bounded in every way.

It answers while the agent's loop hangs, and no client can hold it up: a connection has
so many seconds to send its request and as many to take the answer, one thread each, so
many at a time (`Places`). Parsing is the standard library's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from math import inf
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import TYPE_CHECKING

from prometheus_client import Metric

from fabricmon.config_rules import split_address
from fabricmon.errors import HostError
from fabricmon.sinks.http_message import (
    MOST_OCTETS,
    Header,
    Incoming,
    Request,
    Response,
    parse,
    plain,
    reply,
    split,
)
from fabricmon.sinks.http_places import Part, Places
from fabricmon.sinks.http_transfer import read_body, read_head, send_all, take_leave
from fabricmon.value import Value

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

STOP_SECONDS = 0.5
"""How long `Listener.close` waits for the thread that accepts."""

QUEUE = 1024
"""Clients that wait in the kernel until they are accepted: a burst finds room there."""

TELL_SECONDS = 60.0
"""Between two log lines about pages that crash: scrapers come every few seconds."""

SPARE_SECONDS = 60.0
"""How long one thread is kept for the next connection: scrapers come back by then."""

_PAUSE_SECONDS = 0.1  # before the next try when no connection can be accepted
_METHODS = ("GET", "HEAD")


Route = Callable[[Request], Response]


class Limits(Value, frozen=True):
    """Connections at a time, and seconds for a request and again for its answer."""

    connections: int = 32
    timeout_seconds: float = 2.0
    body_octets: int = 0
    """Longest body of a POST."""
    patience_seconds: float = 0.25
    """A client that was waited for so long makes room where all places are taken."""


NO_POSTS = Limits()
"""The limits of a listener that takes no bodies."""


class Listener:
    """Serves routes on one address.

    ``name`` tells listeners apart in their metrics. ``routes`` are by exact path, for
    GET and HEAD; ``posts`` those for POST. With ``tls`` every connection is encrypted.
    """

    def __init__(
        self,
        name: str,
        address: str,
        routes: Mapping[str, Route],
        limits: Limits = NO_POSTS,
        tls: ssl.SSLContext | None = None,
        *,
        posts: Mapping[str, Route] = MappingProxyType({}),
        log: FilteringBoundLogger | None = None,
    ) -> None:
        """Take an address such as ``127.0.0.1:9879`` or ``[::1]:0``.

        What a route raises is logged, at most once a minute. Raises `ConfigError` where
        the address is none.
        """
        self._name = name
        self._host, self._port = split_address(address, f"listen.{name}")
        self._routes = routes
        self._posts = posts
        self._limits = limits
        self._tls = tls
        self._places = Places(limits.connections, limits.patience_seconds)
        self._log = log
        self._told_at = -inf
        self._failures = 0
        self._counting = threading.Lock()
        self._sparing = threading.Lock()
        self._stopping = threading.Event()
        self._accepted: SimpleQueue[socket.socket | None] = SimpleQueue()
        self._has_spare = False
        self._socket: socket.socket | None = None
        self._waker: socket.socket | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Where it listens: the port that the system chose if it was asked for 0."""
        if self._socket is None:
            return self._port
        return int(self._socket.getsockname()[1])

    def open(self) -> None:
        """Listen and serve; raises `HostError` if the address cannot be had."""
        self._socket = _listen(self._host, self._port, f"listen.{self._name}")
        self._socket.setblocking(False)
        self._waker, wake = socket.socketpair()
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._accept_all,
            args=(self._socket, wake),
            name=f"{self._name}-listener",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; connections that are being served end by themselves."""
        self._stopping.set()
        self._pass_on(None)
        if self._waker is not None:
            self._waker.close()
            self._waker = None
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            self._thread = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def collect(self) -> Iterable[Metric]:
        """Return its own metric, for `prometheus_client`."""
        metric = Metric(
            "fabricmon_http_failures",
            "Connections refused for their number, and requests that failed",
            "counter",
        )
        labels = {"listener": self._name}
        metric.add_sample("fabricmon_http_failures_total", labels, self._failures)
        return (metric,)

    def _accept_all(self, listening: socket.socket, wake: socket.socket) -> None:
        with wake, selectors.DefaultSelector() as selector:
            selector.register(listening, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            while not self._stopping.is_set():
                selector.select()
                if not self._stopping.is_set():
                    self._accept(listening)

    def _accept(self, listening: socket.socket) -> None:
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, ConnectionError):  # the client has gone again
            return
        except OSError:  # out of descriptors
            self._count_failure()
            self._stopping.wait(_PAUSE_SECONDS)
            return
        if not self._places.take(self._stopping.is_set):
            self._refuse(connection)
            return
        if self._pass_on(connection):
            return
        thread = threading.Thread(
            target=self._serve_some, args=(connection,), daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # out of threads
            self._places.leave()
            self._refuse(connection)

    def _pass_on(self, connection: socket.socket | None) -> bool:
        """Give a connection to the spare thread, or None to end it, if there is one."""
        with self._sparing:
            if not self._has_spare:
                return False
            self._has_spare = False
            self._accepted.put(connection)
            return True

    def _next_connection(self) -> socket.socket | None:
        """Wait for another connection, unless a thread does that already."""
        with self._sparing:
            if self._has_spare or self._stopping.is_set():
                return None
            self._has_spare = True
        with contextlib.suppress(Empty):
            return self._accepted.get(timeout=SPARE_SECONDS)
        with self._sparing:
            if self._has_spare:
                self._has_spare = False
                return None
        return self._accepted.get()  # one that came at the last moment

    def _refuse(self, connection: socket.socket) -> None:
        """Send one client away without waiting for it."""
        self._count_failure()
        with contextlib.suppress(OSError), connection:
            connection.setblocking(False)
            if self._tls is None:
                connection.send(reply(plain(HTTPStatus.SERVICE_UNAVAILABLE)))

    def _serve_some(self, connection: socket.socket) -> None:
        """Answer one connection after the other, as long as they keep coming."""
        following: socket.socket | None = connection
        while following is not None:
            self._serve(following)
            following = self._next_connection()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one request; a client that fails or dawdles is dropped."""
        try:
            with contextlib.closing(self._secured(connection)) as secured:
                head = self._await_head(secured)
                if head:
                    self._send(secured, self._answer(head, secured))
        except Exception:  # noqa: BLE001 - a client must not end what serves the others
            self._count_failure()
        finally:
            connection.close()
            self._places.leave()

    def _await_head(self, secured: socket.socket) -> bytes:
        with self._places.waits(secured, Part.ASKING):
            if isinstance(secured, ssl.SSLSocket):
                secured.do_handshake()
            return read_head(secured, self._limits.timeout_seconds)

    def _send(self, secured: socket.socket, answer: bytes) -> None:
        with self._places.waits(secured, Part.TAKING):
            send_all(secured, answer, self._limits.timeout_seconds)
        with self._places.waits(secured, Part.LEAVING):
            take_leave(secured, self._limits.timeout_seconds)

    def _secured(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(self._limits.timeout_seconds)
        if self._tls is None:
            return connection
        return self._tls.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def _answer(self, received: bytes, connection: socket.socket) -> bytes:
        head, begun = split(received)
        if len(head) > MOST_OCTETS:
            return reply(plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        incoming = parse(head)
        if incoming.request is None:
            return reply(plain(incoming.failure))
        if incoming.method == "POST" and incoming.request.path in self._posts:
            return reply(self._take(incoming, incoming.request, begun, connection))
        response = self._route(incoming.method, incoming.request)
        return reply(response, body=incoming.method != "HEAD")

    def _take(
        self,
        incoming: Incoming,
        request: Request,
        begun: bytes,
        connection: socket.socket,
    ) -> Response:
        """Read the body of a POST, if it says how long it is and is not too long."""
        length = incoming.length
        if length is None:
            return plain(HTTPStatus.LENGTH_REQUIRED)
        if length > self._limits.body_octets:
            return plain(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        with self._places.waits(connection, Part.ASKING):
            body = read_body(connection, begun, length, self._limits.timeout_seconds)
        return self._call(self._posts[request.path], replace(request, body=body))

    def _route(self, method: str, request: Request) -> Response:
        route = self._routes.get(request.path)
        if route is None and request.path in self._posts:
            return plain(HTTPStatus.METHOD_NOT_ALLOWED, Header("Allow", "POST"))
        if route is None:
            return plain(HTTPStatus.NOT_FOUND)
        if method not in _METHODS:
            allow = Header("Allow", ", ".join(_METHODS))
            return plain(HTTPStatus.METHOD_NOT_ALLOWED, allow)
        return self._call(route, request)

    def _call(self, route: Route, request: Request) -> Response:
        try:
            response = route(request)
        except Exception as error:  # noqa: BLE001 - must not end the other pages
            self._count_failure()
            self._tell_failure(request.path, error)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        return response

    def _tell_failure(self, path: str, error: Exception) -> None:
        now = time.monotonic()
        if self._log is None or now - self._told_at < TELL_SECONDS:
            return
        self._told_at = now
        text = "".join(traceback.format_exception(error))
        self._log.error("page_crashed", listener=self._name, path=path, err=text)

    def _count_failure(self) -> None:
        with self._counting:
            self._failures += 1


def _listen(host: str, port: int, key: str) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        both = host == "::" and socket.has_dualstack_ipv6()
        place = (host, port) if both else address[:2]
        return socket.create_server(
            place, family=family, backlog=QUEUE, dualstack_ipv6=both
        )
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0)
        # The standard library's own text says the address once more.
        why = os.strerror(error.errno or 0) if name else error.strerror or error
        message = f"cannot listen on {host} port {port}: {why}"
        raise HostError(message, path=key, errno=name) from error


def make_tls(
    certificate: str, key: str | None, client_authority: str | None
) -> ssl.SSLContext:
    """Return the context of a server; with an authority, clients must have its mark.

    Raises `HostError` if a file cannot be used.
    """
    try:
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=client_authority
        )
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        message = f"TLS cannot be set up: {error}"
        raise HostError(message, path=certificate) from error
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
