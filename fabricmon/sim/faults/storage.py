"""Storage that is read over a compute rail: N50."""

from __future__ import annotations

from fabricmon.sim.effects import Effect, Inflow, Made, Step
from fabricmon.sim.faults.case import case_of
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection


def reads(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N50: a loader reads over one rail of every node, besides what the job sends.

    A few corrected PCIe errors come with it: they cost nothing, and nobody any time.
    """
    case = case_of(READS, injection, plan, draw)
    first = case.port()
    rails = [each for node in case.nodes() for each in case.rails_of(node)]
    ports = [each for each in rails if each.device == first.device]
    effects: list[Effect] = [
        Inflow(port, case.onset, case.until, case.number("share")) for port in ports
    ]
    for port in ports:
        at = draw.uniform(case.onset, case.until)
        errors = case.whole("corrected")
        effects.append(Step(port, Meter.AER_CORRECTABLE, at, errors))
    return Made(tuple(effects), (), (), case.spared(rails))


READS = FaultClass(
    "N50", "Storage reads over one compute rail", Group.NOT_NETWORK, reads,
    parameters=(
        Parameter("share", (0.06, 0.15), "1", "Share of the line rate that is read"),
        Parameter("corrected", (10, 20), "1", "PCIe errors corrected meanwhile",
                  Known.ESTIMATE, high=1000),
    ),
)  # fmt: skip

ROWS = (READS,)
