"""The monitor watches itself: full and cleared counters, old values, dead sources."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.counter_ceilings import CounterCeilings, SavedCeiling
from fabricmon.detect.counter_resets import CounterResets, SavedReset
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.source_health import SourceHealth
from fabricmon.detect.tool_differences import ToolDifferences
from fabricmon.kinds import KINDS, About
from fabricmon.model import Blindness, Finding, View


class SavedTelemetry(Struct, frozen=True):
    """What must survive a restart; times are Unix seconds."""

    ceilings: tuple[SavedCeiling, ...] = ()
    resets: tuple[SavedReset, ...] = ()


class Telemetry:
    """Says what cannot be seen."""

    name = "telemetry"
    kinds: tuple[str, ...] = (
        "counter_saturated",
        "counter_reset",
        "telemetry_stale",
        "source_failed",
    )

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``config.telemetry``."""
        self._ceilings = CounterCeilings()
        self._resets = CounterResets(config)
        self._sources = SourceHealth(config)
        self._differences = ToolDifferences()
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what the monitor cannot see, or could not for a moment."""
        self._offset = view.onset_offset
        yield from self._ceilings.judge(view)
        yield from self._resets.judge(view)
        yield from self._sources.judge(view)
        yield from self._differences.judge(view, self._sources.stale)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Yield every kind about ports where the RDMA class as a whole cannot be seen.

        Where only its own files are missing, a detector says so itself.
        """
        reason = None
        if view.class_error == "ENOENT":
            reason = "the node has no RDMA driver"
        elif view.class_error is not None:
            reason = f"the RDMA class cannot be listed: {view.class_error}"
        if reason is not None:
            for kind in KINDS:
                if kind.about is About.PORT and kind.slug not in self.kinds:
                    yield Blindness(kind.slug, reason)

    def save(self) -> bytes:
        """Return since when counters are full and when resets were told."""
        ceilings, resets = self._ceilings.save(), self._resets.save(self._offset)
        return pack(SavedTelemetry(ceilings, resets))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedTelemetry)
        self._ceilings.restore(state.ceilings)
        self._resets.restore(state.resets, view_offset)
