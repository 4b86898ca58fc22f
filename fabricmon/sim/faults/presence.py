"""Negatives of what is there and what can be read: ports, devices, names, slots."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Effect,
    Gone,
    JobEnds,
    KernelLines,
    Made,
    NetdevGone,
    Outage,
    PcieLink,
    PortText,
    SimPort,
    Unreadable,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import register_refused
from fabricmon.sim.faults.row import FaultClass, Group, Parameter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection

_DISABLED = "3: Disabled"
_POLLED = ("counters/symbol_error", "counters/link_downed", "counters/port_rcv_data")
_REFUSED = (
    ("counters/symbol_error", "EINVAL"), ("counters/link_downed", "EINVAL"),
    ("counters/port_rcv_errors", "EINVAL"), ("counters/port_xmit_wait", "EPERM"),
)  # fmt: skip
_IDLE_SPEED = 2.5  # GT/s of a link that saves power
_HALF = 0.5
_INIT_SECONDS = 90.0  # a job begins so long before its first step


def unused(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N08: ports that nothing was ever plugged into are switched off."""
    case = case_of(UNUSED, injection, plan, draw)
    ports = [port for node in case.nodes() for port in plan.unused(node)]
    effects = [PortText(port, 0.0, plan.duration, phys=_DISABLED) for port in ports]
    return case.made(effects, (), ports)


def switched_off(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N09: an administrator switches off a port that is not for the jobs."""
    case = case_of(SWITCHED_OFF, injection, plan, draw)
    node = case.node()
    port = _chosen(case, plan.storage(node)[-1])
    outage = Outage(port, case.onset, case.until, phys="Disabled", kernel_lines=False)
    return case.made([outage], (), [port])


def multi_plane(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N10: of twelve ports of a device, four are used; one plane may go down for all."""
    case = case_of(MULTI_PLANE, injection, plan, draw)
    ports = [port for node in case.nodes() for port in plan.unused(node)]
    plane = case.whole("plane_down")
    rails = (port for node in case.nodes() for port in case.rails_of(node))
    down = [port for port in rails if port.port == plane]
    effects: list[Effect] = []
    for port in down:
        begin = min(case.onset + draw.uniform(0, 1), case.until)
        effects.append(Outage(port, begin, case.until))
    return case.made(effects, (), [*ports, *down])


def bond_member(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N11: a member of a bond fails; the device stays, at half the rate."""
    case = case_of(BOND, injection, plan, draw)
    node = case.node()
    managed = plan.management(node)
    if managed is None and injection.device is None:
        return case.made(())
    port = _chosen(case, managed or plan.storage(node)[0])
    text = plan.rate_text(port, _HALF)
    return case.made([PortText(port, case.onset, case.until, rate=text)], (), [port])


def management_bounce(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N13: the management link bounces."""
    case = case_of(BOUNCE, injection, plan, draw)
    port = plan.management(case.node())
    if port is None:
        return case.made(())
    case = case.lasting(case.number("down"))
    return case.made([Outage(port, case.onset, case.until, 0.5)], (), [port])


def restricted(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N14: counters of a restricted function cannot be read, and the kernel says so."""
    case = case_of(RESTRICTED, injection, plan, draw)
    node = case.node()
    port = _chosen(case, plan.storage(node)[0])
    line = register_refused(plan.pci_address(port))
    effects: list[Effect] = [
        Unreadable(node, 0.0, plan.duration, _path(port, file), error)
        for file, error in _REFUSED
    ]
    times = list(case.events(case.number("every"), 100))
    effects += [KernelLines(node, at, (line,)) for at in times]
    return case.made(effects, (), [port])


def transient(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N15: reading counters fails for a poll or two."""
    case = case_of(TRANSIENT, injection, plan, draw)
    case = case.lasting(case.number("length"))
    port = case.port()
    effects = [
        Unreadable(port.node, case.onset, case.until, _path(port, file), error)
        for file, error in zip(_POLLED, ("EIO", "EIO", "ETIMEDOUT"), strict=True)
    ]
    return case.made(effects, (), [port])


def renamed(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N34: a device comes back under another name at the same address."""
    case = case_of(RENAMED, injection, plan, draw)
    port = case.port()
    name = f"ibp{int(plan.pci_address(port).split(':')[1], 16)}s0"
    begin = min(case.onset + 20.0, plan.duration)
    end = min(begin + case.number("gone"), plan.duration)
    effects: list[Effect] = [
        *(JobEnds(case.onset, job) for job in plan.jobs_of(port.node)),
        Gone(port.node, port.device, begin, end, name),
    ]
    renamed_port = SimPort(port.node, name, port.port)
    return case.made(effects, (), [port, renamed_port])


def saves_power(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N42: idle PCIe links go slow and come back with the job."""
    case = case_of(SAVES_POWER, injection, plan, draw)
    effects: list[Effect] = []
    ports = [port for node in case.nodes() for port in case.rails_of(node)]
    width, speed = plan.slot_width, plan.slot_speed
    for port in ports:
        effects.append(PcieLink(port, 0.0, width, _IDLE_SPEED))
        starts = [plan.job_start(job) for job in plan.jobs_on(port)]
        if starts:
            loaded = max(min(starts) - _INIT_SECONDS, 1.0)
            effects.append(PcieLink(port, loaded, width, speed))
    return case.made(effects, (), ports)


def narrow_slot(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N43: the slots of the whole fleet have half the lanes of the devices."""
    case = case_of(NARROW_SLOT, injection, plan, draw)
    width, speed = plan.slot_width // 2, plan.slot_speed
    ports = [port for node in case.nodes() for port in case.rails_of(node)]
    effects = [PcieLink(port, 0.0, width, speed, slot_width=width) for port in ports]
    return case.made(effects, (), ports)


def moved_netdev(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N49: a pod takes the network device; the RDMA device stays in sight."""
    case = case_of(MOVED, injection, plan, draw)
    node = case.node()
    ports = case.rails_of(node) if injection.device is None else (case.port(),)
    effects = [NetdevGone(port, case.onset, case.until) for port in ports]
    return case.made(effects, (), ports)


def _chosen(case: Case, default: SimPort) -> SimPort:
    """Return the device that the injection names, else this one."""
    return default if case.injection.device is None else case.port()


def _path(port: SimPort, file: str) -> str:
    return f"/sys/class/infiniband/{port.device}/ports/{port.port}/{file}"


_F, _P = Group.FLAP, Group.PCIE

UNUSED = FaultClass("N08", "Port unused by design", _F, unused)
SWITCHED_OFF = FaultClass("N09", "Port switched off on purpose", _F, switched_off)
MULTI_PLANE = FaultClass(
    "N10", "Multi-plane device", Group.HOST, multi_plane,
    parameters=(
        Parameter("plane_down", 0.0, "", "Port number of a plane that goes down on all "
                  "devices; 0: none", high=64),
    ),
)  # fmt: skip
BOND = FaultClass("N11", "Bonded device loses a member", Group.LINK, bond_member)
BOUNCE = FaultClass(
    "N13", "Management link bounces", _F, management_bounce,
    parameters=(Parameter("down", (1, 20), "s", "Length", low=0.05),),
)  # fmt: skip
RESTRICTED = FaultClass(
    "N14", "Virtual or restricted function", Group.HOST, restricted,
    parameters=(
        Parameter("every", (30, 120), "s", "Mean time between lines of the kernel",
                  low=1),
    ),
)  # fmt: skip
TRANSIENT = FaultClass(
    "N15", "Transient read error", Group.HOST, transient,
    parameters=(Parameter("length", (4, 12), "s", "Length", low=0.1),),
)  # fmt: skip
RENAMED = FaultClass(
    "N34", "Device renamed", Group.HOST, renamed,
    parameters=(Parameter("gone", (1, 5), "s", "Time without it", low=0.1),),
)  # fmt: skip
SAVES_POWER = FaultClass("N42", "PCIe saves power", _P, saves_power)
NARROW_SLOT = FaultClass("N43", "Slot limited by design", _P, narrow_slot)
MOVED = FaultClass(
    "N49", "Network device moved to a pod", Group.HOST, moved_netdev,
)  # fmt: skip

ROWS = (
    UNUSED, SWITCHED_OFF, MULTI_PLANE, BOND, BOUNCE, RESTRICTED, TRANSIENT, RENAMED,
    SAVES_POWER, NARROW_SLOT, MOVED,
)  # fmt: skip
