"""A real agent that keeps its last minutes: what was before the bundle is in it."""

from __future__ import annotations

import json
import signal
import stat
import tarfile
import zlib
from pathlib import Path

import pytest

from fabricmon.cli import main
from fabricmon.support.bundle import FOLDER, MANIFEST
from tests.agent.conftest import MakeAgent
from tests.agent.test_faults import goes_on
from tests.support.agent import AgentProcess, Json, Node, on_own_disk

HISTORY: Json = {"history": {"minutes": 10}}
EXPECTED: Json = {"expect": [{"ports": ["mlx5_0/1", "mlx5_4/1"], "up": True}]}


def fault(agent: AgentProcess, node: Node, device: str = "mlx5_0") -> None:
    """Let a port be down for a while, which is over when this returns.

    For longer than it takes to be found: a replay polls at other moments.
    """
    node.state(device, "1: DOWN", "2: Polling")
    agent.until(lambda: agent.findings("port_down"), "it is found")
    goes_on(agent, node)
    goes_on(agent, node)
    node.state(device, "4: ACTIVE")
    agent.until(lambda: not agent.findings("port_down"), "it is over")


def kept(folder: Path) -> str:
    """Return what can be read of the newest segment, which is still being written."""
    newest = max(folder.iterdir(), default=None, key=lambda p: p.name)
    if newest is None:
        return ""
    return zlib.decompressobj(wbits=31).decompress(newest.read_bytes()).decode()


def until_kept(agent: AgentProcess) -> None:
    """Wait until a fault is on disk, up to its end."""
    folder = agent.state_folder / "history"

    def is_over() -> bool:
        text = kept(folder)
        return -1 < text.rfind("1: DOWN") < text.rfind("4: ACTIVE")

    agent.until(is_over, "it is kept", 60)


def played(agent: AgentProcess, folder: Path, *words: str) -> list[tuple[str, str]]:
    """Make a bundle; return kinds and devices of what its replay finds, in order."""
    bundle, found = folder / "bundle.tar.gz", folder / "found.jsonl"
    own = ("--config", str(agent.config_file), "--seconds", "0", "--force")
    assert main(["support", str(bundle), *own, *words]) == 0
    assert main(["replay", str(bundle), "--findings", str(found)]) == 0
    documents = [json.loads(line) for line in found.read_text().splitlines()]
    opened = [d for d in documents if d["state"] == "open"]
    return [(d["kind"], d["subject"].get("device") or "") for d in opened]


def note(folder: Path) -> str:
    """Return what the bundle's manifest says of its trace."""
    with tarfile.open(folder / "bundle.tar.gz") as archive:
        stream = archive.extractfile(f"{FOLDER}/{MANIFEST}")
        assert stream is not None
        parts = json.load(stream)["parts"]
    return str(next(part["note"] for part in parts if part["name"] == "trace"))


class TestHistory:
    def test_a_fault_that_is_over(
        self, tmp_path: Path, node: Node, make_agent: MakeAgent
    ) -> None:
        """A bundle that is made after it finds it again, with names and without."""
        agent = make_agent(HISTORY | EXPECTED).start()
        fault(agent, node)
        until_kept(agent)
        assert ("port_down", "mlx5_0") in played(agent, tmp_path)
        assert " s that the agent kept, in 1 files, until 20" in note(tmp_path)
        assert "began" not in note(tmp_path)
        words = ("--anonymise", "--seconds", "0.5")
        assert ("port_down", "mlx5_0") in played(agent, tmp_path, *words)
        assert note(tmp_path).endswith(" s, from when the command began")
        assert agent.metric("history_kept") == 1
        agent.stop()
        assert ("port_down", "mlx5_0") in played(agent, tmp_path)

    def test_one_life_beyond_a_crash(
        self, tmp_path: Path, node: Node, make_agent: MakeAgent
    ) -> None:
        """A killed agent's segment is read up to its end, and the next one follows."""
        agent = make_agent(HISTORY | EXPECTED).start()
        fault(agent, node)
        until_kept(agent)
        agent.kill()
        agent.start()
        fault(agent, node, "mlx5_4")
        agent.stop()
        names = sorted(p.name for p in (agent.state_folder / "history").iterdir())
        assert [name[:6] for name in names] == ["000001", "000002"]
        assert names[0].endswith(".part")
        found = [x for x in played(agent, tmp_path) if x[0] == "port_down"]
        assert found == [("port_down", "mlx5_0"), ("port_down", "mlx5_4")]

    def test_it_is_bounded(self, node: Node, make_agent: MakeAgent) -> None:
        """With three seconds to keep, files of less than one second come and go."""
        agent = make_agent({"history": {"minutes": 0.05}}).start()
        folder = agent.state_folder / "history"
        agent.until((folder / "000001-000005.trace.jsonl.gz").exists, "rotated", 60)
        first = folder / "000001-000001.trace.jsonl.gz"
        agent.until(lambda: not first.exists(), "the first is removed", 60)
        assert len(list(folder.iterdir())) <= 8
        modes = {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
        assert modes == {0o600}

    def test_off(self, agent: AgentProcess) -> None:
        """Nothing is kept unless it is asked for."""
        assert not (agent.state_folder / "history").exists()
        assert agent.metric("history_kept") is None

    def test_reload(self, node: Node, agent: AgentProcess) -> None:
        """That it needs a restart is said."""
        agent.configure(HISTORY)
        agent.signal(signal.SIGHUP)
        agent.until(lambda: agent.lines("configuration_loaded"), "it is loaded")
        (line,) = agent.lines("configuration_loaded")
        assert line["restart_needed"] == ["history"]


class TestDisk:
    @pytest.mark.parametrize(
        ("mount", "why"),
        [
            (
                "mount -t tmpfs -o size=64k none {} && cat /dev/zero >{}/full",
                "No space left on device",
            ),
            ("mount -t tmpfs -o ro none {}", "Read-only file system"),
        ],
        ids=["full", "read-only"],
    )
    def test_one_that_takes_nothing(
        self, tmp_path: Path, node: Node, make_agent: MakeAgent, mount: str, why: str
    ) -> None:
        """One line says that the history has ended; all else goes on."""
        folder = tmp_path / "disk"
        folder.mkdir()
        agent = _on_disk(folder, make_agent, mount)
        agent.until(lambda: agent.metric("history_kept") == 0, "it is exported")
        told = [e for e in agent.check()["errors"] if e["file"] == f"{folder}/history"]
        assert why in told[0]["message"]
        goes_on(agent, node)
        (line,) = agent.lines("history_ended")
        assert why in line["err"]
        assert agent.stop() < 5


def _on_disk(folder: Path, make_agent: MakeAgent, mount: str) -> AgentProcess:
    config = HISTORY | {"state_folder": str(folder)}
    return make_agent(config, on_own_disk(mount, folder)).start()
