"""Connections that fail: F50 to F52, F56 and F57."""

from __future__ import annotations

from fabricmon.sim.effects import (
    Counting,
    Effect,
    JobEnds,
    LogLines,
    Made,
    NodeFile,
    Outage,
    Silence,
    SimPort,
    Stall,
    Step,
)
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.nccl_text import (
    connect_failed,
    gid_changed,
    partition_refused,
)
from fabricmon.sim.faults.patterns import (
    QUEUE_PAIRS,
    busy_rates,
    limited,
    packet_rates,
)
from fabricmon.sim.faults.row import (
    Fabric,
    FaultClass,
    Group,
    Known,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import LOSS, PACE, SETTINGS, TIMEOUTS
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_GID_INDEX = 1  # RoCE v2 of the first address, as `sysfs` numbers it
_REFUSED_SECONDS = 5.0  # between attempts to connect


def host_crash(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F50: a node falls silent; those who talk to it time out and give up."""
    case = case_of(CRASH, injection, plan, draw)
    node = case.node()
    effects = crashed(case, node)
    ports = case.rails_of(node)
    jobs = {job for port in ports for job in case.jobs_at(port, case.onset)}
    waits = min(map(case.patience, jobs), default=0.0)
    truth = case.fault(
        onset=min(case.onset + waits, plan.duration), node=node, peer=node,
        signals=TIMEOUTS, visible=bool(jobs),
    )  # fmt: skip
    return case.made(effects, [truth], observers(case, node))


def crashed(case: Case, node: int) -> list[Effect]:
    """Return a node that dies, with its agent."""
    jobs = case.plan.jobs_of(node)
    return [
        *(JobEnds(case.onset, job, crash_node=node, restart=True) for job in jobs),
        Silence(node, case.onset, case.until),
    ]


def observers(case: Case, node: int) -> list[SimPort]:
    """Return who talks to a node on any rail."""
    found = (case.plan.peers(port) for port in case.rails_of(node))
    return sorted({peer for peers in found for peer in peers})


def after_flap(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F51: the link is back, its connections are not: little traffic, long pauses."""
    case = case_of(STALE, injection, plan, draw)
    case = case.lasting(case.number("length"))
    port = case.port()
    back = min(case.onset + case.number("down"), case.until)
    effects: list[Effect] = [
        Outage(port, case.onset, back, 1.0),
        *limited([port], back, case.until, case.number("capacity")),
        *_pauses(case, port, back),
    ]
    job = case.log_job(port, back)
    if job is not None:
        rates = {Meter.ACK_TIMEOUTS: QUEUE_PAIRS / plan.ack_seconds(job) / 4}
        for each in (port, *plan.peers(port)):
            effects += busy_rates(each, back, case.until, rates)
    truth = case.fault(port, onset=back, signals=(*TIMEOUTS, *PACE))
    return case.made(effects, [truth], (*plan.peers(port), *case.same_rail(port)))


def _pauses(case: Case, port: SimPort, back: float) -> list[Effect]:
    """Return stalls of the job while connections wait for their timers."""
    effects: list[Effect] = []
    pause = case.number("pause")
    for at in case.at(back).events(case.number("every")):
        end = min(at + pause, case.until)
        effects += [Stall(at, end, job) for job in case.plan.jobs_on(port)]
    return effects


def address_change(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F52: the address of a port changes; connections made before cannot go on."""
    case = case_of(ADDRESS, injection, plan, draw)
    port = case.port()
    name, gpu = plan.node_name(port.node), (case.rail_of(port) or 0) % 8
    folder = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
    gid = f"0000:0000:0000:0000:0000:ffff:0a63:{draw.pick(range(1, 65536)):04x}\n"
    fails = min(case.onset + draw.uniform(2, 10), case.until)
    effects: list[Effect] = [
        NodeFile(port.node, case.onset, f"{folder}/gids/{_GID_INDEX}", gid),
    ]
    for job in case.jobs_at(port, case.onset):
        effects += [
            LogLines(port.node, case.onset, gid_changed(name, gpu, port.device), job),
            LogLines(port.node, fails, connect_failed(name, gpu, port.device), job),
            JobEnds(fails, job, restart=True),
        ]
    traffic = None if "sysfs" in plan.shown else (port,)  # only a job's log tells then
    truth = case.fault(port, signals=SETTINGS, traffic=traffic)
    return case.made(effects, [truth], plan.peers(port))


def retransmits(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F56: some packets are lost on the way to a port and sent again at once."""
    case = case_of(RETRANSMITS, injection, plan, draw)
    port, loss = case.port(), case.number("loss")
    begin, end = case.onset, case.until
    effects = packet_rates(port, begin, end, Per.PACKET_SENT, {
        Meter.SEQUENCE_ERRORS: loss,
    })  # fmt: skip
    retransmitted = case.number("retransmits") / 60
    rates = {Meter.ADAPTIVE_RETRANSMITS: retransmitted}
    effects += busy_rates(port, begin, end, rates)
    peers = plan.peers(port)
    for peer in peers:
        rates = {Meter.OUT_OF_SEQUENCE: loss / len(peers)}
        effects += packet_rates(peer, begin, end, Per.PACKET_RECEIVED, rates)
    effects += limited([port], begin, end, case.number("capacity"), receive=False)
    truth = case.fault(port, signals=LOSS)
    never = [Forbidden(node=plan.node_name(port.node), device=port.device,
                       actionable=True)]  # fmt: skip
    return case.made(effects, [truth], peers, never)


def partition(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F57: a port is in the wrong partition: every packet is refused, from the start."""
    case = case_of(PARTITION, injection, plan, draw)
    port = case.port()
    name, gpu = plan.node_name(port.node), (case.rail_of(port) or 0) % 8
    effects: list[Effect] = [
        Stall(case.onset, case.until, job) for job in plan.jobs_on(port)
    ]
    begun = case.begun((port,))
    if begun is not None:
        job, rate = case.log_job(port, begun), case.number("rate")
        tries = [begun + _REFUSED_SECONDS * n for n in range(case.whole("attempts"))]
        text = partition_refused(name, gpu, port.device)
        effects.append(Counting(port, Meter.CONSTRAINT_ERRORS, begun, case.until, rate))
        for at in (at for at in tries if at < case.until):
            effects += [LogLines(port.node, at, text, job),
                        Step(port, Meter.CONSTRAINT_ERRORS, at, 1)]  # fmt: skip
    truth = case.fault(port, signals=SETTINGS)
    return case.made(effects, [truth], plan.peers(port))


CRASH = FaultClass(
    "F50", "Peer host crashes", Group.REMOTE, host_crash, ("peer_suspect",), 60,
    needs=(("nccl_log",),), by_vote=True,
)  # fmt: skip
STALE = FaultClass(
    "F51", "Stale connections after a flap", Group.STRAGGLER, after_flap,
    ("post_flap_degraded",), 180, by_traffic=True,
    parameters=(
        Parameter("down", (2, 12), "s", "Length of the flap", low=0.1, high=30),
        Parameter("length", (300, 900), "s", "Time until all is well", low=60),
        Parameter("capacity", (0.1, 0.3), "1", "Share of the line rate that is left",
                  Known.SOURCE, Scaling.LOSS, 0.02, 1),
        Parameter("pause", (10, 20), "s", "Length of a pause", Known.SOURCE),
        Parameter("every", (60, 120), "s", "Mean time between pauses", low=10),
    ),
)  # fmt: skip
ADDRESS = FaultClass(
    "F52", "Address of a port changes", Group.CONFIG, address_change,
    ("config_mismatch", "config_drift"), 120, needs=(("nccl_log", "sysfs"),),
    fabric=Fabric.ETHERNET,
)  # fmt: skip
RETRANSMITS = FaultClass(
    "F56", "Loss with adaptive retransmission", Group.FABRIC, retransmits,
    ("transport_retries",), 600, by_traffic=True,
    needs=((Meter.SEQUENCE_ERRORS, Meter.ADAPTIVE_RETRANSMITS),),
    parameters=(
        Parameter("loss", (1e-6, 1e-4), "1", "Share of packets that are lost",
                  scaling=Scaling.TIMES, high=1e-2),
        Parameter("retransmits", (10, 1000), "1/min", "Adaptive retransmissions (RoCE)",
                  scaling=Scaling.TIMES),
        Parameter("capacity", (0.6, 0.95), "1", "Share of the line rate that is left",
                  scaling=Scaling.LOSS, low=0.05, high=1),
    ),
)  # fmt: skip
PARTITION = FaultClass(
    "F57", "Wrong partition", Group.CONFIG, partition, ("config_mismatch",), 600,
    needs=((Meter.CONSTRAINT_ERRORS, "nccl_log"),), by_traffic=True,
    fabric=Fabric.INFINIBAND,
    parameters=(
        Parameter("rate", (0.1, 5), "1/s", "Packets refused", Known.SOURCE,
                  Scaling.TIMES),
        Parameter("attempts", (5, 30), "1", "Times that a connection is tried",
                  high=1000),
    ),
)  # fmt: skip

ROWS = (CRASH, STALE, ADDRESS, RETRANSMITS, PARTITION)
