"""Negatives of healthy work: what jobs do to the network without any fault."""

from __future__ import annotations

from collections.abc import Iterable

from fabricmon.sim.effects import (
    Counting,
    Effect,
    Frozen,
    JobEnds,
    KernelLines,
    Made,
    SimPort,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.kernel_text import command_canceled
from fabricmon.sim.faults.pace import stretched
from fabricmon.sim.faults.patterns import busy_rates, network_pauses, notified
from fabricmon.sim.faults.row import (
    Fabric,
    FaultClass,
    Group,
    Known,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.transport import crashed, observers
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden


def storage_bursts(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N12: storage ports have their own notifications, pauses and discards."""
    case = case_of(STORAGE, injection, plan, draw)
    ports = [port for node in case.nodes() for port in plan.storage(node)]
    effects: list[Effect] = []
    for port in ports:
        effects += busy_rates(port, case.onset, case.until, {
            Meter.CNP_SENT: case.number("cnp"),
            Meter.CNP_HANDLED: case.number("cnp"),
            Meter.PAUSE_RECEIVED: case.number("pauses"),
            Meter.PAUSE_RECEIVED_MICROSECONDS: case.number("pauses") * 20,
            Meter.RECEIVE_DISCARDS: case.number("discards"),
        })  # fmt: skip
    return case.made(effects, (), ports)


def start_ramp(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N18: connections are made, and the first steps are rough."""
    case = case_of(RAMP, injection, plan, draw)
    effects: list[Effect] = []
    for port in _rails(case):
        for job in plan.jobs_on(port):
            effects += _ramp(case, port, plan.job_start(job))
    return _quiet(case, effects)


def _ramp(case: Case, port: SimPort, start: float) -> list[Effect]:
    begin = max(start - 60.0, 0.0)
    end = min(start + case.number("length"), case.plan.duration)
    if begin >= end:
        return []
    rates = {
        Meter.CONNECTS: case.draw.uniform(10, 200),
        Meter.OUT_OF_SEQUENCE: case.number("reorder"),
    }
    if case.plan.has_cnp:
        rates |= dict.fromkeys((Meter.CNP_SENT, Meter.CNP_HANDLED), case.number("cnp"))
    return [Counting(port, meter, begin, end, rate) for meter, rate in rates.items()]


def job_end(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N19: a job is killed, and perhaps starts again."""
    case = case_of(END, injection, plan, draw)
    jobs = sorted({job for node in case.nodes() for job in plan.jobs_of(node)})
    again = case.flag("again")
    return _quiet(case, [JobEnds(case.onset, job, restart=again) for job in jobs])


def plain(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """Return nothing: only the scenario's jobs say what is done."""
    row = next(each for each in _PLAIN if each.id == injection.what)
    return _quiet(case_of(row, injection, plan, draw), ())


def shared_node(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N38: jobs share nodes; one that ends gives its memory back, which takes time."""
    case = case_of(SHARED, injection, plan, draw)
    effects: list[Effect] = []
    if not case.number("release"):
        return _quiet(case, effects)
    for port in _rails(case):
        for work in plan.work(port):
            if work.end < plan.duration:
                effects += _released(case, port, work.end)
    return _quiet(case, effects)


def _released(case: Case, port: SimPort, begin: float) -> list[Effect]:
    """Return what a device shows that a job has left: slow answers, perhaps a line."""
    until = min(begin + case.number("release"), case.plan.duration)
    slow = case.number("read_seconds")
    effects: list[Effect] = [Frozen(port.node, port.device, begin, until, slow)]
    if case.draw.uniform(0, 1) < case.number("canceled"):
        line = command_canceled(case.plan.pci_address(port))
        effects.append(KernelLines(port.node, until, (line,)))
    return effects


def pause_only(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N22: a fabric without notifications: pause everywhere under load."""
    case = case_of(PAUSE_ONLY, injection, plan, draw)
    effects: list[Effect] = []
    for port in _rails(case):
        frames = case.number("pauses")
        effects += busy_rates(port, case.onset, case.until, {
            Meter.PAUSE_RECEIVED: frames,
            Meter.PAUSE_RECEIVED_MICROSECONDS: frames * case.number("length"),
        })  # fmt: skip
    return _quiet(case, effects)


def notifications(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N23: bursts of notifications, alike on all rails."""
    case = case_of(NOTIFIED, injection, plan, draw)
    effects: list[Effect] = []
    cnp = case.number("cnp")
    for port in _rails(case):
        own = cnp * draw.uniform(0.8, 1.2)
        effects += notified(case, port, [port], own, begin=case.onset, end=case.until)
    return _quiet(case, effects)


def reordering(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N24: adaptive routing reorders packets; none is lost."""
    case = case_of(REORDER, injection, plan, draw)
    effects: list[Effect] = []
    for port in _rails(case):
        rates = {Meter.OUT_OF_SEQUENCE: case.number("reorder")}
        effects += busy_rates(port, case.onset, case.until, rates)
    return _quiet(case, effects)


def peer_crash(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N26: a peer crashes; those who see it are healthy."""
    case = case_of(PEER, injection, plan, draw)
    node = case.node()
    seers = observers(case, node)
    names = sorted({plan.node_name(port.node) for port in seers})
    never = [Forbidden(node=name, role="culprit", actionable=True) for name in names]
    return case.made(crashed(case, node), (), seers, never)


def waiting_sender(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N27: a sender waits for a receiver outside; its own port is clean."""
    case = case_of(WAITING, injection, plan, draw)
    port, share = case.port(), case.number("waits")
    effects = network_pauses(case, [port], case.onset, case.until, share)
    return case.made(effects, (), [port])


def benchmark(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N36: a benchmark holds the line rate and waits a lot."""
    case = case_of(BENCHMARK, injection, plan, draw)
    share = case.number("waits")
    rails = _rails(case)
    return _quiet(case, network_pauses(case, rails, case.onset, case.until, share))


def slow_gpu(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N47: a slow GPU: F53 seen as what it is not, a fault of the network."""
    case = case_of(GPU, injection, plan, draw)
    return _quiet(case, stretched(case, case.node()))


def _rails(case: Case) -> tuple[SimPort, ...]:
    return tuple(port for node in case.nodes() for port in case.rails_of(node))


def _quiet(case: Case, effects: Iterable[Effect]) -> Made:
    return Made(tuple(effects), (), (), case.spared(_rails(case)))


_PLAIN = (
    FaultClass("N20", "Idle cluster", Group.NOT_NETWORK, plain),
    FaultClass("N21", "Checkpoints", Group.NOT_NETWORK, plain),
    FaultClass("N37", "Another job mix on every node", Group.NOT_NETWORK, plain),
    FaultClass("N48", "Broker or Prometheus is down", Group.HOST, plain),
)

_C, _R = Group.CONGESTION, Group.REMOTE

STORAGE = FaultClass(
    "N12", "Storage port on Ethernet", _C, storage_bursts,
    parameters=(
        Parameter("cnp", (100, 5000), "1/s", "Notifications under load"),
        Parameter("pauses", (10, 1000), "1/s", "Pause frames under load"),
        Parameter("discards", (0.1, 20), "1/s", "Packets dropped under load"),
    ),
)  # fmt: skip
RAMP = FaultClass(
    "N18", "Job start", _C, start_ramp,
    parameters=(
        Parameter("length", (30, 180), "s", "Time until it is smooth", Known.SOURCE),
        Parameter("cnp", (100, 5000), "1/s", "Notifications meanwhile"),
        Parameter("reorder", (10, 1000), "1/s", "Packets out of order meanwhile"),
    ),
)  # fmt: skip
END = FaultClass(
    "N19", "Job end or kill", Group.NOT_NETWORK, job_end,
    parameters=(
        Parameter("again", default=False, unit="",
                  meaning="Whether it starts again after a minute or two"),
    ),
)  # fmt: skip
SHARED = FaultClass(
    "N38", "Two jobs share a node", Group.NOT_NETWORK, shared_node,
    parameters=(
        Parameter("release", 0.0, "s", "Time for which a device answers slowly once its "
                  "job has ended", high=45),
        Parameter("read_seconds", (1.1, 2.5), "s", "What a read takes meanwhile",
                  low=0, high=5),
        Parameter("canceled", 0.25, "1", "Share of the devices whose driver gives a "
                  "command up", high=1),
    ),
)  # fmt: skip
PAUSE_ONLY = FaultClass(
    "N22", "Normal load with pause only", Group.PAUSE, pause_only,
    fabric=Fabric.ETHERNET,
    parameters=(
        Parameter("pauses", (1000, 10_000), "1/s", "Pause frames under load"),
        Parameter("length", (1, 4), "us", "Length of a pause"),
    ),
)  # fmt: skip
NOTIFIED = FaultClass(
    "N23", "Normal load with notifications", _C, notifications, fabric=Fabric.ETHERNET,
    parameters=(Parameter("cnp", (100, 5000), "1/s", "Notifications under load"),),
)  # fmt: skip
REORDER = FaultClass(
    "N24", "Adaptive routing reorders", _R, reordering,
    parameters=(
        Parameter("reorder", (100, 100_000), "1/s", "Packets out of order under load"),
    ),
)  # fmt: skip
PEER = FaultClass(
    "N26", "Remote crash seen by healthy nodes", _R, peer_crash, silent=False,
)  # fmt: skip
WAITING = FaultClass(
    "N27", "Sender of a slow receiver", _C, waiting_sender,
    parameters=(
        Parameter("waits", (0.1, 0.5), "1", "Share of the busy time that it waits",
                  scaling=Scaling.TIMES, high=1),
    ),
)  # fmt: skip
BENCHMARK = FaultClass(
    "N36", "Benchmark at line rate", _C, benchmark,
    parameters=(
        Parameter("waits", (0.05, 0.3), "1", "Share of the busy time that it waits",
                  high=1),
    ),
)  # fmt: skip
GPU = FaultClass(
    "N47", "GPU straggler", Group.NOT_NETWORK, slow_gpu,
    parameters=(
        Parameter("longer", (0.5, 2), "1", "What is added to the computing of a step"),
    ),
)  # fmt: skip

ROWS = (
    STORAGE, RAMP, END, SHARED, PAUSE_ONLY, NOTIFIED, REORDER, PEER, WAITING,
    BENCHMARK, GPU,
    *_PLAIN,
)  # fmt: skip
