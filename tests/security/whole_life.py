"""An agent that does all that an agent does, from its start to its end."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.support.agent import CLASS, AgentProcess, Json, Node, merged
from tests.support.mqtt import Listener
from tests.support.servers import Server, wait_until

EXCLUDED = "mlx5_1"
WARNING = (
    "\nnode01:77:78 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from "
    "peer 10.0.0.9<4711> with status=12 opcode=0 len=0 vendor err 129 (Recv) "
    "hca mlx5_0\n"
)
PROGRESS_BYTES = 4096
PATIENCE_SECONDS = 240.0


class Life:
    """A node, an agent on it, and all that is configured for it."""

    def __init__(self, folder: Path, broker: int, prefix: Sequence[str] = ()) -> None:
        self.node = Node(folder)
        # Whoever opened this would hang: a trap beside what watches the calls.
        self.node.hang(f"{CLASS}/{EXCLUDED}/ports/1/state")
        self.textfile = folder / "collector" / "fabricmon.prom"
        self.textfile.parent.mkdir()
        self.log = self.node.root / "var/log/nccl/4711.log"
        self.log.parent.mkdir(parents=True)
        self.agent = AgentProcess(folder, self.config(broker), prefix)
        self.before_the_end: Callable[[], None] = lambda: None

    def config(self, broker: int) -> Json:
        """Return a configuration in which everything is on."""
        return {
            "devices": {"exclude": [EXCLUDED]},
            "bursts": {"every_seconds": 1, "window_seconds": 0.5},
            "textfile": {"path": str(self.textfile), "period_seconds": 1},
            "history": {"minutes": 1},
            "logs": {"discovery_seconds": 0.2, "settle_seconds": 0.1},
            "periods": {"nccl_log_seconds": 0.2},
            "mqtt": {
                "host": "127.0.0.1",
                "port": broker,
                "retry_seconds": 0.05,
                "redact": {"peers": "pseudonym"},
            },
        }

    def live(self, broker: Server | None = None, **environment: str) -> None:
        """Start, poll, sample, follow a log, send, write, reload, answer, stop."""
        agent = self.agent.start(ready=True, **environment)
        agent.until(self.textfile.exists, "the textfile is there", PATIENCE_SECONDS)
        self.node.state("mlx5_0", "1: DOWN", "2: Polling")
        self.log.write_text(WARNING * 3)
        for kind in ("port_down", "nccl_error"):
            agent.until(partial(agent.findings, kind), kind, PATIENCE_SECONDS)
        if broker is not None:
            with Listener(broker.port) as listener:
                listener.until("/summary", seconds=PATIENCE_SECONDS)
        for path in ("/metrics", "/healthz", "/readyz"):
            assert agent.get(path)
        self._reload()
        agent.until((agent.state_folder / "state.msgpack").exists, "it is saved")
        self.before_the_end()
        agent.stop()

    def _reload(self) -> None:
        loads = len(self.agent.lines("configuration_loaded"))
        tree = json.loads(self.agent.config_file.read_text("utf-8"))
        tree = merged(tree, {"bursts": {"every_seconds": 2}})
        self.agent.config_file.write_text(json.dumps(tree), "utf-8")
        self.agent.signal(signal.SIGHUP)
        self.agent.until(
            lambda: len(self.agent.lines("configuration_loaded")) > loads, "it reloads"
        )


def wait_for_the_trace(out: Path, pid: int) -> None:
    """Wait until strace wrote that the process has ended."""
    end = re.compile(rf"^{pid} +\+\+\+ exited with 0", re.MULTILINE)
    wait_until(
        lambda: end.search(out.read_text("utf-8", "replace")) is not None,
        20,
        "the trace is written",
    )
