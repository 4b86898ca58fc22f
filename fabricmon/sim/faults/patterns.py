"""Signatures that several classes share, spelled in effects.

Rates follow from the line rate; sources are the sections of the fault catalogue that
are named. A counter that a profile does not have is dropped by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricmon.sim.effects import Capacity, Counting, Effect, Level, SimPort, Step
from fabricmon.sim.faults.case import Case
from fabricmon.sim.meters import Meter, Per

PACKET_BITS = 4096 * 8
"""Payload of a full packet, bits (catalogue 1)."""

FRAME_BITS = 65535 * 512
"""Time of one longest pause, bits (catalogue 1)."""

MICROSECONDS = 1e6

TICK_BITS = 64
"""A tick of transmit wait: the time of 8 bytes on the wire (catalogue 2)."""

CORRECTED_FLOOR = (400.0, 40_000.0)
"""Bits per second that FEC repairs on a healthy 400G link (catalogue 3)."""

_SINGLE_ERRORS = 3000.0  # what is more is written as a rate
_USED = (0.15, 0.4)  # share of the time that a rail carries data (catalogue 3)

QUEUE_PAIRS = 16
"""Queue pairs of a pair of ports in the reference timeline (catalogue 5)."""


def bits(case: Case) -> float:
    """Return the line rate in bits per second."""
    return case.plan.line_rate_gbps * 1e9


def pause_frames(case: Case) -> float:
    """Return the frames per second that hold a port silent for ever."""
    return bits(case) / FRAME_BITS


def wait_ticks(case: Case) -> float:
    """Return the ticks per second of a port that waits all the time."""
    return bits(case) / TICK_BITS


def inbound_errors(
    case: Case, port: SimPort, begin: float, end: float, ber: float
) -> list[Effect]:
    """Return a receiver that damages bits: errors here, resends by its senders (F01).

    Symbol errors also come while idle; packets are lost only where there are some.
    Few errors come one by one, each with what it costs; many as independent rates.
    """
    repaired = case.draw.uniform(*CORRECTED_FLOOR) * case.draw.uniform(10, 1000)
    corrected = Counting(port, Meter.CORRECTED_BITS, begin, end, repaired)
    if bits(case) * ber * (end - begin) <= _SINGLE_ERRORS:
        return [corrected, *_single_errors(case, port, begin, end, bits(case) * ber)]
    return [corrected, *_many_errors(case, port, begin, end, ber)]


def _single_errors(
    case: Case, port: SimPort, begin: float, end: float, rate: float
) -> list[Effect]:
    """Return damaged symbols one by one; one that hits a packet costs it."""
    effects: list[Effect] = []
    senders = case.plan.peers(port)
    starts = [work.first_step for work in case.plan.work(port)]
    carried = min(starts, default=end) if senders else end
    used = case.draw.uniform(*_USED)
    at = begin + case.draw.gap(1 / rate)
    while at < end:
        effects.append(Step(port, Meter.SYMBOL_ERRORS, at, 1))
        if at > carried and case.draw.uniform(0, 1) < used:
            sender = senders[case.draw.pick(range(len(senders)))]
            effects += [
                Step(port, Meter.RECEIVE_ERRORS, at, 1),
                Step(port, Meter.OUT_OF_SEQUENCE, at, 1),
                Step(sender, Meter.SEQUENCE_ERRORS, at, 1),
            ]
        at += case.draw.gap(1 / rate)
    return effects


def _many_errors(
    case: Case, port: SimPort, begin: float, end: float, ber: float
) -> list[Effect]:
    """Return errors as rates: symbols by time, losses by packets."""
    hit = min(ber * PACKET_BITS, 1.0)
    effects: list[Effect] = [
        Counting(port, Meter.SYMBOL_ERRORS, begin, end, bits(case) * ber),
        *packet_rates(port, begin, end, Per.PACKET_RECEIVED, {
            Meter.RECEIVE_ERRORS: hit, Meter.OUT_OF_SEQUENCE: hit,
        }),
    ]  # fmt: skip
    senders = case.plan.peers(port)
    for sender in senders:
        rates = {Meter.SEQUENCE_ERRORS: hit / len(senders)}
        effects += packet_rates(sender, begin, end, Per.PACKET_SENT, rates)
    return effects


def outbound_loss(
    case: Case, port: SimPort, begin: float, end: float, loss: float
) -> list[Effect]:
    """Return a sender whose packets get lost: resends here, gaps at its peers (F02)."""
    effects = packet_rates(
        port, begin, end, Per.PACKET_SENT,
        {Meter.SEQUENCE_ERRORS: loss, Meter.ACK_TIMEOUTS: loss / 1000},
    )  # fmt: skip
    peers = case.plan.peers(port)
    for peer in peers:
        rates = {Meter.OUT_OF_SEQUENCE: loss / len(peers)}
        effects += packet_rates(peer, begin, end, Per.PACKET_RECEIVED, rates)
    return effects


def packet_rates(
    port: SimPort, begin: float, end: float, per: Per, rates: dict[Meter, float]
) -> list[Effect]:
    """Return counters that move with the packets of a port."""
    return [
        Counting(port, meter, begin, end, rate, per) for meter, rate in rates.items()
    ]


def busy_rates(
    port: SimPort, begin: float, end: float, rates: dict[Meter, float]
) -> list[Effect]:
    """Return counters that move while a port works for its job."""
    return [
        Counting(port, meter, begin, end, rate, Per.BUSY_SECOND)
        for meter, rate in rates.items()
    ]


def limited(
    ports: Iterable[SimPort], begin: float, end: float, factor: float,
    *, receive: bool = True, transmit: bool = True,
) -> list[Effect]:  # fmt: skip
    """Return ports that can do only a share of their line rate."""
    return [Capacity(port, begin, end, factor, receive, transmit) for port in ports]


def network_pauses(
    case: Case, ports: Sequence[SimPort], begin: float, end: float, share: float
) -> list[Effect]:
    """Return ports that the network holds back for a share of their busy time.

    RoCE receives pause, InfiniBand waits for credit.
    """
    effects: list[Effect] = []
    for port in ports:
        if case.plan.is_infiniband:
            rates = {Meter.TRANSMIT_WAIT: wait_ticks(case) * share}
        else:
            rates = {
                Meter.PAUSE_RECEIVED: pause_frames(case) * share,
                Meter.PAUSE_RECEIVED_MICROSECONDS: MICROSECONDS * share,
            }
        effects += busy_rates(port, begin, end, rates)
    return effects


def notified(
    case: Case, receiver: SimPort | None, senders: Sequence[SimPort], cnp: float, *,
    begin: float, end: float,
) -> list[Effect]:  # fmt: skip
    """Return congestion notifications from a receiver to its senders, per second.

    Nothing where the fabric knows none (InfiniBand, RoCE with PFC only).
    """
    if not case.plan.has_cnp:
        return []
    effects: list[Effect] = []
    if receiver is not None:
        marked = cnp * case.draw.uniform(5, 50)
        rates = {Meter.CNP_SENT: cnp, Meter.ECN_MARKED: marked}
        effects += busy_rates(receiver, begin, end, rates)
    for sender in senders:
        rates = {Meter.CNP_HANDLED: cnp / len(senders)}
        effects += busy_rates(sender, begin, end, rates)
    return effects


def pci_stalls(port: SimPort, begin: float, end: float, percent: float) -> list[Effect]:
    """Return a device whose writes wait for the host while it receives (F20)."""
    return [
        Level(port, Meter.PCI_STALL_WRITE, begin, end, round(percent), only_busy=True),
        Counting(
            port, Meter.PCI_STALL_WRITE_EVENTS, begin, end, 1.0, Per.BUSY_SECOND,
            even=True,
        ),
    ]  # fmt: skip


def host_pauses(
    case: Case, port: SimPort, begin: float, end: float, frames: float
) -> list[Effect]:
    """Return a host that cannot absorb and tells the network so; RoCE only."""
    if case.plan.is_infiniband:
        return []
    share = min(frames / pause_frames(case), 1.0)
    return busy_rates(port, begin, end, {
        Meter.PAUSE_SENT: frames,
        Meter.PAUSE_SENT_MICROSECONDS: MICROSECONDS * share,
    })  # fmt: skip


def slow_receiver(
    case: Case, port: SimPort, begin: float, end: float, factor: float, *,
    stall: float, pause: float,
) -> list[Effect]:  # fmt: skip
    """Return a port that the host cannot empty (catalogue F20).

    ``stall`` percent of PCIe time, ``pause`` frames per second under load. What its
    senders see of it, and notifications, follow from the capacity: the model knows.
    """
    return [
        *limited([port], begin, end, factor),
        *pci_stalls(port, begin, end, stall),
        *busy_rates(port, begin, end, {Meter.BUFFER_THRESHOLD: pause / 10 + 10}),
        *host_pauses(case, port, begin, end, pause),
    ]
