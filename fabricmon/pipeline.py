"""One node, step by step: polls that are due, their records, findings, a snapshot.

The live agent and the replay drive the same object; it has no clock and no threads
of its own. `Reader` runs the polls, at once (replay) or in lanes (live).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from fabricmon.bursts import is_sample
from fabricmon.config import Config
from fabricmon.detect.protocol import Detector, KnowsJobs
from fabricmon.fusion import Fusion
from fabricmon.incidents import Incidents
from fabricmon.intake import Intake
from fabricmon.lanes import Reader, Repeater
from fabricmon.model import (
    Blindness,
    Delivery,
    Finding,
    Health,
    Incident,
    PortId,
    PortSnapshot,
    ReadFailure,
    Snapshot,
    Subject,
    Topology,
    View,
)
from fabricmon.model.snapshot import NO_FACTS, NO_TOPOLOGY
from fabricmon.port_portraits import PortPortraits
from fabricmon.saved import SavedState
from fabricmon.schedule import Schedule
from fabricmon.sources.protocol import Lane, Source
from fabricmon.value import Value
from fabricmon.verdicts import of_node

JUDGE_SECONDS = 1.0
"""Longest time without a judgement while something is wrong: things also age."""

CALM_SECONDS = 5.0
"""The same while all is well, as long as the rhythm of the error counters."""

WATCHFUL_SECONDS = 15.0
"""All is not yet well so long after a log, the kernel or a finding told something."""

SLOW_SECONDS = 60.0
"""Rhythm of what is dear and changes slowly: blindness, errors of the last hour."""


START_SECONDS = 30.0
"""Until then a node that does not answer is starting, after it it is in trouble."""

READY_LANES = frozenset({Lane.NODE, Lane.DEVICE})
"""Lanes that must have answered once before the node counts as seen."""


class Moment(Value, frozen=True):
    """The host's clocks and counts at one step."""

    now: float
    wall: float
    firmware_reads: int = 0


class Parts(Value, frozen=True):
    """What a pipeline is made of."""

    config: Config
    node: str
    config_hash: str
    sources: Sequence[Source]
    detectors: Sequence[Detector]
    reader: Reader
    phase: float = 0.0


class Pipeline:
    """Runs the node; `step` is the only thing that moves it."""

    def __init__(self, parts: Parts, start: Moment) -> None:
        """Schedule the first polls at ``start``."""
        self._parts = parts
        self._start = start
        self.schedule = Schedule(start.now - parts.phase)
        self.incidents = Incidents(parts.config, parts.node)
        self.intake = Intake(parts.config, parts.sources, self.schedule)
        self.intake.start(start.now)
        knowing = (d for d in parts.detectors if isinstance(d, KnowsJobs))
        self._job_knower = next(knowing, None)
        self._portraits = PortPortraits(parts.config, self.intake, parts.detectors)
        self._fusion = Fusion(parts.config, parts.detectors)
        self._topology = NO_TOPOLOGY
        self._place = Topology(cluster=parts.config.cluster or None)
        self._steps = 0
        self._judged_at = start.now - CALM_SECONDS
        self._patience = JUDGE_SECONDS  # seconds without a judgement, as of now
        self._watchful_until = start.now + WATCHFUL_SECONDS
        self._stepped_at = start.now
        reader = parts.reader
        self._repeater = reader if isinstance(reader, Repeater) else None
        self.intake.bursts.repeats = self._repeater is not None
        self._gap: float | None = None
        self._blind: tuple[Blindness, ...] = ()
        self._blind_at = start.now - SLOW_SECONDS
        self._blind_layout = -1
        self.unsaved: ReadFailure | None = None
        """Why the state could not be saved, as told by whoever saves it."""
        self.awaits_save = False
        """Whether whoever saves the state has not yet managed to once."""
        self.keeps_history = False
        """Whether the last minutes are to be kept."""
        self.unrecorded: ReadFailure | None = None
        """Why they are not, as told by whoever keeps them."""
        self.deliveries: tuple[Delivery, ...] = ()
        """How the sinks that send fare, as told by whoever has them."""
        self._judged: tuple[Moment, View | None] = start, None
        self._snapshot: Snapshot | None = None

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._parts.config

    @property
    def snapshot(self) -> Snapshot:
        """What was judged last, made when it is first asked for: a replay never asks."""
        if self._snapshot is None:
            self._snapshot = self._make_snapshot(*self._judged)
        return self._snapshot

    @property
    def next_due(self) -> float:
        """When `step` must be called next, at the latest."""
        due = self.schedule.next_due
        usual = self.config.periods.devices_seconds
        idle = self._judged_at + max(self._patience, usual)
        return idle if due is None else min(due, idle)

    @property
    def started_at(self) -> float:
        """When the pipeline was made, monotonic seconds of the host."""
        return self._start.now

    def has_seen_all(self) -> bool:
        """Tell whether every device was read once or hangs, tools left aside."""
        deadline = self.config.deadlines.read_seconds
        return self.schedule.has_settled(READY_LANES, self._stepped_at - deadline)

    def read_again(self) -> None:
        """Poll every device once more at the next step; `has_seen_all` starts over."""
        self.schedule.start_over(READY_LANES, self._stepped_at)

    def set_topology(self, topology: Topology) -> None:
        """Take leaf, rail and role of ports from a topology."""
        self.intake.inventory.set_topology(topology)
        self._topology = topology
        cluster = topology.cluster or self.config.cluster or None
        self._place = replace(topology, cluster=cluster)

    def hasten(self, source: str, target: str = "") -> None:
        """Poll a source at the next step instead of when it would be due."""
        self.schedule.hasten(source, target, self._stepped_at)

    def step(self, moment: Moment, *, judge: bool = False) -> tuple[Incident, ...]:
        """Start what is due, take in what has ended, judge; return what changed.

        Where nothing has come in, it is judged once a second while something is wrong,
        rarely while all is well, or if ``judge`` says so.
        """
        now = moment.now
        self._note_gap(now)
        for entry in self.schedule.take_due(now):
            self._parts.reader.submit(entry.job)
        fed = False
        for outcome in sorted(self._parts.reader.collect(now), key=is_sample):
            fed = self.intake.feed(outcome) or fed
        calm = now >= self._watchful_until and not self.intake.is_restless(now)
        self._patience = CALM_SECONDS if calm else JUDGE_SECONDS
        if not (fed or judge) and now - self._judged_at < self._patience:
            return ()
        return self._judge(moment)

    def _note_gap(self, now: float) -> None:
        late = now - self._stepped_at
        shortest = self.config.periods.devices_seconds
        if late > self.config.telemetry.gap_polls * shortest:
            self._gap = late
        self._stepped_at = now

    def save(self) -> SavedState:
        """Return what the next agent must know."""
        intake = self.intake
        boot_id = intake.boot.boot_id if intake.boot else ""
        return SavedState(
            node=self._parts.node,
            boot_id=boot_id,
            seq=self.incidents.seq,
            written=self._judged[0].wall,
            ever_active=tuple(sorted(intake.ever_active)),
            detectors={each.name: each.save() for each in self._parts.detectors},
            incidents=self.incidents.save(),
            inventory=intake.inventory.save(),
            counters=intake.window.save(boot_id),
            logs=intake.workload.saved_logs,
        )

    def restore(self, saved: SavedState) -> tuple[str, ...]:
        """Go on where an earlier agent ended; return what could not be used."""
        start, intake = self._start, self.intake
        intake.ever_active.update(saved.ever_active)
        intake.resume_counters(saved.counters)
        intake.resume_logs(saved.logs)
        self.incidents.restore(saved.incidents, saved.seq, start.now, start.wall)
        problems = []
        offset = start.wall - start.now
        parts: list[Callable[[], None]] = []
        if saved.inventory:
            parts.append(partial(intake.inventory.restore, saved.inventory))
        for detector in self._parts.detectors:
            kept = saved.detectors.get(detector.name, b"")
            if kept:
                parts.append(partial(detector.restore, kept, offset))
        for restore in parts:
            try:
                restore()
            except ValueError as error:
                problems.append(str(error))
        return tuple(problems)

    def inherit(self, previous: Pipeline) -> None:
        """Take over from a pipeline with another configuration: nothing is forgotten."""
        self.restore(previous.save())
        self.intake.inherit(previous.intake)
        if self.config.topology is None and previous.config.topology is None:
            self.set_topology(previous._topology)

    def _judge(self, moment: Moment) -> tuple[Incident, ...]:
        if self._repeater is not None:
            self.schedule.follow(self._repeater.progress())
        view = self._view(moment)
        self._judged_at = moment.now
        findings: list[Finding] = []
        for detector in self._parts.detectors:
            findings.extend(detector.judge(view))
        if self._job_knower is not None:
            findings = [self._job_knower.annotate(each, view) for each in findings]
        findings = self._fusion.judge(findings, view)
        changes = self.incidents.update(
            moment.now,
            moment.wall,
            findings,
            self._sight(view),
            self.intake.maintenance(moment.wall),
        )
        if self._fusion.suspects(changes):
            self.intake.bursts.suspect(moment.now)
        if changes or view.log_events or view.events or self.incidents.are_grave:
            self._watchful_until = moment.now + WATCHFUL_SECONDS
        self._look_for_blind_spots(view)
        self._steps += 1
        self._gap = None
        self._judged, self._snapshot = (moment, view), None
        return changes

    def _sight(self, view: View) -> Callable[[Subject], bool]:
        """Return what tells whether a subject cannot be seen now."""
        fresh = {port.info.id for port in view.ports if port.fresh}
        devices = {port.device for port in fresh}
        known = {port.info.id.device for port in view.ports}
        known |= {device.name for device in view.missing}
        enough = self.config.link_state.missing_polls
        gone = {device.name for device in view.missing if device.polls >= enough}
        started = self.has_seen_all() or view.now - self.started_at > START_SECONDS
        deadline = view.now - self.config.deadlines.read_seconds

        def held(subject: Subject) -> bool:
            if subject.device is None:
                return not started
            if subject.device in gone:
                return False
            if subject.device not in known:  # renamed, or not watched any more
                return not started
            if self.schedule.awaits(subject.device, deadline):
                return True  # just started: its counters may not be there yet
            if subject.port is None:
                return subject.device not in devices
            return PortId(subject.device, subject.port) not in fresh

        return held

    def _look_for_blind_spots(self, view: View) -> None:
        layout = self.intake.layout
        if layout == self._blind_layout and view.now - self._blind_at < SLOW_SECONDS:
            return
        self._blind_layout, self._blind_at = layout, view.now
        blind: list[Blindness] = []
        for detector in self._parts.detectors:
            blind.extend(detector.blind(view))
        self._blind = tuple(blind)

    def _view(self, moment: Moment) -> View:
        intake = self.intake
        news = intake.take_news()
        intake.bursts.keep_up(moment.now, intake.workload.job_starts)
        return View(
            now=moment.now,
            wall=moment.wall,
            node=self._parts.node,
            boot=intake.boot,
            ports=intake.port_views(moment.now),
            hcas=intake.inventory.hcas(),
            missing=intake.inventory.missing(moment.now),
            statuses=news.statuses,
            netdevs=news.netdevs,
            events=news.events,
            moves=news.moves,
            health=self.schedule.health(),
            failures=intake.failures(moment.now),
            reports=intake.reports(),
            counters=intake.window,
            class_error=intake.class_error,
            gap_seconds=self._gap,
            compute_shortfall=intake.inventory.compute_shortfall,
            maintenance=intake.maintenance(moment.wall),
            log_events=news.log_events,
            job=intake.workload.view,
            bursts=intake.bursts.windows,
            peers=self._topology.peers,
            kernel_events=intake.hardware.take_events(),
            host_side=intake.hardware.view,
        )

    def _make_snapshot(self, moment: Moment, view: View | None) -> Snapshot:
        incidents = self.incidents.open()
        ports: tuple[PortSnapshot, ...] = ()
        health: tuple[Health, ...] = ()
        failures: tuple[ReadFailure, ...] = ()
        if view is not None:
            ports = self._portraits.of(view, incidents)
            health, failures = view.health, view.failures
        intake = self.intake
        blind = intake.class_error is not None or not ports or bool(failures)
        verdicts = (port.verdict for port in ports)
        return Snapshot(
            node=self._parts.node,
            now=moment.now,
            wall=moment.wall,
            boot=intake.boot,
            layout=intake.layout,
            ports=ports,
            hcas=intake.inventory.hcas(),
            incidents=incidents,
            blind=self._blind,
            health=health,
            verdict=of_node(verdicts, incidents, blind=blind),
            class_error=intake.class_error,
            failures=failures,
            maintenance=intake.maintenance(moment.wall),
            firmware_reads=moment.firmware_reads,
            config_hash=self._parts.config_hash,
            steps=self._steps,
            started=self._start.wall,
            note=intake.inventory.role_note,
            unsaved=self.unsaved,
            awaits_save=self.awaits_save,
            keeps_history=self.keeps_history,
            unrecorded=self.unrecorded,
            maintenance_error=intake.maintenance_error,
            job=intake.workload.view,
            log_tallies=intake.workload.tallies,
            job_facts=self._job_knower.job_facts() if self._job_knower else NO_FACTS,
            bursts=intake.bursts.windows,
            host_side=intake.hardware.view,
            deliveries=self.deliveries,
            topology=self._place,
        )
