"""The command `fabricmon check`, as it is called; recorded nodes are in test_cases."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from fabricmon.cli.answers import REASON_CHARACTERS, reason
from fabricmon.runtime.socket import NAME, AgentSocket
from tests.parse.cases import FABRIC
from tests.support.agent import CLASS, FAST, Node, merged

Json = dict[str, Any]
WORDS = ("healthy", "degraded", "down", "unknown")
HEALTHY = {
    "schema": "fabricmon.check/1",
    "node": "from-the-agent",
    "verdict": "degraded",
    "source": "agent",
    "ports": [],
    "findings": [],
    "errors": [],
    "reasons": ["mlx5_3/1 flapped"],
}


class Check:
    """The command on a node's files, with a configuration."""

    def __init__(
        self, folder: Path, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.node = node
        self.file = folder / "check.yaml"
        self.run_folder = folder / "run"
        self.capsys = capsys
        self.errors = ""
        self.run_folder.mkdir()
        self.configure({})

    def configure(self, config: Json) -> None:
        """Write the configuration."""
        base = {
            "root": str(self.node.root),
            "run_folder": str(self.run_folder),
            "deadlines": {"read_seconds": 0.3},
        }
        self.file.write_text(json.dumps(merged(base, config)))

    def run(self, *words: str) -> tuple[int, str]:
        """Return the status and what was printed."""
        status = main(["check", "--config", str(self.file), *words])
        shown = self.capsys.readouterr()
        self.errors = shown.err
        return status, shown.out

    def document(self, *words: str) -> Json:
        """Return the object; its verdict must be the status."""
        status, text = self.run("--format", "json", *words)
        content: Json = json.loads(text)
        assert WORDS[status] == content["verdict"]
        return content

    def port(self, device: str, *words: str) -> Json:
        """Return what is said of port 1 of a device."""
        ports = self.document(*words)["ports"]
        return next(port for port in ports if port["device"] == device)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return the files of a node whose ports are all well."""
    return Node(tmp_path)


@pytest.fixture
def check(tmp_path: Path, node: Node, capsys: pytest.CaptureFixture[str]) -> Check:
    """Return the command on that node."""
    return Check(tmp_path, node, capsys)


@pytest.fixture
def agent(check: Check) -> Iterator[list[bytes]]:
    """Answer at the agent's socket; what it says may be changed."""
    answers = [json.dumps(HEALTHY).encode()]
    bound = AgentSocket.bind(str(check.run_folder / NAME))
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop, debug=False) as runner:
            runner.run(bound.serve(lambda _request: answers[0], stop))

    thread = threading.Thread(target=serve)
    thread.start()
    yield answers
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    bound.remove()


class TestSample:
    def test_well(self, check: Check) -> None:
        """Every port with its values, and who says so."""
        content = check.document()
        assert content["source"] == "sample"
        assert (content["verdict"], len(content["ports"])) == ("healthy", 4)
        assert check.errors == ""

    def test_node_name(self, check: Check) -> None:
        """It is the host's, unless it is configured."""
        assert check.document()["node"] == socket.gethostname()
        check.configure({"node": "n7"})
        assert check.document()["node"] == "n7"

    def test_a_port_that_is_down(self, check: Check, node: Node) -> None:
        """The worst port makes the node's verdict, and the status."""
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        assert check.port("mlx5_0")["verdict"] == "down"
        assert check.run()[0] == 2

    def test_no_driver(self, check: Check, node: Node) -> None:
        """Nothing to look at is unknown, and says why."""
        node.remove(CLASS)
        content = check.document()
        (error,) = content["errors"]
        assert (error["file"], error["errno"]) == (f"/{CLASS}", "ENOENT")
        assert check.run()[0] == 3

    def test_text_names_what_is_not_there(self, check: Check, node: Node) -> None:
        """A person finds the file: with the root, and the kernel's reason."""
        node.remove(CLASS)
        assert f"not read: {node.root}/{CLASS}: " in check.run()[1]
        assert "(ENOENT)" in check.run()[1]

    def test_a_read_that_hangs(self, check: Check, node: Node) -> None:
        """The device is named, the others are judged, and it ends in time."""
        node.hang(f"{CLASS}/mlx5_0/node_guid")
        content = check.document()
        (error,) = content["errors"]
        assert (error["device"], error["errno"]) == ("mlx5_0", "ETIMEDOUT")
        assert len(content["ports"]) == 3
        assert check.run()[0] == 3
        node.release(f"{CLASS}/mlx5_0/node_guid")

    def test_files_that_fail(self, check: Check, node: Node) -> None:
        """Absent, unreadable and zero are three things."""
        node.link(node.port("mlx5_0", "counters/symbol_error"), "/proc/self/mem")
        node.link(node.port("mlx5_0", "hw_counters/out_of_buffer"), "/sys/none")
        node.link(node.port("mlx5_0", "lid"), "/sys/class/net/lo/speed")
        port = check.port("mlx5_0")
        assert port["unavailable"] == {
            "symbol_error": "EIO",
            "out_of_buffer": "ENOENT",
            "lid": "EINVAL",
        }
        assert port["counters"]["port_rcv_constraint_errors"] == 0
        assert "symbol_error" not in port["counters"]
        assert port["lid"] is None

    def test_an_excluded_device(self, check: Check, node: Node) -> None:
        """It is not there, and what would hang in it is never opened."""
        node.hang(f"{CLASS}/mlx5_0/node_guid")
        check.configure({"devices": {"exclude": ["mlx5_0"]}})
        content = check.document()
        assert "mlx5_0" not in {port["device"] for port in content["ports"]}
        assert content["errors"] == []


class TestExpectations:
    def test_a_device_that_must_be_there(self, check: Check) -> None:
        """One that is not makes the node down, and is named once."""
        check.configure({"expected_devices": ["mlx5_0", "mlx5_9"]})
        content = check.document()
        (finding,) = content["findings"]
        assert (finding["kind"], finding["subject"]["device"]) == (
            "device_missing",
            "mlx5_9",
        )
        assert (finding["id"], finding["seq"]) == (None, None)
        assert content["verdict"] == "down"
        assert content["reasons"] == [finding["summary"]]

    def test_a_rate(self, check: Check, node: Node) -> None:
        """A compute port below it is degraded, whatever its peers do."""
        check.configure({"expected_rate_gbps": 400})
        assert check.document()["verdict"] == "healthy"
        node.put(node.port("mlx5_0", "rate"), "100 Gb/sec (1X NDR)\n")
        content = check.document()
        (finding,) = content["findings"]
        assert finding["kind"] == "rate_degraded"
        assert finding["evidence"][0]["threshold"] == 400
        assert content["verdict"] == "degraded"

    def test_expectations_of_ports(self, check: Check) -> None:
        """They decide role and rail."""
        port = {"ports": ["mlx5_0/1"], "rail": "r7", "role": "storage"}
        check.configure({"expect": [port]})
        told = check.port("mlx5_0")
        assert (told["rail"], told["role"]) == ("r7", "storage")


class TestInterval:
    def test_errors_that_grow(
        self, check: Check, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They degrade the port, with their increase as the reason."""
        from fabricmon.sampling import Sampler  # noqa: PLC0415

        again = Sampler._run

        def grow(self: Sampler, until: float, *, until_seen: bool) -> None:
            if not until_seen:
                path = node.port("mlx5_0", "counters/symbol_error")
                node.put(path, "500\n")
            again(self, until, until_seen=until_seen)

        monkeypatch.setattr(Sampler, "_run", grow)
        port = check.port("mlx5_0", "--interval", "0.2")
        assert port["verdict"] == "degraded"
        (why,) = port["reasons"]
        assert why.startswith("symbol_error +500 in ")

    def test_nothing_grows(self, check: Check) -> None:
        """Then two looks say what one says."""
        assert check.document("--interval", "0.1")["verdict"] == "healthy"

    def test_a_finding_is_told_once(self, check: Check) -> None:
        """Also where both the look and a detector see it."""
        check.configure(merged(FAST, {"expected_devices": ["mlx5_9"]}))
        findings = check.document("--interval", "1")["findings"]
        assert [finding["kind"] for finding in findings] == ["device_missing"]


@pytest.mark.usefixtures("agent")
class TestAgent:
    def test_it_is_asked(self, check: Check) -> None:
        """It remembers what one look cannot show; its answer is passed on."""
        content = check.document()
        assert (content["node"], content["source"]) == ("from-the-agent", "agent")

    def test_text_says_who(self, check: Check) -> None:
        """A person sees whose judgement it is."""
        assert "(from the running agent)" in check.run()[1]
        assert "(from one sample: " in check.run("--sample")[1]
        assert "(from two samples: " in check.run("--interval", "0.1")[1]

    @pytest.mark.parametrize("words", [["--sample"], ["--interval", "0.1"]])
    def test_it_is_not_wanted(self, check: Check, words: list[str]) -> None:
        """A second opinion, and what the agent does not do."""
        assert check.document(*words)["source"] == "sample"

    def test_another_root(self, check: Check, node: Node) -> None:
        """The agent watches this node; the files of another are looked at."""
        content = check.document("--root", str(node.root))
        assert content["source"] == "sample"

    @pytest.mark.parametrize(
        "answer", [b'{"error": "no"}', b"nonsense", b'{"verdict": "fine"}', b"[]"]
    )
    def test_an_answer_that_is_none(
        self, check: Check, agent: list[bytes], answer: bytes
    ) -> None:
        """An agent of another version, or a broken one, costs nothing but itself."""
        agent[0] = answer
        assert check.document()["source"] == "sample"


class TestFormats:
    def test_text(self, check: Check, node: Node) -> None:
        """The worst comes first, with its reason, and who says so comes last."""
        node.state("mlx5_4", "1: DOWN", "2: Polling")
        lines = check.run()[1].splitlines()
        assert lines[0] == "verdict: down"
        assert lines[1].startswith("mlx5_4/1 ")
        assert "DOWN/Polling" in lines[2]
        assert lines[-1].startswith("(from one sample because no agent answers at ")
        assert str(check.run_folder / NAME) in lines[-1]

    def test_nagios_ok(self, check: Check) -> None:
        """One line with the number of ports."""
        assert check.run("--format", "nagios") == (0, "FABRIC OK - 4 ports\n")

    @pytest.mark.parametrize(
        ("state", "status", "word"),
        [("1: DOWN", 2, "CRITICAL"), ("9: ODD", 3, "UNKNOWN")],
    )
    def test_nagios(
        self, check: Check, node: Node, state: str, status: int, word: str
    ) -> None:
        """Its words and numbers, and the reason."""
        node.state("mlx5_0", state)
        found, line = check.run("--format", "nagios")
        assert found == status
        assert line.startswith(f"FABRIC {word} - fabricmon: mlx5_0/1 ")
        assert line.count("\n") == 1

    def test_reason_of_a_healthy_node(self, check: Check) -> None:
        """Nothing: a scheduler shows what is printed."""
        assert check.run("--format", "reason") == (0, "")

    def test_reason(self, check: Check, node: Node) -> None:
        """One line that fits Slurm's lists, and says how much more there is."""
        for device in ("mlx5_0", "mlx5_1", "mlx5_4"):
            node.state(device, "1: DOWN", "2: Polling")
        status, line = check.run("--format", "reason")
        assert status == 2
        assert line.startswith("fabricmon: mlx5_0/1 DOWN/Polling")
        assert line.endswith(" (+2)\n")
        assert len(line) <= REASON_CHARACTERS + 1

    def test_reason_names_its_subject_once(self) -> None:
        """Of 80 characters none is spent twice."""
        port = {"device": "mlx5_0", "port": 1, "verdict": "down"}
        port |= {"reasons": ["mlx5_0/1 down since 10:00:00Z"]}
        content = {"verdict": "down", "ports": [port], "errors": []}
        assert reason(content) == "fabricmon: mlx5_0/1 down since 10:00:00Z"

    def test_reason_of_a_node(self) -> None:
        """What is wrong with the node as a whole needs no name."""
        error = {"device": None, "message": "no RDMA class", "errno": None}
        content = {"verdict": "unknown", "ports": [], "errors": [error]}
        assert reason(content) == "fabricmon: no RDMA class"

    @pytest.mark.parametrize("ports", [0, 1, 3, 12_345])
    @pytest.mark.parametrize("length", [0, 1, 60, 200])
    def test_no_reason_is_longer(self, ports: int, length: int) -> None:
        """However many ports are bad, and however long their stories are."""
        bad = {
            "device": "mlx5_0",
            "port": 1,
            "verdict": "degraded",
            "reasons": ["x\ny " * length],
        }
        content = {"verdict": "degraded", "ports": [bad] * ports, "errors": []}
        line = reason(content)
        assert 0 < len(line) <= REASON_CHARACTERS
        assert "\n" not in line


class TestIbstat:
    def test_nothing_else_is_looked_at(self, check: Check, node: Node) -> None:
        """Neither the agent nor the files: the text alone decides."""
        node.remove(CLASS)
        content = check.document("--ibstat", str(FABRIC / "ibstat-split-200g.txt"))
        assert content["source"] == "sample"
        assert content["ports"]

    @pytest.mark.parametrize("option", ["--ibstat", "--ibstat-stderr"])
    def test_a_file_that_is_not_there(self, check: Check, option: str) -> None:
        """That is wrong usage, and no verdict."""
        words = ["--ibstat", str(FABRIC / "ibstat-split-200g.txt"), option, "/none"]
        assert check.run(*words) == (64, "")
        assert check.errors == (
            "fabricmon check: cannot read /none: No such file or directory\n"
        )
