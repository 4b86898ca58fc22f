"""What a node's ports carry for its jobs, and what that makes them count."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fabricmon.sim.counter_files import PACKETS_PER_REQUEST, Flowing, What
from fabricmon.sim.draw import magnitude
from fabricmon.sim.effects import SimPort
from fabricmon.sim.happenings import Activity, Flow, Limit
from fabricmon.sim.healthy import JITTER, PACKET_BYTES, TICK_BITS, Habits
from fabricmon.sim.job_terms import JobTerms
from fabricmon.sim.meters import Meter
from fabricmon.sim.plan import FleetPlan, neighbours
from fabricmon.sim.port import Port

MAX_PAUSES_PER_GBPS = 11.9e3 / 400
"""Pause frames a second that hold a link for ever (fault catalogue, 1)."""
SHORT_PAUSES = 10.0
"""A port that pauses now and then sends so many times fewer, shorter ones."""
THROTTLED_CNP = (1e3, 5e4)
"""Notifications a second of a port whose sender is too fast for it."""
DCQCN_PAUSE_SHARE = 0.05
"""DCQCN slows the sender down before pause has to: so much of the hold is pause."""
SAVING = (0.4, 0.9)
"""Share of its line rate that a storage port carries during a checkpoint."""
LOADING = (0.002, 0.02)
"""The same while a job reads its data."""
SERVICE = (0.0005, 0.003)
"""The same of a management port, always."""


@dataclass(slots=True)
class _Load:
    """What a port would carry if it were up."""

    sent: float = 0.0
    received: float = 0.0
    busy: bool = False
    held: tuple[tuple[What, float], ...] = ()


class NodeTraffic:
    """Lets the ports of a node carry what jobs make them carry."""

    def __init__(
        self,
        plan: FleetPlan,
        node: int,
        ports: dict[SimPort, Port],
        habits: dict[SimPort, Habits],
        random: Random,
    ) -> None:
        self._plan = plan
        self._node = node
        self._ports = ports
        self._habits = habits
        self._random = random
        self._loads = {port: _Load() for port in ports}
        self._flows: dict[str, tuple[tuple[float, Limit | None], ...]] = {}

    def start(self, t: float) -> None:
        """Let what is always there begin."""
        management = self._plan.management(self._node)
        if management is not None:
            share = self._random.uniform(*SERVICE)
            self._carry(t, management, _Load(share, share * 2))

    def flow(self, t: float, terms: JobTerms, flow: Flow) -> None:
        """Take over what a job carries from now on."""
        taking_part = self._node in flow.members
        idle = ((0.0, None),) * len(terms.rails)
        limits = flow.limits or (None,) * len(terms.rails)
        now = tuple(zip(flow.shares, limits, strict=True)) if taking_part else idle
        before = self._flows.get(terms.id, idle)
        self._flows[terms.id] = now
        for rail, old, new in zip(terms.rails, before, now, strict=True):
            if old != new:
                share, limit = new
                busy = flow.activity is Activity.COMMUNICATE and share > 0
                held = self._held(terms, flow.members, rail, limit) if limit else ()
                port = self._plan.rail(self._node, rail)
                self._carry(t, port, _Load(share, share, busy, held))

    def storage(self, t: float, activity: Activity) -> None:
        """Let the storage ports carry what a job reads or saves."""
        for port in self._plan.storage(self._node):
            read = self._random.uniform(*LOADING)
            load = _Load(read / 10, read)
            if activity is Activity.CHECKPOINT:
                saved = self._random.uniform(*SAVING)
                load = _Load(saved, saved / 50, busy=True)
            elif activity is Activity.IDLE:
                load = _Load(read / 50, read / 50)
            self._carry(t, port, load)

    def flow_in(self, t: float, which: SimPort, share: float) -> None:
        """Let a port receive besides what jobs carry, up or not as it is then."""
        port = self._ports[which]
        octets = share * port.bits_per_second / 8 if port.link.is_up else 0.0
        port.pace(t, Flowing.RECEIVED_BYTES, octets, "inflow")
        port.pace(t, Flowing.RECEIVED_PACKETS, octets / PACKET_BYTES, "inflow")

    def refresh(self, t: float, port: SimPort) -> None:
        """Look again whether a port is up."""
        self._carry(t, port, self._loads[port])

    def _carry(self, t: float, which: SimPort, load: _Load) -> None:
        before, self._loads[which] = self._loads[which], load
        port = self._ports[which]
        if not port.link.is_up:
            load = _Load()
        for share, bytes_, packets in (
            (load.sent, Flowing.SENT_BYTES, Flowing.SENT_PACKETS),
            (load.received, Flowing.RECEIVED_BYTES, Flowing.RECEIVED_PACKETS),
        ):
            octets = share * port.bits_per_second / 8
            port.pace(t, bytes_, octets)
            port.pace(t, packets, octets / PACKET_BYTES)
        port.busy = load.busy
        port.packets_sent = load.sent * port.bits_per_second / 8 / PACKET_BYTES
        port.packets_received = load.received * port.bits_per_second / 8 / PACKET_BYTES
        port.pace(t, Meter.WRITE_REQUESTS, port.packets_received * PACKETS_PER_REQUEST)
        for what, rate in self._habits[which].busy:
            jitter = self._random.uniform(*JITTER)
            share = max(load.sent, load.received) * jitter if load.busy else 0.0
            port.pace(t, what, rate * share, "habit")
        if load.held or before.held:
            self._hold(t, port, load.held)
        for changed in tuple(port.on_traffic):
            changed(t)

    def _hold(self, t: float, port: Port, held: tuple[tuple[What, float], ...]) -> None:
        rates = dict(held)
        for what in _HELD:
            port.pace(t, what, rates.get(what, 0.0), "held")

    def _held(
        self, terms: JobTerms, members: tuple[int, ...], rail: int, limit: Limit
    ) -> tuple[tuple[What, float], ...]:
        """Return what this node counts because a rail waits for a port.

        Only who sends to a slow receiver is held up by the network; the others have
        nothing to send. A slow sender waits at its own port.
        """
        port = self._ports[self._plan.rail(self._node, rail)]
        held = max(0.0, 1 - limit.share / terms.load)
        own = limit.port.node == self._node
        upstream = neighbours(terms, members, limit.port.node)
        if terms.plan.pattern == "ring":
            upstream = upstream[:1]
        sends_to_it = not own and limit.receives and self._node in upstream
        if self._plan.is_infiniband:
            waits = sends_to_it or (own and limit.sends)
            ticks = held * port.bits_per_second / TICK_BITS
            return ((Meter.TRANSMIT_WAIT, ticks),) if waits else ()
        if sends_to_it:
            return self._paused(port, held)
        if own and limit.receives and self._plan.has_cnp:
            marks = magnitude(self._random, THROTTLED_CNP)
            return ((Meter.CNP_SENT, marks), (Meter.ECN_MARKED, marks * 3))
        return ()

    def _paused(self, port: Port, held: float) -> tuple[tuple[What, float], ...]:
        paused = held * (DCQCN_PAUSE_SHARE if self._plan.has_cnp else 1.0)
        frames = MAX_PAUSES_PER_GBPS * port.bits_per_second / 1e9 * paused
        found: list[tuple[What, float]] = [
            (Meter.PAUSE_RECEIVED, frames),
            (Meter.PAUSE_RECEIVED_MICROSECONDS, paused * 1e6),
        ]
        if self._plan.has_cnp:
            notices = magnitude(self._random, THROTTLED_CNP)
            found.append((Meter.CNP_HANDLED, notices))
        return tuple(found)


_HELD = (
    Meter.TRANSMIT_WAIT, Meter.PAUSE_RECEIVED, Meter.PAUSE_RECEIVED_MICROSECONDS,
    Meter.CNP_HANDLED, Meter.CNP_SENT, Meter.ECN_MARKED,
)  # fmt: skip
