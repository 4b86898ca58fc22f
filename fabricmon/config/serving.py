"""Where the agent listens, what it exports and logs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from fabricmon.config.words import Count, Section, Timeout


class Listen(Section, frozen=True):
    """Where the agent listens; loopback unless told otherwise."""

    metrics: str | None = "127.0.0.1:9879"
    """Address of /metrics, /healthz and /readyz; null turns it off."""
    page: str | None = "127.0.0.1:9880"
    """Address of the status page; null turns it off."""
    tls_certificate: str | None = None
    """Certificate file (PEM) for the metrics address."""
    tls_key: str | None = None
    """Key file (PEM) for the metrics address."""
    client_authority: str | None = None
    """Authority (PEM) whose client certificates alone may read metrics."""
    connections: Count = 32
    """Connections served at once on an address; one more is sent away."""
    timeout_seconds: Timeout = 2
    """Time for a client to send its request, and again to take the answer."""
    healthy_seconds: Timeout = 30
    """/healthz fails when the agent's loop has not turned for so long."""


class Metrics(Section, frozen=True):
    """What /metrics exports beyond what is always there."""

    counted_series: Annotated[int, Meta(ge=0)] = 4
    """Series per port of counters that appear once they count: pause, lanes, drops.

    A port stays within 80 series so, also with all priorities paused.
    """


class Log(Section, frozen=True):
    """Log lines on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""
