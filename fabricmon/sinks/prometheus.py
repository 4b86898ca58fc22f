"""The sink that Prometheus reads: /metrics, /healthz and /readyz."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING

from prometheus_client.exposition import gzip_accepted

from fabricmon.config import Config
from fabricmon.errors import HostError
from fabricmon.model import Incident, Snapshot
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.exposition import Exposition
from fabricmon.sinks.http import Limits, Listener, make_tls
from fabricmon.sinks.http_message import Header, Request, Response
from fabricmon.sinks.own_process import OwnProcess

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

GZIP_LEVEL = 1
"""Level 9 takes ten times as long for a text that is a sixth smaller."""


class PrometheusSink:
    """Serves the newest snapshot, and tells probes how the agent is."""

    name = "prometheus"

    def __init__(
        self,
        config: Config,
        address: str,
        heartbeat: Heartbeat,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        """Serve on ``address``; raises `HostError` if TLS cannot be set up."""
        listen = config.listen
        tls = None
        if listen.tls_certificate is not None:
            tls = make_tls(
                listen.tls_certificate, listen.tls_key, listen.client_authority
            )
        self._heartbeat = heartbeat
        self._healthy_seconds = listen.healthy_seconds
        probes = {"/healthz": self.health, "/readyz": self.readiness}
        routes = {"/metrics": self.metrics, **probes}
        limits = Limits(
            listen.connections,
            listen.timeout_seconds,
            patience_seconds=listen.patience_seconds,
        )
        self.listener = Listener("metrics", address, routes, limits, tls, log=log)
        self.listeners = [self.listener]
        if listen.health is not None:
            health = Listener("health", listen.health, probes, limits, log=log)
            self.listeners.append(health)
        self._exposition = Exposition(config, (OwnProcess(), self.listener))

    def open(self) -> None:
        """Listen; raises `HostError` if an address cannot be had."""
        try:
            for listener in self.listeners:
                listener.open()
        except HostError:
            self.close()
            raise

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Serve this snapshot from now on."""
        del changes
        self._exposition.publish(snapshot)

    def close(self) -> None:
        """Stop listening."""
        for listener in self.listeners:
            listener.close()

    def metrics(self, request: Request) -> Response:
        """Answer /metrics, in the format that the client prefers."""
        rendered = self._exposition.render(request.accept)
        body, headers = rendered.body, [Header("Vary", "Accept, Accept-Encoding")]
        if gzip_accepted(request.accept_encoding):
            body = gzip.compress(body, GZIP_LEVEL)
            headers.append(Header("Content-Encoding", "gzip"))
        return Response(
            body, content_type=rendered.content_type, headers=tuple(headers)
        )

    def health(self, _request: Request) -> Response:
        """Answer /healthz: the loop turns."""
        age = self._heartbeat.age_seconds
        if age <= self._healthy_seconds:
            return Response(b"ok\n")
        reason = f"the agent's loop has not turned for {age:.0f} s\n"
        return Response(reason.encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    def readiness(self, _request: Request) -> Response:
        """Answer /readyz: the devices have been looked at once."""
        if self._heartbeat.ready and self._exposition.is_ready:
            return Response(b"ready\n")
        reason = b"the devices have not been looked at yet\n"
        return Response(reason, HTTPStatus.SERVICE_UNAVAILABLE)


def make(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> PrometheusSink | None:
    """Return the sink that the configuration asks for, None if it wants none."""
    address = config.listen.metrics
    return None if address is None else PrometheusSink(config, address, heartbeat, log)
