"""Where a fault is played: a node of files, a real agent, and what must always hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.agent import NODE, AgentProcess, Json, Node
from tests.support.servers import LOOPBACK, Server

PATIENCE_SECONDS = 60.0  # machines that test do much else
START_SECONDS = 60.0
LOOK_SECONDS = 0.05

MOST_MEMORY_MIB = 160
MOST_THREADS = 60
MOST_DESCRIPTORS = 700

NEVER = ("source_crashed", "sink_failed", "sink_ended", "loop_failed")
"""Log lines that tell of a bug: none of the faults may cause one."""

WITNESS = "mlx5_1"
"""The device to which nothing is done: it must be read on whatever happens."""


class Scene:
    """One agent on one node; `finish` holds what every row of the campaign expects."""

    def __init__(
        self,
        folder: Path,
        package: Path | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """Watch with the installed package, or the one below ``package``."""
        self.folder = folder
        self.patience = patience
        self.allowed: set[str] = set()
        self.memory_mib = MOST_MEMORY_MIB
        self.descriptors = MOST_DESCRIPTORS
        self.servers: list[Server] = []
        self.closes: list[Callable[[], object]] = []
        self._package = package
        self._agents: list[AgentProcess] = []
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node, which has four HCAs whose ports are well."""
        return self._node or self.make_node(NODE)

    @property
    def agent(self) -> AgentProcess:
        """The agent that was made first."""
        return self._agents[0] if self._agents else self.make()

    def make_node(self, manifest: Path | None) -> Node:
        """Make another node than the usual one."""
        self._node = Node(self.folder, manifest)
        return self._node

    def make(
        self,
        config: Json | None = None,
        prefix: Sequence[str] = (),
        name: str = "agent",
    ) -> AgentProcess:
        """Prepare an agent of the node."""
        assert self.node.root.exists()
        agent = AgentProcess(self.folder, config, prefix, name)
        self._agents.append(agent)
        return agent

    @property
    def environment(self) -> dict[str, str]:
        """What makes an agent run this campaign's package and no other."""
        if self._package is None:
            return {}
        return {"PYTHONPATH": str(self._package), "PYTHONSAFEPATH": "1"}

    def begin(
        self,
        agent: AgentProcess | None = None,
        *,
        ready: bool = True,
        **environment: str,
    ) -> AgentProcess:
        """Start an agent, by default one without further configuration."""
        agent = agent or self.agent
        readies = len(agent.supervisor.times("READY=1"))
        agent.start(ready=False, **(self.environment | environment))
        if ready:
            self.until(
                lambda: len(agent.supervisor.times("READY=1")) > readies,
                "it is ready",
                START_SECONDS,
            )
        return agent

    def start(
        self, config: Json | None = None, prefix: Sequence[str] = ()
    ) -> AgentProcess:
        """Make an agent and start it."""
        return self.begin(self.make(config, prefix))

    # Waiting

    def until(
        self, condition: Callable[[], object], what: str, seconds: float | None = None
    ) -> None:
        """Wait until a condition holds, while the agent lives."""
        end = time.monotonic() + (seconds or self.patience)
        while not self._holds(condition):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not in time")
            for agent in self._agents:
                if agent._process is not None:
                    agent._lives()
            time.sleep(LOOK_SECONDS)

    @staticmethod
    def _holds(condition: Callable[[], object]) -> bool:
        try:
            return bool(condition())
        except (OSError, StopIteration):  # it starts, turns us away, has no such port
            return False

    def pause(self, seconds: float) -> None:
        """Let time pass: what is played here is that it does."""
        time.sleep(seconds)

    def last_look(self, agent: AgentProcess) -> None:
        """Hold what is expected of a log although the agent did not start."""
        self.sound(agent)

    def line(self, event: str) -> Json:
        """Wait for a log line and return it; there may be only one."""
        self.until(lambda: self.agent.lines(event), f"{event} is logged")
        (line,) = self.agent.lines(event)
        return line

    def error(self, device: str | None, errno: str | None) -> Json:
        """Wait until `check` tells of such an error, and return it."""

        def found() -> list[Json]:
            errors = self.agent.check()["errors"]
            return [e for e in errors if (e["device"], e["errno"]) == (device, errno)]

        self.until(found, f"{errno} of {device} is told")
        return found()[0]

    def finding(self, kind: str, device: str | None = None) -> Json:
        """Wait for an open finding and return it."""

        def found() -> list[Json]:
            findings = self.agent.findings(kind)
            return [f for f in findings if device in {None, f["subject"].get("device")}]

        self.until(found, f"{kind} of {device} is found")
        return found()[0]

    def verdict(self, device: str, verdict: str) -> None:
        """Wait until a port has this verdict."""
        self.until(
            lambda: self.agent.port_object(device)["verdict"] == verdict,
            f"{device} is {verdict}",
        )

    def value(self, series: str, value: float | None) -> None:
        """Wait until a series has this value; None: until it is not there."""
        self.until(
            lambda: self.agent.metric(series) == value, f"{series} becomes {value}"
        )

    def above(self, series: str, value: float) -> None:
        """Wait until a series is above this value."""
        self.until(
            lambda: (self.agent.metric(series) or 0) > value, f"{series} > {value}"
        )

    def polls_on(self) -> None:
        """Wait until the devices were read several times more."""
        reads = self.agent.metric("firmware_reads_total") or 0
        self.above("firmware_reads_total", reads + 400)

    def polls_while(self, condition: Callable[[], object]) -> None:
        """Hold a condition for half a second."""
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert condition()
            time.sleep(LOOK_SECONDS)

    def reload(self) -> None:
        """Let the agent read its configuration again, and wait until that is over."""
        before = len(self.agent.supervisor.times("READY=1"))
        self.agent.signal(signal.SIGHUP)
        self.until(
            lambda: len(self.agent.supervisor.times("READY=1")) > before,
            "the reload is over",
        )

    # What always holds

    def goes_on(self, agent: AgentProcess | None = None) -> None:
        """Fail unless a device that has nothing to do with it is read and exported."""
        agent = agent or self.agent
        counter = f'infiniband_symbol_error_total{{device="{WITNESS}",port="1"}}'
        path = self.node.port(WITNESS, "counters/symbol_error")
        before = int((self.node.root / path).read_text())
        self.node.put(path, f"{before + 7}\n")
        self.until(
            lambda: agent.metric(counter) == before + 7,
            "a new value of another device",
        )

    def bounded(self, agent: AgentProcess | None = None) -> None:
        """Fail if the agent took more of anything than an agent may."""
        process = Path(f"/proc/{(agent or self.agent).pid}")
        status = (process / "status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        threads = re.search(r"Threads:\s+(\d+)", status)
        assert peak is not None
        assert threads is not None
        descriptors = len(list((process / "fd").iterdir()))
        assert int(peak[1]) < self.memory_mib * 1024, f"{peak[1]} KiB of memory"
        assert int(threads[1]) < MOST_THREADS, f"{threads[1]} threads"
        assert descriptors < self.descriptors, f"{descriptors} descriptors"

    def finish(self) -> None:
        """Hold what every row expects, of each agent that still runs, and end it."""
        for agent in self._agents:
            if agent._process is None:
                self.sound(agent)
                continue
            self.goes_on(agent)
            self.bounded(agent)
            agent.stop()
            self.sound(agent)

    def sound(self, agent: AgentProcess) -> None:
        """Fail if the log tells of a bug, or holds what is no line of JSON."""
        raw = agent.log_file.read_bytes().splitlines()
        for line in raw:
            if line.startswith(b"fabricmon: "):  # the one line of a refused start
                continue
            event = json.loads(line)["event"]
            assert event not in set(NEVER) - self.allowed, line[:1500].decode()

    def close(self) -> None:
        """End whatever is left, however the play went."""
        for agent in self._agents:
            process = agent._process
            if process is not None:  # one that is stopped takes no other signal
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
            agent.close()
        for server in self.servers:
            server.stop()
        for close in self.closes:
            close()

    def take_away(self, folder: Path) -> None:
        """Remove a folder at once: its agent may write into it at any time."""
        gone = self.folder / f"former-{folder.name}"
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    # Other ways to ask

    def page(self, port: int, path: str = "/") -> str:
        """Return what the status page answers."""
        url = f"http://{LOOPBACK}:{port}{path}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            text: bytes = reply.read()
        return text.decode()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of fabricmon's."""
        return subprocess.run(
            [sys.executable, "-m", "fabricmon", *words],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def status_field(pid: int, name: str) -> int:
    """Return a number of /proc/PID/status."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
