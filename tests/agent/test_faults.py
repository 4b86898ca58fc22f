"""A real agent on a node where something fails: the rest goes on, and it is said."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from resource import RLIMIT_NOFILE, prlimit

import pytest

from fabricmon.host.live_descriptors import MOST_DESCRIPTORS
from fabricmon.runtime.socket import NAME
from tests.agent.conftest import MakeAgent
from tests.support.agent import (
    CLASS,
    AgentProcess,
    Json,
    Node,
    on_own_disk,
    without_privileges,
)

OTHERS = ("mlx5_1", "mlx5_4", "mlx5_bond_0")


def verdicts(content: Json) -> dict[str, str]:
    """Return what `check` says of each device's port."""
    return {port["device"]: port["verdict"] for port in content["ports"]}


def goes_on(agent: AgentProcess, node: Node) -> None:
    """Fail unless the agent still follows what happens on the other devices."""
    counter = 'infiniband_symbol_error_total{device="mlx5_1",port="1"}'
    value = (agent.metric(counter) or 0) + 7
    node.put(node.port("mlx5_1", "counters/symbol_error"), f"{value:.0f}\n")
    agent.until(lambda: agent.metric(counter) == value, "a new value of another device")
    assert agent.lines("source_crashed") == []
    assert agent.lines("sink_failed") == []


def hang(node: Node, agent: AgentProcess) -> None:
    """Let a counter never come, and wait until that is told."""
    node.hang(node.port("mlx5_0", "counters/symbol_error"))
    agent.until(lambda: agent.check()["errors"], "the hang is told")


@pytest.fixture(scope="module")
def hung(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Node, AgentProcess]]:
    """Return an agent that reads a counter which never comes."""
    folder = tmp_path_factory.mktemp("hung")
    node, agent = Node(folder), AgentProcess(folder)
    try:
        hang(node, agent.start())
        yield node, agent
    finally:
        agent.close()


class TestHang:
    def test_the_rest_goes_on(self, hung: tuple[Node, AgentProcess]) -> None:
        """Other devices are read, judged and exported as before."""
        node, agent = hung
        goes_on(agent, node)
        found = verdicts(agent.check())
        assert {found[device] for device in OTHERS} == {"healthy"}

    def test_it_is_said(self, hung: tuple[Node, AgentProcess]) -> None:
        """The device is named, its port is unknown, and so is the node."""
        _, agent = hung
        content = agent.check()
        (error,) = content["errors"]
        assert (error["device"], error["errno"]) == ("mlx5_0", "ETIMEDOUT")
        agent.until(lambda: verdicts(agent.check())["mlx5_0"] == "unknown", "unknown")
        metrics = agent.metrics()
        series = 'unreadable{device="mlx5_0",errno="ETIMEDOUT",port=""}'
        assert metrics[series] == 1
        assert metrics["node_verdict"] == 1
        assert metrics['source_in_flight_seconds{source="errors"}'] > 0.5

    def test_it_ends(self, agent: AgentProcess, node: Node) -> None:
        """When the read returns, everything is as before."""
        hang(node, agent)
        path = node.port("mlx5_0", "counters/symbol_error")
        fifo = node.root / path
        kept = fifo.with_name("kept")
        fifo.rename(kept)
        node.put(path, "0\n")
        node.release(node.port("mlx5_0", "counters/kept"))
        kept.unlink()
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy again")
        assert agent.check()["errors"] == []


class TestDevices:
    def test_one_that_vanishes(self, node: Node, agent: AgentProcess) -> None:
        """It is missed; its series go, those of the others stay."""
        node.remove(f"{CLASS}/mlx5_0")
        agent.until(lambda: agent.findings("device_missing"), "it is missed")
        content = agent.check()
        assert content["verdict"] == "down"
        assert set(verdicts(content)) == set(OTHERS)
        agent.until(
            lambda: not any('device="mlx5_0",port' in s for s in agent.metrics()),
            "no value of it is exported any more",
        )
        goes_on(agent, node)

    def test_one_that_comes_back(self, node: Node, agent: AgentProcess) -> None:
        """The finding is resolved, and the port is read again."""
        path = node.root / CLASS / "mlx5_0"
        target = str(path.readlink())
        node.remove(f"{CLASS}/mlx5_0")
        agent.until(lambda: agent.findings("device_missing"), "it is missed")
        node.link(f"{CLASS}/mlx5_0", target)
        agent.until(lambda: not agent.findings("device_missing"), "it is back")
        agent.until(lambda: agent.check()["verdict"] == "healthy", "all is well")

    def test_one_that_cannot_be_opened(self, node: Node, make_agent: MakeAgent) -> None:
        """It is an error with its errno; the node is at least unknown."""
        folder = (node.root / CLASS / "mlx5_0").resolve()
        folder.chmod(0)
        agent = make_agent(prefix=without_privileges()).start()
        (error,) = agent.check()["errors"]
        assert (error["device"], error["errno"]) == ("mlx5_0", "EACCES")
        assert agent.check()["verdict"] == "unknown"
        series = 'unreadable{device="mlx5_0",errno="EACCES",port=""}'
        assert agent.metric(series) == 1
        goes_on(agent, node)
        folder.chmod(0o755)

    def test_none(self, tmp_path: Path, make_agent: MakeAgent) -> None:
        """Without the RDMA class the agent runs, says so, and waits for one."""
        node = Node(tmp_path, None)
        agent = make_agent().start()
        content = agent.check()
        (error,) = content["errors"]
        assert (error["file"], error["errno"]) == (f"/{CLASS}", "ENOENT")
        assert content["verdict"] == "unknown"
        metrics = agent.metrics()
        assert metrics["infiniband_class_readable"] == 0
        assert any('kind="port_down"' in s for s in metrics if "detector_blind" in s)
        (line,) = agent.lines("devices_unreadable")
        assert line["err"] == "ENOENT"
        assert node.root.exists()

    def test_a_class_that_cannot_be_listed(
        self, node: Node, make_agent: MakeAgent
    ) -> None:
        """That is another thing than none: no port is called gone."""
        (node.root / CLASS).chmod(0)
        agent = make_agent(prefix=without_privileges()).start()
        (error,) = agent.check()["errors"]
        assert error["errno"] == "EACCES"
        assert agent.findings("device_missing") == []
        (node.root / CLASS).chmod(0o755)
        agent.until(lambda: len(agent.check()["ports"]) == 4, "it can be listed")


class TestFiles:
    def test_single_counters_that_fail(self, node: Node, make_agent: MakeAgent) -> None:
        """Each has no value and a reason; their neighbours have theirs."""
        failing = {"symbol_error": "EIO", "link_error_recovery": "EINVAL"}
        targets = {"EIO": "/proc/self/mem", "EINVAL": "/sys/class/net/lo/speed"}
        for file, errno in failing.items():
            node.link(node.port("mlx5_0", f"counters/{file}"), targets[errno])
        agent = make_agent().start()
        port = agent.port_object("mlx5_0")
        assert port["unavailable"] == failing
        assert not port["counters"].keys() & failing.keys()
        assert port["counters"]["link_downed"] == 0
        metrics = agent.metrics()
        where = '{device="mlx5_0",port="1"}'
        assert metrics[f"infiniband_link_downed_total{where}"] == 0
        for file, errno in failing.items():
            assert f"infiniband_{file}_total{where}" not in metrics
            assert metrics[f'read_errors_total{{errno="{errno}",source="errors"}}'] >= 1

    def test_a_folder_of_counters(self, node: Node, make_agent: MakeAgent) -> None:
        """A port that shows no errors because none can be read is not healthy."""
        folder = node.root / node.port("mlx5_0", "counters")
        folder.chmod(0)
        agent = make_agent(prefix=without_privileges()).start()
        content = agent.check()
        (error,) = content["errors"]
        assert (error["device"], error["errno"]) == ("mlx5_0", "EACCES")
        assert error["file"].endswith("/mlx5_0/ports/1/counters")
        assert content["verdict"] == "unknown"
        goes_on(agent, node)
        folder.chmod(0o755)

    def test_the_state_of_a_port(self, node: Node, agent: AgentProcess) -> None:
        """A port whose state fails is unknown, with file and errno."""
        node.link(node.port("mlx5_0", "state"), "/sys/class/net/lo/speed")
        agent.until(lambda: agent.check()["errors"], "it is told")
        (error,) = agent.check()["errors"]
        assert (error["device"], error["file"], error["errno"]) == (
            *("mlx5_0", "state", "EINVAL"),
        )
        assert verdicts(agent.check())["mlx5_0"] == "unknown"


class TestDescriptors:
    def test_none_is_left(self, agent: AgentProcess, node: Node) -> None:
        """One line says so, and all goes on once there are some again."""
        opened = [int(each.name) for each in Path(f"/proc/{agent.pid}/fd").iterdir()]
        before = prlimit(agent.pid, RLIMIT_NOFILE)
        prlimit(agent.pid, RLIMIT_NOFILE, (min(opened), before[1]))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(agent.run_folder / NAME))
            agent.until(lambda: agent.lines("loop_failed"), "it is told")
            prlimit(agent.pid, RLIMIT_NOFILE, before)
        goes_on(agent, node)
        (line,) = agent.lines("loop_failed")
        assert "Too many open files" in line["err"]
        assert agent.lines("source_quarantined") == []

    def test_as_many_as_it_may_have(self, agent: AgentProcess) -> None:
        """A service begins with 1,024; the agent takes more where it may."""
        soft, hard = prlimit(agent.pid, RLIMIT_NOFILE)
        assert soft == hard or soft >= 2 * MOST_DESCRIPTORS


class TestState:
    @pytest.mark.parametrize(
        ("mount", "errno"),
        [
            ("mount -t tmpfs -o size=4k none {} && cat /dev/zero >{}/full", "ENOSPC"),
            ("mount -t tmpfs -o ro none {}", "EROFS"),
        ],
        ids=["full", "read-only"],
    )
    def test_a_disk_that_takes_nothing(
        self, tmp_path: Path, node: Node, make_agent: MakeAgent, mount: str, errno: str
    ) -> None:
        """Findings are made and served all the same; that they are not kept is said."""
        folder = tmp_path / "disk"
        folder.mkdir()
        config = {"state_folder": str(folder)}
        agent = make_agent(config, on_own_disk(mount, folder)).start()
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        agent.until(lambda: agent.findings("port_down"), "the port is found down")
        agent.until(lambda: agent.metric("state_saved") == 0, "it is exported")
        told = {(e["file"], e["errno"]) for e in agent.check()["errors"]}
        assert told == {(str(folder / "state.msgpack"), errno)}
        (line,) = agent.lines("state_unsaved")
        assert errno in line["err"]
        goes_on(agent, node)
        assert agent.stop() < 5

    def test_a_folder_that_cannot_be_made(
        self, node: Node, make_agent: MakeAgent
    ) -> None:
        """That nothing can be saved is known soon after the start, at rest too."""
        agent = make_agent({"state_folder": "/proc/none"}).start()
        agent.until(lambda: agent.lines("state_unsaved"), "it is logged")
        assert agent.metric("state_saved") == 0

    def test_it_is_saved_early(self, agent: AgentProcess) -> None:
        """Soon after the start the first state is on disk, and that is exported."""
        agent.until(lambda: agent.metric("state_saved") == 1, "it is exported")
        assert (agent.state_folder / "state.msgpack").exists()

    def test_a_damaged_state(self, node: Node, make_agent: MakeAgent) -> None:
        """It is ignored with one line, and replaced by a good one."""
        agent = make_agent()
        agent.state_folder.mkdir()
        file = agent.state_folder / "state.msgpack"
        file.write_bytes(b"\xc1 damaged")
        agent.start()
        (line,) = agent.lines("state_ignored")
        assert str(file) in line["err"]
        assert agent.check()["verdict"] == "healthy"
        agent.stop()
        assert b"damaged" not in file.read_bytes()
        assert agent.lines("state_unsaved") == []

    def test_no_run_folder(self, node: Node, make_agent: MakeAgent) -> None:
        """Nobody can ask it then; it watches, exports and says so."""
        agent = make_agent({"run_folder": "/proc/none"}).start()
        assert agent.metric("node_verdict") == 0
        (line,) = agent.lines("socket_unavailable")
        assert "/proc/none" in line["err"]
        goes_on(agent, node)
