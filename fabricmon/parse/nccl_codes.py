"""Numbers and names that collective libraries print, and what they say of a fault.

Work completions and asynchronous events are those of rdma-core's ``verbs.h``, EFA's
completion codes those of libfabric's ``efa_errno.h``. Causes are words for the class of
a fault, as far as one line can prove it.
"""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.value import Value

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL


class Completion(Value, frozen=True):
    """A status of a work completion: its name without ``IBV_WC_`` and ``_ERR``."""

    number: int
    name: str
    cause: str | None
    severity: LogSeverity


COMPLETIONS = (
    Completion(1, "LOC_LEN", "local_software", _ERROR),
    Completion(2, "LOC_QP_OP", "local_software", _ERROR),
    Completion(3, "LOC_EEC_OP", "local_software", _ERROR),
    Completion(4, "LOC_PROT", "gpu_direct_acs", _CRITICAL),
    Completion(5, "WR_FLUSH", "flush_root_cause_elsewhere", _ERROR),
    Completion(6, "MW_BIND", "local_software", _ERROR),
    Completion(7, "BAD_RESP", "bad_response", _ERROR),
    Completion(8, "LOC_ACCESS", "local_software", _ERROR),
    Completion(9, "REM_INV_REQ", "remote_invalid_request", _CRITICAL),
    Completion(10, "REM_ACCESS", "remote_access", _ERROR),
    Completion(11, "REM_OP", "remote_operation", _CRITICAL),
    Completion(12, "RETRY_EXC", "transport_retry_exceeded", _CRITICAL),
    Completion(13, "RNR_RETRY_EXC", "peer_not_ready", _CRITICAL),
    Completion(14, "LOC_RDD_VIOL", "local_software", _ERROR),
    Completion(15, "REM_INV_RD_REQ", "remote_invalid_request", _ERROR),
    Completion(16, "REM_ABORT", "remote_operation", _ERROR),
    Completion(17, "INV_EECN", "local_software", _ERROR),
    Completion(18, "INV_EEC_STATE", "local_software", _ERROR),
    Completion(19, "FATAL", "provider_error", _CRITICAL),
    Completion(20, "RESP_TIMEOUT", "provider_error", _CRITICAL),
    Completion(21, "GENERAL", "provider_error", _CRITICAL),
)
WR_FLUSH = 5
_COMPLETIONS = {each.number: each for each in COMPLETIONS}
_COMPLETION_NAMES = {each.name: each for each in COMPLETIONS}

# mlx5 syndromes, decimal as they are printed, and the statuses they come with.
VENDOR_ERRORS = {
    81: ("local protection: the page is not there", (4,)),
    83: ("local protection: the key is wrong", (4,)),
    129: ("no acknowledgement in time", (12,)),
    135: ("receiver not ready too often", (13,)),
    136: ("remote access refused", (10,)),
    137: ("remote operation failed", (11,)),
    138: ("remote side refused the request", (9,)),
    249: ("flushed: the queue pair was in error before", (5,)),
}


def completion(number: int) -> Completion:
    """Return what is known of a status; an unknown one is a provider's own."""
    known = _COMPLETIONS.get(number)
    return known or Completion(number, "", "provider_error", _CRITICAL)


def completion_named(name: str) -> Completion | None:
    """Return the status that ``IBV_WC_RETRY_EXC_ERR`` or ``RETRY_EXC`` names."""
    plain = name.removeprefix("IBV_WC_").removesuffix("_ERR")
    return _COMPLETION_NAMES.get(plain)


class AsyncEvent(Value, frozen=True):
    """An asynchronous event of a device: rdma-core's text for it and its code."""

    code: int
    text: str
    severity: LogSeverity
    cause: str | None = None


ASYNC_EVENTS = (
    AsyncEvent(0, "CQ error", _CRITICAL, "cq_error"),
    AsyncEvent(1, "local work queue catastrophic error", _CRITICAL, "qp_fatal"),
    AsyncEvent(
        2, "invalid request local work queue error", _CRITICAL, "qp_request_error"
    ),
    AsyncEvent(
        3, "local access violation work queue error", _CRITICAL, "qp_access_error"
    ),
    AsyncEvent(4, "communication established", _INFO),
    AsyncEvent(5, "send queue drained", _INFO),
    AsyncEvent(6, "path migrated", _INFO),
    AsyncEvent(7, "path migration request error", _INFO),
    AsyncEvent(8, "local catastrophic error", _CRITICAL, "device_fatal"),
    AsyncEvent(9, "port active", _INFO),
    AsyncEvent(10, "port error", _CRITICAL, "link_flap"),
    AsyncEvent(11, "LID change", _WARNING, "subnet_manager"),
    AsyncEvent(12, "P_Key change", _WARNING, "subnet_manager"),
    AsyncEvent(13, "SM change", _WARNING, "subnet_manager"),
    AsyncEvent(14, "SRQ catastrophic error", _CRITICAL, "qp_fatal"),
    AsyncEvent(15, "SRQ limit reached", _INFO),
    AsyncEvent(16, "last WQE reached", _INFO),
    AsyncEvent(17, "client reregistration", _WARNING, "subnet_manager"),
    AsyncEvent(18, "GID table change", _WARNING, "gid_change"),
    AsyncEvent(19, "WQ fatal error", _CRITICAL, "qp_fatal"),
    AsyncEvent(20, "Device link speed change", _WARNING, "link_retrained"),
)
_EVENTS_BY_CODE = {each.code: each for each in ASYNC_EVENTS}
_EVENTS_BY_TEXT = {each.text.lower(): each for each in ASYNC_EVENTS}
_EVENTS_BY_TEXT["gid table changed"] = _EVENTS_BY_CODE[18]
_EVENTS_BY_TEXT["p_key table change"] = _EVENTS_BY_CODE[12]
_EVENTS_BY_TEXT["srq catastrophic"] = _EVENTS_BY_CODE[14]


def async_event(text: str, code: int | None = None) -> AsyncEvent | None:
    """Return the event of this text (any case) or, failing that, of this code."""
    known = _EVENTS_BY_TEXT.get(text.strip().lower())
    return known or (None if code is None else _EVENTS_BY_CODE.get(code))


class Errno(Value, frozen=True):
    """An errno of Linux and the C library's text for it."""

    number: int
    name: str
    text: str


ERRNOS = (
    Errno(1, "EPERM", "Operation not permitted"),
    Errno(2, "ENOENT", "No such file or directory"),
    Errno(4, "EINTR", "Interrupted system call"),
    Errno(5, "EIO", "Input/output error"),
    Errno(6, "ENXIO", "No such device or address"),
    Errno(9, "EBADF", "Bad file descriptor"),
    Errno(11, "EAGAIN", "Resource temporarily unavailable"),
    Errno(12, "ENOMEM", "Cannot allocate memory"),
    Errno(13, "EACCES", "Permission denied"),
    Errno(14, "EFAULT", "Bad address"),
    Errno(16, "EBUSY", "Device or resource busy"),
    Errno(17, "EEXIST", "File exists"),
    Errno(19, "ENODEV", "No such device"),
    Errno(22, "EINVAL", "Invalid argument"),
    Errno(23, "ENFILE", "Too many open files in system"),
    Errno(24, "EMFILE", "Too many open files"),
    Errno(28, "ENOSPC", "No space left on device"),
    Errno(32, "EPIPE", "Broken pipe"),
    Errno(38, "ENOSYS", "Function not implemented"),
    Errno(61, "ENODATA", "No data available"),
    Errno(62, "ETIME", "Timer expired"),
    Errno(71, "EPROTO", "Protocol error"),
    Errno(95, "EOPNOTSUPP", "Operation not supported"),
    Errno(97, "EAFNOSUPPORT", "Address family not supported by protocol"),
    Errno(98, "EADDRINUSE", "Address already in use"),
    Errno(99, "EADDRNOTAVAIL", "Cannot assign requested address"),
    Errno(100, "ENETDOWN", "Network is down"),
    Errno(101, "ENETUNREACH", "Network is unreachable"),
    Errno(102, "ENETRESET", "Network dropped connection on reset"),
    Errno(103, "ECONNABORTED", "Software caused connection abort"),
    Errno(104, "ECONNRESET", "Connection reset by peer"),
    Errno(105, "ENOBUFS", "No buffer space available"),
    Errno(107, "ENOTCONN", "Transport endpoint is not connected"),
    Errno(108, "ESHUTDOWN", "Cannot send after transport endpoint shutdown"),
    Errno(110, "ETIMEDOUT", "Connection timed out"),
    Errno(111, "ECONNREFUSED", "Connection refused"),
    Errno(112, "EHOSTDOWN", "Host is down"),
    Errno(113, "EHOSTUNREACH", "No route to host"),
    Errno(114, "EALREADY", "Operation already in progress"),
    Errno(115, "EINPROGRESS", "Operation now in progress"),
    Errno(121, "EREMOTEIO", "Remote I/O error"),
    Errno(125, "ECANCELED", "Operation canceled"),
)
ENOMEM, EAGAIN = 12, 11
_ERRNO_OF = {each.text.lower(): each.number for each in ERRNOS} | {
    each.name.lower(): each.number for each in ERRNOS
}


def errno_number(text: str) -> int | None:
    """Return the errno whose text or name this is, None if it is neither."""
    return _ERRNO_OF.get(text.strip().rstrip(".").lower())


# What an errno proves where a queue pair was to be connected (INIT to RTR).
CONNECT_CAUSES = {
    12: "resources",
    19: "device_gone",
    22: "gid_or_mtu",
    101: "routing_unreachable",
    110: "routing_unreachable",  # the neighbour's address was not resolved
    113: "routing_unreachable",
}
# What an errno proves where a TCP connection was to be made or was there.
SOCKET_CAUSES = {
    101: "routing_unreachable",
    104: "tcp_reset",
    110: "tcp_syn_drop",
    113: "routing_unreachable",
}
STREAM_CAUSES = {104: "tcp_reset", 110: "tcp_timeout", 113: "routing_unreachable"}


# EFA: codes below 4096 are the device's completion status, from there the provider's.
# In libfabric before 1.18, 20 and 21 meant that packets were dropped on the way.
_EFA_PEER_GONE = (8, 9, 4124, 4126)
_EFA_UNREACHABLE = (13, 14, 15)
_EFA_DROPPED = (20, 21)
EFA_CAUSES = (
    dict.fromkeys(_EFA_DROPPED, "security_group")
    | dict.fromkeys(_EFA_UNREACHABLE, "peer_unreachable")
    | dict.fromkeys(_EFA_PEER_GONE, "peer_process_died")
    | {10: "peer_not_ready", 4105: "memory_limit"}
    | dict.fromkeys((4108, 4109), "resources")
)


class ResultCode(Value, frozen=True):
    """A ``ncclResult_t`` as traces and ``retcode`` print it."""

    number: int
    name: str
    meaning: str


RESULT_CODES = (
    ResultCode(0, "ncclSuccess", "no error"),
    ResultCode(1, "ncclUnhandledCudaError", "CUDA or HIP"),
    ResultCode(2, "ncclSystemError", "system call; before 2.13 also the network"),
    ResultCode(3, "ncclInternalError", "internal, also a failed connect"),
    ResultCode(4, "ncclInvalidArgument", "bad argument"),
    ResultCode(5, "ncclInvalidUsage", "ranks disagree"),
    ResultCode(6, "ncclRemoteError", "network or a peer that ended"),
    ResultCode(7, "ncclInProgress", "not finished"),
    ResultCode(8, "ncclTimeout", "timeout"),
)
_RESULT_NAMES = {each.number: each.name for each in RESULT_CODES}


def result_name(number: int) -> str | None:
    """Return the name of a result code, None for an unknown one."""
    return _RESULT_NAMES.get(number)


# Interfaces that other nodes cannot reach: bridges of containers and of virtual
# machines, overlays, the loopback.
_LOCAL_INTERFACES = (
    *("docker", "virbr", "veth", "br-", "cni", "flannel", "cali", "tun", "podman"),
    *("lxcbr", "lxdbr", "vnet", "dummy", "kube-"),
)
_LOCAL_ADDRESSES = ("127.", "169.254.", "fe80:", "::1")


def is_local_interface(name: str) -> bool:
    """Say whether an interface of this name leads nowhere but the node itself."""
    return name == "lo" or name.startswith(_LOCAL_INTERFACES)


def is_local_address(address: str) -> bool:
    """Say whether only the same node or the same wire can reach an address."""
    return address.lower().startswith(_LOCAL_ADDRESSES)
