"""Names under the RDMA class that the configuration lets through."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.expectations import is_watched
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import DeviceList, Target
from fabricmon.sources.paths import RDMA_CLASS


def poll(host: Host, _target: Target, config: Config) -> tuple[DeviceList, ...]:
    """List the devices; an excluded name goes no further, so it is never opened."""
    names = host.names(RDMA_CLASS)
    at = host.monotonic()
    if isinstance(names, ReadError):
        return (DeviceList(at, (), names.errno),)
    chosen = tuple(name for name in names if is_watched(name, config.devices))
    return (DeviceList(at, chosen),)
