"""Healthy life of a port: what stands there from earlier, and what counts anyhow.

After "Healthy baseline" of the fault catalogue; estimates unless it says otherwise.
``noise`` of the scenario scales how often, not how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fabricmon.host.trace import Module
from fabricmon.sim.counter_files import Flowing, What
from fabricmon.sim.draw import magnitude, source
from fabricmon.sim.meters import Meter
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.port import Port
from fabricmon.sim.processes import Course
from fabricmon.sim.profiles import Family, Use

DAY = 86400.0
PACKET_BYTES = 4150.0
"""A packet of 4 KiB with its headers."""
TICK_BITS = 64.0
"""A tick of ``port_xmit_wait`` is the time of eight octets."""

STATIC_SYMBOLS = 0.01  # share of ports with symbol errors from boot training
STATIC_RECEIVE = 0.1
STATIC_DOWNS = 0.1
SATURATED = 0.02
"""1 to 3 % of ports have a counter at its ceiling from an earlier life."""
WAIT_BUSY = 0.5
"""Share of InfiniBand ports on which ``port_xmit_wait`` is a busy counter."""
WAIT_SHARES = ((1e-6, 1e-4), (1e-4, 0.2))
"""Share of ticks in which a quiet and a busy port waits while it communicates."""
CNP_PER_SECOND = (10.0, 5000.0)
DCQCN_PAUSES = (0.5, 1000.0)
PFC_PAUSES = (100.0, 10_000.0)
PAUSE_MICROSECONDS = (0.5, 4.0)
"""How long one pause lasts: a port that resumes at once, not the longest possible."""
ORDER_PER_SECOND = 5.0 / 60
ADAPTIVE_PER_DAY = 5.0
AER_PER_DAY = 2.0
RAW_ERROR_RATIO = (1e-9, 1e-7)
TEMPERATURE = (45.0, 60.0)
ALIKE = (0.6, 1.6)
"""Congestion notices and pauses of ports of one use are alike: within this factor."""
JITTER = (0.7, 1.3)
"""Rates of a phase of communication differ so much from one to the next."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a port behaves while it carries data: rates per second at full share."""

    busy: tuple[tuple[What, float], ...] = ()
    temperature: float = 50.0
    power: tuple[float, ...] = ()


def presets(port: Port, plan: FleetPlan, random: Random) -> dict[What, int | None]:
    """Return what stands in the counters of a port when a trace begins."""
    found: dict[What, int | None] = {}
    noise = plan.scenario.noise
    slot = plan.slot(port.id)
    if port.id.port not in slot.used or not noise:
        return found
    boot = plan.scenario.boot
    carried = random.uniform(0.02, 0.2) * boot * port.bits_per_second / 8
    for bytes_, packets in _PAIRS:
        amount = int(carried * random.uniform(0.98, 1.02))
        found[bytes_], found[packets] = amount, int(amount / PACKET_BYTES)
    writes = int(carried / PACKET_BYTES / 16) % (1 << 32)
    found[Meter.WRITE_REQUESTS] = writes
    found[Meter.CONNECTS] = random.randrange(1_000_000)
    for chance, meter, low, high in _STATIC:
        if random.random() < chance * min(noise, 1 / chance):
            found[meter] = random.randint(low, high)
    if random.random() < SATURATED * noise:
        found[random.choice(_SATURATING)] = None
    return found


_PAIRS = (
    (Flowing.SENT_BYTES, Flowing.SENT_PACKETS),
    (Flowing.RECEIVED_BYTES, Flowing.RECEIVED_PACKETS),
)
_STATIC = (
    (STATIC_SYMBOLS, Meter.SYMBOL_ERRORS, 1, 50),
    (STATIC_RECEIVE, Meter.RECEIVE_ERRORS, 1, 15),
    (STATIC_DOWNS, Meter.LINK_DOWNS, 1, 2),
    (STATIC_RECEIVE, Meter.SWITCH_RELAY_ERRORS, 1, 2),
)
_SATURATING = (Meter.LINK_DOWNS, Meter.TRANSMIT_DISCARDS, Meter.TRANSMIT_WAIT)


def courses(port: Port, plan: FleetPlan, random: Random) -> tuple[Course, ...]:
    """Return what counts by chance on a healthy port, whatever it carries."""
    noise, slot = plan.scenario.noise, plan.slot(port.id)
    if not noise or port.id.port not in slot.used:
        return ()
    ratio = magnitude(random, RAW_ERROR_RATIO)
    found = [Course(Meter.CORRECTED_BITS, ratio * port.bits_per_second * noise)]
    found.append(Course(Meter.LANE_ERRORS, found[0].rate / slot.card.lanes))
    found.append(
        Course(Meter.AER_CORRECTABLE, random.uniform(0, AER_PER_DAY) / DAY * noise)
    )
    if slot.card.family is Family.EFA:
        found.append(Course(Meter.SEQUENCE_ERRORS, random.uniform(0, 0.2) * noise))
    elif slot.card.ethernet and slot.use is not Use.MANAGEMENT:
        orders = random.uniform(0, ORDER_PER_SECOND) * noise
        adaptive = random.uniform(0, ADAPTIVE_PER_DAY) / DAY * noise
        found.append(Course(Meter.OUT_OF_SEQUENCE, orders))
        found.append(Course(Meter.ADAPTIVE_RETRANSMITS, adaptive))
    return tuple(course for course in found if course.rate > 0)


def habits(port: Port, plan: FleetPlan, random: Random) -> Habits:
    """Draw how a port behaves while it communicates."""
    slot, noise = plan.slot(port.id), min(plan.scenario.noise, 1.0)
    busy: list[tuple[What, float]] = []
    card = slot.card
    if card.family is Family.MLX5 and slot.use is not Use.MANAGEMENT and noise:
        if not card.ethernet:
            shares = WAIT_SHARES[random.random() < WAIT_BUSY]
            ticks = port.bits_per_second / TICK_BITS
            busy.append((Meter.TRANSMIT_WAIT, magnitude(random, shares) * ticks))
        else:
            with_cnp = plan.has_cnp or slot.use is Use.STORAGE
            usual = _ethernet(source(*plan.key, slot.use), with_cnp=with_cnp)
            busy += [(what, rate * random.uniform(*ALIKE)) for what, rate in usual]
    lanes = max(card.lanes, 1)
    return Habits(
        busy=tuple((what, rate * noise) for what, rate in busy),
        temperature=random.uniform(*TEMPERATURE),
        power=tuple(round(random.uniform(-1.0, 2.0), 2) for _ in range(lanes)),
    )


def _ethernet(random: Random, *, with_cnp: bool) -> list[tuple[What, float]]:
    """Draw what the ports of a fleet that have one use count on Ethernet."""
    if with_cnp:
        cnp = magnitude(random, CNP_PER_SECOND)
        pauses = magnitude(random, DCQCN_PAUSES)
        rates: list[tuple[What, float]] = [
            (Meter.CNP_SENT, cnp),
            (Meter.CNP_HANDLED, cnp * random.uniform(0.7, 1.4)),
            (Meter.ECN_MARKED, cnp * random.uniform(1.0, 4.0)),
        ]
    else:
        pauses, rates = magnitude(random, PFC_PAUSES), []
    length = random.uniform(*PAUSE_MICROSECONDS)
    rates.append((Meter.PAUSE_RECEIVED, pauses))
    rates.append((Meter.PAUSE_RECEIVED_MICROSECONDS, pauses * length))
    return rates


def module(habit: Habits, temperature: float) -> Module:
    """Return what a sound transceiver reads."""
    return Module(
        temperature_c=round(temperature, 1),
        rx_power_dbm=habit.power,
        tx_power_dbm=tuple(round(power + 0.6, 2) for power in habit.power),
        vendor="Example",
        part="EX-400G",
        serial=f"EX{int(habit.temperature * 1e6) % 10**6:06d}",
    )
