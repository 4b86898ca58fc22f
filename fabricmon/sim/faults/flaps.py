"""Links that go down: F05 to F08 and F10."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Counting,
    Effect,
    KernelLines,
    Made,
    Outage,
    PortText,
    SimPort,
    Step,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import cable_unplugged
from fabricmon.sim.faults.row import (
    FaultClass,
    Group,
    Known,
    Needs,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import DOWNS
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import STATE, Draw, Plan
from fabricmon.sim.scenario import Injection

_THIRD = 2  # place of the third flap, with which a port flaps repeatedly
_DOWNS: Needs = ((STATE, Meter.LINK_DOWNS),)
_MARGIN = 30.0  # seconds that the last flap is away from the end


def single_flap(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F05: down for seconds, once."""
    case = case_of(FLAP, injection, plan, draw)
    port, down, init = case.port(), case.number("down"), case.number("init")
    case = case.lasting(down)
    truth = case.fault(port, onset=case.until + init, signals=DOWNS)
    outage = Outage(port, case.onset, case.until, init)
    return case.made([outage], [truth], _hit(case, port))


def repeated_flaps(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F06: a few flaps in some hours; gaps are exponential."""
    case = case_of(REPEATED, injection, plan, draw)
    port = case.port()
    times = _times(case, case.whole("flaps"), case.number("gap"))
    effects, backs = list[Effect](), list[float]()
    for at in times:
        outage = _outage(case, port, at)
        backs.append(outage.end + outage.init)
        effects += [outage, *_retraining(case, port, outage)]
    onset = backs[min(_THIRD, len(backs) - 1)]
    truth = case.fault(port, onset=onset, signals=DOWNS)
    return case.made(effects, [truth], _hit(case, port))


def _times(case: Case, flaps: int, gap: float) -> list[float]:
    """Return when flaps begin: with exponential gaps, drawn together to fit."""
    least = _MARGIN
    gaps = [least + case.draw.gap(max(gap - least, 1.0)) for _ in range(flaps - 1)]
    room = max(case.until - case.onset - 2 * _MARGIN, 0.0)
    squeeze = min(room / sum(gaps), 1.0) if gaps else 1.0
    times = [case.onset]
    for each in gaps:
        times.append(times[-1] + each * squeeze)
    return times


def _outage(case: Case, port: SimPort, at: float) -> Outage:
    end = min(at + case.number("down"), case.until)
    return Outage(port, at, end, case.number("init"))


def _retraining(case: Case, port: SimPort, outage: Outage) -> list[Effect]:
    """Return what a retraining leaves: one to three recoveries, a burst of symbols."""
    at = outage.end
    count = case.draw.pick((1, 2, 3))
    symbols = case.draw.uniform(5, 200)
    return [
        Step(port, Meter.LINK_RECOVERIES, at, count),
        Counting(port, Meter.SYMBOL_ERRORS, at, min(at + 1, case.until), symbols),
    ]


def storm(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F07: down again and again within a minute, for many minutes."""
    case = case_of(STORM, injection, plan, draw)
    case = case.lasting(case.number("length"))
    port, effects, backs = case.port(), list[Effect](), list[float]()
    at = case.onset
    while at < case.until:
        outage = _outage(case, port, at)
        effects.append(outage)
        backs.append(outage.end + outage.init)
        at = max(at + case.number("gap"), backs[-1] + 1.0)
        if case.flag("alternates") and len(backs) % 2:
            text = plan.rate_text(port, 0.5)
            effects.append(PortText(port, outage.end, min(at, case.until), rate=text))
    onset = backs[min(_THIRD, len(backs) - 1)]
    truth = case.fault(port, onset=onset, signals=DOWNS)
    return case.made(effects, [truth], _hit(case, port))


def micro_flap(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F08: down for less than a poll; only counters remember."""
    case = case_of(MICRO, injection, plan, draw)
    port, down = case.port(), case.number("down")
    case = case.lasting(down)
    effects: list[Effect] = [Outage(port, case.onset, case.until, case.number("init"))]
    symbols = min(draw.poisson(1.5), 5)
    if symbols:
        effects.append(Step(port, Meter.SYMBOL_ERRORS, case.until, symbols))
    truth = case.fault(port, onset=case.until, signals=DOWNS)
    return case.made(effects, [truth], _hit(case, port))


def long_outage(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F10: cable or transceiver is dead."""
    case = case_of(OUTAGE, injection, plan, draw)
    port = case.port()
    effects: list[Effect] = [Outage(port, case.onset, case.until)]
    said = case.onset + draw.uniform(2, 20)
    if case.flag("unplugged") and said < case.until:
        line = cable_unplugged(plan.pci_address(port))
        effects.append(KernelLines(port.node, said, (line,)))
    truth = case.fault(port, signals=DOWNS)
    return case.made(effects, [truth], _hit(case, port))


def _hit(case: Case, port: SimPort) -> tuple[SimPort, ...]:
    """Return who suffers from an outage: the rail in the whole job."""
    return (*case.plan.peers(port), *case.same_rail(port))


_INIT = Parameter("init", (0.1, 5), "s", "Time in INIT after the link trained", low=0.01,
                  high=60)  # fmt: skip

FLAP = FaultClass(
    "F05", "Single flap", Group.FLAP, single_flap, ("port_flap",), 10,
    needs=_DOWNS,
    parameters=(
        Parameter("down", (2, 30), "s", "Length of the outage", Known.SOURCE,
                  Scaling.TIMES, 0.05, 600),
        _INIT,
    ),
)  # fmt: skip
REPEATED = FaultClass(
    "F06", "Repeating flap", Group.FLAP, repeated_flaps, ("port_flapping",), 10,
    needs=_DOWNS,
    parameters=(
        Parameter("flaps", (3, 6), "1", "How often", Known.SOURCE, low=3, high=100),
        Parameter("gap", (1800, 3600), "s", "Mean time between flaps", Known.SOURCE,
                  Scaling.SHORTER, 60),
        Parameter("down", (5, 45), "s", "Length of an outage", Known.SOURCE,
                  Scaling.TIMES, 0.05, 600),
        _INIT,
    ),
)  # fmt: skip
STORM = FaultClass(
    "F07", "Flap storm", Group.FLAP, storm, ("port_flapping",), 120, needs=_DOWNS,
    parameters=(
        Parameter("length", (600, 1800), "s", "Length of the storm", Known.SOURCE,
                  low=60),
        Parameter("gap", (20, 60), "s", "Time from flap to flap", Known.SOURCE,
                  Scaling.SHORTER, 5),
        Parameter("down", (2, 10), "s", "Length of an outage", low=0.05, high=60),
        Parameter("alternates", default=False, unit="", meaning=
                  "Whether every other time it trains at half its width"),
        _INIT,
    ),
)  # fmt: skip
MICRO = FaultClass(
    "F08", "Flap shorter than a poll", Group.FLAP, micro_flap, ("port_flap",), 10,
    needs=((Meter.LINK_DOWNS,),),
    parameters=(
        Parameter("down", (0.05, 0.9), "s", "Length of the outage", Known.DERIVED,
                  Scaling.TIMES, 0.01, 5),
        Parameter("init", (0.05, 0.2), "s", "Time in INIT after the link trained",
                  low=0.0, high=5),
    ),
)  # fmt: skip
OUTAGE = FaultClass(
    "F10", "Long outage, dead cable or transceiver", Group.FLAP, long_outage,
    ("port_down",), 15, needs=((STATE,),),
    parameters=(
        Parameter("unplugged", default=True, unit="",
                  meaning="Whether the module says that the cable is out"),
    ),
)  # fmt: skip

ROWS = (FLAP, REPEATED, STORM, MICRO, OUTAGE)
