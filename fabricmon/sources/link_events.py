"""Changes of network devices that the kernel told since the last poll."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host
from fabricmon.model import LinkEvent, Target


def poll(host: Host, _target: Target, _config: Config) -> tuple[LinkEvent, ...]:
    """Return what the kernel told; never waits for more."""
    return host.link_events()
