"""How each port is shown: what was read of it, what is known of it, and its verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.config import Config
from fabricmon.detect.expectation import ExpectedUp
from fabricmon.detect.outage import TRAINED
from fabricmon.detect.protocol import Detector, KeepsOutages, KnowsPause
from fabricmon.intake import Intake
from fabricmon.model import (
    Incident,
    OutageSummary,
    PortInfo,
    PortSnapshot,
    PortView,
    View,
)
from fabricmon.observed import Observed
from fabricmon.parse.words import PortState
from fabricmon.verdicts import by_device, of_port

COUNT_SECONDS = 60.0
"""How often the errors of the last hour are counted where none came: it is dear."""


class PortPortraits:
    """Makes what sinks see of the ports."""

    def __init__(
        self, config: Config, intake: Intake, detectors: Sequence[Detector]
    ) -> None:
        """Ask the intake for what was read, detectors for what they remember."""
        self._intake = intake
        self._expected = ExpectedUp(config)
        keepers = (d for d in detectors if isinstance(d, KeepsOutages))
        self._outage_keeper = next(keepers, None)
        pausing = (d for d in detectors if isinstance(d, KnowsPause))
        self._pause_knower = next(pausing, None)

    def of(
        self, view: View, incidents: tuple[Incident, ...]
    ) -> tuple[PortSnapshot, ...]:
        """Return every port of a view as it stands beside what is open."""
        told = by_device(incidents)
        return tuple(
            self._port(port, view, told.get(port.info.id.device, ()))
            for port in view.ports
        )

    def _port(
        self, view: PortView, node: View, incidents: Sequence[Incident]
    ) -> PortSnapshot:
        port = view.info.id
        seen = self._intake.observed.port(port)
        self._count_errors(seen, node.now)
        verdict, reasons = of_port(view, incidents, self._waits(view, seen, node))
        history, pausing = self._outages(view.info), self._pause_knower
        window = self._intake.window
        return PortSnapshot(
            info=view.info,
            status=view.status,
            netdev=view.netdev,
            pci=view.pci,
            readings=self._intake.readings(view.info),
            verdict=verdict,
            reasons=reasons,
            saturated=tuple(spec.file for spec in window.saturated(port)),
            resets=window.resets(port),
            flaps=history.flaps,
            downtime_seconds=history.downtime_seconds,
            last_down=history.last_down,
            errors_per_hour=seen.errors_per_hour,
            traffic_received=tuple(seen.received),
            traffic_transmitted=tuple(seen.transmitted),
            pause_onset=pausing.pause_onset(port) if pausing else None,
        )

    def _waits(self, port: PortView, seen: Observed, node: View) -> float | None:
        """Return how long a port is not ACTIVE that should be, else None."""
        state = None if port.status is None else port.status.state
        if state is None or state is PortState.ACTIVE:
            return None
        why = self._expected.why_now(port, node, trained=state in TRAINED)
        return None if why is None else node.now - seen.since

    def _outages(self, port: PortInfo) -> OutageSummary:
        keeper = self._outage_keeper
        return OutageSummary() if keeper is None else keeper.outages(port)

    def _count_errors(self, seen: Observed, now: float) -> None:
        if seen.link_moved or now - seen.errors_counted_at >= COUNT_SECONDS:
            seen.count_errors(self._intake.window, now)
