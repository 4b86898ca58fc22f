"""Settings of NCCL about RDMA devices, addresses, priorities and timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from ipaddress import AddressValueError, IPv6Address
from math import inf

from fabricmon.detect.settings_case import (
    Case,
    RdmaPort,
    SettingCheck,
    default,
    fits,
    judged,
    together,
    unknown,
    wrong,
)
from fabricmon.model import Gid, LibrarySetting, PriorityUse

ROCE_V2 = "RoCE v2"

TICK_SECONDS = 4.096e-6
"""Unit of the ACK timeout: 4.096 us * 2^timeout (InfiniBand Architecture, 9.7.6.1.3)."""

RETRIES = 7
"""Most retries that a queue pair has, and NCCL's default."""

MAX_TIMEOUT = 22
"""Above it a dead peer is noticed after two minutes and more."""

TIMEOUTS = (((2, 14), 14), ((2, 23), 18))
"""NCCL's default of ``NCCL_IB_TIMEOUT`` before a version; 20 since 2.23."""

NEWEST_TIMEOUT = 20
FINDS_GIDS = (2, 21)
"""First version that chooses a GID by itself; before it takes index 0."""

_DSCP_SHIFT = 2
_USUAL_DSCP = 26  # of RoCE, in most guides
_CAPABLE = 2  # ECN bits of a traffic class: capable


def gid_index(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_GID_INDEX``: a routable RoCE v2 address on each port."""
    index = case.number("NCCL_IB_GID_INDEX")
    setting = case.get("NCCL_IB_GID_INDEX")
    roce = [port for port in case.chosen() if port.is_roce]
    if not roce or not case.speaks_verbs:
        return
    if setting is None:
        old = case.version is not None and case.version < FINDS_GIDS
        if not (case.complete and old):
            return
        setting, index = default("NCCL_IB_GID_INDEX", "0"), 0
    if index is None:
        better = _common_index(case, roce)
        yield wrong(setting, "no number", better)
    elif index < 0:
        yield fits(setting, "NCCL chooses")
    else:
        yield from together(
            [_gid_of(case, port, setting, index, roce) for port in roce]
        )


def _gid_of(
    case: Case,
    port: RdmaPort,
    setting: LibrarySetting,
    index: int,
    roce: list[RdmaPort],
) -> SettingCheck:
    table = case.ground.gid_table(port.info.id)
    if table is None:
        return unknown(setting, f"GIDs of {port.info.id}", "GIDs cannot be read")
    gid = next((each for each in table.gids if each.index == index), None)
    if gid is None:
        shown = f"{port.info.id} has no GID {index}"
    else:
        shown = f"{port.info.id}: {gid.gid} {gid.type}"
    right = gid is not None and is_routable(gid)
    better = None if right else _common_index(case, roce)
    return judged(setting, shown, right, better, port)


def is_routable(gid: Gid) -> bool:
    """Tell whether packets to this GID find their way through routers."""
    if gid.type != ROCE_V2:
        return False
    try:
        address = IPv6Address(gid.gid)
    except AddressValueError:
        return False
    inner = address.ipv4_mapped or address
    return not (inner.is_link_local or inner.is_loopback or inner.is_unspecified)


def _common_index(case: Case, roce: list[RdmaPort]) -> str:
    """Return an index that is right on every port, IPv4 first; else let NCCL choose."""
    good = []
    for port in roce:
        table = case.ground.gid_table(port.info.id)
        gids = () if table is None else table.gids
        good.append({gid.index: gid for gid in gids if is_routable(gid)})
    common = reduce(set.intersection, [set(each) for each in good])
    ranked = sorted(common, key=lambda index: ("ffff" not in good[0][index].gid, index))
    return str(ranked[0]) if ranked else "-1 (NCCL 2.21 and newer chooses)"


def traffic_class(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_TC``: its DSCP lands in a priority with PFC and ECN."""
    setting = case.get("NCCL_IB_TC")
    wanted = case.number("NCCL_IB_TC")
    if not case.speaks_verbs or (setting is None and not case.complete):
        return
    found: list[SettingCheck] = []
    for port in case.chosen():
        if port.is_roce:
            use = case.ground.priorities(port.info)
            found += _class_of(port, use, setting, wanted)
    yield from together(found)


def _class_of(
    port: RdmaPort,
    use: PriorityUse | None,
    setting: LibrarySetting | None,
    wanted: int | None,
) -> Iterator[SettingCheck]:
    row = setting or default("NCCL_IB_TC", "0")
    if use is None or use.pfc_enabled is None or use.dscp_to_priority is None:
        if setting is not None:
            shown = f"priorities of {port.info.netdev}"
            yield unknown(row, shown, "priorities of the port cannot be read")
        return
    if not use.dscp_to_priority:
        if setting is not None:
            shown = f"priorities of {port.info.netdev}"
            yield unknown(row, shown, "the port goes by the tag, not by the DSCP")
        return
    forced = use.enforced_class
    number = wanted if forced is None else forced
    if setting is None:
        if not use.pfc_enabled:  # nobody promised a lossless class
            return
        number = forced or 0
    if number is None or not 0 <= number < 4 * len(use.dscp_to_priority):
        yield wrong(row, "no traffic class", better_class(use), port)
        return
    dscp = number >> _DSCP_SHIFT
    priority = use.dscp_to_priority[dscp]
    lossless = priority in use.pfc_enabled
    marked = use.ecn_enabled is None or priority in use.ecn_enabled
    ecn = "" if use.ecn_enabled is None else f", ECN {'on' if marked else 'off'}"
    by_driver = "" if forced is None else " (the driver's)"
    shown = (
        f"{port.info.id}: DSCP {dscp}{by_driver} is priority {priority}, "
        f"PFC {'on' if lossless else 'off'}{ecn}"
    )
    right = lossless and marked
    yield judged(row, shown, right, None if right else better_class(use), port)


def better_class(use: PriorityUse) -> str:
    """Return a traffic class that lands where PFC and ECN are on."""
    table, on = use.dscp_to_priority or (), set(use.pfc_enabled or ())
    on &= set(use.ecn_enabled) if use.ecn_enabled is not None else on
    good = [dscp for dscp, priority in enumerate(table) if priority in on]
    if not good:
        return "PFC and ECN on for one priority, a DSCP for it"
    dscp = _USUAL_DSCP if _USUAL_DSCP in good else good[0]
    return str((dscp << _DSCP_SHIFT) + _CAPABLE)


def timeout(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_TIMEOUT`` and ``NCCL_IB_RETRY_CNT``: a link trains meanwhile."""
    if not case.speaks_verbs:
        return
    setting, retries = case.get("NCCL_IB_TIMEOUT"), case.get("NCCL_IB_RETRY_CNT")
    told = [each for each in (setting, retries) if each is not None]
    if not any(port.is_active for port in case.ground.usable):
        for each in told:
            yield unknown(each, "no ACTIVE RDMA port", "no RDMA port is ACTIVE")
        return
    bad = [each for each in told if case.number(each.name) is None]
    for each in bad:
        usual = NEWEST_TIMEOUT if each is setting else RETRIES
        yield wrong(each, "no number", str(usual))
    good = [each for each in told if each not in bad]
    if good or (not told and case.complete and case.chosen()):
        yield from _outlasts(
            case,
            setting if setting in good else None,
            retries if retries in good else None,
        )


def _outlasts(
    case: Case, setting: LibrarySetting | None, retries: LibrarySetting | None
) -> Iterator[SettingCheck]:
    """Judge timeout and retries together; what is not set has its default."""
    power = case.number("NCCL_IB_TIMEOUT") if setting else _usual_timeout(case)
    count = case.number("NCCL_IB_RETRY_CNT") if retries else RETRIES
    if power is None or count is None:
        if retries:
            yield unknown(retries, "the library's version", "no version is known")
        return
    needed = case.ground.limits.retrain_seconds
    lasts = survived_seconds(power, count)
    short_of_retries = retries is not None and count < RETRIES
    by_retries = short_of_retries and survived_seconds(power, RETRIES) >= needed
    row = setting or default("NCCL_IB_TIMEOUT", str(power))
    better = str(_better_timeout(needed))
    if retries is not None and (by_retries or setting is None):
        row = retries
        better = str(RETRIES) if by_retries else f"{RETRIES}, with TIMEOUT {better}"
    shown = (
        f"survives {_seconds(lasts)} (timeout {power}, {count} retries), "
        f"a link trains {needed:g} s"
    )
    yield judged(row, shown, lasts >= needed, better)


def survived_seconds(power: int, retries: int) -> float:
    """Return the outage that a queue pair outlasts; 0 stands for no timeout at all.

    At least so long: adapters may wait up to four times the timeout.
    """
    if power == 0:
        return inf
    return float(TICK_SECONDS * 2 ** min(max(power, 0), 31) * max(retries, 1))


def _usual_timeout(case: Case) -> int | None:
    """Return NCCL's default, None where the version is not known."""
    if case.version is None:
        return None
    older = (value for before, value in TIMEOUTS if case.version < before)
    return next(older, NEWEST_TIMEOUT)


def _better_timeout(needed: float) -> int:
    powers = range(NEWEST_TIMEOUT, MAX_TIMEOUT)
    enough = (p for p in powers if survived_seconds(p, RETRIES) >= needed)
    return next(enough, MAX_TIMEOUT)


def _seconds(seconds: float) -> str:
    return "any outage" if seconds == inf else f"{seconds:.1f} s"
