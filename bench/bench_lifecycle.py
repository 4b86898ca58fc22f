"""Seconds from start to READY, and from SIGTERM to exit, also with trouble.

Eight mlx5 ports as files. The trouble: one counter is a FIFO, whose read never returns,
and the broker takes connections and never says a word.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from programs import shipped_python
from tree import Node

RUNS = 5
SETTLE_SECONDS = 0.5
"""How long an agent lives before it is told to stop: it has met its broker by then."""

HANGING = "sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error"


@dataclass(frozen=True, slots=True)
class Life:
    """One start and stop, in seconds."""

    ready: float
    stopped: float


def main() -> None:
    """Print the slowest of a few runs, without and with trouble."""
    for trouble in (False, True):
        lives = measure(trouble=trouble)
        what = "a read hangs, a dead broker" if trouble else "all is well"
        ready = max(life.ready for life in lives)
        stopped = max(life.stopped for life in lives)
        print(
            f"{what}: READY after {ready:.2f} s (bar 1), exit {stopped:.2f} s after "
            "SIGTERM (bar 2)"
        )


def measure(*, trouble: bool) -> list[Life]:
    """Start and stop an agent a few times."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as dead:
        root = Path(folder, "node")
        root.mkdir()
        Node(root)
        python = shipped_python(Path(folder, "python"))
        settings: dict[str, object] = {}
        if trouble:
            (root / HANGING).unlink()
            os.mkfifo(root / HANGING)
            dead.bind(("127.0.0.1", 0))
            dead.listen()
            settings["mqtt"] = {"host": "127.0.0.1", "port": dead.getsockname()[1]}
        return [_live(root, python, settings) for _ in range(RUNS)]


def _live(root: Path, python: Path, settings: dict[str, object]) -> Life:
    config = root / "fabricmon.yaml"
    tree = {
        "root": str(root),
        "state_folder": f"{root}/state",
        "run_folder": str(root),
        "listen": {"metrics": "127.0.0.1:0", "page": "127.0.0.1:0"},
    }
    config.write_text(json.dumps(tree | settings), "utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        address = root / "notify"
        address.unlink(missing_ok=True)
        supervisor.bind(str(address))
        supervisor.settimeout(10)
        begun = time.monotonic()
        with subprocess.Popen(
            [str(python), "-P", "-m", "fabricmon", "run", "--config", str(config)],
            env=os.environ | {"NOTIFY_SOCKET": str(address)},
            stderr=subprocess.DEVNULL,
        ) as agent:
            while supervisor.recv(4096) != b"READY=1":
                pass
            ready = time.monotonic() - begun
            time.sleep(SETTLE_SECONDS)
            begun = time.monotonic()
            agent.send_signal(signal.SIGTERM)
            agent.wait(10)
            return Life(ready, time.monotonic() - begun)


if __name__ == "__main__":
    main()
