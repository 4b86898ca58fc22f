"""Driver statistics of the network devices, as ``ethtool -S`` shows them.

The call holds the kernel's network lock and, on virtual functions under load, can
block for long: those are left alone.
"""

from __future__ import annotations

from functools import lru_cache

from fabricmon import catalogue
from fabricmon.catalogue import CounterSpec, Directory
from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import HcaPort, ReadFailure, Reading, Record, Target

NO_STATISTICS = frozenset({"EOPNOTSUPP", "ENOENT", "ENODEV"})
"""The driver has none, or the network device left this namespace."""


def poll(host: Host, target: Target, _config: Config) -> tuple[Record, ...]:
    """Ask for the statistics of each port's network device, one after the other."""
    hca = target.hca
    if hca is None or hca.is_vf:
        return ()
    records = (_read(host, port, hca.driver) for port in hca.ports)
    return tuple(record for record in records if record is not None)


def _read(host: Host, port: HcaPort, driver: str | None) -> Record | None:
    if port.physical_netdev is None:
        return None
    statistics = host.statistics(port.physical_netdev)
    at = host.monotonic()
    if isinstance(statistics, ReadError):
        if statistics.errno in NO_STATISTICS:
            return None
        file = f"ethtool:{port.physical_netdev}"
        message = "driver statistics cannot be read"
        return ReadFailure(
            port.id.device, port.id.port, file, statistics.errno, message
        )
    chosen = _choose(tuple(each.name for each in statistics), driver)
    if not chosen:
        return None
    return Reading(
        port=port.id,
        at=at,
        specs=tuple(spec for _, spec in chosen),
        values=tuple(statistics[place].value for place, _ in chosen),
    )


@lru_cache(maxsize=64)  # as many kinds of network device as a node may have
def _choose(
    names: tuple[str, ...], driver: str | None
) -> tuple[tuple[int, CounterSpec], ...]:
    """Return place and meaning of the statistics that the catalogue knows.

    A driver has up to thousands of names, the same ones at every call.
    """
    found = (
        (place, catalogue.lookup(Directory.ETHTOOL, name, driver))
        for place, name in enumerate(names)
    )
    return tuple((place, spec) for place, spec in found if spec is not None)
