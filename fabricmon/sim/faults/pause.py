"""Storms of priority pause: F34 and F35."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.sim.effects import Counting, Effect, Made, SimPort, Step
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.patterns import (
    MICROSECONDS,
    limited,
    pause_frames,
    pci_stalls,
)
from fabricmon.sim.faults.row import (
    Fabric,
    FaultClass,
    Group,
    Known,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import PAUSE, PCIE
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_STORM_WARNING, _STORM_ERROR = 4.0, 8.0  # seconds of pause until the device says so
_LEAF_DELAY = (0.01, 0.5)  # seconds until the leaf's ports are held (catalogue F34)
_SPINE_DELAY = (0.5, 2.0)  # and those beyond the spine
_FELT = 0.05  # seconds until the direct sender feels it
_WATCHDOG = (0.2, 0.4)  # seconds until the switch drops what it cannot deliver
_NOBODY = Forbidden(actionable=True)


def storm(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F34: one device tells the network to be silent, and the fabric stops behind it."""
    case = case_of(STORM, injection, plan, draw)
    case = case.lasting(case.number("length"))
    origin, share = case.port(), case.number("share")
    effects = [
        *_sent(case, origin, share),
        *limited([origin], case.onset + _FELT, case.until, case.number("receives"),
                 transmit=False),
        *pci_stalls(origin, case.onset, case.until, case.number("stall")),
    ]  # fmt: skip
    leaf = [port for port in plan.ports_of_leaf(plan.leaf(origin)) if port != origin]
    beyond = [port for port in case.same_rail(origin) if port not in leaf]
    held = case.number("held")
    waves = [port for port in leaf if not _is_held_by_model(case, origin, port)]
    effects += _wave(case, waves, _LEAF_DELAY, held)
    effects += _wave(case, beyond, _SPINE_DELAY, held / 2)
    effects += _dropped(case, origin)
    truth = case.fault(origin, signals=(*PAUSE, *PCIE))
    victims = {*leaf, *beyond, *plan.peers(origin)} - {origin}
    return case.made(effects, [truth], sorted(victims))


def _is_held_by_model(case: Case, origin: SimPort, port: SimPort) -> bool:
    """Tell whether the model itself pauses a port, for as long as it would be."""
    return not case.plan.has_cnp and port in case.plan.peers(origin)[:1]


def _sent(case: Case, port: SimPort, share: float) -> list[Effect]:
    """Return pause that is sent nearly all the time, and what the device says of it."""
    begin, end = case.onset, case.until
    rates = {
        Meter.PAUSE_SENT: pause_frames(case) * share,
        Meter.PAUSE_SENT_MICROSECONDS: MICROSECONDS * share,
    }
    effects: list[Effect] = [
        Counting(port, meter, begin, end, rate, even=True)
        for meter, rate in rates.items()
    ]
    said = (
        (Meter.PAUSE_STORM_WARNINGS, _STORM_WARNING),
        (Meter.PAUSE_STORM_ERRORS, _STORM_ERROR),
    )
    for meter, after in said:
        if begin + after < end:
            effects.append(Step(port, meter, begin + after, 1))
    return effects


def _wave(
    case: Case, ports: Sequence[SimPort], delay: tuple[float, float], share: float
) -> list[Effect]:
    """Return ports that are held one after another, and let go after the storm."""
    effects: list[Effect] = []
    for port in ports:
        begin = min(case.onset + case.draw.uniform(*delay), case.until)
        held = min(share * case.draw.uniform(0.8, 1.2), 1.0)
        rates = {
            Meter.PAUSE_RECEIVED: pause_frames(case) * held,
            Meter.PAUSE_RECEIVED_MICROSECONDS: MICROSECONDS * held,
        }
        effects += [
            Counting(port, meter, begin, case.until, rate)
            for meter, rate in rates.items()
        ]
        left = max(1 - held, 0.02)
        effects += limited([port], begin, case.until, left, receive=False)
    return effects


def _dropped(case: Case, origin: SimPort) -> list[Effect]:
    """Return what the watchdog's drops cost those who talk to the origin."""
    begin = min(case.onset + case.draw.uniform(*_WATCHDOG), case.until)
    effects: list[Effect] = []
    for peer in case.plan.peers(origin):
        rates = {
            Meter.SEQUENCE_ERRORS: case.draw.uniform(5, 50),
            Meter.ACK_TIMEOUTS: case.draw.uniform(0.5, 4),
        }
        effects += [
            Counting(peer, meter, begin, case.until, rate)
            for meter, rate in rates.items()
        ]
    return effects


def tree(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F35: a switch is the one that holds the fabric; no host sends pause."""
    case = case_of(TREE, injection, plan, draw)
    case = case.lasting(case.number("length"))
    leaf = case.leaf()
    ports = plan.ports_of_leaf(leaf)
    same = (port for each in ports for port in case.same_rail(each))
    beyond = sorted(set(same) - set(ports))
    held = case.number("held")
    effects = _wave(case, ports, _LEAF_DELAY, held)
    effects += _wave(case, beyond, _SPINE_DELAY, held / 2)
    rail = case.rail_of(ports[0])
    truth = case.fault(leaf=leaf, rail=rail, signals=PAUSE)
    return case.made(effects, [truth], (*ports, *beyond), [_NOBODY])


_LENGTH = Parameter("length", (20, 180), "s", "Length of the storm", low=1)
_HELD = Parameter("held", (0.5, 0.95), "1",
                  "Share of time that the leaf's ports are held; half of it beyond",
                  scaling=Scaling.TIMES, high=1)  # fmt: skip

STORM = FaultClass(
    "F34", "Pause storm from one device", Group.PAUSE, storm, ("pause_origin",), 15,
    needs=((Meter.PAUSE_SENT,),), fabric=Fabric.ETHERNET,
    parameters=(
        _LENGTH,
        Parameter("share", (0.6, 1.0), "1", "Of the longest possible pause",
                  Known.SOURCE, low=0.05, high=1),
        Parameter("receives", (0.02, 0.1), "1", "Share of the line rate it receives",
                  low=0.01, high=1),
        Parameter("stall", (50, 99), "%", "Time that writes of the device wait",
                  low=1, high=100),
        _HELD,
    ),
)  # fmt: skip
TREE = FaultClass(
    "F35", "Pause tree caused by a switch", Group.FABRIC, tree, ("fabric_suspect",), 60,
    needs=((Meter.PAUSE_RECEIVED,),), by_vote=True, fabric=Fabric.ETHERNET,
    parameters=(_LENGTH, _HELD),
)  # fmt: skip

ROWS = (STORM, TREE)
