"""What tools say when they fail: on stderr, and for some on stdout.

The wording is stable: rdma-core never calls setlocale, so both the messages and the
errno texts are English whatever LANG is.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.parse.report import ToolFailure
from fabricmon.parse.text import decimal, field, lines, quoted

MAX_FAILURES = 32  # a subnet that does not answer prints a line for each node
MAX_MESSAGE = 300  # characters

# With -d the same prefix carries debug output; only these words make it a failure.
_FAILED = (
    *("fail", "can't", "cannot", "couldn't", "unable", "error"),
    *("timed out", "not found", "no such", "not permitted", "denied", "refused"),
    *("not supported", "no stats", "no ib devices", "no device", "no sm/sa found"),
)
_ALWAYS_FAILURE = ("ibpanic:", "Fatal error:", "-E-", "error:")
# Said for every provider library that is not installed, on healthy nodes too.
_HARMLESS = "libibverbs: Warning: couldn't load driver"
_TIMED_OUT = frozenset({124, 137})  # of timeout(1), by its own or the kill signal
_ERRNO = {
    "operation not permitted": "EPERM",
    "no such file or directory": "ENOENT",
    "interrupted system call": "EINTR",
    "input/output error": "EIO",
    "no such device or address": "ENXIO",
    "resource temporarily unavailable": "EAGAIN",
    "cannot allocate memory": "ENOMEM",
    "permission denied": "EACCES",
    "bad address": "EFAULT",
    "device or resource busy": "EBUSY",
    "no such device": "ENODEV",
    "not a directory": "ENOTDIR",
    "invalid argument": "EINVAL",
    "too many open files": "EMFILE",
    "no space left on device": "ENOSPC",
    "function not implemented": "ENOSYS",
    "no data available": "ENODATA",
    "protocol error": "EPROTO",
    "operation not supported": "EOPNOTSUPP",
    "network is down": "ENETDOWN",
    "network is unreachable": "ENETUNREACH",
    "connection timed out": "ETIMEDOUT",
    "connection refused": "ECONNREFUSED",
    "remote i/o error": "EREMOTEIO",
}


def failures(
    tool: str,
    stdout: str,
    stderr: str,
    exit_status: int | None,
    *,
    normal_exits: tuple[int, ...] = (0,),
) -> tuple[ToolFailure, ...]:
    """Return what the tool says that it could not do, without repeats.

    An exit status other than ``normal_exits`` is one where the text names no other.
    """
    said = dict.fromkeys(_said(tool, stdout, stderr))
    found = [_failure(tool, message) for message in list(said)[:MAX_FAILURES]]
    if len(said) > MAX_FAILURES:
        more = f"and {len(said) - MAX_FAILURES} messages more"
        found.append(ToolFailure(tool, more))
    if exit_status in _TIMED_OUT:
        found.append(ToolFailure(tool, f"did not end in time (status {exit_status})"))
    elif not found and exit_status is not None and exit_status not in normal_exits:
        found.append(ToolFailure(tool, f"ended with status {exit_status}"))
    return tuple(found)


def nothing_found(tool: str, what: str) -> ToolFailure:
    """Say that a text holds none of what the tool prints."""
    return ToolFailure(tool, f"no {what} in this text")


def _said(tool: str, stdout: str, stderr: str) -> Iterator[str]:
    for line in lines(stderr):
        text = line.strip()[:MAX_MESSAGE]
        if text.startswith(_HARMLESS):
            continue
        if text.startswith(_ALWAYS_FAILURE) or _tells_failure(text):
            yield _without_prefix(tool, text)
    # Both streams end up in one file where somebody pastes 2>&1.
    for line in lines(stdout):
        text = line.strip()[:MAX_MESSAGE]
        named = text.startswith((f"{tool}: ", "ibwarn:", "iberror:"))
        if text.startswith(_ALWAYS_FAILURE) or (named and _tells_failure(text)):
            yield _without_prefix(tool, text)


def _tells_failure(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in _FAILED)


def _without_prefix(tool: str, text: str) -> str:
    """Drop ``ibwarn: [pid]``: the same failure is the same text each time."""
    rest = text.removeprefix(f"{tool}: ").removeprefix("iberror: ")
    head, bracket, tail = rest.partition(" [")
    pid, closing, message = tail.partition("] ")
    if bracket and closing and decimal(pid) is not None and head.endswith(":"):
        return f"{head} {message}"
    return rest


def _failure(tool: str, message: str) -> ToolFailure:
    device, port = _subject(message)
    return ToolFailure(tool, message, device, port, errno_of(message))


def errno_of(message: str) -> str | None:
    """Return the name of the errno whose text ends the message, None without one."""
    text = message.rpartition(": ")[2].rpartition("; ")[2]
    return _ERRNO.get(text.strip().rstrip(".").lower())


def _subject(message: str) -> tuple[str | None, int | None]:
    """Find ``device 'x'``, ``open 'x' port '1'`` or ``UMAD port (x:1)``."""
    _, umad, rest = message.partition("UMAD port (")
    if umad:
        device, port = field(rest.partition(")")[0])
        return _device(device), decimal(port)
    before, opening, rest = message.partition("'")
    device, closing, after = rest.partition("'")
    if not (opening and closing and before.rstrip().endswith(("device", "open"))):
        return None, None
    number = quoted(after) if after.startswith(" port '") else None
    return _device(device), decimal(number or "") if _device(device) else None


def _device(name: str) -> str | None:
    """Return a name that a device can have: not ``(null)``, not the glob ``*``."""
    plain = name.replace("_", "").replace("-", "").replace(".", "")
    return name if plain.isascii() and plain.isalnum() else None
