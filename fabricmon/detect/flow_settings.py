"""Flow control that is not set as the traffic needs it: ``config_mismatch``.

Three ways to see it from one node: its rails are set differently; packets are dropped
here with no pause at all, on a priority that is not lossless; one rail is paused and
never marked while the others are (``faults``, F36 and F37).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msgspec import field

from fabricmon.catalogue import Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.flow_drops import LOSS_SECONDS, dropped, listed, setting_of
from fabricmon.detect.flow_levels import Levels, Measure
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Evidence,
    Finding,
    HostPath,
    Part,
    PortId,
    PortInfo,
    PortView,
    PriorityUse,
    Role,
    Severity,
    View,
)
from fabricmon.parse.words import LinkLayer
from fabricmon.summaries import one_line
from fabricmon.value import State

KIND = "config_mismatch"

LEAST_RAILS = 3
"""Rails of which most agree on a setting."""

LEAST_NOTIFIED = 1.0
"""Notifications a second that show that a rail's switch marks."""

_NOTICES = (Measure.NOTIFIED, Measure.SLOWED, Measure.MARKED)

_Text = Callable[[PriorityUse], str | None]


_SETTINGS: tuple[tuple[str, str, _Text], ...] = (
    ("pfc_enabled", "PFC priorities", lambda use: listed(use.pfc_enabled)),
    ("ecn", "ECN priorities", lambda use: listed(use.ecn_enabled)),
    ("dscp_to_priority", "DSCP map", lambda use: listed(use.dscp_to_priority)),
    (
        "traffic_class",
        "traffic class",
        lambda use: None if use.traffic_class is None else str(use.traffic_class),
    ),
)


class _Port(State):
    """What speaks against a port's settings, and since when (monotonic)."""

    lossy: int = 0
    lossy_since: float = 0.0
    unmarked_since: float | None = None
    paused_at: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    paused: tuple[Evidence, ...] = ()

    def unmarked(self, now: float, least: float) -> float | None:
        """Return since when it is never marked, if for long; without pause forget it."""
        if now - self.paused_at > least:
            self.unmarked_since = None
        since = self.unmarked_since
        return None if since is None or now - since < least else since


class _Different(State):
    """A setting in which a port differs from most rails."""

    port: PortInfo
    name: str
    evidence: Evidence
    since: float


class FlowSettings(State):
    """Holds settings and drops against each other."""

    limits: Congestion
    _ports: dict[PortId, _Port] = field(default_factory=dict)
    _path: HostPath | None = None
    _different: list[_Different] = field(default_factory=list)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds now."""
        if view.job.host_path is not self._path:
            self._path = view.job.host_path
            self._compare(view)
        for each in self._different:
            yield _tell_different(each, view)
        if not self._ports:
            return
        lossy: list[tuple[PortView, _Port]] = []
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is None:
                continue
            if known.lossy >= self.limits.windows:
                lossy.append((port, known))
            since = known.unmarked(view.now, self.limits.unmarked_seconds)
            if since is not None:
                yield _tell_unmarked(port, known.paused, since, view)
        if lossy:
            yield self._tell_lossy(lossy, view)

    def look(self, levels: Mapping[PortId, Levels], view: View) -> None:
        """Take new levels: drops without pause, and pause without marks."""
        rails = [port for port in view.ports if _is_rail(port)]
        marked = {
            port.info.id: _is_notified(levels.get(port.info.id, {})) for port in rails
        }
        for port in rails:
            own = levels.get(port.info.id, {})
            others = [m for other, m in marked.items() if other != port.info.id]
            most = bool(others) and 2 * sum(others) >= len(others)
            self._look_at_marks(port, own, view, most=most)
            self._look_at_drops(port, view)

    def _compare(self, view: View) -> None:
        """Hold the settings of the rails against those of most of them."""
        before = {(d.port.id, d.name): d.since for d in self._different}
        self._different = []
        uses = {use.netdev: use for use in self._path.priorities} if self._path else {}
        rails = [
            (port, uses[port.info.netdev])
            for port in view.ports
            if _is_rail(port) and port.info.netdev in uses
        ]
        for name, _, text in _SETTINGS:
            shown = [(port, text(use)) for port, use in rails]
            known = Counter(value for _, value in shown if value is not None)
            if known.total() < LEAST_RAILS:
                continue
            usual, count = known.most_common(1)[0]
            if 2 * count <= known.total():
                continue
            for port, value in shown:
                if value not in (usual, None):
                    since = before.get((port.info.id, name), view.now)
                    source = f"dcb:{port.info.netdev}"
                    item = Evidence(name, value, "", source, usual)
                    self._different.append(_Different(port.info, name, item, since))

    def _look_at_marks(
        self, port: PortView, own: Levels, view: View, *, most: bool
    ) -> None:
        """Note since when a rail is paused and hears of no congestion."""
        known = self._ports.get(port.info.id)
        if _is_notified(own) or not most:
            if known is not None and _is_notified(own):
                known.unmarked_since = None
            return
        held = own.get(Measure.PAUSE_RECEIVED)
        silent = list(_silent(port, view))
        if held is None or held.value < self.limits.unmarked_pause_ratio or not silent:
            return
        known = self._ports.setdefault(port.info.id, _Port())
        limit = self.limits.unmarked_pause_ratio
        shown = Evidence(
            "pause_received_ratio", round(held.value, 4), "1", "fabricmon", limit
        )
        known.paused_at = view.now
        known.paused = (held.evidence(port), shown, *silent)
        if known.unmarked_since is None:
            known.unmarked_since = view.now

    def _look_at_drops(self, port: PortView, view: View) -> None:
        """Note in how many looks packets were dropped that pause should have saved."""
        evidence = tuple(dropped(port, self.limits, view))
        known = self._ports.get(port.info.id)
        if not evidence:
            if known is not None:
                known.lossy = 0
            return
        known = self._ports.setdefault(port.info.id, _Port())
        if not known.lossy:
            known.lossy_since = view.now - LOSS_SECONDS
        known.lossy += 1
        known.evidence = (*evidence, *setting_of(port, self._path))

    def _tell_lossy(self, lossy: list[tuple[PortView, _Port]], view: View) -> Finding:
        """Return the one finding of all rails that drop."""
        port, known = min(
            lossy, key=lambda each: (each[1].lossy_since, each[0].info.id)
        )
        onset = max(known.lossy_since, 0.0) + view.onset_offset
        more = f" and {len(lossy) - 1} more" if len(lossy) > 1 else ""
        return Finding(
            kind=KIND,
            subject=subject_of(port.info),
            onset=onset,
            evidence=known.evidence,
            summary=one_line(
                f"{port.info.id}{more} drop packets without any pause since "
                f"{clock(onset)}: flow control is off for this priority here"
            ),
            severity=Severity.WARNING,
            confidence=0.9,
        )


def _is_rail(port: PortView) -> bool:
    info = port.info
    return (
        info.role is Role.COMPUTE
        and info.link_layer is LinkLayer.ETHERNET
        and not info.is_vf
    )


def _silent(port: PortView, view: View) -> Iterator[Evidence]:
    """Yield the counters of notifications that this port has, and that rest."""
    for signal in (Signal.CNP_SENT, Signal.CNP_HANDLED, Signal.ECN_MARKED):
        for spec in view.counters.by_signal(port.info.id, signal):
            source = source_of(port.info, spec)
            yield Evidence(spec.file, 0, unit_of(spec), source, None, LOSS_SECONDS)


def _is_notified(levels: Levels) -> bool:
    found = (levels.get(measure) for measure in _NOTICES)
    return any(each is not None and each.value >= LEAST_NOTIFIED for each in found)


def _tell_different(each: _Different, view: View) -> Finding:
    onset = each.since + view.onset_offset
    label = next(text for name, text, _ in _SETTINGS if name == each.name)
    item, info = each.evidence, each.port
    detail = "" if each.name == "dscp_to_priority" else f": {item.value}"
    return Finding(
        kind=KIND,
        subject=subject_of(info),
        onset=onset,
        evidence=(item,),
        summary=one_line(
            f"{info.id}: {label} differ from those of the other rails{detail}; "
            f"a setting, no fault of the link"
        ),
        severity=Severity.WARNING,
        confidence=0.9,
    )


def _tell_unmarked(
    port: PortView, evidence: tuple[Evidence, ...], since: float, view: View
) -> Finding:
    onset = since + view.onset_offset
    return Finding(
        kind=KIND,
        subject=subject_of(port.info),
        onset=onset,
        evidence=evidence,
        summary=one_line(
            f"{port.info.id} is paused and never marked since {clock(onset)}, its "
            f"rails are: ECN of its switch, not this node"
        ),
        severity=Severity.INFO,
        part=Part.OBSERVER,
        confidence=0.7,
    )
