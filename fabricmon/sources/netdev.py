"""State and statistics of the network devices that belong to the ports.

Nothing here reaches firmware. ``carrier`` takes the kernel's network lock (Linux 6.8)
and waits while another driver holds it, so it is read only where ``operstate`` does
not already say that there is a carrier.
"""

from __future__ import annotations

from fabricmon.catalogue import Group
from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Absence, NetdevStatus, PortId, Record, Target
from fabricmon.parse.text import decode
from fabricmon.sources.counters import read
from fabricmon.sources.paths import net_folder

UP = "up"


def poll(host: Host, target: Target, _config: Config) -> tuple[Record, ...]:
    """Read state and statistics of the device's network devices."""
    if target.hca is None:
        return ()
    statuses = tuple(
        _status(host, port.id, port.netdevs[0])
        for port in target.hca.ports
        if port.netdevs
    )
    plans = (each.plan for each in target.hca.plans if each.group is Group.NETDEV)
    return statuses + tuple(read(host, plan) for plan in plans)


def _status(host: Host, port: PortId, netdev: str) -> NetdevStatus:
    absent: list[Absence] = []
    operstate = _text(host, netdev, "operstate", absent)
    carrier: bool | None = True
    if operstate != UP:
        text = _text(host, netdev, "carrier", absent)
        carrier = None if text is None else text == "1"
    return NetdevStatus(
        port, netdev, host.monotonic(), operstate, carrier, tuple(absent)
    )


def _text(host: Host, netdev: str, file: str, absent: list[Absence]) -> str | None:
    (raw,) = host.read_many((f"{net_folder(netdev)}/{file}",))
    if isinstance(raw, ReadError):
        absent.append(Absence(file, raw.errno))
        return None
    return decode(raw).strip() or None
