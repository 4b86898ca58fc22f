"""A wall clock that does not jump when the node's is set.

Logs tell time by the wall clock, and how long ago something was is a difference of
two such times: a clock that is set by an hour would end what is going on, or hold it.
"""

from __future__ import annotations

from dataclasses import replace

from fabricmon.model import View

LEAST_SECONDS = 1.0
"""A smaller step is how far apart the two clocks of a node are read."""


class SteadyClock:
    """Sets times back to the wall clock as it was at first."""

    def __init__(self) -> None:
        """Take the clock of the first view for the right one."""
        self._first: float | None = None
        self.step = 0.0
        """By how much the clock was set since; what is told has it added."""

    def view(self, view: View) -> View:
        """Return a view whose times are as if nobody had set the clock."""
        if self._first is None:
            self._first = view.onset_offset
        step = view.onset_offset - self._first
        self.step = 0.0 if abs(step) < LEAST_SECONDS else step
        if not self.step:
            return view
        events = tuple(
            event if event.time is None else replace(event, time=event.time - self.step)
            for event in view.log_events
        )
        return replace(view, wall=view.wall - self.step, log_events=events)
