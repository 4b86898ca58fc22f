"""Transceivers that are too hot or get too little light."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from statistics import median

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.device_places import (
    Places,
    by_device,
    has_hardware,
    kernel_text,
)
from fabricmon.detect.evidence import source_of
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    KernelKind,
    ModuleStatus,
    Part,
    PortId,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

SOURCE = "modules"
"""Name of the source whose records are judged here."""

_ALARMS = {
    KernelKind.MODULE_HOT: Severity.CRITICAL,
    KernelKind.SENSOR_HOT: Severity.WARNING,
}


class _Streak(State):
    """Samples in a row that were beyond a limit."""

    samples: int = 0
    since: float = 0.0
    severity: Severity = Severity.INFO

    def take(self, severity: Severity | None, at: float) -> None:
        """Take a sample; None is one within the limits."""
        if severity is None:
            self.samples = 0
            return
        if not self.samples:
            self.since = at
        self.samples += 1
        self.severity = severity


class _Alarm(Value, frozen=True):
    """What the kernel or a counter said of a device's heat."""

    at: float
    severity: Severity
    evidence: Evidence
    is_of_chip: bool = False


class TransceiverHealth:
    """Judges temperature and received power of each port's transceiver."""

    name = "modules"
    kinds: tuple[str, ...] = ("module_hot", "optics_weak")

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``modules``."""
        self._limits = config.modules
        self._seen: tuple[ModuleStatus, ...] = ()
        self._newest: dict[PortId, ModuleStatus] = {}
        self._heat: dict[PortId, _Streak] = {}
        self._light: dict[PortId, _Streak] = {}
        self._alarms: dict[str, _Alarm] = {}
        self._best: dict[PortId, float] = {}  # of the weakest lane, by port

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield each transceiver that is too hot, or gets too little light."""
        if view.host_side.modules is not self._seen:
            self._take(view.host_side.modules)
        if view.kernel_events:
            self._hear(view)
        for move in view.moves:
            if move.spec.signal is Signal.MODULE_HOT and move.previous is not None:
                infos = (p.info for p in view.ports if p.info.id == move.port)
                for info in infos:
                    evidence = Evidence(
                        move.spec.file, move.increase, "events",
                        source_of(info, move.spec),
                    )  # fmt: skip
                    alarm = _Alarm(move.at, Severity.CRITICAL, evidence)
                    self._alarms[move.port.device] = alarm
        if self._heat or self._light or self._alarms:
            yield from self._findings(view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where nothing tells of heat or light."""
        polled = any(
            h.source == SOURCE and h.last_success is not None for h in view.health
        )
        if not polled or not has_hardware(view):
            return
        modules, problem = view.host_side.modules, view.host_side.kernel_problem
        if problem and all(module.temperature_c is None for module in modules):
            yield Blindness("module_hot", f"no sensor of a transceiver, and {problem}")
        if not any(module.receive_power_dbm for module in modules):
            reason = "no file has the received power: it takes CAP_NET_ADMIN to ask"
            yield Blindness("optics_weak", reason)

    def save(self) -> bytes:
        """Return nothing: two samples tell it again."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take nothing back."""

    def _take(self, modules: tuple[ModuleStatus, ...]) -> None:
        self._seen = modules
        known = {module.port for module in modules}
        for kept in (self._newest, self._heat, self._light, self._best):
            for port in [port for port in kept if port not in known]:
                del kept[port]
        for module in modules:
            before = self._newest.get(module.port)
            if before is module:
                continue
            self._newest[module.port] = module
            _note(self._heat, module, self._hot(module))
            _note(self._light, module, self._weak(module))

    def _hear(self, view: View) -> None:
        places = Places(view)
        for event in view.kernel_events:
            severity = _ALARMS.get(event.kind)
            device = None if severity is None else places.device(event)
            if severity is None or device is None:
                continue
            evidence = Evidence("kmsg", kernel_text(event), "", "kernel log")
            known = self._alarms.get(device)
            if known is None or severity >= known.severity:
                # mlx5 counts the sensors of transceivers from 64 on, the first word.
                chip = event.kind is KernelKind.SENSOR_HOT and not event.bits
                self._alarms[device] = _Alarm(event.at, severity, evidence, chip)

    def _hot(self, module: ModuleStatus) -> Severity | None:
        degrees = module.temperature_c
        if degrees is None:
            return None
        if module.alarm_c is not None and degrees >= module.alarm_c:
            return Severity.CRITICAL
        return Severity.WARNING if degrees >= self._limits.warning_celsius else None

    def _lit(self, module: ModuleStatus) -> list[float]:
        dark = self._limits.dark_dbm
        return [power for power in module.receive_power_dbm if power > dark]

    def _weak(self, module: ModuleStatus) -> Severity | None:
        lit = self._lit(module)
        if not lit:  # another module, or another far end, may come
            self._best.pop(module.port, None)
            return None
        worst = min(lit)
        best = self._best[module.port] = max(worst, self._best.get(module.port, worst))
        if worst <= self._limits.receive_critical_dbm:
            return Severity.CRITICAL
        return Severity.WARNING if worst <= self._limit_of(best) else None

    def _limit_of(self, best: float) -> float:
        """Return the power that warns: the fixed one, or a loss that is plain."""
        lost = best - self._limits.receive_drop_db
        early = min(lost, self._limits.receive_drop_dbm)
        return max(early, self._limits.receive_warning_dbm)

    def _findings(self, view: View) -> Iterator[Finding]:
        ports = {port.info.id: port for port in view.ports}
        enough = self._limits.samples
        told: set[str] = set()
        for where, streak in self._heat.items():
            if streak.samples >= enough and where in ports:
                told.add(where.device)
                yield self._heat_finding(where, streak, ports[where], view)
        for where, streak in self._light.items():
            if streak.samples >= enough and where in ports:
                yield self._light_finding(where, streak, ports[where], view)
        for device, alarm in tuple(self._alarms.items()):
            if view.now - alarm.at > self._limits.hold_seconds:
                del self._alarms[device]
            elif device not in told:
                yield from self._alarm_finding(device, alarm, view)

    def _shares_heat(self, where: PortId) -> bool:
        """Tell whether the other transceivers are about as hot: it is the room."""
        mine = self._newest[where].temperature_c
        others = [
            module.temperature_c
            for port, module in self._newest.items()
            if port != where and module.temperature_c is not None
        ]
        if mine is None or len(others) + 1 < self._limits.common_modules:
            return False
        return mine - median(others) <= self._limits.common_celsius

    def _shares_alarm(self, device: str, view: View) -> bool:
        """Tell whether most others are said to be too hot as well: it is the room."""
        others = by_device(view.ports).keys() - {device}
        if len(others) + 1 < self._limits.common_modules:
            return False
        return 2 * len(others & self._alarms.keys()) >= len(others)

    def _heat_finding(
        self, where: PortId, streak: _Streak, port: PortView, view: View
    ) -> Finding:
        module, onset = self._newest[where], streak.since + view.onset_offset
        shared = self._shares_heat(where)
        severity, action, text = _verdict(streak.severity, port)
        if shared:
            severity, action, text = _of_the_room(streak.severity)
        limit = self._limits.warning_celsius
        if streak.severity is Severity.CRITICAL and module.alarm_c is not None:
            limit = module.alarm_c
        evidence = [
            Evidence("temperature_c", module.temperature_c, "°C", module.source, limit)
        ]
        alarm = self._alarms.get(where.device)
        if alarm is not None:
            evidence.append(alarm.evidence)
            if (
                not shared
                and alarm.severity > severity
                and port.info.role is not (Role.MANAGEMENT)
            ):
                severity, action, _ = _verdict(alarm.severity, port)
        return Finding(
            kind="module_hot",
            subject=subject_of(port.info),
            onset=onset,
            evidence=tuple(evidence),
            summary=one_line(
                f"{where} module at {module.temperature_c:.0f} °C since "
                f"{clock(onset)}, limit {limit:g}: {text}"
            ),
            severity=severity,
            part=Part.OBSERVER if shared else Part.CULPRIT,
            action=action,
        )

    def _alarm_finding(
        self, device: str, alarm: _Alarm, view: View
    ) -> Iterator[Finding]:
        """Yield an alarm that no temperature stands beside, at the device's port."""
        ports = [p for p in view.ports if p.info.id.device == device]
        shared = self._shares_alarm(device, view)
        what = "chip" if alarm.is_of_chip else "module"
        for port in ports[:1]:
            severity, action, text = _verdict(alarm.severity, port, what)
            if shared:
                severity, action, text = _of_the_room(alarm.severity)
            onset = alarm.at + view.onset_offset
            yield Finding(
                kind="module_hot",
                subject=subject_of(port.info),
                onset=onset,
                evidence=(alarm.evidence,),
                summary=one_line(
                    f"{port.info.id} {what} said to be too hot at {clock(onset)}: {text}"
                ),
                severity=severity,
                part=Part.OBSERVER if shared else Part.CULPRIT,
                action=action,
                confidence=0.8,
            )

    def _light_finding(
        self, where: PortId, streak: _Streak, port: PortView, view: View
    ) -> Finding:
        module, onset = self._newest[where], streak.since + view.onset_offset
        lit = self._lit(module)
        severity, action, _ = _verdict(streak.severity, port)
        critical = streak.severity is Severity.CRITICAL
        limits = self._limits
        limit = self._limit_of(self._best.get(where, -inf))
        if critical:
            limit = limits.receive_critical_dbm
        evidence = Evidence("rx_power_dbm", min(lit), "dBm", f"module/{where}", limit)
        return Finding(
            kind="optics_weak",
            subject=subject_of(port.info),
            onset=onset,
            evidence=(evidence, Evidence("lit_lanes", len(lit), "lanes",
                                         f"module/{where}")),
            summary=one_line(
                f"{where} receives {min(lit):.1f} dBm since {clock(onset)}, limit "
                f"{limit:g}: connector, fibre or far module, not load"
            ),
            severity=severity,
            action=action,
        )  # fmt: skip


def _note(
    streaks: dict[PortId, _Streak], module: ModuleStatus, severity: Severity | None
) -> None:
    """Take a sample into the streak of its port; one that is over is dropped."""
    if severity is None:
        streaks.pop(module.port, None)
    else:
        streaks.setdefault(module.port, _Streak()).take(severity, module.at)


def _of_the_room(severity: Severity) -> tuple[Severity, Action, str]:
    """Judge what is as hot as the others: no quiet matter, but nobody's fault."""
    hot = severity is Severity.CRITICAL
    text = "as the others: the room, not this module"
    return Severity.WARNING if hot else Severity.INFO, Action.NONE, text


def _verdict(
    severity: Severity, port: PortView, what: str = "module"
) -> tuple[Severity, Action, str]:
    if port.info.role is Role.MANAGEMENT:
        return Severity.WARNING, Action.INSPECT, "management, not the fabric"
    text = "this module or its cooling, not the room"
    if what == "chip":
        text = "this card or its cooling, not its module"
    if severity is Severity.CRITICAL:
        return Severity.CRITICAL, Action.DRAIN_AFTER_JOB, text
    return Severity.WARNING, Action.INSPECT, text
