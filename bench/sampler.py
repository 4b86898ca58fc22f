"""Says where the main thread's time goes, by looking now and then.

A timer rings, and what the package is doing then is noted. Unlike a profiler that is
called at each function call, it makes small functions no dearer than they are. It is
of use for work that does not sleep.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import fabricmon

PACKAGE = str(Path(fabricmon.__file__).parent)
SECONDS = 0.0005
"""Between two looks. Timers of processor time ring no more often than the kernel ticks,
which is 100 times a second on some."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A function, or a line of it where ``line`` is not 0."""

    file: str
    function: str
    line: int = 0


@dataclass(slots=True)
class Samples:
    """What was seen."""

    total: int = 0
    """Samples in which the package was at work."""
    files: Counter[str] = field(default_factory=Counter)
    """By the innermost file of the package that was at work."""
    functions: Counter[Place] = field(default_factory=Counter)
    """By that function, with what it calls outside of the package."""
    inclusive: Counter[Place] = field(default_factory=Counter)
    """By every function of the package that was at work."""
    lines: Counter[Place] = field(default_factory=Counter)
    """By the innermost line of the package."""

    def note(self, frame: FrameType | None) -> None:
        """Take one sample."""
        innermost = True
        seen: set[Place] = set()
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(PACKAGE):
                file = code.co_filename[len(PACKAGE) + 1 :]
                place = Place(file, code.co_qualname)
                if innermost:
                    self.files[file] += 1
                    self.functions[place] += 1
                    self.lines[Place(file, code.co_qualname, frame.f_lineno)] += 1
                    innermost = False
                seen.add(place)
            frame = frame.f_back
        self.total += not innermost
        self.inclusive.update(seen)


@contextmanager
def sampling() -> Iterator[Samples]:
    """Sample what the caller does, in the main thread."""
    samples = Samples()

    def note(_signal: int, frame: FrameType | None) -> None:
        samples.note(frame)

    before = signal.signal(signal.SIGALRM, note)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
