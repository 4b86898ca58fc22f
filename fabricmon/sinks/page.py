"""The sink that people look at: one page of this node, on a listener of its own."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING

from prometheus_client.exposition import gzip_accepted

from fabricmon.config import Config
from fabricmon.config_rules import split_address
from fabricmon.model import Incident, Snapshot
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.http import Limits, Listener
from fabricmon.sinks.http_message import Header, Request, Response
from fabricmon.sinks.page_document import document, fragment, security_headers

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

HTML = "text/html; charset=utf-8"

GZIP_LEVEL = 1
"""A page of 64 ports shrinks to a tenth: phones read it through slow tunnels."""

Render = Callable[[Snapshot, float], str]


class PageSink:
    """Serves the newest snapshot as a page; it is rendered when it is asked for.

    On a loopback address it answers only who asks for a loopback name: a web page from
    elsewhere that points its own name here (DNS rebinding) gets nothing.
    """

    name = "page"

    def __init__(
        self,
        config: Config,
        address: str,
        heartbeat: Heartbeat,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        """Serve on ``address``; the heartbeat tells whether the snapshots are new."""
        listen = config.listen
        self._heartbeat = heartbeat
        self._silent_after = listen.healthy_seconds
        self._is_private = is_loopback(split_address(address, "listen.page")[0])
        self._snapshot: Snapshot | None = None
        self.listener = Listener(
            self.name,
            address,
            {"/": self._page, "/now": self._now},
            Limits(
                listen.connections,
                listen.timeout_seconds,
                patience_seconds=listen.patience_seconds,
            ),
            log=log,
        )

    def open(self) -> None:
        """Listen; raises `HostError` if the address cannot be had."""
        self.listener.open()

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Show this snapshot from now on."""
        del changes
        self._snapshot = snapshot

    def close(self) -> None:
        """Stop listening."""
        self.listener.close()

    def _page(self, request: Request) -> Response:
        return self._answer(request, document)

    def _now(self, request: Request) -> Response:
        return self._answer(request, fragment)

    def _answer(self, request: Request, render: Render) -> Response:
        if self._is_private and not is_loopback(host_of(request.host)):
            return Response(
                b"This page answers to 127.0.0.1 and localhost alone; "
                b"listen.page says where else.\n",
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        if self._snapshot is None:
            return Response(
                b"The node has not been looked at yet.\n",
                HTTPStatus.SERVICE_UNAVAILABLE,
                headers=(Header("Refresh", "1"),),
            )
        age = self._heartbeat.age_seconds
        silent = age if age > self._silent_after else 0
        body = render(self._snapshot, silent).encode("utf-8")
        headers = security_headers()
        if gzip_accepted(request.accept_encoding):
            body = gzip.compress(body, GZIP_LEVEL)
            headers += (Header("Content-Encoding", "gzip"),)
        return Response(body, content_type=HTML, headers=headers)


def host_of(header: str) -> str:
    """Return the name in a Host header, without port and brackets."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def is_loopback(name: str) -> bool:
    """Tell whether a name means this machine to itself; so does none at all."""
    if name in {"", "localhost"}:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def make(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> PageSink | None:
    """Return the sink that the configuration asks for, None if it wants none."""
    address = config.listen.page
    return None if address is None else PageSink(config, address, heartbeat, log)
