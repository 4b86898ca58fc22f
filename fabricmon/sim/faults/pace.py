"""Jobs that run slower: F53 to F55."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Capacity,
    Effect,
    Made,
    PcieLink,
    PortText,
    SimPort,
    Stall,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.patterns import (
    busy_rates,
    inbound_errors,
    limited,
    pci_stalls,
)
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter, Scaling
from fabricmon.sim.faults.signals import BIT_ERRORS, PACE, PCIE, RATE
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import STATE, Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_NOBODY = Forbidden(actionable=True)
_EVIDENT_BER = 3e-11
_HALF = 0.5
_LOCAL = {
    "none": (),
    "rate": ("rate_degraded", "straggler_link"),
    "pcie": ("pcie_degraded", "straggler_link"),
    "errors": ("link_errors", "straggler_link"),
}


def slow_compute(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F53: a GPU or a data loader is slow; the network idles and is clean."""
    case = case_of(COMPUTE, injection, plan, draw)
    node = case.node()
    effects = stretched(case, node)
    truth = case.fault(node=node, signals=PACE)
    others = [plan.node_name(each) for each in range(plan.nodes)]
    never = [_NOBODY, *(Forbidden(node=each, severity="critical") for each in others)]
    return case.made(effects, [truth], (), never)


def stretched(case: Case, node: int) -> list[Effect]:
    """Return jobs of a node whose computing takes longer."""
    stretch = 1 + case.number("longer")
    return [
        Stall(case.onset, case.until, job, node, stretch)
        for job in case.plan.jobs_of(node)
    ]


def half_rate_hop(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F54: one hop does part of the rate; its whole rail goes at that pace."""
    case = case_of(HOP, injection, plan, draw)
    port, evidence = case.port(), case.word("evidence")
    factor = case.number("capacity")
    if evidence == "rate":
        factor = _HALF
    effects: list[Effect] = [
        *limited([port], case.onset, case.until, factor),
        *_shown(case, port, evidence),
    ]  # fmt: skip
    signals = {"rate": RATE, "pcie": PCIE, "errors": BIT_ERRORS}.get(evidence, ())
    accept = ("rail_slow", *_LOCAL[evidence])
    truth = case.fault(
        port, accept=accept, signals=(*PACE, *signals),
        traffic=None if _is_shown_idle(case, evidence) else (port,),
    )  # fmt: skip
    victims = {*plan.peers(port), *case.same_rail(port)}
    never = [] if evidence != "none" else [_NOBODY]
    return case.made(effects, [truth], sorted(victims), never)


def _is_shown_idle(case: Case, evidence: str) -> bool:
    """Tell whether the cause can be seen by itself, without traffic."""
    needs = {
        "rate": STATE, "pcie": "pcie", "errors": Meter.SYMBOL_ERRORS,
    }  # fmt: skip
    return needs.get(evidence) in case.plan.shown


def _shown(case: Case, port: SimPort, evidence: str) -> list[Effect]:
    """Return what the hop's own node shows of the cause."""
    begin, end = case.onset, case.until
    if evidence == "rate":
        text = case.plan.rate_text(port, _HALF)
        return [PortText(port, begin, end, rate=text)]
    if evidence == "pcie":
        link = PcieLink(port, begin, 8, case.plan.slot_speed)
        return [link, *pci_stalls(port, begin, end, case.draw.uniform(30, 95))]
    if evidence == "errors":
        return inbound_errors(case, port, begin, end, _EVIDENT_BER)
    return []


def jitter(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F55: a few steps take much longer, for want of one port's capacity."""
    case = case_of(JITTER, injection, plan, draw)
    port, effects = case.port(), list[Effect]()
    length = case.number("length")
    for at in case.events(length / case.number("share")):
        end = min(at + length, case.until)
        capacity = 1 / (1 + case.number("longer"))
        effects.append(Capacity(port, at, end, min(capacity, 1.0)))
        rates = {Meter.ADAPTIVE_RETRANSMITS: draw.uniform(1, 20)}
        effects += busy_rates(port, at, end, rates)
    truth = case.fault(port, signals=PACE)
    victims = {*plan.peers(port), *case.same_rail(port)}
    return case.made(effects, [truth], sorted(victims), [_NOBODY])


COMPUTE = FaultClass(
    "F53", "Slow GPU or data loader", Group.NOT_NETWORK, slow_compute, ("not_network",),
    600, by_traffic=True,
    parameters=(
        Parameter("longer", (0.5, 2), "1", "What is added to the computing of a step",
                  Known.DERIVED, Scaling.TIMES, 0.01, 20),
    ),
)  # fmt: skip
HOP = FaultClass(
    "F54", "Half-rate hop, the classic straggler", Group.STRAGGLER, half_rate_hop,
    ("rail_slow",), 600,
    parameters=(
        Parameter("capacity", (0.3, 0.8), "1", "Share of the line rate that is left",
                  Known.DERIVED, Scaling.LOSS, 0.05, 0.9),
        Parameter("evidence", "none", "", "What the hop's own node shows of the cause",
                  words=("none", "rate", "pcie", "errors")),
    ),
)  # fmt: skip
JITTER = FaultClass(
    "F55", "Intermittent jitter", Group.STRAGGLER, jitter, ("rail_slow",), 900,
    by_traffic=True,
    parameters=(
        Parameter("share", (0.05, 0.2), "1", "Share of the steps that are hit",
                  scaling=Scaling.TIMES, low=0.001, high=0.9),
        Parameter("longer", (0.5, 3), "1", "What is added to such a step's data phase",
                  scaling=Scaling.TIMES, low=0.01, high=20),
        Parameter("length", (3, 10), "s", "How long the capacity is gone each time",
                  low=0.1),
    ),
)  # fmt: skip

ROWS = (COMPUTE, HOP, JITTER)
