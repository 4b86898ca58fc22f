"""A node that a test drives through detectors and incidents, step by step."""

from __future__ import annotations

from typing import Any

from fabricmon.detect.protocol import Detector, KeepsOutages, KnowsJobs
from fabricmon.fusion import Fusion
from fabricmon.incidents import Incidents
from fabricmon.model import (
    Absence,
    Finding,
    Incident,
    IncidentState,
    KernelEvent,
    LinkEvent,
    LogEvent,
    MaintenanceWindow,
    NetdevStatus,
    OutageSummary,
    PeerAddress,
    PortId,
    PortInfo,
    Subject,
)
from fabricmon.model.host_side import NO_HOST_SIDE
from fabricmon.model.view import NO_JOB
from fabricmon.parse.words import PhysState, PortState
from tests.views import Feed, port

RAILS = tuple(port(f"mlx5_{rail}", rail=rail) for rail in range(8))
REMEMBERING = ("link_downed", "carrier_down_count")


def pid(rail: int) -> PortId:
    """Return port 1 of the device of a rail."""
    return PortId(f"mlx5_{rail}", 1)


class Node(Feed):
    """A feed with detectors behind it; `changes` is all that incidents told."""

    def __init__(
        self,
        *detectors: type[Detector],
        infos: tuple[PortInfo, ...] = RAILS,
        begin: bool = True,
        fused: bool = False,
        **options: Any,
    ) -> None:
        options.setdefault("files", REMEMBERING)
        super().__init__(*infos, **options)
        self.detectors = tuple(detector(self.config) for detector in detectors)
        self.incidents = Incidents(self.config, "node-1")
        self.fusion = Fusion(self.config, self.detectors) if fused else None
        self.findings: list[Finding] = []
        self.changes: list[Incident] = []
        self.held = False
        self.events: tuple[LinkEvent, ...] = ()
        self.logged: list[LogEvent] = []
        self.job = NO_JOB
        self.kernel: list[KernelEvent] = []
        self.host_side = NO_HOST_SIDE
        self.peers: tuple[PeerAddress, ...] = ()
        self.maintenance: tuple[MaintenanceWindow, ...] = ()
        if begin:
            self.step_all()

    def run(self, seconds: float, each: float = 5.0) -> list[Incident]:
        """Let time pass; return what changed."""
        before = len(self.changes)
        for _ in range(max(round(seconds / each), 1)):
            self.step_all(each)
        return self.changes[before:]

    def step_all(self, seconds: float = 5.0) -> None:
        """Let time pass once and judge."""
        view = self.step(
            seconds,
            events=self.events,
            maintenance=self.maintenance,
            log_events=tuple(self.logged),
            job=self.job,
            peers=self.peers,
            kernel_events=tuple(self.kernel),
            host_side=self.host_side,
        )
        self.events = ()
        self.logged = []
        self.kernel = []
        self.findings = [f for each in self.detectors for f in each.judge(view)]
        for knower in (d for d in self.detectors if isinstance(d, KnowsJobs)):
            self.findings = [knower.annotate(each, view) for each in self.findings]
        if self.fusion is not None:
            self.findings = self.fusion.judge(self.findings, view)
        self.changes += self.incidents.update(
            view.now, view.wall, self.findings, self._is_held, self.maintenance
        )

    def restart(self) -> None:
        """Stop the agent and start another one from what it saved."""
        offset = self.wall - self.now
        old, kept, seq = self.detectors, self.incidents.save(), self.incidents.seq
        self.detectors = tuple(type(each)(self.config) for each in old)
        for new, each in zip(self.detectors, old, strict=True):
            new.restore(each.save(), offset)
        self.incidents = Incidents(self.config, "node-1")
        self.incidents.restore(kept, seq, self.now, self.wall)

    def down(self, rail: int = 0, phys: PhysState = PhysState.POLLING) -> None:
        """Let a port lose its link, as its state and counters tell."""
        self.link(PortState.DOWN, phys, where=self.rail(rail))
        self.grow(self.rail(rail), **dict.fromkeys(REMEMBERING, 1))

    def up(self, rail: int = 0) -> None:
        """Let a port have its link again."""
        self.link(PortState.ACTIVE, where=self.rail(rail))

    def past(self, rail: int = 0) -> OutageSummary:
        """Return the outages that the detector of flaps remembers of a port."""
        keeper = next(each for each in self.detectors if isinstance(each, KeepsOutages))
        return keeper.outages(self.of(self.rail(rail)).info)

    def rail(self, rail: int) -> PortId:
        """Return the port at this place."""
        return self.ids[rail]

    def interface(
        self, rail: int, operstate: str | None, *, carrier: bool | None
    ) -> None:
        """Let the interface of a port be so; no carrier is one the kernel refuses."""
        absent = (Absence("carrier", "EINVAL"),) if carrier is None else ()
        where = self.rail(rail)
        self.of(where).netdev = NetdevStatus(
            where, f"ib{rail}", self.now, operstate, carrier, absent
        )

    @property
    def opened(self) -> list[str]:
        """The kinds that opened, in order."""
        return [i.finding.kind for i in self.changes if i.state is IncidentState.OPEN]

    @property
    def kinds(self) -> list[str]:
        """The kinds that are open now."""
        return [incident.finding.kind for incident in self.incidents.open()]

    def open_of(self, kind: str) -> Incident:
        """Return the only open incident of a kind."""
        (incident,) = (i for i in self.incidents.open() if i.finding.kind == kind)
        return incident

    def _is_held(self, subject: Subject) -> bool:
        return self.held
