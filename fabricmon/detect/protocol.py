"""What a detector is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from fabricmon.config import Config
from fabricmon.model import (
    Blindness,
    Finding,
    JobFacts,
    OutageSummary,
    PortId,
    PortInfo,
    View,
)


class Detector(Protocol):
    """Judges a view. State it keeps is its own, small, and can be saved.

    A class is made with the configuration (``Detector(config)``) and registered by
    one line in `fabricmon.registry`.
    """

    name: str
    kinds: tuple[str, ...]

    def __init__(self, config: Config) -> None:
        """Take the thresholds from ``config``."""

    def judge(self, view: View) -> Iterable[Finding]:
        """Yield every finding that holds now; a kind that is an event once."""

    def blind(self, view: View) -> Iterable[Blindness]:
        """Yield the kinds that cannot be judged on this node, with the reason."""

    def save(self) -> bytes:
        """Return the state that must survive a restart, empty if none."""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; ``view_offset`` is wall minus monotonic.

        Saved times are Unix seconds. Raises ValueError for what it cannot read.
        """


@runtime_checkable
class KeepsOutages(Protocol):
    """A detector that remembers outages, for those who show and export them."""

    def outages(self, port: PortInfo) -> OutageSummary:
        """Return what is remembered of this port, zeros if nothing is."""


@runtime_checkable
class KnowsPause(Protocol):
    """A detector that knows since when a port holds the network up."""

    def pause_onset(self, port: PortId) -> float | None:
        """Return the Unix time at which it began, None while the port does not."""


@runtime_checkable
class KnowsJobs(Protocol):
    """A detector that hears of jobs: it tells of them, and joins others' findings."""

    def job_facts(self) -> JobFacts:
        """Return what is known of jobs and peers, for those who export it."""

    def annotate(self, finding: Finding, view: View) -> Finding:
        """Return a finding with what was heard of its subject as further evidence."""


@runtime_checkable
class Suspects(Protocol):
    """A detector that may have a suspicion before it has a finding."""

    suspicious: bool
