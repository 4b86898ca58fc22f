"""A real job that dies on a node with a real agent: one incident tells it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent
from tests.support.agent import AgentProcess, Json, Node, in_own_mounts

DEVICE = "mlx5_4"
PEER = "10.31.7.9"
JOB = "4711"
LINES = 2000
BAR_SECONDS = 5.0

# Maps a library of NCCL's name, opens the log that its environment asks for, and
# prints a storm when it is told to.
PROCESS = """
import mmap, os, socket, sys
host = socket.gethostname().partition(".")[0]
library = open(sys.argv[1], "rb")
mapped = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
name = os.environ["NCCL_DEBUG_FILE"].replace("%h", host).replace("%p", str(os.getpid()))
log = open(name, "w", buffering=1)
head = f"{host}:{os.getpid()}:{os.getpid() + 7} [0]"
log.write(f"{head} NCCL INFO NCCL version 2.23.4+cuda12.6\\n")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    log.write(
        f"\\n{head} transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer "
        f"PEER<{40000 + number % 16}> with status=12 opcode=0 len=0 vendor err 129 (Recv) "
        "hca DEVICE\\n"
    )
print("done", flush=True)
sys.stdin.readline()
"""


class Training:
    """A process of a job that uses NCCL, as far as anyone outside can tell."""

    def __init__(self, folder: Path) -> None:
        library = folder / "libnccl.so.2.23.4"
        library.write_bytes(b"\x7fELF" + bytes(4096))
        code = PROCESS.replace("PEER", PEER).replace("DEVICE", DEVICE)
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(library), str(LINES)],
            env={
                "NCCL_DEBUG": "WARN",
                "NCCL_DEBUG_FILE": str(folder / "deep" / "nccl.%h.%p.log"),
                "AWS_SECRET_ACCESS_KEY": "hunter2-in-the-environment",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear("ready")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def die(self) -> None:
        """Print the storm of a job whose link is gone."""
        self._say()
        self._hear("done")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _hear(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    """Return a job's process that runs."""
    (tmp_path / "deep").mkdir()
    process = Training(tmp_path)
    yield process
    process.close()


def counted(agent: AgentProcess) -> float | None:
    """Return the lines that the agent has read of logs."""
    return agent.metric("log_lines_total")


def name_the_job(agent: AgentProcess, training: Training) -> None:
    """Leave the file that a prolog writes."""
    folder = agent.run_folder / "jobs"
    folder.mkdir(parents=True)
    entry = [{"job": JOB, "pids": [training.pid]}]
    (folder / f"{JOB}.json").write_text(json.dumps(entry), encoding="utf-8")


def test_a_storm_ends_in_one_incident(
    tmp_path: Path, node: Node, make_agent: MakeAgent, training: Training
) -> None:
    """Within 5 s it names port, peer and job, with what log and port say of it."""
    root = tmp_path / "root"
    prefix = in_own_mounts(
        f"mount --bind /proc {root}/proc; mkdir -p {root}{tmp_path}; "
        f"mount --bind {tmp_path}/deep {root}/deep"
    )
    (root / "deep").mkdir()
    config: Json = {
        "jobs": {"processes": True},
        "periods": {"jobs_seconds": 0.5, "nccl_log_seconds": 1, "hardware_seconds": 1},
        "logs": {"discovery_seconds": 1},
    }
    agent = make_agent(config, prefix)
    name_the_job(agent, training)
    agent.start()
    agent.until(lambda: counted(agent) is not None, "the log is followed")

    retries = node.port(DEVICE, "hw_counters/local_ack_timeout_err")
    before = int((root / retries).read_text(encoding="utf-8"))
    node.put(retries, f"{before + 16}\n")
    began = time.monotonic()
    training.die()
    agent.until(lambda: agent.findings("nccl_error"), "the error is told")
    assert time.monotonic() - began < BAR_SECONDS

    agent.until(lambda: (counted(agent) or 0) >= LINES, "all is read")
    opened = [f for f in agent.findings("nccl_error") if f["state"] == "open"]
    (finding,) = opened
    subject = finding["subject"]
    assert (subject["device"], subject["port"]) == (DEVICE, 1)
    assert (subject["peer"], subject["job"]) == (PEER, JOB)
    sources = {item["signal"]: item["source"] for item in finding["evidence"]}
    assert sources["C1 ib_completion_error"] == "nccl_log"
    assert "hw_counters" in sources["local_ack_timeout_err"]


def test_no_secret_leaves_the_process(
    tmp_path: Path, node: Node, make_agent: MakeAgent, training: Training
) -> None:
    """Only settings of the library are taken from an environment."""
    root = tmp_path / "root"
    prefix = in_own_mounts(f"mount --bind /proc {root}/proc")
    config: Json = {"jobs": {"processes": True}, "periods": {"jobs_seconds": 0.5}}
    agent = make_agent(config, prefix)
    name_the_job(agent, training)
    agent.start()
    agent.until(
        lambda: "fabricmon_job_info" in agent.get("/metrics"), "the job is known"
    )
    shown = agent.get("/metrics") + json.dumps(agent.check())
    shown += agent.log_file.read_text("utf-8")
    saved = [f.read_bytes() for f in agent.state_folder.rglob("*") if f.is_file()]
    assert "hunter2" not in shown
    assert all(b"hunter2" not in content for content in saved)
