"""What a target of fuzzing is, and what is asked of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
CRASHES = DATA / "fuzz"
"""One folder for each target: inputs that once failed."""

SECONDS = 0.25
SECONDS_A_BYTE = 20e-6
"""An input may take so long on the CPU: the slowest reader, YAML, takes a third."""

Seeds = Callable[[], list[bytes]]


class SlowError(AssertionError):
    """An input took longer on the CPU than one of its length may."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function of bytes that may raise what its documentation says, and no more.

    ``seeds`` are sound inputs to start from, ``words`` pieces that get past first
    checks. ``slack`` multiplies the time that an input may take. ``repeated`` is how
    many bytes of one piece tell whether that time is linear: fewer where each costs
    much. Invariants are assertions in ``run``.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Seeds
    allowed: tuple[type[Exception], ...] = ()
    words: tuple[bytes, ...] = ()
    slack: float = 1.0
    repeated: int = 8000

    def attempt(self, data: bytes) -> None:
        """Run on an input; what is not allowed is raised, and `SlowError`."""
        before = time.thread_time()
        with suppress(*self.allowed):
            self.run(data)
        took = time.thread_time() - before
        most = self.slack * (SECONDS + SECONDS_A_BYTE * len(data))
        if took > most:
            raise SlowError(f"{len(data)} bytes took {took:.2f} s, most is {most:.2f}")

    def seconds(self, data: bytes) -> float:
        """Return how long an input takes on the CPU."""
        before = time.thread_time()
        with suppress(*self.allowed):
            self.run(data)
        return time.thread_time() - before

    def crashes(self) -> list[Path]:
        """Return the inputs that once failed."""
        return sorted((CRASHES / self.name).glob("*"))


def files(*patterns: str) -> Seeds:
    """Return what reads the files of ``tests/data`` that match."""

    def read() -> list[bytes]:
        found = [path for each in patterns for path in sorted(DATA.glob(each))]
        assert found, f"no seeds match {patterns}"
        return [path.read_bytes() for path in found if path.is_file()]

    return read


def texts(*seeds: str | bytes) -> Seeds:
    """Return what returns these."""
    found = [each.encode() if isinstance(each, str) else each for each in seeds]
    return lambda: list(found)
