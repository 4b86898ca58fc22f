"""State and statistics of the network devices that belong to the ports.

Nothing here reaches firmware. ``carrier`` takes the kernel's network lock (Linux 6.8)
and waits while another driver holds it, so it is read only where ``operstate`` does
not already say that there is a carrier.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import Group
from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Absence, NetdevStatus, PortId, ReadPlan, Record, Target
from fabricmon.parse.text import decode
from fabricmon.sources.counters import reading
from fabricmon.sources.paths import net_folder

UP = "up"


def poll(host: Host, target: Target, _config: Config) -> tuple[Record, ...]:
    """Read state and statistics of the device's network devices."""
    if target.hca is None:
        return ()
    plans = {
        each.plan.port: each.plan
        for each in target.hca.plans
        if each.group is Group.NETDEV
    }
    records: list[Record] = []
    for port in target.hca.ports:
        if port.netdevs:
            records += _look(host, port.id, port.netdevs[0], plans.get(port.id))
    return tuple(records)


def _look(
    host: Host, port: PortId, netdev: str, plan: ReadPlan | None
) -> Iterator[Record]:
    """Read what is read each time in one burst."""
    folder = net_folder(netdev)
    statistics = plan.paths if plan is not None else ()
    raw, *raws = host.read_many((f"{folder}/operstate", *statistics))
    at = host.monotonic()
    absent: list[Absence] = []
    operstate = _text("operstate", raw, absent)
    carrier: bool | None = True
    if operstate != UP:
        (raw,) = host.read_many((f"{folder}/carrier",))
        text = _text("carrier", raw, absent)
        carrier = None if text is None else text == "1"
    yield NetdevStatus(port, netdev, at, operstate, carrier, tuple(absent))
    if plan is not None:
        yield reading(plan, raws, at)


def _text(file: str, raw: bytes | ReadError, absent: list[Absence]) -> str | None:
    if isinstance(raw, ReadError):
        absent.append(Absence(file, raw.errno))
        return None
    return decode(raw).strip() or None
