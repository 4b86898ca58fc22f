"""Sources whose values are old, and sources that fail as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from fabricmon.config import Config
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Health,
    Part,
    Severity,
    Subject,
    View,
)
from fabricmon.sources.protocol import Lane
from fabricmon.summaries import one_line, span
from fabricmon.value import Value

MOST_EVIDENCE = 8
"""Sources named in one finding; the rest is counted."""

MOST_UNITS = 3
"""Devices named in a summary."""

LOOK_SECONDS = 5.0
"""How often health is looked at while all is well."""


class _Late(Value, frozen=True):
    """A source without a good answer for ``age`` seconds, more than ``limit``."""

    health: Health
    age: float
    limit: float

    @property
    def hangs(self) -> bool:
        """Tell whether a read is in flight that may never end; tools are ended."""
        health = self.health
        return health.in_flight_since is not None and health.lane != Lane.TOOL

    @property
    def place(self) -> str:
        """Name the unit and the source: ``mlx5_0 errors``."""
        return f"{self.health.unit or 'node'} {self.health.source}"

    @property
    def story(self) -> str:
        """Say what is wrong."""
        if self.hangs:
            return "a read hangs"
        return "not polled" if self.health.ok else "every read fails"


class SourceHealth:
    """Watches how the sources fare; keeps the age of those that never answered."""

    def __init__(self, config: Config) -> None:
        """Take the limits of ``telemetry`` and the read deadline."""
        self._limits = config.telemetry
        self._slack = config.deadlines.read_seconds
        self._list_seconds = config.periods.devices_seconds
        self._first: dict[tuple[str, str], float] = {}
        self._resumed = self._gap_end = -inf
        self._gap_seconds = 0.0
        self._look_at = -inf
        self._late: tuple[_Late, ...] = ()
        self._answering: frozenset[str] = frozenset()
        self._unlisted_since: float | None = None

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what is late and what fails."""
        if view.gap_seconds is not None:
            # Nothing was polled meanwhile: that is not the sources' fault.
            self._resumed = self._gap_end = view.now
            self._gap_seconds = view.gap_seconds
        if view.now >= self._look_at or self._late:
            self._look_at = view.now + LOOK_SECONDS
            self._late = tuple(self._find_late(view))
        if self._late or view.class_error is not None or self._unlisted_since:
            yield from self._failed(view)
            yield from self._stale(view)
        recent = view.now - self._gap_end <= self._limits.stale_critical_seconds
        if recent and not self._late:
            yield self._starved(view)

    @property
    def stale(self) -> tuple[Health, ...]:
        """What was late when it was last judged, but for what fails on every unit."""
        return tuple(each.health for each in self._stale_ones())

    def _stale_ones(self) -> list[_Late]:
        failing = self._failing()
        return [each for each in self._late if each.health.source not in failing]

    def _failing(self) -> frozenset[str]:
        """Return the sources that fail on every unit."""
        failing = {late.health.source for late in self._late if _fails(late)}
        return frozenset(failing - self._answering)

    def _find_late(self, view: View) -> Iterator[_Late]:
        known: dict[tuple[str, str], float] = {}
        answering: set[str] = set()
        for health in view.health:
            key = (health.source, health.unit)
            known[key] = self._first.get(key, view.now)
            since = health.last_success
            since = max(known[key] if since is None else since, self._resumed)
            limit = self._limits.stale_polls * health.due_seconds + self._slack
            if health.quarantined is None and view.now - since > limit:
                yield _Late(health, view.now - since, limit)
            if health.ok:
                answering.add(health.source)
        self._first = known
        self._answering = frozenset(answering)

    def _stale(self, view: View) -> Iterator[Finding]:
        """Yield one finding for all that is late on some units."""
        late = self._stale_ones()
        if not late:
            return
        late.sort(key=lambda each: (not each.hangs, -each.age))
        worst = late[0]
        critical = any(
            each.age >= max(self._limits.stale_critical_seconds, 2 * each.limit)
            for each in late
        )
        hangs = critical and any(each.hangs for each in late)
        more = _others(late)
        yield _finding(
            "telemetry_stale",
            view,
            since=max(each.age for each in late),
            evidence=tuple(_evidence(each) for each in late[:MOST_EVIDENCE]),
            summary=f"No values of {worst.place} for {span(worst.age)}: "
            f"{worst.story}{more}; the last ones are old",
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            action=Action.INSPECT if hangs else Action.NONE,
            subject=_only_device(late, view),
        )

    def _failed(self, view: View) -> Iterator[Finding]:
        """Yield one finding for all that fails everywhere."""
        evidence = list(self._unlisted(view))
        age = view.now - (self._unlisted_since or view.now)
        failing = self._failing()
        for late in self._late:
            if late.health.source in failing and len(evidence) < MOST_EVIDENCE:
                evidence.append(_evidence(late))
                age = max(age, late.age)
        if evidence:
            names = sorted({item.signal for item in evidence})
            yield _finding(
                "source_failed",
                view,
                since=age,
                evidence=tuple(evidence),
                summary=f"Cannot read {', '.join(names)} on this node for {span(age)}: "
                "what depends on it is not watched",
                severity=Severity.WARNING,
                action=Action.NONE,
            )

    def _unlisted(self, view: View) -> Iterator[Evidence]:
        """Yield why the folder of the RDMA class cannot be listed.

        That it does not exist is no failure: the node has no RDMA driver.
        """
        if view.class_error in (None, "ENOENT"):
            self._unlisted_since = None
            return
        if self._unlisted_since is None:
            self._unlisted_since = view.now
        if view.now - self._unlisted_since >= (
            self._limits.stale_polls * self._list_seconds
        ):
            source = "/sys/class/infiniband"
            yield Evidence("devices", view.class_error, "errno", source)

    def _starved(self, view: View) -> Finding:
        gap = round(self._gap_seconds, 1)
        return _finding(
            "telemetry_stale",
            view,
            since=view.now - self._gap_end + self._gap_seconds,
            evidence=(Evidence("gap", gap, "s", "the agent's own clock"),),
            summary=f"The agent did not run for {span(gap)}: rates cover the gap, "
            "short outages show only in counters",
            severity=Severity.INFO,
            action=Action.NONE,
        )


def _only_device(late: list[_Late], view: View) -> Subject | None:
    """Return the device that all of it is about, if its ports can carry the story."""
    units = {each.health.unit for each in late}
    unit = units.pop()
    known = any(port.info.id.device == unit for port in view.ports)
    return Subject(device=unit) if known and not units else None


def _others(late: list[_Late]) -> str:
    """Name the devices of the other late sources, as far as a line has room."""
    if len(late) == 1:
        return ""
    units = list(dict.fromkeys(each.health.unit or "node" for each in late))
    named = ", ".join(units[:MOST_UNITS])
    rest = ", ..." if units[MOST_UNITS:] else ""
    return f", and {len(late) - 1} more sources ({named}{rest})"


def _fails(late: _Late) -> bool:
    return not late.health.ok and not late.hangs


def _evidence(late: _Late) -> Evidence:
    health = late.health
    errors = ", ".join(f"{item.errno} x{item.count}" for item in health.errors[:3])
    source = f"{health.unit or 'node'}: {late.story}"
    return Evidence(
        signal=health.source,
        value=round(late.age, 1),
        unit="s",
        source=f"{source} ({errors})" if errors and not health.ok else source,
        threshold=late.limit,
    )


def _finding(
    kind: str,
    view: View,
    *,
    since: float,
    evidence: tuple[Evidence, ...],
    summary: str,
    severity: Severity,
    action: Action,
    subject: Subject | None = None,
) -> Finding:
    return Finding(
        kind=kind,
        subject=subject or Subject(),
        onset=view.wall - since,
        evidence=evidence,
        summary=one_line(summary),
        severity=severity,
        part=Part.OBSERVER,
        action=action,
    )
