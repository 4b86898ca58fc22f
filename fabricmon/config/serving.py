"""Where the agent listens, what it exports and logs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config.redact import LabelRedaction, LineRedaction
from fabricmon.config.words import Count, Section, Timeout


class Listen(Section, frozen=True):
    """Where the agent listens; loopback unless told otherwise."""

    metrics: str | None = "127.0.0.1:9879"
    """Address of /metrics, /healthz and /readyz; null turns it off."""
    health: str | None = None
    """Address of /healthz and /readyz alone, without TLS; null: only with the metrics.

    For probes that have no certificate, where ``client_authority`` asks for one."""
    page: str | None = "127.0.0.1:9880"
    """Address of the status page; null turns it off."""
    tls_certificate: str | None = None
    """Certificate file (PEM) for the metrics address."""
    tls_key: str | None = None
    """Key file (PEM) for the metrics address."""
    client_authority: str | None = None
    """Authority (PEM) whose client certificates alone may read metrics."""
    connections: Count = 32
    """Connections served at once on an address; one more waits, or is sent away."""
    timeout_seconds: Timeout = 2
    """Time for a client to send its request, and again to take the answer."""
    patience_seconds: Timeout = 0.25
    """While all connections are taken, who has used so much of that time is cut off.

    Slow clients thus never lock a scraper out: it needs some round trips for its
    request and the answer, and across an ocean one takes 0.15 s."""
    healthy_seconds: Timeout = 30
    """/healthz fails when the agent's loop has not turned for so long."""


class Metrics(Section, frozen=True):
    """What /metrics exports beyond what is always there."""

    counted_series: Annotated[int, Meta(ge=0)] = 3
    """Series per port of counters that appear once they count: pause, lanes, drops.

    A port stays within 80 series so, also with all priorities paused, and what it does
    with them told.
    """
    node_exporter_names: bool = False
    """Export ``node_infiniband_*`` too, with exactly node_exporter's names and values.

    For the time of a migration, and only where node_exporter's own infiniband collector
    is off: 56 series more on a port of mlx5, and one a device.
    """
    redact: LabelRedaction = field(default_factory=LabelRedaction)
    """What the labels ``job`` and ``peer`` may name."""


class Textfile(Section, frozen=True):
    """The metrics as a file, for node_exporter's textfile collector."""

    path: str | None = None
    """File that ends in ``.prom``, in the collector's folder; null writes none.

    For nodes that may have one exporter only. It is removed when the agent stops.
    """
    period_seconds: Timeout = 15
    """Seconds between two writes: as often as most sites scrape."""


class Lines(Section, frozen=True):
    """Log lines on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""


class Log(Lines, frozen=True):
    """Log lines of the agent on standard error."""

    redact: LineRedaction = field(default_factory=LineRedaction)
    """What lines about findings and jobs may name."""
