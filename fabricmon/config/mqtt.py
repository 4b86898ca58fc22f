"""The MQTT broker that state and findings go to."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config.redact import Redaction
from fabricmon.config.words import Count, Pause, Seconds, Section

_ReplyTimeout = Annotated[float, Meta(ge=0.1, le=60)]
_Text = Annotated[str, Meta(max_length=256)]


class Mqtt(Section, frozen=True):
    """The MQTT broker that state and findings are sent to."""

    host: _Text | None = None
    """Name or address of the broker; null: nothing is sent."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Port of the broker; null: 1883, with TLS 8883."""
    protocol: Literal["3.1.1", 5] = "3.1.1"
    """Version of MQTT; every broker speaks 3.1.1."""
    client_id: _Text | None = None
    """Name towards the broker, of which there may be one; null: ``fabricmon-`` and
    cluster and node."""
    topic_prefix: _Text = ""
    """Levels put before ``fabricmon/v1``, for a broker that others use too."""
    user_file: str | None = None
    """File with the user's name; read again at each connection."""
    password_file: str | None = None
    """File with the password; read again at each connection, never logged."""
    tls: bool = False
    """Encrypt, and prove that the broker is the one that was named."""
    tls_authority: str | None = None
    """Authorities (PEM) that may vouch for the broker; null: those of the system."""
    tls_certificate: str | None = None
    """Certificate (PEM) of this node, for a broker that asks for one."""
    tls_key: str | None = None
    """Key (PEM) of that certificate."""
    keepalive_seconds: Annotated[int, Meta(ge=5, le=3600)] = 30
    """Silence after which either side asks whether the other lives; after one and a
    half of it the broker tells that this node is offline."""
    timeout_seconds: _ReplyTimeout = 5
    """Time in which the broker has to acknowledge, before the connection is given up."""
    retry_seconds: Seconds = 1
    """Longest pause before the first retry, doubled with each; the pause is drawn from
    zero up, so that a fleet does not come back at one moment."""
    retry_cap_seconds: Seconds = 60
    """Longest pause of all: what a broker that was mended waits for its nodes."""
    steady_seconds: Pause = 10
    """A connection that held for so long starts the pauses over."""
    state_seconds: Seconds = 1
    """Changes of ports and counts within so long are one message."""
    refresh_seconds: Seconds = 60
    """``summary`` is sent so often without a change: its time tells that it is true."""
    gone_seconds: Pause = 900
    """A device that nobody misses for so long is gone for good, and what was retained
    of it is cleared: drivers reload within minutes."""
    spool_findings: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Findings kept on disk while the broker is away; the oldest is dropped first."""
    spool_bytes: Annotated[int, Meta(ge=65536, le=1 << 30)] = 16 << 20
    """Bytes of them; the oldest is dropped first."""
    memory_findings: Count = 1000
    """Findings kept in memory where the disk takes none."""
    redact: Redaction = field(default_factory=Redaction)
    """What findings and states may name."""
