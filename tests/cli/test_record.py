"""The command `fabricmon record`, as it is called."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fabricmon.cli import main
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import Verdict
from fabricmon.replaying import Replay
from tests.support.agent import CLASS, FAST, POLL_SECONDS, Node
from tests.support.servers import wait_until


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return the files of a node."""
    return Node(tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration that reads five times a second."""
    file = tmp_path / "fast.yaml"
    file.write_text(json.dumps({**FAST, "node": "node07"}))
    return file


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Give the signals back that the command takes for itself."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_is_recorded_can_be_replayed(
    node: Node, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The replayed node has the ports, values and configuration of the real one."""
    out = tmp_path / "x.trace.jsonl.gz"
    words = ["record", str(out), "--for", "1.5", "--root", str(node.root)]
    assert main([*words, "--config", str(config)]) == 0
    assert capsys.readouterr() == ("", "")
    replay = Replay(out)
    list(replay.changes())
    snapshot = replay.pipeline.snapshot
    assert replay.problems == ()
    assert snapshot.node == "node07"
    assert replay.pipeline.config.periods.state_seconds == POLL_SECONDS
    assert [port.info.id.device for port in snapshot.ports] == [
        *("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_bond_0"),
    ]
    assert all(port.readings for port in snapshot.ports)
    assert snapshot.verdict is Verdict.HEALTHY


def test_a_change_is_recorded_and_the_end_is_orderly(
    node: Node, config: Path, tmp_path: Path
) -> None:
    """SIGTERM ends it; until then every new value is written."""
    out = tmp_path / "x.trace.jsonl"
    command = [sys.executable, "-m", "fabricmon", "record", str(out)]
    command += ["--root", str(node.root), "--config", str(config)]
    process = subprocess.Popen(command)
    try:
        part = out.with_name(f"{out.name}.part")
        wait_until(part.exists, 10, "the recording has begun")
        # What was read before is in the trace: the counter moves after that.
        counters = f"{CLASS}/mlx5_0/ports/1/counters"
        wait_until(lambda: opened(process.pid, counters), 10, "counters are read")
        node.put(f"{counters}/symbol_error", "41\n")
        node.put(f"{counters}/port_rcv_errors", "43\n")
        before = reads(process.pid)
        wait_until(lambda: reads(process.pid) > before + 1000, 30, "all is read again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    with TraceReader(out) as reader:
        texts = [text for record in reader for text in record.set.values()]
    assert {"41\n", "43\n"} <= set(texts)


def descriptors(pid: int) -> set[str]:
    """Return the files that a process has open."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.add(str(link.readlink()))
    return found


def opened(pid: int, folder: str) -> bool:
    """Tell whether a process has files of a port's counters open."""
    return any(path.endswith("/counters/symbol_error") for path in descriptors(pid))


def reads(pid: int) -> int:
    """Return how often a process has read from a file; a whole look is 300 times."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("syscr:")).split()[1])


def test_a_device_that_hangs(
    node: Node, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It costs its own values; the recording goes on, and ends when it is told."""
    node.hang(f"{CLASS}/mlx5_0/node_guid")
    out = tmp_path / "x.trace.jsonl"
    words = ["record", str(out), "--for", "1", "--root", str(node.root)]
    assert main([*words, "--config", str(config)]) == 0
    with TraceReader(out) as reader:
        paths = {path for record in reader for path in record.set}
    assert any("/mlx5_1/" in path and path.endswith("/state") for path in paths)
    node.release(f"{CLASS}/mlx5_0/node_guid")


def test_nothing_to_record(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node without RDMA gives a trace of little use: that is said."""
    root = tmp_path / "bare"
    root.mkdir()
    words = ["record", str(tmp_path / "x.gz"), "--for", "0.3", "--root", str(root)]
    assert main([*words, "--config", str(config)]) == 0
    assert capsys.readouterr().err.startswith("no RDMA device: ")


@pytest.mark.parametrize("name", ["x.gz", "x.gz.part"])
def test_a_trace_that_is_there(
    node: Node, config: Path, tmp_path: Path, name: str
) -> None:
    """It is written over only if that is asked for; one that was cut short too."""
    (tmp_path / name).write_text("precious")
    words = ["record", str(tmp_path / "x.gz"), "--for", "0.3", "--root", str(node.root)]
    words += ["--config", str(config)]
    assert main(words) == 64
    assert (tmp_path / name).read_text() == "precious"
    assert main([*words, "--force"]) == 0
    with TraceReader(tmp_path / "x.gz") as reader:
        assert reader.header.node == "node07"


def test_a_folder(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused at once, and nothing is left behind."""
    place = tmp_path / "traces"
    place.mkdir()
    words = ["record", str(place), "--for", "60", "--root", str(node.root)]
    assert main([*words, "--force"]) == 64
    assert f"{place}: this is a folder" in capsys.readouterr().err
    assert not place.with_name("traces.part").exists()


def test_no_place_for_the_trace(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the place and the reason."""
    out = tmp_path / "none" / "x.trace.jsonl"
    assert main(["record", str(out), "--for", "1", "--root", str(node.root)]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert str(out) in line
    assert "No such file" in line
