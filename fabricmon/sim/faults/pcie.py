"""Devices on a bad or narrow bus: F20 to F22, F26 and F28."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Counting,
    Effect,
    KernelLines,
    Level,
    Made,
    PcieLink,
    SimPort,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import (
    Link,
    corrected,
    insufficient_power,
    limited_bandwidth,
)
from fabricmon.sim.faults.patterns import limited, slow_receiver
from fabricmon.sim.faults.row import FaultClass, Group, Known, Needs, Parameter, Scaling
from fabricmon.sim.faults.signals import AER, HOST_PATH, PCIE, POWER
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_ENCODINGS = ((5.0, 8 / 10), (32.0, 128 / 130), (float("inf"), 1.0))
"""Share of the raw bits that are data, up to so many GT/s (kernel ``pci.h``)."""
_WIDTH_SECONDS, _STALL_SECONDS = 120.0, 180.0  # catalogue F20: 2 polls; 3 min
_STORM_LINES = 20  # the kernel suppresses what comes faster
_SEEN: Needs = (("pcie", Meter.PCI_STALL_WRITE),)


def raw_gbps(width: int, speed: float) -> float:
    """Return what lanes of this many GT/s carry, before the protocol of PCIe."""
    encoding = next(share for most, share in _ENCODINGS if speed <= most)
    return width * speed * encoding


def fewer_lanes(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F20: the device runs on fewer lanes than its slot has."""
    case = case_of(NARROW, injection, plan, draw)
    lanes = 4 if case.number("lanes") < 6 else 8  # noqa: PLR2004 - halfway
    return _trained(case, lanes, plan.slot_speed)


def slower_lanes(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F21: the device's lanes run slower than its slot can."""
    case = case_of(SLOW, injection, plan, draw)
    return _trained(case, plan.slot_width, float(case.word("speed")))


def _trained(case: Case, width: int, speed: float) -> Made:
    """Return a device that trained badly, and its senders that pay for it."""
    port, plan = case.port(), case.plan
    planes = case.planes(port)
    line = plan.line_rate_gbps * len(planes)
    left = raw_gbps(width, speed) * (1 - case.number("overhead"))
    stall, pause = case.number("stall"), case.number("pause")
    effects: list[Effect] = [PcieLink(port, case.onset, width, speed)]
    for plane in planes:
        effects += slow_receiver(
            case, plane, case.onset, case.until, min(left / line, 1.0),
            stall=stall, pause=pause,
        )  # fmt: skip
    effects += _announced(case, port, width, speed)
    if case.flag("burst"):
        begin = max(case.onset - 20.0, 0.0)
        rate = case.draw.uniform(1, 30)
        effects.append(Counting(port, Meter.AER_CORRECTABLE, begin, case.onset, rate))
    by_width = "pcie" in plan.sights
    truth = case.fault(
        port, deadline=_WIDTH_SECONDS if by_width else _STALL_SECONDS, signals=PCIE,
        traffic=None if by_width else planes,  # an idle device does not stall
    )  # fmt: skip
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def _announced(case: Case, port: SimPort, width: int, speed: float) -> list[Effect]:
    """Return the kernel's line of the width, which it prints when it probes."""
    plan = case.plan
    now = Link(width, speed, raw_gbps(width, speed))
    best = raw_gbps(plan.slot_width, plan.slot_speed)
    capable = Link(plan.slot_width, plan.slot_speed, best)
    line = limited_bandwidth(plan.pci_address(port), now, capable)
    return [KernelLines(port.node, case.onset, (line,))]


def corrected_errors(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F22: the bus corrects errors all the time."""
    case = case_of(UNSTABLE, injection, plan, draw)
    port, rate = case.port(), case.number("errors") / 60
    effects: list[Effect] = [
        Counting(port, Meter.AER_CORRECTABLE, case.onset, case.until, rate),
        Counting(port, Meter.PCI_SIGNAL_INTEGRITY, case.onset, case.until, rate / 10),
        *limited([port], case.onset, case.until, case.number("capacity")),
    ]
    lines = corrected(plan.pci_address(port))
    times = case.events(max(1 / rate, 5.0), _STORM_LINES)
    effects += [KernelLines(port.node, at, lines) for at in times]
    truth = case.fault(port, signals=AER)
    return case.made(effects, [truth], plan.peers(port))


def starved(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F26: the slot gives the device too little power."""
    case = case_of(POWERLESS, injection, plan, draw)
    port, factor = case.port(), case.number("capacity")
    line = insufficient_power(plan.pci_address(port), 27)
    effects: list[Effect] = [
        KernelLines(port.node, case.onset, (line,)),
        *limited([port], case.onset, case.until, factor),
    ]
    truth = case.fault(port, signals=POWER)
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def cache_misses(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F28: so many queue pairs that the device reads their state from the host."""
    case = case_of(MISSES, injection, plan, draw)
    node, begin, end = case.node(), case.onset, case.until
    stall = round(case.number("stall"))
    rails = case.rails_of(node)
    effects = limited(rails, begin, end, case.number("capacity"))
    for port in rails:
        effects += [
            Level(port, Meter.PCI_STALL_READ, begin, end, stall, only_busy=True),
            Counting(port, Meter.PCI_STALL_READ_EVENTS, begin, end, 1.0,
                     Per.BUSY_SECOND, even=True),
        ]  # fmt: skip
    truth = case.fault(node=node, signals=HOST_PATH)
    name = plan.node_name(node)
    return case.made(effects, [truth], (), [Forbidden(node=name, actionable=True)])


_TRAINED = (
    Parameter("overhead", (0.08, 0.15), "1", "Share of the raw rate that the protocol "
              "of PCIe takes", low=0.01, high=0.5),
    Parameter("stall", (30, 95), "%", "Time that writes wait under load",
              low=1, high=100),
    Parameter("pause", (100, 10_000), "1/s", "Pause frames sent under load (RoCE)",
              scaling=Scaling.TIMES),
    Parameter("burst", default=True, unit="",
              meaning="Whether corrected errors of the bus come before"),
)  # fmt: skip

NARROW = FaultClass(
    "F20", "PCIe width loss", Group.PCIE, fewer_lanes, ("pcie_degraded",), 180,
    needs=_SEEN,
    parameters=(
        Parameter("lanes", (4, 8), "1", "Lanes left: 4 or 8, whichever is nearer",
                  Known.SOURCE, low=4, high=8),
        *_TRAINED,
    ),
)  # fmt: skip
SLOW = FaultClass(
    "F21", "PCIe speed loss", Group.PCIE, slower_lanes, ("pcie_degraded",), 180,
    needs=_SEEN,
    parameters=(
        Parameter("speed", "8.0", "GT/s", "What a lane does", Known.DERIVED,
                  words=("2.5", "5.0", "8.0", "16.0")),
        *_TRAINED,
    ),
)  # fmt: skip
UNSTABLE = FaultClass(
    "F22", "Storm of corrected PCIe errors", Group.PCIE, corrected_errors,
    ("pcie_errors",), 300, needs=(("pcie", "kmsg", Meter.PCI_SIGNAL_INTEGRITY),),
    parameters=(
        Parameter("errors", (10, 10_000), "1/min", "Corrected errors", Known.SOURCE,
                  Scaling.TIMES, 0.01, 1e6),
        Parameter("capacity", (0.8, 1.0), "1", "Share of the line rate that is left",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip
POWERLESS = FaultClass(
    "F26", "Device short of power", Group.PCIE, starved, ("nic_power",), 60,
    needs=(("kmsg",),),
    parameters=(
        Parameter("capacity", (0.3, 0.7), "1", "Share of the line rate that is left",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip
MISSES = FaultClass(
    "F28", "Device short of cache, many queue pairs", Group.HOST, cache_misses,
    ("host_path_slow", "congestion"), 600, needs=((Meter.PCI_STALL_READ,),),
    by_traffic=True,
    parameters=(
        Parameter("stall", (10, 40), "%", "Time that reads wait under load",
                  low=1, high=100),
        Parameter("capacity", (0.7, 0.9), "1", "Share of the line rate that is left",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip

ROWS = (NARROW, SLOW, UNSTABLE, POWERLESS, MISSES)
