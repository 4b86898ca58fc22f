"""Seconds from start to READY, and from SIGTERM to exit with a read that hangs.

Eight mlx5 ports as files; one counter is a FIFO, whose read never returns.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tree import Node

RUNS = 5
HANGING = "sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error"


@dataclass(frozen=True, slots=True)
class Life:
    """One start and stop, in seconds."""

    ready: float
    stopped: float


def main() -> None:
    """Print the slowest of a few runs, without and with a hanging read."""
    for hanging in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            Node(root)
            if hanging:
                (root / HANGING).unlink()
                os.mkfifo(root / HANGING)
            lives = [_live(root) for _ in range(RUNS)]
        what = "one read hangs" if hanging else "all reads return"
        ready = max(life.ready for life in lives)
        stopped = max(life.stopped for life in lives)
        print(
            f"{what}: READY after {ready:.2f} s (bar 1), exit {stopped:.2f} s after "
            "SIGTERM (bar 2)"
        )


def _live(root: Path) -> Life:
    config = root / "fabricmon.yaml"
    config.write_text(
        f"root: {root}\nstate_folder: {root}/state\nrun_folder: {root}\n"
        "listen: {metrics: '127.0.0.1:0', page: '127.0.0.1:0'}\n",
        "utf-8",
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        address = root / "notify"
        address.unlink(missing_ok=True)
        supervisor.bind(str(address))
        supervisor.settimeout(10)
        begun = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "fabricmon", "run", "--config", str(config)],
            env=os.environ | {"NOTIFY_SOCKET": str(address)},
            stderr=subprocess.DEVNULL,
        ) as agent:
            while supervisor.recv(4096) != b"READY=1":
                pass
            ready = time.monotonic() - begun
            begun = time.monotonic()
            agent.send_signal(signal.SIGTERM)
            agent.wait(10)
            return Life(ready, time.monotonic() - begun)


if __name__ == "__main__":
    main()
