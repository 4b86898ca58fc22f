"""The gate's addresses: /alerts for Alertmanager, /metrics, /healthz and /readyz."""

from __future__ import annotations

import hmac
from concurrent.futures import TimeoutError as LateError
from http import HTTPStatus

from prometheus_client import CollectorRegistry

from fabricmon.errors import HostError, ParseError
from fabricmon.gate.alerts import read_notification
from fabricmon.gate.inbox import Inbox
from fabricmon.gate.settings import GateConfig
from fabricmon.gate.state import Gauges, Tally
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.http import Limits, Listener, make_tls
from fabricmon.sinks.http_message import Header, Request, Response, plain
from fabricmon.sinks.negotiation import choose

ALERTS = "/alerts"

_SCHEME = b"bearer "


class Web:
    """Answers in the listener's threads."""

    def __init__(
        self,
        config: GateConfig,
        *,
        token: bytes | None,
        inbox: Inbox,
        gauges: Gauges,
        tally: Tally,
        heartbeat: Heartbeat,
    ) -> None:
        """Prepare; nothing listens yet. Raises `HostError` for wrong certificates."""
        self.config = config
        self.token = token
        self._inbox = inbox
        self._tally = tally
        self._heartbeat = heartbeat
        self._registry = CollectorRegistry()
        self._registry.register(gauges)
        self._probes = {"/healthz": self._health, "/readyz": self._readiness}
        self.listener = self._make_listener()
        self._listeners = [each for each in (self.listener, self._prober()) if each]
        if self.listener is not None:
            self._registry.register(self.listener)

    def open(self) -> None:
        """Listen; raises `HostError` if an address cannot be had."""
        for listener in self._listeners:
            listener.open()

    def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            listener.close()

    def _make_listener(self) -> Listener | None:
        listen = self.config.listen
        if listen.address is None:
            return None
        tls = None
        if listen.tls_certificate is not None:
            tls = make_tls(
                listen.tls_certificate, listen.tls_key, listen.client_authority
            )
        routes = {"/metrics": self._metrics, **self._probes}
        limits = Limits(
            listen.connections,
            listen.timeout_seconds,
            listen.body_bytes,
            listen.patience_seconds,
        )
        posts = {ALERTS: self._alerts}
        return Listener("gate", listen.address, routes, limits, tls, posts=posts)

    def _prober(self) -> Listener | None:
        listen = self.config.listen
        if listen.health is None:
            return None
        limits = Limits(
            listen.connections,
            listen.timeout_seconds,
            patience_seconds=listen.patience_seconds,
        )
        return Listener("health", listen.health, self._probes, limits)

    def _alerts(self, request: Request) -> Response:
        """Take a notification; 200 only once it is in the journal."""
        if not self._may_enter(request):
            self._tally.refused["token"] += 1
            challenge = Header("WWW-Authenticate", "Bearer")
            return plain(HTTPStatus.UNAUTHORIZED, challenge)
        try:
            batch = read_notification(request.body, self.config.alerts)
        except ParseError as error:
            self._tally.refused["form"] += 1
            return Response(f"{error}\n".encode(), HTTPStatus.BAD_REQUEST)
        letter = self._inbox.offer(batch)
        try:
            if letter is not None:
                letter.written.result(self.config.listen.timeout_seconds)
                return Response(b"taken\n")
        except (LateError, HostError):
            pass
        self._tally.refused["busy"] += 1
        return plain(HTTPStatus.SERVICE_UNAVAILABLE, Header("Retry-After", "10"))

    def _may_enter(self, request: Request) -> bool:
        if self.token is None:
            return True
        shown = request.authorization.encode("utf-8", "replace")
        scheme, given = shown[: len(_SCHEME)], shown[len(_SCHEME) :]
        is_same = hmac.compare_digest(given, self.token)
        return scheme.lower() == _SCHEME and is_same

    def _metrics(self, request: Request) -> Response:
        encoder, content_type = choose(request.accept)
        return Response(encoder(self._registry), content_type=content_type)

    def _health(self, _request: Request) -> Response:
        age = self._heartbeat.age_seconds
        if age <= self.config.listen.healthy_seconds:
            return Response(b"ok\n")
        reason = f"the gate's loop has not turned for {age:.0f} s\n"
        return Response(reason.encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    def _readiness(self, _request: Request) -> Response:
        if self._heartbeat.ready:
            return Response(b"ready\n")
        return Response(
            b"the journal was not written yet\n", HTTPStatus.SERVICE_UNAVAILABLE
        )
