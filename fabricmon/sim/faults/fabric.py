"""Faults inside the fabric: F38 to F42."""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.sim.effects import (
    Counting,
    Effect,
    JobEnds,
    LogLines,
    Made,
    Outage,
    PortText,
    SimPort,
    Stall,
    Step,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.nccl_text import retry_exceeded
from fabricmon.sim.faults.patterns import (
    QUEUE_PAIRS,
    packet_rates,
    wait_ticks,
)
from fabricmon.sim.faults.row import (
    Fabric,
    FaultClass,
    Group,
    Known,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import CONGESTION, DOWNS, LOSS, TIMEOUTS
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.planning import STATE, Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_NOBODY = Forbidden(actionable=True)
_INITIALISING = "2: INIT"


def corrupting_spine(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F38: a link inside the fabric damages packets of those whose way crosses it."""
    case = case_of(CORRUPTING, injection, plan, draw)
    rail = case.rail(case.node())
    busy = [each for each in (plan.rail(node, rail) for node in range(plan.nodes))
            if plan.peers(each)]  # fmt: skip
    receivers = _some(case, busy, max(case.whole("receivers"), 2))
    effects, victims = list[Effect](), list[SimPort]()
    for port in receivers:
        loss = case.number("loss")
        effects += _damaged(case, port, loss)
        victims += [port, *plan.peers(port)]
    truth = case.fault(signals=LOSS, rail=rail, traffic=receivers)
    return case.made(effects, [truth], victims, [_NOBODY])


def _some(case: Case, ports: list[SimPort], count: int) -> list[SimPort]:
    """Return some of the ports, on as many leafs as there are."""
    left, chosen = list(ports), list[SimPort]()
    while left and len(chosen) < count:
        leafs = {case.plan.leaf(each) for each in chosen}
        fresh = [each for each in left if case.plan.leaf(each) not in leafs] or left
        chosen.append(fresh[case.draw.pick(range(len(fresh)))])
        left.remove(chosen[-1])
    return chosen


def _damaged(case: Case, port: SimPort, loss: float) -> list[Effect]:
    """Return a receiver that gets damaged packets, and who sends them again."""
    begin, end = case.onset, case.until
    effects = packet_rates(port, begin, end, Per.PACKET_RECEIVED, {
        Meter.OUT_OF_SEQUENCE: loss, Meter.REMOTE_PHYSICAL_ERRORS: loss,
        Meter.ICRC_ERRORS: loss / 1000,
    })  # fmt: skip
    senders = case.plan.peers(port)
    for sender in senders:
        rates = {Meter.SEQUENCE_ERRORS: loss / len(senders)}
        effects += packet_rates(sender, begin, end, Per.PACKET_SENT, rates)
    return effects


@dataclass(frozen=True, slots=True)
class _Hole:
    """Queue pairs of a pair of ports that get no answer."""

    port: SimPort
    peer: SimPort
    pairs: int


def black_hole(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F39: queue pairs of one pair of ports get no answer, until the job gives up."""
    case = case_of(BLACK_HOLE, injection, plan, draw)
    port = case.port()
    peer = case.peer_of(port)
    if peer is None:
        return case.made(())
    hole, effects = _Hole(port, peer, case.whole("queue_pairs")), list[Effect]()
    begun = case.begun((port,))
    last = case.until
    if begun is not None:  # before, nothing is sent that could get lost
        case = case.at(begun)
        jobs = set(case.jobs_at(port, begun)) & set(case.jobs_at(peer, begun))
        for job in sorted(jobs):
            effects += _unanswered(case, job, hole)
            last = min(last, begun + case.patience(job))
    is_told = last < case.until
    case = case.lasting(last - case.onset)
    truth = case.fault(
        port, peer=peer.node, onset=last if is_told else case.onset, signals=TIMEOUTS,
        visible=is_told,
    )  # fmt: skip
    return case.made(effects, [truth], (port, peer))


def _unanswered(case: Case, job: str, hole: _Hole) -> list[Effect]:
    """Return a job that sends again, as often as it is set to, and gives up."""
    ack, tries = case.plan.ack_seconds(job), case.plan.retries(job)
    times = [case.onset + ack * each for each in range(1, tries + 1)]
    effects: list[Effect] = [
        Step(hole.port, Meter.ACK_TIMEOUTS, at, hole.pairs)
        for at in times
        if at < case.until
    ]
    effects.append(Stall(case.onset, min(times[-1], case.until), job))
    if times[-1] < case.until:
        effects += _given_up(case, job, hole, times[-1])
    return effects


def _given_up(case: Case, job: str, hole: _Hole, at: float) -> list[Effect]:
    """Return the end of the retries, and what NCCL prints of it."""
    plan, port = case.plan, hole.port
    rail = case.rail_of(port) or 0
    text = retry_exceeded(
        plan.node_name(port.node), rail % 8, plan.address(hole.peer.node), port.device
    )
    return [
        Step(port, Meter.RETRIES_EXCEEDED, at, hole.pairs),
        LogLines(port.node, at, text, job),
        JobEnds(at, job, restart=True),
    ]


def leaf_reboot(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F40: all ports of a leaf go down at once, and come back; some may not."""
    case = case_of(LEAF_REBOOT, injection, plan, draw)
    leaf = case.leaf()
    ports = list(plan.ports_of_leaf(leaf))
    down, spread = case.number("down"), case.number("spread")
    effects: list[Effect] = []
    dead = _some(case, ports, case.whole("stay_down"))
    for port in ports:
        begin = min(case.onset + draw.uniform(0, spread), plan.duration)
        back = min(case.onset + down * draw.uniform(0.95, 1.05), plan.duration)
        end = plan.duration if port in dead else max(back, begin)
        effects.append(Outage(port, begin, end, draw.uniform(0.1, 5)))
    case = case.lasting(down)
    seen = min(case.onset + spread, plan.duration)
    rail = case.rail_of(ports[0])
    truths = [case.fault(onset=seen, leaf=leaf, rail=rail, signals=DOWNS)]
    for port in dead:
        back = min(case.onset + down * 1.05, plan.duration)
        stays = case.fault(port, onset=back, accept=("port_down",), signals=DOWNS,
                           deadline=case.number("dead_deadline"), by_vote=False)  # fmt: skip
        truths.append(stays)
    victims = [port for port in ports if port not in dead]
    return case.made(effects, truths, victims)


def deadlock(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F41: a loop of credits: ports of a leaf wait for ever and send nothing."""
    case = case_of(DEADLOCK, injection, plan, draw)
    case = case.lasting(case.number("length"))
    leaf = case.leaf()
    ports = plan.ports_of_leaf(leaf)
    ticks = wait_ticks(case)
    effects: list[Effect] = [
        Counting(port, Meter.TRANSMIT_WAIT, case.onset, case.until, ticks, even=True)
        for port in ports
    ]
    effects += [
        Counting(port, Meter.TRANSMIT_DISCARDS, case.onset, case.until,
                 draw.uniform(0.01, 0.2))
        for port in ports
    ]  # fmt: skip
    jobs = sorted({job for port in ports for job in plan.jobs_on(port)})
    effects += [Stall(case.onset, case.until, job) for job in jobs]
    rail = case.rail_of(ports[0])
    truth = case.fault(leaf=leaf, rail=rail, signals=CONGESTION)
    return case.made(effects, [truth], ports, [_NOBODY])


def manager_failover(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F42: another subnet manager takes over; ports stand in INIT for a while."""
    case = case_of(FAILOVER, injection, plan, draw)
    case = case.lasting(case.number("length"))
    share = case.number("share")
    every = [
        plan.rail(node, rail)
        for node in range(plan.nodes)
        for rail in range(plan.rails)
    ]
    hit = [port for port in every if draw.uniform(0, 1) < share] or every[:1]
    effects: list[Effect] = []
    for port in hit:
        begin = min(case.onset + draw.uniform(0, 2), case.until)
        effects.append(PortText(port, begin, case.until, state=_INITIALISING))
    truth = case.fault(signals=DOWNS)
    return case.made(effects, [truth], hit, [_NOBODY])


CORRUPTING = FaultClass(
    "F38", "Corrupting spine link or switch memory", Group.FABRIC, corrupting_spine,
    ("fabric_suspect",), 900, by_vote=True,
    by_traffic=True, needs=((Meter.OUT_OF_SEQUENCE, Meter.SEQUENCE_ERRORS),),
    parameters=(
        Parameter("loss", (1e-7, 1e-4), "1", "Share of packets that are lost",
                  Known.SOURCE, Scaling.TIMES, 1e-9, 1e-2),
        Parameter("receivers", (2, 4), "1", "Ports whose traffic crosses it",
                  low=2, high=1024),
    ),
)  # fmt: skip
BLACK_HOLE = FaultClass(
    "F39", "Black-holed flow", Group.REMOTE, black_hole,
    ("peer_suspect", "nccl_error"), 60,  # an error that names the pair names the path
    needs=(("nccl_log",),),
    parameters=(
        Parameter("queue_pairs", (1, QUEUE_PAIRS), "1", "Queue pairs without an answer",
                  low=1, high=1024),
    ),
)  # fmt: skip
LEAF_REBOOT = FaultClass(
    "F40", "Leaf reboots, or all its cables retrain", Group.FABRIC, leaf_reboot,
    ("common_cause",), 10, by_vote=True, needs=((STATE, Meter.LINK_DOWNS),),
    parameters=(
        Parameter("down", (12, 600), "s", "Time until they are back", Known.SOURCE,
                  low=2),
        Parameter("spread", (0.1, 2), "s", "Time in which all go down", Known.SOURCE,
                  low=0, high=10),
        Parameter("stay_down", 0.0, "1", "Ports that never come back", high=64),
        Parameter("dead_deadline", 120.0, "s", "Time to tell of those"),
    ),
)  # fmt: skip
DEADLOCK = FaultClass(
    "F41", "Credit loop", Group.FABRIC, deadlock, ("fabric_suspect",), 300,
    needs=((Meter.TRANSMIT_WAIT,),), by_vote=True, fabric=Fabric.INFINIBAND,
    parameters=(Parameter("length", (60, 600), "s", "Length", low=5),),
)  # fmt: skip
FAILOVER = FaultClass(
    "F42", "Subnet manager fails over", Group.FABRIC, manager_failover,
    ("fabric_control",), 60, needs=((STATE,),), by_vote=True, fabric=Fabric.INFINIBAND,
    parameters=(
        Parameter("length", (5, 60), "s", "Length", low=1, high=600),
        Parameter("share", (0.3, 0.9), "1", "Ports that are hit", low=0.01, high=1),
    ),
)  # fmt: skip

ROWS = (CORRUPTING, BLACK_HOLE, LEAF_REBOOT, DEADLOCK, FAILOVER)
