"""Share of a core and memory of an agent at default periods, scraped every 15 s.

Eight mlx5 ports as files whose traffic moves. The kernel tells nothing of links that
are files, so their counters of outages are read every second.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

from bench_node_exporter import (
    cpu_seconds,
    fabricmon,
    get,
    resident_mib,
)
from tree import Node

SCRAPES = int(os.environ.get("SCRAPES", "12"))
SCRAPE_SECONDS = 15
WARM_SECONDS = 20


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        root = Path(folder)
        node = Node(root)
        stop = threading.Event()
        threading.Thread(target=node.keep_moving, args=(1.0, stop)).start()
        try:
            with fabricmon(root, periods={}) as agent:
                time.sleep(WARM_SECONDS)
                before, begun = cpu_seconds(agent.process.pid), time.monotonic()
                for _ in range(SCRAPES):
                    time.sleep(SCRAPE_SECONDS)
                    get(agent.url)
                spent = cpu_seconds(agent.process.pid) - before
                share = spent / (time.monotonic() - begun)
                memory = resident_mib(agent.process.pid)
        finally:
            stop.set()
    print(f"{share:.2%} of a core, {memory:.1f} MiB resident (bar 45)")


if __name__ == "__main__":
    main()
