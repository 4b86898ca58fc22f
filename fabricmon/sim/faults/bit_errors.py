"""Links that damage bits: F01 to F04 and F09."""

from __future__ import annotations

from math import log2, log10

from fabricmon.sim.effects import (
    Capacity,
    Counting,
    Effect,
    Made,
    Outage,
    SimPort,
    Step,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.patterns import PACKET_BITS, inbound_errors, outbound_loss
from fabricmon.sim.faults.row import (
    FaultClass,
    Group,
    Known,
    Needs,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import BIT_ERRORS, LOSS, RECOVERIES
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_SLOW_BER, _SLOW_SECONDS = 1e-13, 1500.0  # worst time to detect, catalogue F01
_FAST_BER, _FAST_SECONDS = 1e-11, 120.0
_SEEN_BER = _SLOW_BER  # the least that can be told from noise in minutes
_STEPS_PER_DOUBLING = 4
_SYMBOLS: Needs = ((Meter.SYMBOL_ERRORS,),)
_ADDRESS_NEVER = Forbidden(kind="peer_suspect")


def detection_seconds(ber: float) -> float:
    """Return how long a bit error rate may take to be told.

    Between the two points that the catalogue names for F01, straight in the logarithms;
    25 minutes below them, 2 above.
    """
    share = (log10(_FAST_BER) - log10(ber)) / (log10(_FAST_BER) - log10(_SLOW_BER))
    share = min(max(share, 0.0), 1.0)
    return float(_FAST_SECONDS * (_SLOW_SECONDS / _FAST_SECONDS) ** share)


def marginal_optics(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F01: a receiver damages bits at a steady rate, idle or not."""
    case = case_of(MARGINAL, injection, plan, draw)
    port, ber = case.port(), case.number("ber")
    effects = inbound_errors(case, port, case.onset, case.until, ber)
    if plan.is_infiniband:
        count = min(draw.poisson(0.5), 3)
        step = Step(port, Meter.LOCAL_INTEGRITY_ERRORS, _within(case), count)
        effects += [step] if count else []
    truth = case.fault(port, deadline=detection_seconds(ber), signals=BIT_ERRORS)
    return case.made(effects, [truth], plan.peers(port))


def outbound_optics(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F02: what a port sends is damaged on the way; nothing of it is counted here."""
    case = case_of(OUTBOUND, injection, plan, draw)
    port, ber = case.port(), case.number("ber")
    loss = min(ber * PACKET_BITS, 1.0)
    effects = outbound_loss(case, port, case.onset, case.until, loss)
    truth = case.fault(port, leaf=plan.leaf(port), signals=LOSS)
    names = [plan.node_name(peer.node) for peer in plan.peers(port)]
    never = [Forbidden(node=name, role="culprit", actionable=True) for name in names]
    return case.made(effects, [truth], plan.peers(port), [_ADDRESS_NEVER, *never])


def ageing(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F03: the bit error rate doubles again and again until the link fails."""
    case = case_of(AGEING, injection, plan, draw)
    port = case.port()
    start, doubling = case.number("ber"), case.number("doubling")
    fails = case.onset + doubling * log2(max(case.number("fails_at") / start, 1.0))
    seen = case.onset + doubling * log2(max(_SEEN_BER / start, 1.0))
    ends = min(fails, case.until)
    effects = _ramp(case, port, start, doubling, ends)
    if fails < case.until:
        effects += _failures(case, port, fails)
    seen = min(seen, case.until)
    truth = case.fault(
        port, onset=seen, deadline=max(fails - seen, 60.0), signals=BIT_ERRORS
    )
    return case.made(effects, [truth], plan.peers(port))


def _ramp(
    case: Case, port: SimPort, start: float, doubling: float, ends: float
) -> list[Effect]:
    """Return the slow curve in steps of a quarter of a doubling."""
    effects: list[Effect] = []
    stride = doubling / _STEPS_PER_DOUBLING
    begin = case.onset
    while begin < ends:
        ber = start * 2 ** ((begin - case.onset + stride / 2) / doubling)
        end = min(begin + stride, ends)
        effects += inbound_errors(case, port, begin, end, ber)
        begin = end
    return effects


def _failures(case: Case, port: SimPort, fails: float) -> list[Effect]:
    """Return recoveries just before the end, then outages again and again (F06)."""
    effects: list[Effect] = [
        Step(port, Meter.LINK_RECOVERIES, fails - each, 1)
        for each in (240.0, 120.0, 45.0)
        if fails - each > case.onset
    ]
    for at in case.at(fails).events(case.number("outage_gap")):
        down = case.number("down")
        effects.append(Outage(port, at, min(at + down, case.until)))
    return effects


def bursts(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F04: heat or vibration damages bits for seconds, then not for minutes."""
    case = case_of(BURSTS, injection, plan, draw)
    port, rate = case.port(), case.number("errors")
    ends: list[float] = []
    effects: list[Effect] = []
    at = case.onset
    while at < case.until:
        end = min(at + case.number("burst"), case.until)
        effects += _burst(case, port, at, end, rate * draw.uniform(0.5, 1.5))
        ends.append(end)
        at = end + case.number("gap")
    onset = ends[min(1, len(ends) - 1)]
    truth = case.fault(port, onset=onset, signals=RECOVERIES)
    return case.made(effects, [truth], plan.peers(port))


def _burst(
    case: Case, port: SimPort, begin: float, end: float, rate: float
) -> list[Effect]:
    """Return one burst: errors, one to three retrainings, less throughput."""
    ber = rate / (case.plan.line_rate_gbps * 1e9)
    effects = inbound_errors(case, port, begin, end, ber)
    for _ in range(case.draw.pick((1, 2, 3))):
        at = case.draw.uniform(begin, end)
        effects.append(Step(port, Meter.LINK_RECOVERIES, at, 1))
    effects.append(Capacity(port, begin, end, case.number("capacity")))
    return effects


def recoveries(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F09: the link retrains without going down, now and then."""
    case = case_of(RECOVERY, injection, plan, draw)
    port, effects, times = case.port(), list[Effect](), list[float]()
    at = case.onset
    while at < case.until:
        times.append(at)
        effects.append(Step(port, Meter.LINK_RECOVERIES, at, 1))
        ends = min(at + 1.0, case.until)
        symbols = case.number("symbols")
        effects.append(Counting(port, Meter.SYMBOL_ERRORS, at, ends, symbols))
        at += case.number("gap")
    onset = times[min(2, len(times) - 1)]
    truth = case.fault(port, onset=onset, signals=RECOVERIES)
    return case.made(effects, [truth], plan.peers(port))


def _within(case: Case) -> float:
    return case.draw.uniform(case.onset, case.until)


def _ber(default: tuple[float, float], low: float, known: Known) -> Parameter:
    return Parameter("ber", default, "errors per bit", "Bit error rate after FEC", known,
                     Scaling.TIMES, low, 1e-6)  # fmt: skip


MARGINAL = FaultClass(
    "F01", "Steady marginal optics, inbound", Group.LINK, marginal_optics,
    ("link_errors",), 1500, needs=_SYMBOLS,
    parameters=(_ber((1e-13, 1e-10), 1e-14, Known.DERIVED),),
)  # fmt: skip
OUTBOUND = FaultClass(
    "F02", "Steady marginal optics, outbound", Group.LINK, outbound_optics,
    ("fabric_suspect", "transport_retries"), 600, by_vote=True,
    by_traffic=True, needs=((Meter.SEQUENCE_ERRORS,),),
    parameters=(_ber((1e-12, 1e-10), 1e-14, Known.DERIVED),),
)  # fmt: skip
AGEING = FaultClass(
    "F03", "Ageing optics", Group.LINK, ageing, ("link_errors",), 1500,
    needs=_SYMBOLS,
    parameters=(
        _ber((1e-15, 1e-14), 1e-16, Known.ESTIMATE),
        Parameter("doubling", (21_600, 172_800), "s", "Time in which the rate doubles",
                  scaling=Scaling.SHORTER, low=60),
        Parameter("fails_at", (3e-11, 1e-10), "errors per bit",
                  "Rate at which the link begins to go down", low=1e-12),
        Parameter("outage_gap", (300, 1800), "s", "Mean time between outages then",
                  low=30),
        Parameter("down", (5, 45), "s", "Length of such an outage", low=0.05),
    ),
)  # fmt: skip
BURSTS = FaultClass(
    "F04", "Bursts of bit errors", Group.LINK, bursts, ("link_errors",), 60,
    needs=_SYMBOLS,
    parameters=(
        Parameter("errors", (10, 10_000), "1/s", "Symbol errors in a burst",
                  scaling=Scaling.TIMES, low=1, high=1e6),
        Parameter("burst", (1, 60), "s", "Length of a burst", low=1, high=600),
        Parameter("gap", (120, 7200), "s", "Time between bursts",
                  scaling=Scaling.SHORTER, low=30),
        Parameter("capacity", (0.7, 0.95), "1", "Share of the line rate in a burst",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip
RECOVERY = FaultClass(
    "F09", "Link error recovery without link down", Group.LINK, recoveries,
    ("link_unstable",), 60, needs=((Meter.LINK_RECOVERIES,),),
    parameters=(
        Parameter("gap", (120, 1200), "s", "Time between retrainings",
                  scaling=Scaling.SHORTER, low=5),
        Parameter("symbols", (1, 50), "1", "Symbol errors of a retraining",
                  scaling=Scaling.TIMES),
    ),
)  # fmt: skip

ROWS = (MARGINAL, OUTBOUND, AGEING, BURSTS, RECOVERY)
