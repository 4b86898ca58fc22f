"""Hosts and devices that fail behind the port: F23 to F25, F27 and F29."""

from __future__ import annotations

from fabricmon.sim.effects import (
    DeviceHealth,
    Effect,
    Frozen,
    Gone,
    KernelLines,
    LogLines,
    Made,
    NodeFile,
    SimPort,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import fatal, health_compromised
from fabricmon.sim.faults.nccl_text import (
    channel_without_gpu_direct,
    gpu_direct_disabled,
)
from fabricmon.sim.faults.patterns import busy_rates, host_pauses, limited, pci_stalls
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter, Scaling
from fabricmon.sim.faults.signals import (
    HOST_PATH,
    NOT_POSTED,
    PRESENCE,
    SETTINGS,
    STUCK,
)
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_BLAME_OF_A_DEVICE = ("pcie_degraded", "straggler_link")


def host_path(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F23: ACS, IOMMU or GPU Direct is set wrong: every rail of a node is slow."""
    case = case_of(HOST_PATH_SLOW, injection, plan, draw)
    node, factor = case.node(), case.number("capacity")
    rails = case.rails_of(node)
    effects = limited(rails, case.onset, case.until, factor)
    for port in rails:
        stall = case.number("stall")
        effects += pci_stalls(port, case.onset, case.until, stall)
        effects += host_pauses(case, port, case.onset, case.until, case.number("pause"))
    begun = case.begun(rails)
    if begun is not None:
        at = max(case.onset, begun - 5.0)
        jobs = (case.log_job(port, begun) for port in rails)
        job = next((each for each in jobs if each is not None), None)
        effects.append(LogLines(node, at, _staged(case, node, rails), job))
    truth = case.fault(node=node, signals=HOST_PATH)
    never = [
        Forbidden(node=plan.node_name(node), kind=kind) for kind in _BLAME_OF_A_DEVICE
    ]
    others = [plan.rail(other, rail) for other in case.companions(node)
              for rail in range(plan.rails)]  # fmt: skip
    return case.made(effects, [truth], others, never)


def _staged(case: Case, node: int, rails: tuple[SimPort, ...]) -> str:
    """Return what NCCL prints where it stages data through the host."""
    name = case.plan.node_name(node)
    return "".join(
        gpu_direct_disabled(name, gpu, port.device)
        + channel_without_gpu_direct(name, gpu)
        for gpu, port in enumerate(rails)
    )


def disappears(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F24: a fatal error takes a device off the bus."""
    case = case_of(MISSING, injection, plan, draw)
    port = case.port()
    effects: list[Effect] = [
        KernelLines(port.node, case.onset, fatal(plan.pci_address(port))),
        Gone(port.node, port.device, case.onset, case.until),
    ]
    truth = case.fault(port, signals=PRESENCE)
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def hangs(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F25: the firmware answers no more; counters stand still, the state says ACTIVE."""
    case = case_of(HUNG, injection, plan, draw)
    port = case.port()
    address = plan.pci_address(port)
    said = min(case.onset + draw.uniform(5, 15), case.until)
    slow = case.number("read_seconds")
    effects: list[Effect] = [
        Frozen(port.node, port.device, case.onset, case.until, slow),
        KernelLines(port.node, said, health_compromised(address)),
        DeviceHealth(port.node, port.device, said, "fw_fatal", "error"),
    ]
    is_told = not plan.shown.isdisjoint(("kmsg", "pcie"))
    traffic = None if is_told else (port,)  # an idle device is as still as a stuck one
    truth = case.fault(port, signals=STUCK, traffic=traffic)
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def not_posting(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F27: a process posts no receive buffers for a while, again and again."""
    case = case_of(NOT_POSTING, injection, plan, draw)
    port, effects, at = case.port(), list[Effect](), case.onset
    rate = case.number("naks")
    while at < case.until:
        end = min(at + case.number("burst"), case.until)
        effects += _not_ready(case, port, at, end, rate * draw.uniform(0.5, 1.5))
        at = end + case.number("gap")
    truth = case.fault(port, signals=NOT_POSTED)
    return case.made(effects, [truth], plan.peers(port))


def _not_ready(
    case: Case, port: SimPort, begin: float, end: float, rate: float
) -> list[Effect]:
    """Return one burst: drops at the receiver, refusals at its senders."""
    capacity = case.number("capacity")
    effects = [
        *busy_rates(port, begin, end, {Meter.OUT_OF_BUFFER: rate}),
        *limited([port], begin, end, capacity, transmit=False),
    ]
    senders = case.plan.peers(port)
    for sender in senders:
        rates = {Meter.RNR_NAKS: rate / len(senders)}
        effects += busy_rates(sender, begin, end, rates)
    return effects


def other_firmware(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F29: a node, or one device of it, runs another firmware than its like."""
    case = case_of(DRIFT, injection, plan, draw)
    node, text = case.node(), case.word("firmware")
    is_device = case.word("scope") == "device"
    port = case.port() if is_device else None
    devices = [port] if port else list(case.rails_of(node))
    effects = [
        NodeFile(each.node, case.onset, f"/sys/class/infiniband/{each.device}/fw_ver",
                 f"{text}\n")
        for each in dict.fromkeys(devices)
    ]  # fmt: skip
    truth = case.fault(port, node=node, signals=SETTINGS, by_vote=not is_device)
    return case.made(effects, [truth])


HOST_PATH_SLOW = FaultClass(
    "F23", "ACS, IOMMU or GPU Direct set wrong", Group.HOST, host_path,
    ("host_path_slow",), 300, needs=((Meter.PCI_STALL_WRITE, "nccl_log"),),
    by_traffic=True,
    parameters=(
        Parameter("capacity", (0.4, 0.6), "1", "Share of the line rate that is left",
                  Known.SOURCE, Scaling.LOSS, 0.05, 1),
        Parameter("stall", (30, 80), "%", "Time that writes wait under load",
                  low=1, high=100),
        Parameter("pause", (10, 1000), "1/s", "Pause frames sent under load (RoCE)",
                  scaling=Scaling.TIMES),
    ),
)  # fmt: skip
MISSING = FaultClass(
    "F24", "Device disappears", Group.PCIE, disappears, ("device_missing",), 60,
)  # fmt: skip
HUNG = FaultClass(
    "F25", "Firmware hangs", Group.PCIE, hangs, ("device_stuck",), 120,
    parameters=(
        Parameter("read_seconds", (0.05, 30), "s", "What a read takes", low=0, high=60),
    ),
)  # fmt: skip
NOT_POSTING = FaultClass(
    "F27", "Receiver not posting", Group.HOST, not_posting, ("receiver_stall",), 300,
    needs=((Meter.OUT_OF_BUFFER,),), by_traffic=True,
    parameters=(
        Parameter("naks", (100, 10_000), "1/s", "Packets refused in a burst",
                  Known.SOURCE, Scaling.TIMES, 1),
        Parameter("burst", (5, 60), "s", "Length of a burst", low=0.5),
        Parameter("gap", (5, 60), "s", "Time between bursts", low=1,
                  scaling=Scaling.SHORTER),
        Parameter("capacity", (0.2, 0.7), "1",
                  "Share of the line rate that is received in a burst",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip
DRIFT = FaultClass(
    "F29", "Other firmware than its like", Group.CONFIG, other_firmware,
    ("config_drift",), 600, by_vote=True,
    parameters=(
        Parameter("firmware", "28.39.2048", "", "What fw_ver says"),
        Parameter("scope", "node", "", "All rails of a node, or one device of it",
                  words=("node", "device")),
    ),
)  # fmt: skip

ROWS = (HOST_PATH_SLOW, MISSING, HUNG, NOT_POSTING, DRIFT)
