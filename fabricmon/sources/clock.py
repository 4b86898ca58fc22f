"""The wall clock: how far it may be off, by which rules over nodes order events."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import ClockStatus, Target


def poll(host: Host, _target: Target, _config: Config) -> tuple[ClockStatus, ...]:
    """Ask what the kernel holds of the clock; nothing where it is not the node's."""
    now, state = host.monotonic(), host.clock()
    if isinstance(state, ReadError):
        if state.errno == "ENOENT":
            return ()
        return (ClockStatus(now, problem=state.errno),)
    return (ClockStatus(now, state.error_seconds),)
