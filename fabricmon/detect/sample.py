"""Judge one sample of a port, a link or a cable: state, width, lifetime counters.

What takes two samples (growth, flaps, rates against peers) is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import Directory
from fabricmon.detect.lifetime import LINK_DOWNS, lifetime_reasons
from fabricmon.detect.meaning import lifetime_value
from fabricmon.model import Verdict
from fabricmon.parse.report import (
    BitErrors,
    CounterValue,
    FabricLink,
    LinkDetail,
    ModuleDetail,
    PortReport,
    Report,
)
from fabricmon.parse.sysfs import parse_lanes
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from fabricmon.value import Value

EFFECTIVE_BER = 1e-12
"""Bit error rate after correction that no link may have (InfiniBand specification)."""

EFFECTIVE_ERRORS_MINIMUM = 100
"""Errors below this are too few to give a rate."""

FULL_WIDTH = 4
"""Lanes of an ordinary cable; what could be wider than that is not missed."""

DARK_DBM = -30.0
"""Receive power at which a lane carries no light: it is not used, not weak."""

_WHY_DOWN = {
    PhysState.POLLING: "no partner seen (cable, module or peer)",
    PhysState.DISABLED: "switched off, or no module",
    PhysState.SLEEP: "the port is asleep",
    PhysState.LINK_UP: "the physical link is up, the logical port is not",
    PhysState.TRAINING: "the link is training",
    PhysState.RECOVERY: "the link is recovering",
    PhysState.TEST: "the port is in test mode",
}
_OLD_SPEEDS = frozenset({None, "SDR", "DDR"})


class Judgement(Value, frozen=True):
    """A verdict and what speaks against the place; healthy ones have no reasons."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def judge_port(port: PortReport, *, tells_state: bool = True) -> Judgement:
    """Judge a port by its state and its lifetime counters.

    ``tells_state`` is False for tools that print counters only: there the counters
    alone decide.
    """
    state = _judge_state(port)
    if not tells_state and port.state is None:
        counted = bool(port.counters or port.hw_counters)
        state = Judgement(Verdict.HEALTHY if counted else Verdict.UNKNOWN)
    against = (*_narrow(port), *judge_lifetime(port))
    if not against:
        return state
    # Errors of a port whose state is unknown are known all the same.
    return Judgement(max(state.verdict, Verdict.DEGRADED), (*state.reasons, *against))


def judge_lifetime(port: PortReport) -> tuple[str, ...]:
    """Return why the lifetime counters of a port speak against it."""
    folders = (
        (Directory.COUNTERS, port.counters),
        (Directory.HW_COUNTERS, port.hw_counters),
    )
    return lifetime_reasons(
        lifetime_value(item.name, item.value, folder, port.driver)
        for folder, counters in folders
        for item in counters
    )


def judge_node(report: Report, ports: tuple[Judgement, ...]) -> Judgement:
    """Judge everything that a text says: the worst port, cable or section.

    At least unknown if nothing was found or something could not be read.
    """
    found = list(ports)
    found += [
        _counted(item.counters, Directory.ETHTOOL) for item in report.groups or ()
    ]
    # A sum over ports says no more than the ports do, where they are there.
    sums = () if report.ports else report.all_ports or ()
    found += [_counted(item.counters, Directory.COUNTERS) for item in sums]
    found += [_judge_cable(link) for link in report.links or ()]
    if report.link is not None:
        found.append(_judge_link(report.link))
    if report.bit_errors is not None:
        found.append(_against(_bit_errors(report.bit_errors)))
    if report.module is not None:
        found.append(_against(_module(report.module)))
    if report.unconnected or _is_clean_sweep(report):
        found.append(Judgement(Verdict.HEALTHY))
    if report.errors or not found:
        found.append(Judgement(Verdict.UNKNOWN))
    beside = tuple(reason for item in found[len(ports) :] for reason in item.reasons)
    return Judgement(max(item.verdict for item in found), beside)


def _judge_state(port: PortReport) -> Judgement:
    if port.state is PortState.ACTIVE:
        return Judgement(Verdict.HEALTHY)
    if port.state is PortState.DOWN:
        why = _WHY_DOWN.get(port.phys_state) if port.phys_state else None
        shown = f"DOWN/{port.phys_state}: {why}" if why else "DOWN"
        return Judgement(Verdict.DOWN, (shown,))
    if port.state is PortState.INIT:
        reason = "INIT: no subnet manager has activated the port"
        return Judgement(Verdict.DOWN, (reason,))
    if port.state is PortState.ARMED:
        reason = "ARMED: the subnet manager has not activated the port yet"
        return Judgement(Verdict.DOWN, (reason,))
    if port.state is PortState.ACTIVE_DEFER:
        reason = "ACTIVE_DEFER: the link is lost, the port waits for it"
        return Judgement(Verdict.DEGRADED, (reason,))
    return Judgement(Verdict.UNKNOWN, ("the state is not known",))


def _narrow(port: PortReport) -> Iterator[str]:
    """Notice one lane on InfiniBand, whose cables have two or four.

    Ethernet is left alone: 25 Gb/s is one lane there. So are the old lane speeds:
    that is what software devices and kernels that do not know the speed say.
    """
    rate = port.rate
    if port.state is not PortState.ACTIVE or port.link_layer != LinkLayer.INFINIBAND:
        return
    if rate.width == 1 and rate.speed not in _OLD_SPEEDS:
        yield f"one lane of InfiniBand ({rate.speed}): cables have two or four"


def _counted(counters: tuple[CounterValue, ...], folder: Directory) -> Judgement:
    if not counters:
        return Judgement(Verdict.UNKNOWN)
    values = (lifetime_value(item.name, item.value, folder) for item in counters)
    return _against(lifetime_reasons(values))


def _against(reasons: Iterator[str] | tuple[str, ...]) -> Judgement:
    found = tuple(reasons)
    return Judgement(Verdict.DEGRADED if found else Verdict.HEALTHY, found)


def _is_clean_sweep(report: Report) -> bool:
    """Tell whether the tool looked at ports and found none worth printing."""
    return report.summary is not None and not report.summary.bad_ports


def _judge_cable(link: FabricLink) -> Judgement:
    width = parse_lanes(link.width or "")
    narrow = width == 1 and link.speed not in _OLD_SPEEDS
    # A speed always counts; a width only below that of an ordinary cable.
    better = ", ".join(
        item
        for item in (link.could_be or "").split(", ")
        if parse_lanes(item) is None or (width or FULL_WIDTH) < FULL_WIDTH
    )
    if not narrow and not better:
        return Judgement(Verdict.HEALTHY)
    ends = " - ".join(f"{end.name} port {end.port}" for end in (link.a, link.b))
    could = f", could be {better}" if better else ""
    return _against((f"{ends}: {link.width} {link.speed}{could}",))


def _judge_link(link: LinkDetail) -> Judgement:
    if link.state is None and link.state_text is None:
        return Judgement(Verdict.UNKNOWN, ("the state is not known",))
    told = link.recommendation or f"status opcode {link.status_opcode}"
    if link.state is not PortState.ACTIVE:
        return Judgement(Verdict.DOWN, (f"{link.state_text}: {told}",))
    return _against((told,) if link.status_opcode else ())


def _bit_errors(counted: BitErrors) -> Iterator[str]:
    rate, errors = counted.effective_ber, counted.effective_physical_errors
    enough = errors is None or errors >= EFFECTIVE_ERRORS_MINIMUM
    if rate is not None and rate > EFFECTIVE_BER and enough:
        yield f"effective bit error rate {rate:.1e} (after correction)"
    if (counted.link_down or 0) >= LINK_DOWNS:
        yield f"link down counter {counted.link_down} since it was last cleared"


def _module(module: ModuleDetail) -> Iterator[str]:
    heat, limits = module.temperature_c, module.temperature_range
    if heat is not None and limits is not None and heat > limits[1]:
        yield f"module at {heat:g} C, its limit is {limits[1]:g} C"
    if module.rx_range is None:
        return
    for lane, power in enumerate(module.rx_dbm or ()):
        if power is not None and DARK_DBM < power < module.rx_range[0]:
            limit = module.rx_range[0]
            yield f"lane {lane} receives {power:g} dBm, its limit is {limit:g} dBm"
