"""Links that are up and wrong: F11 to F15."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Capacity,
    Counting,
    Effect,
    KernelLines,
    Made,
    ModuleReading,
    Outage,
    PortText,
    SimPort,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import high_temperature, module_too_hot
from fabricmon.sim.faults.patterns import inbound_errors, limited, wait_ticks
from fabricmon.sim.faults.row import (
    NOT_SEEN,
    Fabric,
    FaultClass,
    Group,
    Known,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import DOWNS, MODULE, OPTICS, RATE
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.planning import STATE, Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_HALF, _QUARTER = 0.5, 0.25
_WARM, _HOT, _ALARM = 62.0, 70.0, 75.0  # degrees; warning of health-systems 7
_PER_DECADE = 6.0  # degrees in which the bit error rate rises tenfold above the limit
_HOT_BER = 1e-14
_READ_EVERY = 30.0  # seconds between changes of a reading
_STUCK = 30.0  # seconds in INIT from which a port is stuck
_HEALTHY_DBM = -1.0
_LANES = 4


def lower_rate(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F11: the link trained with fewer lanes or a slower one."""
    case = case_of(DOWNGRADE, injection, plan, draw)
    port, effects, begin = case.port(), list[Effect](), case.onset
    share = case.number("share")
    share = _HALF if share * 2 >= _HALF + _QUARTER else _QUARTER
    if case.flag("flap"):
        down = draw.uniform(2, 6)
        effects.append(Outage(port, begin, min(begin + down, case.until)))
        begin = min(begin + down, case.until)
    text = plan.rate_text(port, share)
    waits = wait_ticks(case) * case.number("waits")
    effects += [
        PortText(port, begin, case.until, rate=text),
        *limited([port], begin, case.until, share),
        Counting(port, Meter.TRANSMIT_WAIT, begin, case.until, waits, Per.BUSY_SECOND),
    ]
    truth = case.fault(port, onset=begin, signals=RATE)
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def hot_module(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F12: a transceiver heats up, damages bits, and shuts down at last."""
    case = case_of(HOT, injection, plan, draw)
    port, effects = case.port(), list[Effect]()
    peak, ramp = case.number("peak"), case.number("ramp")
    seen, fails = case.until, min(case.onset + ramp, case.until)
    at = case.onset
    while at < fails:
        degrees = _WARM + (peak - _WARM) * (at - case.onset) / ramp
        effects.append(ModuleReading(port, at, degrees))
        following = min(at + _READ_EVERY, fails)
        if degrees >= _HOT:
            seen = min(seen, at)
            ber = _HOT_BER * 10 ** ((degrees - _HOT) / _PER_DECADE)
            effects += inbound_errors(case, port, at, following, ber)
        at = following
    effects += _warnings(case, port, peak, ramp)
    if case.flag("fails") and fails < case.until:
        effects.append(Outage(port, fails, case.until))
    truth = case.fault(
        port, onset=seen, deadline=max(fails - seen, 60.0), signals=MODULE
    )
    return case.made(effects, [truth], plan.peers(port))


def _warnings(case: Case, port: SimPort, peak: float, ramp: float) -> list[Effect]:
    """Return what the kernel says on the way, and the reading at the end."""
    address = case.plan.pci_address(port)
    said = ((_ALARM, high_temperature(address)), (peak, module_too_hot(address)))
    effects: list[Effect] = []
    for degrees, line in said:
        at = case.onset + ramp * (degrees - _WARM) / (peak - _WARM)
        if at < case.until and degrees <= peak:
            effects.append(KernelLines(port.node, at, (line,)))
    if case.onset + ramp < case.until:
        effects.append(ModuleReading(port, case.onset + ramp, peak))
    return effects


def weak_light(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F13: a dirty connector: the received power is low and falls slowly."""
    case = case_of(WEAK, injection, plan, draw)
    port, effects = case.port(), list[Effect]()
    loss, per_hour = case.number("loss"), case.number("drift")
    lanes = [draw.uniform(0.0, 0.8) for _ in range(_LANES)]
    stride = max(_READ_EVERY * 2, (case.until - case.onset) / 100)
    at = case.onset
    while at < case.until:
        level = _HEALTHY_DBM - loss - per_hour * (at - case.onset) / 3600
        power = tuple(round(level + lane, 2) for lane in lanes)
        effects.append(ModuleReading(port, at, None, power))
        at += stride
    ber = case.number("ber")
    if ber > 0:
        later = (case.onset + case.until) / 2
        effects += inbound_errors(case, port, later, case.until, ber)
    truth = case.fault(port, signals=OPTICS)
    return case.made(effects, [truth], plan.peers(port))


def not_configured(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F14: the link trained and nobody configures it: one port, or a whole leaf."""
    case = case_of(STUCK, injection, plan, draw)
    is_leaf = case.word("scope") == "leaf"
    port = case.port()
    leaf = case.injection.leaf or plan.leaf(port)
    ports = plan.ports_of_leaf(leaf) if is_leaf else (port,)
    effects = [_initialising(case, each) for each in ports]
    seen = min(case.onset + _STUCK, case.until)
    if not is_leaf:
        truth = case.fault(port, onset=seen, signals=DOWNS)
        return case.made(effects, [truth], plan.peers(port))
    truth = case.fault(
        onset=seen, accept=("fabric_control", "common_cause"), leaf=leaf,
        rail=case.rail_of(ports[0]), signals=DOWNS, by_vote=True,
    )  # fmt: skip
    return case.made(effects, [truth], ports, [Forbidden(actionable=True)])


def _initialising(case: Case, port: SimPort) -> Effect:
    """Return a short retraining after which INIT does not end."""
    trained = min(case.onset + 2.0, case.until)
    return Outage(port, case.onset, trained, max(case.until - trained, 0.0))


def wrong_rail(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F15: after maintenance a cable is in the wrong leaf; its traffic goes across."""
    case = case_of(SWAPPED, injection, plan, draw)
    port = case.port()
    effects: list[Effect] = [Outage(port, case.onset, case.onset + 1.0)]
    factor = case.number("capacity")
    effects.append(Capacity(port, case.onset, case.until, factor))
    truth = case.fault(port, signals=("neighbour", "leaf"))
    return case.made(effects, [truth], plan.peers(port))


DOWNGRADE = FaultClass(
    "F11", "Link trained at a lower width or rate", Group.LINK, lower_rate,
    ("rate_degraded",), 120, needs=((STATE,),),
    parameters=(
        Parameter("share", (0.25, 0.5), "1",
                  "Share of the line rate: a half or a quarter, whichever is nearer",
                  Known.SOURCE, low=0.25, high=0.5),
        Parameter("flap", default=True, unit="",
                  meaning="Whether a flap comes before; without one it was so at boot"),
        Parameter("waits", (0.05, 0.5), "1", "Share of the busy time that it waits to "
                  "send", high=1),
    ),
)  # fmt: skip
HOT = FaultClass(
    "F12", "Transceiver too hot", Group.LINK, hot_module, ("module_hot",), 300,
    needs=(("module", "kmsg"),),
    parameters=(
        Parameter("peak", (76, 82), "°C", "Temperature at the end", Known.SOURCE,
                  low=75, high=110),
        Parameter("ramp", (600, 3600), "s", "Time in which it gets there", low=60),
        Parameter("fails", default=True, unit="",
                  meaning="Whether it shuts down at the end"),
    ),
)  # fmt: skip
WEAK = FaultClass(
    "F13", "Weak receive power", Group.LINK, weak_light, ("optics_weak",), 600,
    needs=(("module",),),
    parameters=(
        Parameter("loss", (6, 10), "dB", "Below the -1 dBm of a healthy lane",
                  Known.SOURCE, Scaling.TIMES, 1, 30),
        Parameter("drift", (0.2, 2), "dB/h", "What it loses further"),
        Parameter("ber", 0.0, "errors per bit",
                  "Bit error rate in the second half; 0: none", high=1e-6),
    ),
)  # fmt: skip
STUCK = FaultClass(
    "F14", "Stuck in INIT, no subnet manager", Group.FLAP, not_configured,
    ("port_not_active",), 60, needs=((STATE,),), fabric=Fabric.INFINIBAND,
    parameters=(
        Parameter("scope", "port", "", "What is hit", words=("port", "leaf")),
    ),
)  # fmt: skip
SWAPPED = FaultClass(
    "F15", "Cable in the wrong leaf", Group.CONFIG, wrong_rail, ("config_mismatch",),
    600, needs=NOT_SEEN,
    parameters=(
        Parameter("capacity", (0.85, 0.98), "1", "Share of the line rate that is left",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip

ROWS = (DOWNGRADE, HOT, WEAK, STUCK, SWAPPED)
