"""Judge what counters have gathered since somebody last cleared them.

One sample cannot tell whether an error is going on. So a port is called bad only
where the sum is plainly out of proportion to the traffic that it carried, or where a
counter of link faults stands at its ceiling and can tell nothing more. Old, small
values are history: growth is what the other detectors judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fabricmon.catalogue import Signal
from fabricmon.value import Value

LINK_DOWNS = 20
"""Link downs or recoveries since the last clear. A port sees one or two for each
planned reboot of either end, so a handful says nothing; vendors' limits for the
lifetime are 10 (`error_thresholds` of infiniband-diags)."""

SYMBOL_ERRORS_MINIMUM = 1000
"""Damaged symbols below this may all come from the day when the cable was plugged."""

PACKET_ERRORS_MINIMUM = 100
"""The same for packets that were damaged past the link's own correction."""

RECEIVE_ERRORS_MINIMUM = 1000
"""More for the management counter of receive errors: on mlx5 it counts the physical
port, the traffic beside it only this function's RDMA."""

DAMAGED_RATIO = 1e-6
"""Damaged per received packet. A 4 KiB packet has 4e4 bits: this is a bit error rate
of 3e-11 after correction, where a good link has 1e-15."""

UNSCALED_MINIMUM = 10_000
"""Damaged or dropped packets where the text holds no traffic to compare with: beyond
what a year at line rate brings at a bit error rate of 1e-15."""

LOST_MINIMUM = 1000
"""Retries and drops below this are single events: a rebooted peer, a full queue."""

LOST_RATIO = 1e-5
"""Lost packets per packet: go-back-N repeats a whole window for each, so this is
already felt. In a lossless fabric it should be zero."""

TIMEOUT_RATIO = 1e-4
"""Time-outs and what is sent again after them, per packet. More than for lost packets:
one peer that dies lets hundreds of queue pairs run through all their retries."""

STARVED_RATIO = 1e-4
"""Packets dropped for want of a receive buffer, per packet: software that posts late, which is
milder than loss on the wire."""

BLACKHOLE_PACKETS = 1000
"""Packets sent, with none received, before that counts as an answer."""

BLACKHOLE_RETRIES = 0.01
"""Retries per packet sent that show that somebody waits for the answers."""

PAUSE_MINIMUM = 10_000
"""Pause frames sent below this are moments."""

PAUSE_RATIO = 1e-3
"""Pause frames sent per packet received: a full-blown storm has about that at 400 Gb/s
(12,000 a second against 12 million packets)."""

PAUSE_EXCESS = 10
"""Sent for each received one: else the fabric stops this port, not the reverse."""

WORST_LANE_SHARE = 0.9
"""Share of the raw errors on one lane that makes it worth naming."""


class LifetimeValue(Value, frozen=True):
    """One counter as it stands; ``signal`` is what it means in any driver's words."""

    name: str
    value: int
    signal: Signal | None = None
    saturated: bool = False


class Traffic(Value, frozen=True):
    """Packets since the last clear; None where not counted, or counted no further."""

    sent: int | None = None
    received: int | None = None

    @property
    def most(self) -> int | None:
        """Packets in the busier direction: the milder denominator."""
        return max(self.sent or 0, self.received or 0) or None


class _Limit(Value, frozen=True):
    """When a signal is out of proportion: at least so many and so many per packet.

    ``unscaled`` is for where the traffic is not known. None there means that the sum
    says how long the port ran, not how badly; then a full counter proves nothing.
    """

    minimum: int
    ratio: float
    unscaled: int | None = None


_LIMITS = {
    Signal.SYMBOL_ERROR: _Limit(SYMBOL_ERRORS_MINIMUM, DAMAGED_RATIO, UNSCALED_MINIMUM),
    Signal.RECEIVE_ERROR: _Limit(
        RECEIVE_ERRORS_MINIMUM, DAMAGED_RATIO, UNSCALED_MINIMUM
    ),
    Signal.CORRUPTION: _Limit(PACKET_ERRORS_MINIMUM, DAMAGED_RATIO, UNSCALED_MINIMUM),
    Signal.DISCARD: _Limit(LOST_MINIMUM, LOST_RATIO, UNSCALED_MINIMUM),
    Signal.SEQUENCE_ERROR: _Limit(LOST_MINIMUM, LOST_RATIO),
    Signal.ACK_TIMEOUT: _Limit(LOST_MINIMUM, TIMEOUT_RATIO),
    Signal.RETRANSMIT: _Limit(LOST_MINIMUM, TIMEOUT_RATIO),
    Signal.OUT_OF_BUFFER: _Limit(LOST_MINIMUM, STARVED_RATIO),
    Signal.RECEIVE_DISCARD: _Limit(LOST_MINIMUM, STARVED_RATIO),
}
_LINK_SIGNALS = frozenset({Signal.LINK_DOWN, Signal.LINK_RECOVERY})
_DAMAGE_SIGNALS = frozenset(
    {Signal.SYMBOL_ERROR, Signal.RECEIVE_ERROR, Signal.CORRUPTION}
)
_RETRY_SIGNALS = frozenset(
    {Signal.ACK_TIMEOUT, Signal.SEQUENCE_ERROR, Signal.RETRANSMIT}
)


def lifetime_reasons(values: Iterable[LifetimeValue]) -> tuple[str, ...]:
    """Return why the counters of one port speak against it; empty if they do not.

    The traffic is taken from the packet counters among ``values``. Signals that are
    routine or ambiguous on their own are not judged: relay and remote errors,
    transmit waits, buffer overruns at 15, reordering, congestion marks, dead queue
    pairs (a peer that rebooted kills them too).
    """
    known = tuple(values)
    traffic = traffic_of(known)
    reasons = [reason for value in known for reason in _judge(value, traffic)]
    reasons += _blackhole(known, traffic)
    reasons += _pauses(known, traffic)
    damage = (value for value in known if value.signal in _DAMAGE_SIGNALS)
    if any(True for value in damage for _ in _judge(value, traffic)):
        reasons += _worst_lane(known)
    return tuple(reasons)


def traffic_of(values: Iterable[LifetimeValue]) -> Traffic:
    """Return the packets that were counted, the widest counter of each direction."""
    known = tuple(values)
    return Traffic(
        sent=_largest(known, Signal.PACKETS_TRANSMITTED),
        received=_largest(known, Signal.PACKETS_RECEIVED),
    )


def _largest(values: Sequence[LifetimeValue], signal: Signal) -> int | None:
    mine = [value for value in values if value.signal is signal]
    if any(value.saturated for value in mine):
        return None
    return max((value.value for value in mine), default=None)


def _judge(value: LifetimeValue, traffic: Traffic) -> Iterator[str]:
    shown = f"{value.name} {value.value}"
    limit = _LIMITS.get(value.signal) if value.signal else None
    if value.saturated:
        if value.signal in _LINK_SIGNALS or (limit and limit.unscaled is not None):
            yield f"{shown}: at its ceiling, further ones are unseen"
    elif value.signal in _LINK_SIGNALS:
        if value.value >= LINK_DOWNS:
            yield f"{shown} since it was last cleared"
    elif limit is None:
        return
    elif traffic.most is None:
        if limit.unscaled is not None and value.value >= limit.unscaled:
            yield f"{shown} since it was last cleared"
    elif value.value >= max(limit.minimum, limit.ratio * traffic.most):
        yield f"{shown}: {value.value / traffic.most:.1e} per packet"


def _blackhole(values: Sequence[LifetimeValue], traffic: Traffic) -> Iterator[str]:
    """Notice a port that sends and retries and never hears anything."""
    if traffic.received != 0 or (traffic.sent or 0) < BLACKHOLE_PACKETS:
        return
    sent = traffic.sent or 0
    for value in values:
        if value.signal in _RETRY_SIGNALS and value.value >= BLACKHOLE_RETRIES * sent:
            yield f"{value.name} {value.value}, {sent} packets sent and none received"


def _pauses(values: Sequence[LifetimeValue], traffic: Traffic) -> Iterator[str]:
    """Notice a host that stops its peers: it cannot drain what it receives."""
    heard = sum(v.value for v in values if v.signal is Signal.PAUSE_RECEIVED)
    for value in values:
        if value.signal is not Signal.PAUSE_TRANSMITTED or not traffic.received:
            continue
        ratio = value.value / traffic.received
        enough = value.value >= PAUSE_MINIMUM and value.value >= PAUSE_EXCESS * heard
        if enough and ratio >= PAUSE_RATIO:
            yield f"{value.name} {value.value}: {ratio:.1e} per packet received"


def _worst_lane(values: Sequence[LifetimeValue]) -> Iterator[str]:
    """Name the lane with nearly all raw errors (mlx5 driver statistics)."""
    lanes = {
        value.name.removeprefix("rx_err_lane_").removesuffix("_phy"): value.value
        for value in values
        if value.signal is Signal.LANE_ERROR
    }
    total = sum(lanes.values())
    for lane, errors in lanes.items():
        if len(lanes) > 1 and errors > WORST_LANE_SHARE * total:
            yield f"lane {lane} has {errors} of {total} raw errors: cable or module"
