"""Settings of NCCL that say which network, devices and ports it uses."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.detect.settings_case import (
    Case,
    RdmaPort,
    SettingCheck,
    fits,
    judged,
    unknown,
    wrong,
)
from fabricmon.model import LibrarySetting
from fabricmon.parse.device_list import DeviceList


def disabled(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_DISABLE``: RDMA ports that are there should be used."""
    setting = case.get("NCCL_IB_DISABLE")
    if setting is None:
        return
    active = [port for port in _for_jobs(case) if port.is_active]
    off = case.number("NCCL_IB_DISABLE") not in {None, 0}
    shown = f"{len(active)} ACTIVE RDMA ports"
    yield judged(setting, shown, not (off and active), "0")


def network(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_NET``: sockets are ten times slower than RDMA ports beside them."""
    setting = case.get("NCCL_NET")
    if setting is None:
        return
    active = [port for port in _for_jobs(case) if port.is_active]
    slow = setting.value.strip().lower() == "socket"
    shown = f"{len(active)} ACTIVE RDMA ports"
    yield judged(setting, shown, not (slow and active), "IB, or not set")


def devices(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_HCA``: its devices exist, are ACTIVE, and are all rails."""
    setting = case.get("NCCL_IB_HCA")
    if setting is None or not case.speaks_verbs:
        return
    chosen = case.devices()
    better = _all_rails(case)
    found = [*_unknown_names(case, setting, chosen, better)]
    found += _not_active(case, setting, chosen)
    found += _by_accident(case, setting, chosen, better)
    found += _left_out(case, setting, chosen, better)
    used = len(case.chosen())
    if found:
        yield from found
    elif used:
        yield fits(setting, f"{used} ACTIVE ports")
    elif case.ground.ports:
        yield unknown(setting, "no ACTIVE port", "none of its ports is ACTIVE")
    else:
        yield unknown(setting, "no RDMA port", "the node has no RDMA port")


def _unknown_names(
    case: Case, setting: LibrarySetting, chosen: DeviceList, better: str | None
) -> Iterator[SettingCheck]:
    """Yield entries that name no port.

    A device that is gone is a fault of its own; a pod may see what the node does not.
    """
    if chosen.excludes or not case.ground.ports:
        return
    lost = [
        str(entry)
        for entry in chosen.entries
        if not any(
            chosen.names(entry, port.info.id.device, port.info.id.port)
            for port in case.ground.ports
        )
        and not any(chosen.names(entry, device) for device in case.ground.missing)
    ]
    if not lost:
        return
    shown = f"no such port: {', '.join(lost)}"
    if case.in_pod:
        yield unknown(setting, shown, "a pod may have devices of its own")
    else:
        yield wrong(setting, shown, better)


def _not_active(
    case: Case, setting: LibrarySetting, chosen: DeviceList
) -> Iterator[SettingCheck]:
    """Yield ports that are named and never were ACTIVE; others have an outage."""
    if chosen.excludes or not chosen.entries:
        return
    for port in case.ground.usable:
        name = port.info.id
        if not _is_named(chosen, port) or port.is_active:
            continue
        if port.state is None:
            yield unknown(setting, f"state of {name} unknown", "a state is not read")
        elif not port.was_active:
            shown = f"{name} is {port.state}"
            better = "without it, or with its link up"
            yield wrong(setting, shown, better, port)


def _is_named(chosen: DeviceList, port: RdmaPort) -> bool:
    """Tell whether an entry is the port's whole name; prefixes catch spare ports too."""
    name = port.info.id
    return any(
        entry.name == name.device and entry.port in {None, name.port}
        for entry in chosen.entries
    )


def _by_accident(
    case: Case, setting: LibrarySetting, chosen: DeviceList, better: str | None
) -> Iterator[SettingCheck]:
    """Yield devices that are caught because their names begin alike: mlx5_1, mlx5_10.

    And ports of another link layer than the rails: NCCL cannot connect the two.
    """
    rails = {port.info.id for port in case.ground.compute}
    layers = {port.info.link_layer for port in case.ground.compute}
    known = {port.info.id.device for port in case.ground.usable}
    exact = DeviceList(chosen.entries, exact=True, excludes=chosen.excludes)
    for port in case.ground.usable:
        name = port.info.id
        if not rails or name in rails or not port.is_active:
            continue
        if not chosen.chooses(name.device, name.port):
            continue
        twins = any(entry.name in known for entry in chosen.entries)
        caught = not exact.chooses(name.device, name.port) and twins
        mixed = port.info.link_layer not in layers
        if caught or mixed:
            shown = f"takes {name} ({port.info.role}) as well"
            yield wrong(setting, shown, better)


def _left_out(
    case: Case, setting: LibrarySetting, chosen: DeviceList, better: str | None
) -> Iterator[SettingCheck]:
    """Yield rails that nobody uses; few processes may want few of them."""
    rails = [port for port in case.ground.compute if port.is_active]
    idle = [
        port
        for port in rails
        if not any(
            each.chooses(port.info.id.device, port.info.id.port)
            for each in (chosen, *case.others)
        )
    ]
    if not idle:
        return
    shown = f"{len(idle)} of {len(rails)} ACTIVE rails idle: " + ", ".join(
        str(port.info.id) for port in idle
    )
    few = case.processes is not None and case.processes < len(rails)
    if few or case.in_pod:
        yield unknown(setting, shown, "a job may want less than the node has")
    else:
        yield wrong(setting, shown, better)


def _for_jobs(case: Case) -> tuple[RdmaPort, ...]:
    """Return the ports that jobs should use: where roles are not known, all."""
    return case.ground.compute or case.ground.usable


def _all_rails(case: Case) -> str | None:
    ports = case.ground.compute or [p for p in case.ground.usable if p.is_active]
    names = [str(port.info.id).replace("/", ":") for port in ports]
    return "=" + ",".join(names) if names else None
