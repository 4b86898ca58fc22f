"""The Kubernetes API that a node's condition and events are told to."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config.redact import Redaction
from fabricmon.config.words import Count, Pause, Seconds, Section, Timeout


class Kubernetes(Section, frozen=True):
    """The node's condition ``FabricHealthy`` and events about the node.

    Needs the extra ``fabricmon[kubernetes]``.
    """

    enabled: bool = False
    """Talk to the API server at all."""
    condition: bool = True
    """Set the condition; false removes it, for who turns it off for good."""
    condition_from: Literal["inspect", "drain_after_job", "drain_now"] = (
        "drain_after_job"
    )
    """Least advice that makes the condition false: what remediates nodes by conditions
    must not act on what a human should only look at."""
    events: bool = True
    """Write an event for each finding that opens, changes or resolves."""
    event_severity: Literal["info", "warning", "critical"] = "warning"
    """Least severity of a finding that is worth an event."""
    heartbeat_seconds: Annotated[float, Meta(ge=10, le=86400)] = 300
    """The condition is told so often without a change, as node-problem-detector does:
    each time everybody who watches nodes is sent one."""
    settle_seconds: Pause = 5
    """A change of the condition waits up to so long, drawn anew each time: one event of
    the fabric hits many nodes at once."""
    unknown_seconds: Pause = 60
    """Not knowing for a shorter time is no news: a port that trains, a late read."""
    series_seconds: Seconds = 360
    """What repeats within so long is one event with a count, as in other clients."""
    event_burst: Count = 25
    """Events written at once at most, as in other clients."""
    event_refill_seconds: Seconds = 60
    """Time after which one more may be written; the rest is dropped and counted."""
    waiting_events: Count = 256
    """Events kept while the API server is away; the oldest is dropped first."""
    timeout_seconds: Timeout = 10
    """Time for the API server to answer."""
    retry_seconds: Seconds = 1
    """Longest pause before the first retry, doubled with each; the pause is drawn from
    zero up, so that a fleet does not come back at one moment."""
    retry_cap_seconds: Seconds = 300
    """Longest pause of all."""
    kubeconfig: str | None = None
    """Kubeconfig file, for an agent outside of a pod; null: the pod's own account."""
    service_account: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    """Folder of the pod's account; its token is read again when it was renewed."""
    redact: Redaction = field(default_factory=Redaction)
    """What conditions and events may name."""
