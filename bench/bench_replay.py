"""How many times faster than real time a node is replayed, with bursts and without.

The embedded node has eleven devices, 41 counters each, and plays for 50 minutes. Time
is processor time, so that other work on the machine counts less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.resources import as_file, files

from fabricmon.config_load import build
from fabricmon.replaying import Replay

RUNS = 3


@dataclass(frozen=True, slots=True)
class Speed:
    """The best of a few runs."""

    times: float
    changes: int


def main() -> None:
    """Print both."""
    for bursts, bar in ((True, 200), (False, 1000)):
        speed = replay(bursts=bursts)
        which = "with bursts" if bursts else "without"
        print(
            f"{which}: {speed.times:,.0f} x real time, {speed.changes} changes of "
            f"findings (bar: {bar:,})"
        )


def replay(*, bursts: bool) -> Speed:
    """Replay a few times."""
    loaded = build({"bursts": {"enabled": bursts}}, (), ())
    with as_file(files("fabricmon").joinpath("demo.trace.jsonl.gz")) as trace:
        best, changes = 0.0, 0
        for _ in range(RUNS):
            played = Replay(trace, loaded)
            begun = time.process_time()
            changes = sum(1 for _ in played.changes())
            seconds = time.process_time() - begun
            best = max(best, played.host.monotonic() / seconds)
    return Speed(best, changes)


if __name__ == "__main__":
    main()
