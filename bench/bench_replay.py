"""How many times faster than real time a recorded node is replayed.

The embedded node has eleven devices, 41 counters each, and plays for 50 minutes.
"""

from __future__ import annotations

import time
from importlib.resources import as_file, files

from fabricmon.replaying import Replay

RUNS = 3


def main() -> None:
    """Replay a few times and print the best."""
    with as_file(files("fabricmon").joinpath("demo.trace.jsonl.gz")) as trace:
        best, changes = 0.0, 0
        for _ in range(RUNS):
            replay = Replay(trace)
            begun = time.process_time()
            changes = sum(1 for _ in replay.changes())
            seconds = time.process_time() - begun
            best = max(best, replay.host.monotonic() / seconds)
    print(
        f"replay: {best:,.0f} x real time, {changes} changes of findings (bar: 1,000)"
    )


if __name__ == "__main__":
    main()
