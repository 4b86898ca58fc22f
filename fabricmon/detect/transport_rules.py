"""How many retries are too many: counts in a window, as ratios to the traffic.

Thresholds are those of ``health-systems`` 7; what a driver calls a counter does not
matter, its signal does. Packets that arrive out of order are none of these: adaptive
routing reorders, and nothing is lost (``faults``, N24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricmon.catalogue import CounterSpec, Directory, Signal
from fabricmon.config import Transport
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.model import Evidence, Mark, Part, PortInfo, View
from fabricmon.value import Value

RETRYING = "transport_retries"
EXHAUSTED = "retries_exhausted"
STALLED = "receiver_stall"
UPSTREAM = "fabric_suspect"
PARTITION = "config_mismatch"

_SRD = "efa"  # its transport resends by design


class Rule(Value, frozen=True):
    """More than ``least`` of these signals in ``window`` seconds, and of the traffic.

    ``ratio`` is of the packets of ``traffic``. ``steady`` asks for both halves of the
    window to have their share: a burst that is over does not count on. What does not
    ``warn`` stays information however long: the peer's doing, or of little effect.
    A fault of the port itself ``explains`` it, or has nothing to do with it; without
    one the port is ``part``, and ``verdict`` says whose doing it is.
    """

    kind: str
    text: str
    signals: tuple[Signal, ...]
    window: float
    least: float
    ratio: float | None = None
    traffic: Signal = Signal.PACKETS_TRANSMITTED
    steady: bool = False
    warns: bool = True
    explains: bool = True
    part: Part = Part.VICTIM
    verdict: str = "path or peer, not this port"
    driver: str | None = None
    not_driver: str | None = None

    def is_for(self, info: PortInfo, spec: CounterSpec) -> bool:
        """Tell whether a counter of this port is judged by the rule."""
        if self.driver is not None and self.driver not in spec.drivers:
            return False
        if self.not_driver is not None and self.not_driver in spec.drivers:
            return False
        if spec.signal not in self.signals or info.is_vf:
            return False
        # Where the link's own check fails the damage is here: no hop before did it.
        return spec.signal is not Signal.CORRUPTION or spec.directory in _RDMA


_RDMA = frozenset({Directory.HW_COUNTERS, Directory.COUNTERS})


class Symptom(Value, frozen=True):
    """A rule that a port breaks now."""

    rule: Rule
    count: int
    seconds: float
    evidence: tuple[Evidence, ...]


def rules_of(config: Transport) -> tuple[Rule, ...]:
    """Return the rules, the most telling first."""
    window, slow = config.window_seconds, config.slow_window_seconds
    lost = (Signal.SEQUENCE_ERROR, Signal.RETRANSMIT)
    return (
        Rule(EXHAUSTED, "queue pairs gave up", (Signal.RETRIES_EXCEEDED,), window, 1),
        Rule(
            EXHAUSTED,
            "queue pairs gave up, peer never ready,",
            (Signal.NOT_READY_EXCEEDED,),
            window,
            1,
            explains=False,
        ),
        Rule(
            RETRYING,
            "acknowledge timers ran out",
            (Signal.ACK_TIMEOUT,),
            window,
            config.ack_timeouts,
            not_driver=_SRD,
        ),
        Rule(
            RETRYING,
            "packets lost and sent again",
            lost,
            window,
            config.sequence_errors,
            config.warning_loss_ratio,
            not_driver=_SRD,
        ),
        Rule(
            RETRYING,
            "packets lost and sent again",
            lost,
            window,
            config.sequence_errors,
            config.sequence_error_ratio,
            warns=False,
            not_driver=_SRD,
        ),
        Rule(
            RETRYING,
            "packets lost and sent again",
            lost,
            slow,
            config.slow_sequence_errors,
            config.slow_sequence_error_ratio,
            steady=True,
            warns=False,
            not_driver=_SRD,
        ),
        Rule(
            RETRYING,
            "packets sent again",
            (Signal.RETRANSMIT, Signal.ACK_TIMEOUT),
            window,
            config.srd_retransmits_per_second * window,
            driver=_SRD,
        ),
        Rule(
            RETRYING,
            "times a peer's path was called impaired",
            (Signal.REMOTE_IMPAIRED,),
            window,
            config.impaired_per_second * window,
        ),
        Rule(
            RETRYING,
            "refusals by a peer that was not ready",
            (Signal.RECEIVER_NOT_READY,),
            window,
            config.not_ready_per_second * window,
            warns=False,
            explains=False,
        ),
        Rule(
            RETRYING,
            "reads or writes failed",
            (Signal.REQUEST_FAILED,),
            window,
            config.failed_requests_per_second * window,
            steady=True,  # work that a job throws away as it ends may count, too
            driver=_SRD,
        ),
        Rule(
            STALLED,
            "packets refused, no receive posted,",
            (Signal.OUT_OF_BUFFER, Signal.RECEIVER_NOT_READY_SENT),
            window,
            config.receiver_drops_per_second * window,
            config.receiver_drop_ratio,
            Signal.PACKETS_RECEIVED,
            explains=False,
            part=Part.CULPRIT,
            verdict="the process, not the link",
        ),
        Rule(
            STALLED,
            "packets dropped on receipt",
            (Signal.RECEIVE_DISCARD,),
            window,
            config.srd_drops_per_second * window,
            config.receiver_drop_ratio,
            Signal.PACKETS_RECEIVED,
            part=Part.OBSERVER,
            verdict="this host or its senders",
            driver=_SRD,
        ),
        Rule(
            UPSTREAM,
            "packets arrived that a hop before had damaged",
            (Signal.REMOTE_PHYSICAL, Signal.CORRUPTION),
            slow,
            config.upstream_errors,
            config.slow_sequence_error_ratio,
            Signal.PACKETS_RECEIVED,
            steady=True,
            explains=False,
            part=Part.OBSERVER,
            verdict="no fault of this port",
        ),
        Rule(
            PARTITION,
            "packets refused for their partition",
            (Signal.CONSTRAINT,),
            slow,
            config.constraint_errors,
            explains=False,
            part=Part.CULPRIT,
            verdict="a setting, not the link",
        ),
    )


def judge(
    rules: Iterable[Rule], info: PortInfo, specs: Iterable[CounterSpec], view: View
) -> Iterator[Symptom]:
    """Yield the rules that a port breaks with the counters that moved lately."""
    moved = tuple(specs)
    for rule in rules:
        counted = [
            found
            for spec in moved
            if rule.is_for(info, spec)
            and (found := _count(view, info, spec, rule)) is not None
        ]
        if not counted:
            continue
        # One loss may be counted under several names: the largest speaks.
        count, seconds, _ = max(counted, key=lambda each: each[0])
        fits = count * min(rule.window / seconds, 1.0) >= rule.least
        if not fits or not _is_share(rule, view, info, count, seconds):
            continue
        shown = [item for _, _, item in sorted(counted, key=lambda each: -each[0])]
        yield Symptom(rule, count, seconds, (*shown, *_traffic(rule, view, info)))


def _count(
    view: View, info: PortInfo, spec: CounterSpec, rule: Rule
) -> tuple[int, float, Evidence] | None:
    """Return the increase in the window, its length, and how it is shown."""
    delta = view.counters.delta(info.id, spec, rule.window)
    if delta is None or delta.increase <= 0 or delta.seconds <= 0:
        return None
    if delta.mark is Mark.SATURATED:
        return None
    if rule.steady and not _is_steady(view, info, spec, rule):
        return None
    shown = Evidence(
        spec.file,
        delta.increase,
        unit_of(spec),
        source_of(info, spec),
        round(rule.least),
        round(delta.seconds, 1),
    )
    return delta.increase, delta.seconds, shown


_QUARTER = 0.25  # of a steady count falls into each half of its window at least


def _is_steady(view: View, info: PortInfo, spec: CounterSpec, rule: Rule) -> bool:
    """Tell whether a count goes on: in both halves of the window, and of late."""
    whole, half, late = (
        view.counters.delta(info.id, spec, rule.window * part)
        for part in (1.0, 0.5, _QUARTER)
    )
    if whole is None or half is None or late is None or late.increase <= 0:
        return False
    return _QUARTER <= half.increase / whole.increase <= 1 - _QUARTER


def _packets(rule: Rule, view: View, info: PortInfo) -> tuple[int, float] | None:
    """Return the packets of the window and its seconds, None where nobody counts."""
    specs = view.counters.by_signal(info.id, rule.traffic)
    deltas = [view.counters.delta(info.id, spec, rule.window) for spec in specs]
    known = [(each.increase, each.seconds) for each in deltas if each is not None]
    return max(known, default=None)


def _is_share(
    rule: Rule, view: View, info: PortInfo, count: int, seconds: float
) -> bool:
    """Tell whether a count is enough of the traffic; yes where nobody counts it."""
    if rule.ratio is None:
        return True
    packets = _packets(rule, view, info)
    if packets is None or packets[0] <= 0 or packets[1] <= 0:
        return True
    return count / seconds >= rule.ratio * packets[0] / packets[1]


def _traffic(rule: Rule, view: View, info: PortInfo) -> Iterator[Evidence]:
    packets = _packets(rule, view, info) if rule.ratio is not None else None
    if packets is not None:
        specs = view.counters.by_signal(info.id, rule.traffic)
        yield Evidence(
            specs[0].file,
            packets[0],
            "packets",
            source_of(info, specs[0]),
            window_seconds=round(packets[1], 1),
        )
