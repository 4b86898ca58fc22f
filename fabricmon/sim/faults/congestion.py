"""Traffic that does not fit, and settings for it: F30 to F33, F36 and F37."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.sim.effects import Bridged, Effect, Made, Mute, OnPriority, SimPort
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.patterns import (
    busy_rates,
    limited,
    network_pauses,
    notified,
)
from fabricmon.sim.faults.row import (
    Fabric,
    FaultClass,
    Group,
    Needs,
    Parameter,
    Scaling,
)
from fabricmon.sim.faults.signals import CONGESTION, LOSS, PACE, SETTINGS
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import Forbidden

_NOBODY = Forbidden(actionable=True)
_MOST_WAITS = 0.6  # the rest of the time is left to what the capacity makes wait
_PAUSES = (
    Meter.PAUSE_RECEIVED, Meter.PAUSE_SENT, Meter.PAUSE_RECEIVED_MICROSECONDS,
    Meter.PAUSE_SENT_MICROSECONDS,
)  # fmt: skip


def incast(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F30: many send to one at once; it takes what its line can."""
    case = case_of(INCAST, injection, plan, draw)
    port = case.port()
    others = (*plan.peers(port), *case.same_rail(port))
    senders = tuple(dict.fromkeys(others))[: case.whole("senders")]
    cnp, waits = case.number("cnp"), case.number("waits")
    begin, end = case.onset, case.until
    if not plan.is_infiniband:
        waits /= 10  # short pauses: the senders slow down on notifications
    waits = min(waits, _MOST_WAITS)
    effects = [
        *notified(case, port, senders, cnp, begin=begin, end=end),
        *network_pauses(case, senders, begin, end, waits),
        *limited(senders, begin, end, case.number("capacity"), receive=False),
    ]
    if plan.has_cnp:
        truth = case.fault(port, signals=CONGESTION)
    else:  # nothing is counted at the receiver: any of the rail may tell
        truth = case.fault(rail=case.rail_of(port), signals=CONGESTION, traffic=(port,))
    return case.made(effects, [truth], senders, [_NOBODY])


def collision(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F31: flows of a few senders fell onto the same uplink."""
    case = case_of(COLLISION, injection, plan, draw)
    port = case.port()
    others = sorted(case.same_rail(port))
    count = min(case.whole("flows") - 1, len(others))
    senders = [port]
    while len(senders) <= count:
        senders.append(others.pop(draw.pick(range(len(others)))))
    effects = _held_back(case, senders, case.number("capacity"))
    truth = case.fault(
        rail=case.rail_of(port), signals=(*CONGESTION, *PACE), traffic=senders
    )
    return case.made(effects, [truth], senders, [_NOBODY])


def _held_back(case: Case, senders: Sequence[SimPort], capacity: float) -> list[Effect]:
    """Return senders whose way holds only so much: notified, waiting, slower."""
    begin, end = case.onset, case.until
    effects: list[Effect] = []
    for sender in senders:
        receivers = case.plan.peers(sender)[-1:]
        receiver = receivers[0] if receivers else None
        cnp = case.number("cnp")
        effects += notified(case, receiver, [sender], cnp, begin=begin, end=end)
    if not case.plan.is_infiniband:  # there the model lets a slow sender wait
        effects += network_pauses(case, senders, begin, end, (1 - capacity) / 2)
    return effects + limited(senders, begin, end, capacity, receive=False)


def polarised(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F32: a leaf's hash puts most flows onto one uplink."""
    case = case_of(POLARISED, injection, plan, draw)
    leaf = case.leaf()
    ports = plan.ports_of_leaf(leaf)
    effects: list[Effect] = []
    for port in ports:
        capacity = min(case.number("capacity") * draw.uniform(0.9, 1.1), 1.0)
        effects += _held_back(case, [port], capacity)
    rail = case.rail_of(ports[0])
    truth = case.fault(leaf=leaf, rail=rail, signals=CONGESTION, traffic=ports)
    return case.made(effects, [truth], ports, [_NOBODY])


def fewer_uplinks(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F33: a leaf lost uplinks; its whole rail is slow."""
    case = case_of(UPLINKS, injection, plan, draw)
    leaf, capacity = case.leaf(), case.number("capacity")
    ports = plan.ports_of_leaf(leaf)
    effects = [
        *limited(ports, case.onset, case.until, capacity),
        *network_pauses(case, ports, case.onset, case.until, (1 - capacity) / 2),
    ]
    if not plan.is_infiniband:
        cnp = case.number("cnp")
        for port in ports:
            effects += notified(
                case, None, [port], cnp, begin=case.onset, end=case.until
            )
    rail = case.rail_of(ports[0])
    truth = case.fault(
        leaf=leaf, rail=rail, signals=(*PACE, *CONGESTION), traffic=ports
    )
    return case.made(effects, [truth], ports, [_NOBODY])


def lossy(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F36: no pause for the data of a node: it goes by a lossy priority, and is lost."""
    case = case_of(NO_PAUSE, injection, plan, draw)
    node, begin, end = case.node(), case.onset, case.until
    effects: list[Effect] = []
    victims: list[SimPort] = []
    for port in case.rails_of(node):
        drops = case.number("drops")
        effects += [
            Bridged(port, begin, ()),
            OnPriority(port, begin, end),
            *(Mute(port, meter, begin, end) for meter in _PAUSES),
            *busy_rates(port, begin, end, {
                Meter.RECEIVE_DISCARDS: drops, Meter.PRIORITY_DISCARDS: drops,
                Meter.OUT_OF_SEQUENCE: drops,
            }),
        ]  # fmt: skip
        peers = plan.peers(port)
        victims += peers
        for peer in peers:
            part = drops / len(peers)
            effects += busy_rates(peer, begin, end, {
                Meter.SEQUENCE_ERRORS: part, Meter.ADAPTIVE_RETRANSMITS: part,
            })  # fmt: skip
    effects += limited(case.rails_of(node), begin, end, case.number("capacity"))
    traffic = None if "dcb" in plan.shown else case.rails_of(node)
    truth = case.fault(node=node, signals=(*SETTINGS, *LOSS), traffic=traffic)
    return case.made(effects, [truth], victims)


def no_marks(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """F37: a leaf does not mark: pause in place of notifications."""
    case = case_of(NO_MARKS, injection, plan, draw)
    leaf, share = case.leaf(), case.number("pause_share")
    ports, effects = plan.ports_of_leaf(leaf), list[Effect]()
    for port in ports:
        effects += [
            Mute(port, meter, case.onset, case.until)
            for meter in (Meter.CNP_SENT, Meter.CNP_HANDLED, Meter.ECN_MARKED)
        ]
    effects += network_pauses(case, ports, case.onset, case.until, share)
    rail = case.rail_of(ports[0])
    truth = case.fault(leaf=leaf, rail=rail, signals=SETTINGS, traffic=ports)
    return case.made(effects, [truth], ports, [_NOBODY])


_HELD: Needs = ((Meter.CNP_HANDLED, Meter.TRANSMIT_WAIT, Meter.PAUSE_RECEIVED),)
_CNP = Parameter("cnp", (1000, 50_000), "1/s", "Notifications under load (DCQCN)",
                 scaling=Scaling.TIMES)  # fmt: skip


def _capacity(low: float, high: float) -> Parameter:
    return Parameter("capacity", (low, high), "1", "Share of the line rate that is left",
                     scaling=Scaling.LOSS, low=0.02, high=1)  # fmt: skip


INCAST = FaultClass(
    "F30", "Incast", Group.CONGESTION, incast, ("congestion",), 60,
    needs=((Meter.CNP_SENT, Meter.TRANSMIT_WAIT, Meter.PAUSE_RECEIVED),),
    by_traffic=True,
    parameters=(
        Parameter("senders", (4, 32), "1", "Senders to the one", low=1, high=1024),
        _CNP,
        Parameter("waits", (0.2, 0.8), "1",
                  "Share of the busy time that senders wait; a tenth of it on RoCE",
                  scaling=Scaling.TIMES, high=1),
        _capacity(0.6, 0.9),
    ),
)  # fmt: skip
COLLISION = FaultClass(
    "F31", "Flows collide on an uplink", Group.CONGESTION, collision, ("congestion",),
    180, needs=_HELD, by_traffic=True,
    parameters=(
        Parameter("flows", (2, 3), "1", "Senders that collide", low=1, high=64),
        _CNP,
        _capacity(0.45, 0.6),
    ),
)  # fmt: skip
POLARISED = FaultClass(
    "F32", "Hash of a leaf is polarised", Group.CONGESTION, polarised, ("congestion",),
    300, needs=_HELD, by_vote=True, by_traffic=True,
    parameters=(_CNP, _capacity(0.5, 0.8)),
)  # fmt: skip
UPLINKS = FaultClass(
    "F33", "Leaf lost uplinks", Group.FABRIC, fewer_uplinks,
    ("rail_slow", "fabric_suspect"), 180, by_traffic=True,
    parameters=(_CNP, _capacity(0.5, 0.75)),
)  # fmt: skip
NO_PAUSE = FaultClass(
    "F36", "Priority flow control not configured", Group.CONFIG, lossy,
    ("config_mismatch",), 600, needs=(("dcb", Meter.PRIORITY_DISCARDS),), fabric=Fabric.ETHERNET,
    parameters=(
        Parameter("drops", (100, 100_000), "1/s", "Packets lost under load",
                  scaling=Scaling.TIMES),
        _capacity(0.5, 0.9),
    ),
)  # fmt: skip
NO_MARKS = FaultClass(
    "F37", "Leaf does not mark congestion", Group.CONFIG, no_marks,
    ("config_mismatch",), 600, needs=((Meter.CNP_SENT,), (Meter.PAUSE_RECEIVED,)),
    by_vote=True, by_traffic=True, fabric=Fabric.ETHERNET,
    parameters=(
        Parameter("pause_share", (0.02, 0.2), "1", "Share of the busy time in pause",
                  scaling=Scaling.TIMES, high=1),
    ),
)  # fmt: skip

ROWS = (INCAST, COLLISION, POLARISED, UPLINKS, NO_PAUSE, NO_MARKS)
