"""Whether a rail is busy for longer because it carries more than the others.

Rails of one job carry the same bytes, the slow one too. What carries more has traffic
besides: reads of storage, another job, or what a plane that is down left to it. The
counters tell, since the rail was first odd: windows of three seconds do not, because
they may meet each step at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from fabricmon.bursts import RECEIVED
from fabricmon.catalogue import Signal
from fabricmon.config import Stragglers
from fabricmon.detect.rail_history import SlowRail
from fabricmon.detect.rail_windows import is_rail, job_of_rails
from fabricmon.model import Mark, PortId, PortView, View


def bytes_ratio(
    slow: SlowRail, job: str, view: View, limits: Stragglers
) -> float | None:
    """Return its bytes against the usual rail of its job since it was odd.

    None where counters do not say so: of fewer rails than can be compared.
    """
    since = min(view.now - slow.since, limits.more_traffic_seconds)
    seconds = max(since, limits.least_seconds)
    signal = (
        Signal.BYTES_RECEIVED
        if slow.direction == RECEIVED
        else Signal.BYTES_TRANSMITTED
    )
    rates = {
        port.info.id: rate
        for port in _rails_of(job, view)
        if (rate := mean_rate(port.info.id, signal, seconds, view)) is not None
    }
    own = rates.get(slow.port)
    if own is None or len(rates) < limits.least_rails:
        return None
    usual = median(rates.values())
    return own / usual if usual else None


def carries_more(slow: SlowRail, job: str, view: View, limits: Stragglers) -> bool:
    """Tell whether a rail has more traffic than the others, and so is not slow."""
    ratio = bytes_ratio(slow, job, view, limits)
    return ratio is not None and ratio >= limits.more_traffic_ratio


def _rails_of(job: str, view: View) -> Iterator[PortView]:
    jobs = job_of_rails(view)
    for port in view.ports:
        rail = port.info.rail
        if rail is not None and is_rail(port) and jobs.get(rail, "") == job:
            yield port


def mean_rate(port: PortId, signal: Signal, seconds: float, view: View) -> float | None:
    """Return the mean bytes per second, None where the counter is not to be trusted."""
    for spec in view.counters.by_signal(port, signal)[:1]:
        delta = view.counters.delta(port, spec, seconds)
        if delta is not None and delta.mark is Mark.OK and delta.seconds:
            return delta.increase * spec.factor / delta.seconds
    return None
