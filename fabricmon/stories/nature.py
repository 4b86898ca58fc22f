"""What an event of a collective library's log means for the fabric. Pure.

Sources: the meaning of work completion statuses and asynchronous events in the
InfiniBand verbs, and what maintainers concluded in public reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum, StrEnum

from fabricmon.parse.log_event import LogEvent, LogSeverity


class Nature(StrEnum):
    """Where to look; the value is what a reader is told."""

    LINK = "link"
    PATH = "link or peer"
    PEER = "peer"
    DEVICE = "device"
    HOST = "host memory path"
    CONFIGURATION = "configuration"
    RESOURCES = "host limits"
    SUBNET = "subnet manager"
    SOCKETS = "host network"
    SOFTWARE = "software"
    GPU = "GPU or NVLink"
    APPLICATION = "application"
    OFFLOAD = "in-network reduction"
    SPEED = "slower transport"
    UNKNOWN = "unknown"

    @property
    def is_network(self) -> bool:
        """Whether it has to do with a network at all."""
        return self not in {Nature.GPU, Nature.APPLICATION}

    @property
    def blames_link(self) -> bool:
        """Whether a cable, an optic or a port may be at fault."""
        return self in {Nature.LINK, Nature.PATH}


class Phase(StrEnum):
    """When a failure came: while connections were made, or after traffic."""

    START = "start"
    RUNNING = "running"
    UNKNOWN = "unknown"


COMPLETION = "ib_completion_error"
ASYNC = "ib_async_event"
CLOSED = "socket_closed_by_peer"
TRACE = "error_trace"
MODIFY_QP = "ib_modify_qp_failed"
DEVICE_FAILED = "resiliency_device_failed"
FLUSH = 5
RETRIES_EXCEEDED = 12
PORT_ERROR = "port error"
PORT_ACTIVE = "port active"


class Tier(IntEnum):
    """How much an event explains: a higher one explains a lower one, never the reverse.

    ``NONE`` neither explains nor is explained: the job goes on after it.
    """

    NONE = 0
    ECHO = 1
    """Repeats elsewhere what a library said: an exception, a trace, a set state."""
    CONSEQUENCE = 2
    """Follows from something else wherever that is known: a closed socket, a proxy."""
    LATE = 3
    """A watchdog: speaks a time-out after what it follows from."""
    FLUSH = 4
    """Work that was flushed: its queue pair was in error already."""
    ROOT = 5


_ECHOES = frozenset({"async_error", TRACE, "pytorch_nccl_exception"})

_CONSEQUENCES = frozenset(
    {
        "ib_comm_fatal",
        "proxy_closed",
        "proxy_error",
        "ras_dead",
        "ras_incomplete",
        "ras_mismatch",
        "ras_peer_dead",
        "ras_peer_slow",
        CLOSED,
        "unclassified_warn",
    }
)

_MILD = frozenset({MODIFY_QP, "operator_rule", "socket_poll_error"})
_LATE = frozenset({"pytorch_heartbeat_timeout", "pytorch_watchdog_timeout"})
_LIFTED = frozenset({"proxy_error", CLOSED})

SET_UP = frozenset(
    {"ib_device_open_failed", "ib_no_device", "nic_missing", "ofi_init_failed"}
)
"""Kinds that explain a fallback to sockets, and nothing else."""

FALLBACKS = frozenset({"channel_via_socket", "net_fallback_socket"})
"""Kinds that say that traffic goes by sockets."""

_SURVIVED = frozenset(
    {
        *SET_UP,
        *FALLBACKS,
        "collnet_fallback",
        "gdr_disabled",
        "host_hint",
        "link_speed_change",
        "mnnvl_error",
        "ofi_hint",
        "rail_mismatch",
        "remote_flid_zero",
        "resiliency_qp_replaced",
        "resiliency_recovered",
        "sharp_error",
        "socket_connect_retry",
        "suspicious_interface",
    }
)

_COMPLETIONS: Mapping[int, Nature] = {
    1: Nature.SOFTWARE,
    2: Nature.SOFTWARE,
    4: Nature.HOST,
    5: Nature.UNKNOWN,
    6: Nature.SOFTWARE,
    7: Nature.SOFTWARE,
    8: Nature.SOFTWARE,
    9: Nature.SOFTWARE,
    10: Nature.SOFTWARE,
    11: Nature.PEER,
    12: Nature.PATH,
    13: Nature.PEER,
}

_EVENTS: Mapping[str, Nature] = {
    "port error": Nature.LINK,
    "port active": Nature.LINK,
    "device link speed change": Nature.LINK,
    "local catastrophic error": Nature.DEVICE,
    "device fatal": Nature.DEVICE,
    "local work queue catastrophic error": Nature.SOFTWARE,
    "invalid request local work queue error": Nature.SOFTWARE,
    "local access violation work queue error": Nature.SOFTWARE,
    "cq error": Nature.SOFTWARE,
    "gid table change": Nature.CONFIGURATION,
    "gid table changed": Nature.CONFIGURATION,
    "lid change": Nature.SUBNET,
    "p_key change": Nature.SUBNET,
    "sm change": Nature.SUBNET,
    "client reregistration": Nature.SUBNET,
}

_KINDS: Mapping[str, Nature] = {
    "bootstrap_interface_error": Nature.SOCKETS,
    "bootstrap_mismatch": Nature.CONFIGURATION,
    "channel_via_socket": Nature.SPEED,
    "collective_mismatch": Nature.APPLICATION,
    "collnet_fallback": Nature.OFFLOAD,
    "cuda_failure": Nature.GPU,
    "gdr_disabled": Nature.HOST,
    "gin_completion_error": Nature.PATH,
    "ib_device_open_failed": Nature.CONFIGURATION,
    MODIFY_QP: Nature.CONFIGURATION,
    "ib_no_device": Nature.CONFIGURATION,
    "ib_verbs_failed": Nature.RESOURCES,
    "libfabric_error": Nature.CONFIGURATION,
    "link_layer_mismatch": Nature.CONFIGURATION,
    "link_speed_change": Nature.LINK,
    "mnnvl_error": Nature.GPU,
    "net_fallback_socket": Nature.SPEED,
    "net_init_failed": Nature.CONFIGURATION,
    "net_mismatch": Nature.CONFIGURATION,
    "nic_missing": Nature.CONFIGURATION,
    "nvls_error": Nature.GPU,
    "ofi_init_failed": Nature.RESOURCES,
    "ofi_rail_mismatch": Nature.PEER,
    "ofi_request_error": Nature.CONFIGURATION,
    "p2p_disabled_nvlink": Nature.GPU,
    "proxy_error": Nature.SOFTWARE,
    "rail_mismatch": Nature.CONFIGURATION,
    DEVICE_FAILED: Nature.LINK,
    "resiliency_fatal": Nature.LINK,
    "resiliency_recovery_failed": Nature.LINK,
    "sharp_error": Nature.OFFLOAD,
    "socket_bind_failed": Nature.SOCKETS,
    CLOSED: Nature.PEER,
    "socket_connect_failed": Nature.SOCKETS,
    "socket_connect_retry": Nature.SOCKETS,
    "socket_handshake_mismatch": Nature.SOCKETS,
    "socket_poll_error": Nature.SOCKETS,
    "socket_reset": Nature.SOCKETS,
    "suspicious_interface": Nature.SOCKETS,
    "version_mismatch": Nature.CONFIGURATION,
}

_NO_SUCH_DEVICE = 19
_NO_MEMORY = 12
_NO_ROOM = "memory_limit"
_DEVICE_CALLS = ("ibv_get_async_event", "ibv_poll_cq")


def nature(event: LogEvent, phase: Phase) -> Nature:
    """Return where to look for the cause of an event.

    Retries that run out while connections are made have never had a way: GID, route or
    rail. After traffic the same status is the link or the peer. Statuses 4, 9 and 10
    and NVLS never blame a link.
    """
    if event.kind == COMPLETION:
        if event.status == RETRIES_EXCEEDED and phase is Phase.START:
            return Nature.CONFIGURATION
        status = event.status if isinstance(event.status, int) else -1
        return _COMPLETIONS.get(status, Nature.UNKNOWN)
    if event.kind == ASYNC:
        return _EVENTS.get(status_text(event), Nature.UNKNOWN)
    if event.kind == MODIFY_QP:
        return _modify(event, phase)
    if event.kind == "ib_verbs_failed" and event.status in _DEVICE_CALLS:
        return Nature.DEVICE
    known = _KINDS.get(event.kind, Nature.UNKNOWN)
    return Nature.RESOURCES if event.cause == _NO_ROOM else known


def _modify(event: LogEvent, phase: Phase) -> Nature:
    if event.status == _NO_SUCH_DEVICE:
        return Nature.DEVICE
    if event.status == _NO_MEMORY:
        return Nature.RESOURCES
    return Nature.PATH if phase is Phase.RUNNING else Nature.CONFIGURATION


def status_text(event: LogEvent) -> str:
    """Return the status in lower case, empty where there is none."""
    return "" if event.status is None else str(event.status).strip().lower()


def is_flush(event: LogEvent) -> bool:
    """Tell a completion that was flushed: its queue pair was in error already."""
    return event.kind == COMPLETION and event.status == FLUSH


def is_loud(event: LogEvent) -> bool:
    """Tell a fault, or what is one where nothing explains it, from context."""
    return event.severity is not LogSeverity.INFO or is_lifted(event)


def is_lifted(event: LogEvent) -> bool:
    """Tell what is an error where nothing explains it, whatever its rule says."""
    return event.kind in _LIFTED or is_flush(event)


def tier(event: LogEvent) -> Tier:
    """Return how much an event explains."""
    if is_flush(event):
        return Tier.FLUSH
    if event.kind in _LATE:
        return Tier.LATE
    if event.kind in _CONSEQUENCES:
        return Tier.CONSEQUENCE
    if event.kind in _ECHOES:
        return Tier.ECHO
    mild = event.kind in _MILD and event.severity is LogSeverity.WARNING
    if event.severity is LogSeverity.INFO or event.kind in _SURVIVED or mild:
        return Tier.NONE
    return Tier.ROOT


def has_index(event: LogEvent) -> bool:
    """Tell an event whose device is a number inside a merged NIC, not a name."""
    return event.kind == DEVICE_FAILED and (event.device or "").isdecimal()


def kills_link(event: LogEvent) -> bool:
    """Tell what makes connections through a port fail, here and at the peers."""
    if event.kind == ASYNC:
        return status_text(event) in {PORT_ERROR, "local catastrophic error"}
    return event.kind == DEVICE_FAILED


def retold(event: LogEvent, root: LogEvent | None, phase: Phase) -> LogEvent:
    """Return an event with the severity and cause that it has beside its root.

    A flush or a closed socket that follows from something is context; alone it is an
    error whose cause is elsewhere. A proxy that fails names the operation which failed,
    so that it stays an error, unless what failed was no network at all.
    """
    if root is None:
        severity, cause = _alone(event)
    elif is_flush(event):
        severity, cause = LogSeverity.INFO, "flush_after_error"
    elif event.kind == CLOSED:
        severity, cause = LogSeverity.INFO, "consequence"
    elif event.kind == "proxy_error" and tier(root) is Tier.LATE:
        severity, cause = LogSeverity.INFO, "abort_in_progress"
    elif event.kind == "proxy_error" and not nature(root, phase).is_network:
        severity, cause = LogSeverity.INFO, "consequence"
    else:
        return event
    return replace(event, severity=severity, cause=cause)


def _alone(event: LogEvent) -> tuple[LogSeverity, str | None]:
    if not is_lifted(event) or event.severity is not LogSeverity.INFO:
        return event.severity, event.cause
    cause = "flush_root_cause_elsewhere" if is_flush(event) else event.cause
    return LogSeverity.ERROR, cause
