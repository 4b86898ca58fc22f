"""All rails of a node slow since their job began: data goes through the host (F23).

Without GPUDirect every byte crosses host memory: all rails run at about half of the
line. Peers of such a node see the same pace and have no reason of their own, so the
pace alone says nothing: the PCIe side of most rails, or the log, must agree.

Where the PCIe side of most rails stalls and they are no slower than that, it is told as
information: so many queue pairs that devices fetch their state from the host (F28).
"""

from __future__ import annotations

from statistics import median

from fabricmon import catalogue
from fabricmon.config import Stragglers
from fabricmon.detect.local_evidence import LocalEvidence, Nature
from fabricmon.detect.rail_windows import is_rail
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Part,
    PortView,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

GPUDIRECT_OFF = "gdr_disabled"
"""Kind of the log event that says so."""

_STALLS = frozenset(
    spec.file for spec in catalogue.ROWS if spec.signal is catalogue.Signal.PCI_STALL
)
_GIGA, _BITS = 1e9, 8
_GUESS = 0.5  # of what may be behind stalls that slow nothing much
_AGAIN_SECONDS = 5.0  # signs come as often as errors are read


class _Pace(State):
    """How fast the rails of a job were since it began, as shares of the line rate."""

    began: float
    windows: int = 0
    fastest: float = 0.0
    stalled_since: float | None = None


class HostPace:
    """Follows the jobs of a node from their first window on."""

    def __init__(self, limits: Stragglers) -> None:
        """Start without any job."""
        self._limits = limits
        self._paces: dict[str, _Pace] = {}
        self._off: float | None = None
        self._finding: Finding | None = None
        self._looked = float("-inf")

    def note(self, view: View) -> None:
        """Remember that a log says that GPUDirect is off."""
        for event in view.log_events:
            if event.kind == GPUDIRECT_OFF and event.host in (None, view.node):
                self._off = view.now

    def forget(self, jobs: set[str]) -> None:
        """Keep these jobs only: what another one did says nothing."""
        for job in self._paces.keys() - jobs:
            del self._paces[job]
        if not self._paces:
            self._finding = None

    def take(self, job: str, rates: dict[str, float], began: float) -> None:
        """Take the rails of a window in which a job worked, as shares of the line."""
        pace = self._paces.setdefault(job, _Pace(began))
        pace.windows += 1
        pace.fastest = max(pace.fastest, median(rates.values()))

    def judge(self, view: View, local: LocalEvidence) -> Finding | None:
        """Return the finding, None while something is fast or nothing agrees."""
        enough = self._limits.host_path_windows
        paces = [pace for pace in self._paces.values() if pace.windows >= enough]
        if not paces:
            self._finding = None
            return None
        if view.now - self._looked >= _AGAIN_SECONDS:
            self._looked = view.now
            slowest = min(paces, key=lambda pace: pace.fastest)
            self._finding = self._look(slowest, view, local)
        return self._finding

    def _is_slow(self, pace: _Pace) -> bool:
        return pace.fastest <= self._limits.host_path_ratio

    def _look(self, pace: _Pace, view: View, local: LocalEvidence) -> Finding | None:
        rails = [port for port in view.ports if is_rail(port)]
        natures = [local.natures(port, view) for port in rails]
        if any(Nature.LINK in each or Nature.STATE in each for each in natures):
            return None  # a link is the story
        stalled = sum(Nature.PCIE in each for each in natures)
        needed = self._limits.host_path_devices * len(rails)
        is_stalled = stalled >= max(needed, 2)
        if self._is_slow(pace) and (is_stalled or self._off is not None):
            return self._tell(pace, view, stalled, rails)
        shown = [_stall_of(port, view, local) for port in rails] if is_stalled else []
        found = [evidence for evidence in shown if evidence is not None]
        if len(found) < max(needed, 2):  # it is the bus itself, and told elsewhere
            return None
        return self._note_stalls(pace, view, _stalled(len(found), rails), found[0])

    def _note_stalls(
        self, pace: _Pace, view: View, rails: Evidence, first: Evidence
    ) -> Finding:
        if pace.stalled_since is None:
            pace.stalled_since = view.now
        return Finding(
            kind="host_path_slow",
            subject=Subject(),
            onset=pace.stalled_since + view.onset_offset,
            evidence=(rails, first),
            summary=one_line(
                f"PCIe stalls on {rails.value} of {rails.threshold} rails under load, "
                "perhaps too many queue pairs: no fault of a link or device"
            ),
            severity=Severity.INFO,
            part=Part.OBSERVER,
            confidence=_GUESS,
        )

    def _tell(
        self, pace: _Pace, view: View, stalled: int, rails: list[PortView]
    ) -> Finding:
        limits = self._limits
        seconds = round(view.now - pace.began, 1)
        evidence = [
            Evidence(
                "p99_rate_of_line",
                round(pace.fastest, 2),
                "ratio",
                "bursts",
                limits.host_path_ratio,
                seconds,
            ),
            _stalled(stalled, rails),
        ]
        if self._off is not None:
            evidence.append(Evidence(GPUDIRECT_OFF, "yes", "", "nccl_log"))
        since = clock(pace.began + view.onset_offset)
        why = (
            "GPUDirect is off" if self._off is not None else f"PCIe stalls on {stalled}"
        )
        return Finding(
            kind="host_path_slow",
            subject=Subject(),
            onset=pace.began + view.onset_offset,
            evidence=tuple(evidence),
            summary=one_line(
                f"all {len(rails)} rails at {pace.fastest:.0%} of the line since the job "
                f"began {since}: {why}; no fault of a link"
            ),
            severity=Severity.WARNING,
            part=Part.CULPRIT,
            action=Action.INSPECT,
            confidence=0.9 if self._off is not None else 0.8,
        )


def _stalled(stalled: int, rails: list[PortView]) -> Evidence:
    return Evidence("pci_stall_rails", stalled, "ports", "fabricmon", len(rails))


def _stall_of(port: PortView, view: View, local: LocalEvidence) -> Evidence | None:
    """Return the stalls of a port, None where it waits for nothing."""
    signs = (sign.evidence for sign in local.of(port, view))
    return next((each for each in signs if each.signal in _STALLS), None)


def share_of_line(port: PortView, p99: float) -> float | None:
    """Return a rate in bytes per second as a share of the line rate."""
    gbps = None if port.status is None else port.status.rate.gbps
    return None if not gbps else p99 / (gbps * _GIGA / _BITS)
