"""Negatives that only counters show: ceilings, clearing, background."""

from __future__ import annotations

from fabricmon.sim.effects import Counting, Effect, Made, Preset, Reset, SimPort, Step
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.patterns import bits
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection

_RELAY_CEILING = 65_535
_CLEARED = (
    (),
    (Meter.SYMBOL_ERRORS, Meter.LINK_RECOVERIES, Meter.LINK_DOWNS),
    (Meter.TRANSMIT_WAIT,),
    (Meter.RECEIVE_ERRORS, Meter.SWITCH_RELAY_ERRORS, Meter.TRANSMIT_DISCARDS),
)
"""What is cleared at a time: all of the port, or some."""


def cleared(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N04: somebody else clears the port's counters, all or some, now and then."""
    case = case_of(CLEARED, injection, plan, draw)
    effects: list[Effect] = []
    for port in _ports(case):
        at, turn = case.onset, draw.pick(range(len(_CLEARED)))
        while at < case.until:
            meters = _CLEARED[turn % len(_CLEARED)]
            effects.append(Reset(port, at, "pma", meters))
            turn += 1
            at += case.number("every")
    return _quiet(case, effects)


def saturated(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N05: counters stand at their ceilings from an earlier life."""
    case = case_of(SATURATED, injection, plan, draw)
    meters = (Meter.LINK_DOWNS, Meter.TRANSMIT_DISCARDS, Meter.TRANSMIT_WAIT)
    effects = [Preset(port, meter, None) for port in _ports(case) for meter in meters]
    return _quiet(case, effects)


def clamping(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N06: a counter that means little climbs to its ceiling and stays there."""
    case = case_of(CLAMPING, injection, plan, draw)
    below, rate = case.whole("below"), case.number("rate")
    effects: list[Effect] = []
    for port in _ports(case):
        start = _RELAY_CEILING - below
        effects += [
            Preset(port, Meter.SWITCH_RELAY_ERRORS, start),
            Counting(port, Meter.SWITCH_RELAY_ERRORS, case.onset, case.until, rate),
        ]
    return _quiet(case, effects)


def pegged_wait(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N07: transmit wait stands at its ceiling for ever."""
    case = case_of(PEGGED, injection, plan, draw)
    effects = [Preset(port, Meter.TRANSMIT_WAIT, None) for port in _ports(case)]
    return _quiet(case, effects)


def few_retries(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N25: a few retransmissions and one timeout, as on any day."""
    case = case_of(FEW, injection, plan, draw)
    effects: list[Effect] = []
    for port in _ports(case):
        count = case.whole("retransmits")
        for _ in range(count):
            at = draw.uniform(case.onset, case.until)
            effects.append(Step(port, Meter.ADAPTIVE_RETRANSMITS, at, 1))
    port = case.port()
    at = draw.uniform(case.onset, case.until)
    effects.append(Step(port, Meter.ACK_TIMEOUTS, at, 1))
    return _quiet(case, effects)


def smaller(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N33: wide counters fall to a smaller number that is not 0."""
    case = case_of(SMALLER, injection, plan, draw)
    left = case.whole("left")
    meters = (Meter.WRITE_REQUESTS, Meter.CONNECTS, Meter.CNP_SENT, Meter.CNP_HANDLED)
    effects: list[Effect] = []
    for port in _ports(case):
        effects.append(Preset(port, Meter.WRITE_REQUESTS, 10**12))
        effects.append(Reset(port, case.onset, "hw", meters, left))
    return _quiet(case, effects)


def background(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N39: small numbers stand in error counters and do not move."""
    case = case_of(BACKGROUND, injection, plan, draw)
    stands = (
        (Meter.RECEIVE_ERRORS, 14), (Meter.BUFFER_OVERRUNS, 15),
        (Meter.SWITCH_RELAY_ERRORS, 2), (Meter.LINK_DOWNS, 2),
    )  # fmt: skip
    effects = [
        Preset(port, meter, value) for port in _ports(case) for meter, value in stands
    ]
    return _quiet(case, effects)


def raw_errors(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N40: a splitter cable damages many bits, all of which FEC repairs."""
    case = case_of(RAW, injection, plan, draw)
    rate = bits(case) * case.number("raw_ber")
    effects: list[Effect] = []
    for port in _ports(case):
        effects.append(
            Counting(port, Meter.CORRECTED_BITS, case.onset, case.until, rate)
        )
        lanes = rate / 4
        effects.append(Counting(port, Meter.LANE_ERRORS, case.onset, case.until, lanes))
    return _quiet(case, effects)


def _ports(case: Case) -> tuple[SimPort, ...]:
    """Return the rail of the injection if it names one, else all rails of its nodes."""
    if case.injection.rail is not None or case.injection.device is not None:
        return (case.port(),)
    return tuple(port for node in case.nodes() for port in case.rails_of(node))


def _quiet(case: Case, effects: list[Effect] | list[Preset]) -> Made:
    return Made(tuple(effects), (), (), case.spared(_ports(case)))


_L = Group.LINK

CLEARED = FaultClass(
    "N04", "Counters cleared by somebody else", _L, cleared,
    parameters=(
        Parameter("every", (120, 900), "s", "Time between clearings", low=1),
    ),
)  # fmt: skip
SATURATED = FaultClass("N05", "Saturated from history", _L, saturated)
CLAMPING = FaultClass(
    "N06", "Ceiling reached on the way", _L, clamping,
    parameters=(
        Parameter("below", (50, 500), "1", "Distance to the ceiling at the start",
                  high=65_535),
        Parameter("rate", (0.5, 3), "1/s", "How it climbs"),
    ),
)  # fmt: skip
PEGGED = FaultClass("N07", "Transmit wait pegged", Group.CONGESTION, pegged_wait)
FEW = FaultClass(
    "N25", "Few retransmissions, one timeout", Group.REMOTE, few_retries,
    parameters=(
        Parameter("retransmits", (1, 5), "1", "On each port", Known.SOURCE, high=100),
    ),
)  # fmt: skip
SMALLER = FaultClass(
    "N33", "Wide counter reset to a smaller number", _L, smaller,
    parameters=(Parameter("left", (1000, 1e6), "1", "What it says then"),),
)  # fmt: skip
BACKGROUND = FaultClass("N39", "Static background", _L, background)
RAW = FaultClass(
    "N40", "High error rate before correction", _L, raw_errors,
    parameters=(
        Parameter("raw_ber", (3e-7, 1e-6), "errors per bit", "Before FEC",
                  Known.SOURCE),
    ),
)  # fmt: skip

ROWS = (CLEARED, SATURATED, CLAMPING, PEGGED, FEW, SMALLER, BACKGROUND, RAW)
