"""Rails that pace a job, and slow jobs that are no matter of the network.

``rail_slow`` says which rail; its place is not known from one node, because all hops of
a ring run at the pace of the slowest. Only what a port shows of its own makes it a
``straggler_link`` (``health-systems`` 4.2 and 4.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fabricmon.catalogue import COARSE_BYTES, family
from fabricmon.config import Config
from fabricmon.detect.compute_pace import ComputePace
from fabricmon.detect.host_pace import HostPace, share_of_line
from fabricmon.detect.local_evidence import LocalEvidence, LocalSign, Nature
from fabricmon.detect.rail_bytes import carries_more
from fabricmon.detect.rail_doubts import RailDoubts
from fabricmon.detect.rail_history import RailHistory, SlowRail
from fabricmon.detect.rail_windows import (
    RailWindow,
    RailWindows,
    is_rail,
    job_of_rails,
)
from fabricmon.detect.straggler_telling import rail_slow, rate_sign, straggler_link
from fabricmon.detect.wording import subject_of
from fabricmon.maintenance import under_maintenance
from fabricmon.model import Blindness, Finding, PortId, PortView, View


class Stragglers:
    """Compares the rails of each job of the node in every burst window."""

    name = "straggler"
    kinds: tuple[str, ...] = (
        "rail_slow",
        "straggler_link",
        "host_path_slow",
        "not_network",
    )

    def __init__(self, config: Config) -> None:
        """Take ``stragglers`` and how windows are taken."""
        self._limits = config.stragglers
        self._enabled = config.bursts.enabled
        self._retrain_seconds = config.link_errors.retrain_seconds
        self._windows = RailWindows(config.bursts)
        self._local = LocalEvidence(config)
        self._histories: dict[tuple[str, str], RailHistory] = {}
        self._slow: dict[PortId, tuple[str, SlowRail]] = {}
        self._host = HostPace(self._limits)
        self._compute = ComputePace(self._limits)
        self._named: dict[PortId, float] = {}
        self._names: frozenset[str] = frozenset()
        self._forgot_at = float("-inf")
        self._rails: dict[PortId, float] = {}
        self._patience = config.bursts.patience_seconds
        self._doubts = RailDoubts(config.bursts.suspicion_seconds)
        self.suspicious = False
        """Whether windows should follow each other: something is odd and not told."""

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds; rails are compared only when a window is complete."""
        self._local.note(view)
        if view.log_events:
            self._host.note(view)
        windows = self._windows.take(view)
        if windows:
            self._take(windows, view)
        if self._slow:
            yield from self._tell(view)
        for found in (self._compute.judge(view), self._host.judge(view, self._local)):
            if found is not None:
                yield found

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where no burst is taken, or too few rails are there to compare."""
        rails = [port for port in view.ports if is_rail(port)]
        reason = self._why_blind(rails, view) if rails else None
        if reason is not None:
            for kind in self.kinds:
                yield Blindness(kind, reason)

    def _why_blind(self, rails: Sequence[PortView], view: View) -> str | None:
        if not self._enabled:
            return "bursts.enabled is off: means cannot show a straggler"
        if len(rails) < self._limits.least_rails:
            return f"{len(rails)} rails: too few to compare"
        for name in sorted({str(family(port.info.driver)) for port in rails}):
            if name in COARSE_BYTES:
                return f"{name} counts bytes every {COARSE_BYTES[name]:g} s: too rarely"
        told, known = {burst.port for burst in view.bursts}, self._rails
        self._rails = {
            port.info.id: known.get(port.info.id, view.now) for port in rails
        }
        mute = {
            port
            for port, since in self._rails.items()
            if port not in told and view.now - since > self._patience
        }
        if mute:
            return f"no bursts of {min(map(str, mute))}: its reads are slow or hang"
        return self._small_job(rails, view)

    def _small_job(self, rails: Sequence[PortView], view: View) -> str | None:
        """Say of how few rails a job is that cannot be compared, of the smallest."""
        known = job_of_rails(view)
        here = {port.info.rail for port in rails}
        sizes = Counter(job for rail, job in known.items() if rail in here)
        size = min(sizes.values(), default=len(rails))
        if size >= self._limits.least_rails:
            return None
        return f"a job on {size} of {len(rails)} rails: too few to compare"

    def save(self) -> bytes:
        """Return nothing: ten windows tell it again."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take nothing back."""

    def _take(self, windows: tuple[RailWindow, ...], view: View) -> None:
        self._note_names(view)
        known = {(window.job, window.direction) for window in windows}
        if known != self._histories.keys():
            self._change_jobs(known)
        self._slow = {}
        odd: set[PortId] = set()
        ports = {port.info.id: port for port in view.ports}
        for window in windows:
            history = self._histories[window.job, window.direction]
            history.take(window)
            if history.newest_is_judged:
                self._pace(window, ports)
            for slow in history.slow(window.direction):
                if self._is_excused(slow, window.job, ports[slow.port], view):
                    continue
                best = self._slow.get(slow.port)
                if best is None or _worse(slow, best[1]):
                    self._slow[slow.port] = window.job, slow
            odd |= history.odd
        newest = max(window.ended for window in windows)
        self.suspicious = bool(self._doubts.take(odd, newest))

    def _is_excused(self, slow: SlowRail, job: str, port: PortView, view: View) -> bool:
        """Tell whether a rail carries more, and not what a bad link sends again."""
        if not carries_more(slow, job, view, self._limits):
            return False
        signs = self._signs(port, _usual_gbps(view), view)
        return all(each.nature is not Nature.LINK for each in signs)

    def _note_names(self, view: View) -> None:
        """Forget the past of rails of no known job where all jobs are others.

        A job that joins those that go on is no reason, and short jobs that follow each
        other are compared as one.
        """
        names = frozenset(use.job for use in view.job.jobs)
        is_other = self._names and names and not names & self._names
        is_due = view.now - self._forgot_at > self._limits.job_past_seconds
        if is_other and is_due:
            self._forgot_at = view.now
            kept = {key: each for key, each in self._histories.items() if key[0]}
            self._histories = kept
            self._host.forget({job for job, _ in kept})
            self._compute = ComputePace(self._limits)
        self._names = names or self._names

    def _change_jobs(self, known: set[tuple[str, str]]) -> None:
        """Forget what other jobs did: pace and past are a job's own (A6)."""
        old = {job for job, _ in self._histories}
        new = {job for job, _ in known}
        self._histories = {
            key: self._histories.get(key) or RailHistory(self._limits) for key in known
        }
        self._host.forget(new & old)
        if new != old:
            self._compute = ComputePace(self._limits)

    def _pace(self, window: RailWindow, ports: dict[PortId, PortView]) -> None:
        """Note how fast a job's rails are, for what concerns all of them."""
        shares = {}
        for rail in window.rails:
            share = share_of_line(ports[rail.port], rail.p99)
            if share is not None:
                shares[str(rail.port)] = share
        if shares:
            self._host.take(window.job, shares, window.began)
        rates = sorted(rail.p99 for rail in window.rails)
        self._compute.note_rate(rates[len(rates) // 2])

    def _tell(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each slow rail.

        A port that is repaired is not told as a rail whose place is unknown, while the
        windows of before still count.
        """
        usual = _usual_gbps(view)
        repaired = self._limits.repaired_seconds
        ports = {port.info.id: port for port in view.ports}
        for where, (job, slow) in self._slow.items():
            port = ports.get(where)
            if port is None or _is_worked_on(port, view):
                continue
            signs = () if slow.jitter else self._signs(port, usual, view)
            if signs:
                self._named[where] = view.now
                yield straggler_link(slow, port, signs, view, self._limits)
            elif view.now - self._named.get(where, float("-inf")) > repaired:
                yield rail_slow(slow, job, view, self._limits)

    def _signs(
        self, port: PortView, usual: float | None, view: View
    ) -> tuple[LocalSign, ...]:
        """Return what the port shows of its own and makes it slow, its rate first.

        An outage that is over is no reason: all ports of a leaf that rebooted had one,
        and the errors of a link that trains.
        """
        rate = rate_sign(port, usual, view.now)
        signs = self._local.of(port, view)
        outages = [sign.at for sign in signs if sign.nature is Nature.STATE]
        trained = max(outages, default=float("-inf")) + self._retrain_seconds
        slowing = tuple(
            sign
            for sign in signs
            if sign.nature is not Nature.STATE
            and (sign.nature is not Nature.LINK or sign.at > trained)
        )
        return slowing if rate is None else (rate, *slowing)


def _usual_gbps(view: View) -> float | None:
    """Return the line rate of the usual rail."""
    rates = sorted(
        port.status.rate.gbps
        for port in view.ports
        if is_rail(port) and port.status and port.status.rate.gbps
    )
    return rates[len(rates) // 2] if rates else None


def _is_worked_on(port: PortView, view: View) -> bool:
    """Tell whether the rail's port is under maintenance: its rail is, then."""
    return under_maintenance(subject_of(port.info), view.maintenance, view.wall)


def _worse(one: SlowRail, other: SlowRail) -> bool:
    """Tell which direction tells more: what lasts before moments, then the ratio."""
    return (not one.jitter, one.busy_ratio) > (not other.jitter, other.busy_ratio)
