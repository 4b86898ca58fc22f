"""Negatives in the life of nodes: boots, drivers, upgrades, agents and clocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fabricmon.sim.effects import (
    Effect,
    Gone,
    JobEnds,
    KernelLines,
    Made,
    Maintenance,
    NodeFile,
    Outage,
    Reboot,
    Silence,
    SimPort,
    Step,
    WallStep,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import driver_loaded
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_ANNOUNCED = 60.0  # seconds that a window opens before the work begins
_DRAINED = 20.0  # seconds between the end of the jobs and what they ended for


def reboot(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N01: a planned reboot of a node."""
    case = case_of(REBOOT, injection, plan, draw)
    node = case.node()
    effects = _ended(case, (node,)) if case.flag("drained") else []
    effects += _rebooted(case, node, case.onset + _DRAINED)
    return _quiet(case, effects, (node,))


def rack_reboot(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N02: the nodes of a rack reboot within minutes."""
    case = case_of(RACK_REBOOT, injection, plan, draw)
    nodes = injection.nodes or plan.rack(case.node())
    effects = _ended(case, nodes)
    for node in nodes:
        at = case.onset + _DRAINED + draw.uniform(0, case.number("spread"))
        effects += _rebooted(case, node, at)
    return _quiet(case, effects, nodes)


def _ended(case: Case, nodes: Iterable[int]) -> list[Effect]:
    """Return the end of every job of these nodes, as a scheduler drains them."""
    jobs = {job for node in nodes for job in case.plan.jobs_of(node)}
    return [JobEnds(case.onset, job) for job in sorted(jobs)]


def _rebooted(case: Case, node: int, at: float) -> list[Effect]:
    """Return a boot; ports may count a few downs from their training."""
    seconds = case.number("boot")
    back = at + seconds
    if back >= case.plan.duration:
        return [Reboot(node, at, seconds)] if at < case.plan.duration else []
    effects: list[Effect] = [Reboot(node, at, seconds)]
    for port in case.rails_of(node):
        count = case.draw.pick((0, 0, 0, 1, 2, 3))
        if count:
            effects.append(Step(port, Meter.LINK_DOWNS, back, count))
    return effects


def driver_reload(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N03: the driver of a device, or of all rails, is loaded anew."""
    case = case_of(RELOAD, injection, plan, draw)
    port = case.port()
    ports = (port,) if case.word("scope") == "device" else case.rails_of(port.node)
    effects = _ended(case, (port.node,))
    begin = case.onset + _DRAINED
    for device in dict.fromkeys(each.device for each in ports):
        end = min(begin + case.number("gone"), plan.duration)
        same = SimPort(port.node, device)
        line = driver_loaded(plan.pci_address(same), "28.41.1000")
        effects += [
            Gone(port.node, device, begin, end, keeps_pma=case.flag("keeps_pma")),
            KernelLines(port.node, end, (line,)),
        ]
        begin = min(begin + draw.uniform(0.5, 2), plan.duration)
    return _quiet(case, effects, (port.node,))


def boot_training(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N16: ports train again and again in the first minutes after a boot."""
    case = case_of(TRAINING, injection, plan, draw)
    node = case.node()
    at = case.onset + _DRAINED
    seconds = case.number("boot")
    effects = [*_ended(case, (node,)), Reboot(node, at, seconds)]
    first = at + seconds
    window = case.number("window")
    for port in case.rails_of(node):
        begin = min(first + draw.uniform(5, window), plan.duration - 1)
        for _ in range(draw.pick((0, 1, 1, 2))):
            end = min(begin + draw.uniform(1, 6), plan.duration)
            effects.append(Outage(port, begin, end))
            begin = min(end + draw.uniform(5, 30), plan.duration - 1)
        effects += [
            Step(port, Meter.SYMBOL_ERRORS, begin, case.whole("symbols")),
            Step(port, Meter.LINK_RECOVERIES, begin, draw.pick(range(1, 6))),
        ]
    return _quiet(case, effects, (node,))


def settling(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N17: the links of a new pod flap while it is brought up."""
    case = case_of(SETTLING, injection, plan, draw)
    case = case.lasting(case.number("length"))
    effects: list[Effect] = []
    for node in case.nodes():
        for port in case.rails_of(node):
            for at in case.events(case.number("gap"), case.whole("flaps")):
                end = min(at + draw.uniform(1, 8), case.until)
                effects.append(Outage(port, at, end))
    return _quiet(case, effects, case.nodes())


def leaf_upgrade(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N28: a leaf reboots within a maintenance window that was announced."""
    case = case_of(UPGRADE, injection, plan, draw)
    ports = plan.ports_of_leaf(case.leaf())
    down = case.number("down")
    begin = max(case.onset - _ANNOUNCED, 0.0)
    until = min(case.onset + down + case.number("window"), plan.duration)
    nodes = sorted({port.node for port in ports})
    effects: list[Effect] = _ended(case, nodes)
    for node in nodes:
        mine = tuple(port for port in ports if port.node == node)
        effects.append(Maintenance(node, begin, until, mine))
    for port in ports:
        falls = min(case.onset + draw.uniform(1, 3), plan.duration)
        back = min(falls + down * draw.uniform(0.95, 1.05), plan.duration)
        effects.append(Outage(port, falls, back))
    return case.made(effects, (), ports, _closed(case, ports, begin, until))


def _closed(
    case: Case, ports: Iterable[SimPort], begin: float, until: float
) -> list[Forbidden]:
    """Return that nobody is asked to do anything about ports in maintenance."""
    end = until if until < case.plan.duration else None
    return [
        Forbidden(node=case.plan.node_name(port.node), device=port.device,
                  actionable=True, begin=begin, end=end)
        for port in ports
    ]  # fmt: skip


def rolling_update(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N29: node after node gets another firmware; each resets once."""
    case = case_of(ROLLING, injection, plan, draw)
    nodes = case.nodes()
    effects, begin = _ended(case, nodes), case.onset + _DRAINED
    for node in nodes:
        for port in dict.fromkeys(each.device for each in case.rails_of(node)):
            gone = case.number("gone")
            if begin + gone >= plan.duration:
                break
            path = f"/sys/class/infiniband/{port}/fw_ver"
            effects += [
                Gone(node, port, begin, begin + gone, keeps_pma=False),
                NodeFile(node, begin + gone, path, f"{case.word('firmware')}\n"),
            ]
        begin += case.number("every")
    return _quiet(case, effects, nodes)


def agent_restart(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N30: the agent is upgraded: it stops and starts again."""
    case = case_of(RESTART, injection, plan, draw)
    case = case.lasting(case.number("gap"))
    effects = [Silence(node, case.onset, case.until, restart=True)
               for node in case.nodes()]  # fmt: skip
    return _quiet(case, effects, case.nodes())


def starved_agent(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N31: the agent gets no processor time, again and again."""
    case = case_of(STARVED, injection, plan, draw)
    effects: list[Effect] = []
    for node in case.nodes():
        at = case.onset
        while at < case.until:
            end = min(at + case.number("gap"), case.until)
            effects.append(Silence(node, at, end))
            at = end + case.number("runs")
    return _quiet(case, effects, case.nodes())


def clock_step(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N32: the wall clock jumps forth and back."""
    case = case_of(CLOCK, injection, plan, draw)
    step, back = case.number("step"), draw.uniform(60, 300)
    effects: list[Effect] = []
    for node in case.nodes():
        effects.append(WallStep(node, case.onset, step))
        if case.onset + back < case.until:
            effects.append(WallStep(node, case.onset + back, -step))
    return _quiet(case, effects, case.nodes())


def added_device(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N35: a device is plugged into a node that runs."""
    case = case_of(ADDED, injection, plan, draw)
    node = case.node()
    device = injection.device or plan.storage(node)[-1].device
    line = driver_loaded(plan.pci_address(SimPort(node, device)), "32.41.1000")
    effects: list[Effect] = [
        Gone(node, device, 0.0, case.onset),
        KernelLines(node, case.onset, (line,)),
    ]
    return _quiet(case, effects, (node,))


def powered_off(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N46: a node is drained, announced, and powered off."""
    case = case_of(OFF, injection, plan, draw)
    node = case.node()
    effects: list[Effect] = [
        *_ended(case, (node,)),
        Maintenance(node, case.onset, plan.duration),
        Silence(node, min(case.onset + _DRAINED, case.until), case.until),
    ]
    quiet = _quiet(case, effects, (node,))
    closed = _closed(case, case.rails_of(node), case.onset, plan.duration)
    return replace(quiet, forbid=(*quiet.forbid, *closed))


def _quiet(case: Case, effects: Iterable[Effect], nodes: Iterable[int]) -> Made:
    """Return effects for which no port of these nodes may be blamed."""
    ports = [port for node in nodes for port in case.rails_of(node)]
    return Made(tuple(effects), (), (), case.spared(ports))


_BOOT = Parameter("boot", (120, 600), "s", "Time that a boot takes", low=10)
_GONE = Parameter("gone", (5, 60), "s", "Time without the device", Known.SOURCE, low=1)
_H = Group.HOST

REBOOT = FaultClass(
    "N01", "Planned reboot", _H, reboot,
    parameters=(
        _BOOT,
        Parameter("drained", default=True, unit="",
                  meaning="Whether its jobs ended before; without, peers time out"),
    ),
)  # fmt: skip
RACK_REBOOT = FaultClass(
    "N02", "Rack reboot", _H, rack_reboot,
    parameters=(_BOOT, Parameter("spread", (30, 240), "s", "Time in which all begin")),
)  # fmt: skip
RELOAD = FaultClass(
    "N03", "Driver reload or firmware reset", _H, driver_reload,
    parameters=(
        _GONE,
        Parameter("keeps_pma", default=True, unit="",
                  meaning="Whether the port's counters survive"),
        Parameter("scope", "node", "", "All rails, or one device",
                  words=("node", "device")),
    ),
)  # fmt: skip
TRAINING = FaultClass(
    "N16", "Retraining at boot", Group.LINK, boot_training,
    parameters=(
        _BOOT,
        Parameter("symbols", (10, 10_000), "1", "Symbol errors of a port"),
        Parameter("window", (120, 600), "s", "Time in which it is over", low=10),
    ),
)  # fmt: skip
SETTLING = FaultClass(
    "N17", "Fabric settling after bring-up", Group.FLAP, settling,
    parameters=(
        Parameter("length", (3600, 7200), "s", "Time in which links flap", low=60),
        Parameter("gap", (900, 2400), "s", "Mean time between flaps of a port", low=30),
        Parameter("flaps", (2, 4), "1", "Most flaps of a port", low=1),
    ),
)  # fmt: skip
UPGRADE = FaultClass(
    "N28", "Leaf upgrade in a maintenance window", Group.FABRIC, leaf_upgrade,
    parameters=(
        Parameter("down", (180, 600), "s", "Time until it is back", low=2),
        Parameter("window", 600.0, "s", "Time that the window goes on after that"),
    ),
)  # fmt: skip
ROLLING = FaultClass(
    "N29", "Rolling firmware update", Group.CONFIG, rolling_update,
    parameters=(
        _GONE,
        Parameter("every", (120, 600), "s", "Time from node to node", low=10),
        Parameter("firmware", "28.43.1014", "", "What fw_ver says then"),
    ),
)  # fmt: skip
RESTART = FaultClass(
    "N30", "Agent restart", _H, agent_restart,
    parameters=(Parameter("gap", (5, 600), "s", "Time without an agent", Known.SOURCE,
                          low=1),),
)  # fmt: skip
STARVED = FaultClass(
    "N31", "Missed polls, agent starved", _H, starved_agent,
    parameters=(
        Parameter("gap", (10, 60), "s", "Time without polls", low=1),
        Parameter("runs", (10, 60), "s", "Time with polls in between", low=1),
    ),
)  # fmt: skip
CLOCK = FaultClass(
    "N32", "Clock step", _H, clock_step,
    parameters=(Parameter("step", (5, 3600), "s", "By how much", Known.SOURCE,
                          low=-86_400),),
)  # fmt: skip
ADDED = FaultClass("N35", "Device plugged in", _H, added_device)
OFF = FaultClass("N46", "Node drained and powered off", _H, powered_off)

ROWS = (
    REBOOT, RACK_REBOOT, RELOAD, TRAINING, SETTLING, UPGRADE, ROLLING, RESTART,
    STARVED, CLOCK, ADDED, OFF,
)  # fmt: skip
