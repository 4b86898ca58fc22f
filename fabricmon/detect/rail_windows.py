"""One burst window of all rails of a node, put together and cut into jobs.

Devices end a window each in their own time. Rails can be compared only within the same
window, so it waits for all of them; and only within the same job, because others have
their own pace (``faults``, N37 and N38).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from fabricmon.bursts import RECEIVED, TRANSMITTED
from fabricmon.config import Bursts
from fabricmon.model import Burst, PortId, PortView, Role, View
from fabricmon.parse.words import PortState
from fabricmon.value import Value

DIRECTIONS = (TRANSMITTED, RECEIVED)

TOGETHER_SECONDS = 0.5
"""Windows of one moment lie so close together: devices are read on threads."""

WAIT_SECONDS = 2.0
"""A device that rests or hangs is waited for so long."""

_IDLE_SAMPLES = 2  # an idle port has one sample, judged with the last before

Rail = int | str


class RailBurst(Value, frozen=True):
    """A rail of a node in one direction of one window; ``p99`` in bytes per second."""

    port: PortId
    rail: Rail
    busy: float
    p99: float


class RailWindow(Value, frozen=True):
    """The rails of one job over one window, in one direction.

    ``step`` is the share of the window that one sample stands for.
    """

    job: str
    direction: str
    began: float
    ended: float
    step: float
    rails: tuple[RailBurst, ...]


class RailWindows:
    """Hands out each complete window once."""

    def __init__(self, limits: Bursts) -> None:
        """Take how long a window is."""
        self._idle_seconds = limits.window_seconds + TOGETHER_SECONDS
        self._done = 0.0

    def take(self, view: View) -> tuple[RailWindow, ...]:
        """Return the windows that are complete and new, none if there is nothing new."""
        newest = max((burst.ended for burst in view.bursts), default=0.0)
        if newest <= self._done:
            return ()
        ports = {port.info.id: port for port in view.ports if is_rail(port)}
        bursts = [burst for burst in view.bursts if burst.port in ports]
        first = max(bursts, key=attrgetter("ended"), default=None)
        if first is None:
            return ()
        fresh = [burst for burst in bursts if self._is_of(burst, first)]
        if len(fresh) < len(bursts) and view.now - newest < WAIT_SECONDS:
            return ()
        self._done = newest
        return tuple(_windows(fresh, ports, view))

    def _is_of(self, burst: Burst, newest: Burst) -> bool:
        """Tell whether a burst is of the same moment as the one that ended last."""
        age = newest.ended - burst.ended
        if burst.samples <= _IDLE_SAMPLES and not burst.busy:
            return age <= self._idle_seconds
        apart = abs(newest.began - burst.began)
        return age <= TOGETHER_SECONDS and apart <= TOGETHER_SECONDS


def is_rail(port: PortView) -> bool:
    """Tell whether a port is a rail that may carry traffic now."""
    info, status = port.info, port.status
    return (
        info.role is Role.COMPUTE
        and info.rail is not None
        and not info.is_vf
        and status is not None
        and status.state is PortState.ACTIVE
    )


def job_of_rails(view: View) -> dict[Rail, str]:
    """Return the job of each rail, as far as jobs and their rails are known.

    A rail that several jobs use belongs to all of them: they are named together.
    """
    found: dict[Rail, list[str]] = {}
    for use in view.job.jobs:
        for rail in use.rails:
            found.setdefault(rail, []).append(use.job)
    return {rail: "+".join(sorted(jobs)) for rail, jobs in found.items()}


def _windows(
    bursts: Iterable[Burst], ports: dict[PortId, PortView], view: View
) -> Iterator[RailWindow]:
    jobs = job_of_rails(view)
    groups: dict[tuple[str, str], list[Burst]] = {}
    for burst in bursts:
        rail = ports[burst.port].info.rail
        job = "" if rail is None else jobs.get(rail, "")
        groups.setdefault((job, burst.direction), []).append(burst)
    for (job, direction), kept in groups.items():
        samples = max(burst.samples for burst in kept)
        yield RailWindow(
            job,
            direction,
            began=max(burst.began for burst in kept),
            ended=max(burst.ended for burst in kept),
            step=1 / max(samples - 1, 1),
            rails=tuple(_rail(burst, ports[burst.port]) for burst in kept),
        )


def _rail(burst: Burst, port: PortView) -> RailBurst:
    rail = port.info.rail
    return RailBurst(burst.port, "" if rail is None else rail, burst.busy, burst.p99)
