"""Settings of NCCL that the fabric of this node proves wrong: ``config_mismatch``.

What is wrong about a port is one finding for that port, all else is one for the node;
each mismatch is an item of its evidence. What is right or cannot be judged is silent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.settings_case import Fit, SettingCheck
from fabricmon.detect.settings_rules import judge_all
from fabricmon.detect.settings_told import SavedTold, ToldSettings
from fabricmon.detect.settings_view import cases_of, elsewhere, ground_of
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    PortId,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line

MAX_EVIDENCE = 32  # mismatches of one place
MAX_VALUE = 120  # characters of a value in evidence

_KIND = "config_mismatch"

_Wrong = tuple[PortId | None, str]


class SavedSettings(Struct, frozen=True):
    """What logs told of processes that may still run."""

    told: tuple[SavedTold, ...] = ()


class SettingsFit:
    """Holds the settings of local processes against the fabric."""

    name = "settings"
    kinds: tuple[str, ...] = (_KIND,)

    def __init__(self, config: Config) -> None:
        """Take what a node cannot see from ``settings``."""
        self._limits = config.settings
        self._told = ToldSettings(config.settings.remember_seconds)
        self._key: object = None
        self._checks: tuple[SettingCheck, ...] = ()
        self._since: dict[_Wrong, float] = {}
        self._offset = 0.0
        self._restored: tuple[SavedTold, ...] = ()

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each place with mismatches."""
        self._offset = view.onset_offset
        if self._restored:
            self._told.restore(self._restored, self._offset, view.now)
            self._restored = ()
        self._told.take(view)
        self._look(view)
        mismatches = [check for check in self._checks if check.fit is Fit.MISMATCH]
        self._since = {
            _wrong(check): self._since.get(_wrong(check), view.now)
            for check in mismatches
        }
        settled = view.now - self._limits.settle_seconds
        places: defaultdict[PortId | None, list[SettingCheck]] = defaultdict(list)
        for check in mismatches:
            if self._since[_wrong(check)] <= settled:
                places[check.port].append(check)
        for place, checks in places.items():
            since = min(self._since[_wrong(check)] for check in checks)
            yield _finding(place, checks, since + self._offset, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say which settings are there and cannot be judged on this node."""
        del view
        reasons = (
            f"{check.variable}: {check.blind}"
            for check in self._checks
            if check.fit is Fit.UNKNOWN and check.blind
        )
        for reason in dict.fromkeys(reasons):
            yield Blindness(_KIND, reason)

    def save(self) -> bytes:
        """Return what logs told once and will not tell again."""
        return pack(SavedSettings(self._restored or self._told.save(self._offset)))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        self._offset = view_offset
        self._restored = unpack(saved, SavedSettings).told

    def _look(self, view: View) -> None:
        """Judge anew where something has changed; most of the time nothing has."""
        job = view.job
        ports = tuple(
            (port.info, None if port.status is None else port.status.state)
            for port in view.ports
        )
        missing = tuple(device.name for device in view.missing)
        known = (job.processes, job.jobs, job.gids, job.host_path, missing)
        key = (known, ports, self._told.version)
        if key == self._key:
            return
        self._key = key
        ground = ground_of(view, self._limits)
        cases = cases_of(view, ground, self._told)
        self._checks = judge_all(cases, elsewhere(view, ground, self._told))


def _wrong(check: SettingCheck) -> _Wrong:
    """Return what stays the same while a mismatch lasts: its place and variable."""
    return check.port, check.variable


_PATIENCE = frozenset({"NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"})
"""How long a job waits is its owner's choice: nothing is at fault, and it is told."""


def _finding(
    place: PortId | None, checks: Sequence[SettingCheck], since: float, view: View
) -> Finding:
    first, more = checks[0], len(checks) - 1
    better = f"; better: {first.better}" if first.better else ""
    others = f" (+{more} more)" if more else ""
    told = f"{first.variable}={first.value[:MAX_VALUE]}{others}: {first.shown}{better}"
    return Finding(
        kind=_KIND,
        subject=_subject(place, view),
        onset=since,
        evidence=tuple(_evidence(check) for check in checks[:MAX_EVIDENCE]),
        summary=one_line(told),
        severity=_severity(checks),
        action=Action.NONE,
    )


def _severity(checks: Sequence[SettingCheck]) -> Severity:
    chosen = all(check.variable in _PATIENCE for check in checks)
    return Severity.INFO if chosen else Severity.WARNING


def _evidence(check: SettingCheck) -> Evidence:
    return Evidence(
        signal=check.variable,
        value=check.value[:MAX_VALUE],
        unit="",
        source=check.origin,
        threshold=check.better,
    )


def _subject(place: PortId | None, view: View) -> Subject:
    for port in view.ports:
        if port.info.id == place:
            return subject_of(port.info)
    return Subject()
