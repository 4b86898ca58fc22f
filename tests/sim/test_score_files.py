from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.errors import ParseError
from fabricmon.sim.score_files import (
    read_findings,
    read_fleet,
    read_truth,
    trace_paths,
)
from tests.sim.folders import FLEET, NODES, TRUTH, folder

GOOD = b'{"t": 3, "kind": "port_down", "severity": "critical", "later": [1]}\n'


def test_folder(tmp_path: Path) -> None:
    """Truth, fleet and the trace of each node."""
    path = folder(tmp_path / "fleet")
    assert read_truth(path) == TRUTH
    assert read_fleet(path) == FLEET
    names = [trace.name for trace in trace_paths(path, FLEET)]
    assert names == [f"{node}.trace.jsonl" for node in NODES]


def test_compressed(tmp_path: Path) -> None:
    """A compressed trace goes before a plain one."""
    path = folder(tmp_path / "fleet")
    (path / "node01.trace.jsonl.gz").write_bytes(b"")
    assert trace_paths(path, FLEET)[0].name == "node01.trace.jsonl.gz"


def test_no_truth(tmp_path: Path) -> None:
    """A recorded fleet has none, and that is said."""
    path = folder(tmp_path / "fleet", None)
    with pytest.raises(ParseError, match=r"truth\.json: .* simulated fleet"):
        read_truth(path)


def test_no_folder(tmp_path: Path) -> None:
    """Without the folder the file that was looked for is named."""
    with pytest.raises(
        ParseError, match=r"nowhere/fleet\.json: cannot be read: No such"
    ):
        read_fleet(tmp_path / "nowhere")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"nodes": 3}', b"\xff\xfe"])
def test_bad_fleet(text: bytes, tmp_path: Path) -> None:
    """What is no fleet is an error that names the file."""
    (tmp_path / "fleet.json").write_bytes(text)
    with pytest.raises(ParseError, match=r"fleet\.json: cannot be used"):
        read_fleet(tmp_path)


def test_no_trace(tmp_path: Path) -> None:
    """A node without its trace is named."""
    path = folder(tmp_path / "fleet")
    (path / "node02.trace.jsonl").unlink()
    with pytest.raises(ParseError, match="node node02 has no trace"):
        trace_paths(path, FLEET)


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".."])
def test_a_name_that_leaves_the_folder(name: str, tmp_path: Path) -> None:
    """A node's name is no path."""
    (tmp_path / "fleet.json").write_text(f'{{"nodes": ["{name}"]}}', encoding="utf-8")
    with pytest.raises(ParseError, match="is no name of a node"):
        trace_paths(tmp_path, read_fleet(tmp_path))


def test_findings(tmp_path: Path) -> None:
    """One a line; what the format adds later is let pass, blank lines too."""
    path = tmp_path / "f.jsonl"
    path.write_bytes(GOOD + b"\n" + GOOD)
    assert [(each.t, each.kind) for each in read_findings(path)] == [
        (3, "port_down"),
        (3, "port_down"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", "f.jsonl:2: is not JSON"),
        (b'{"kind": "a", "severity": "info"}', "f.jsonl:2: is no finding of a replay"),
        (b'"\xff"', "f.jsonl:2: is"),
    ],
)
def test_bad_findings(line: bytes, message: str, tmp_path: Path) -> None:
    """The first line that is no finding is named; a live one has no ``t``."""
    path = tmp_path / "f.jsonl"
    path.write_bytes(GOOD + line + b"\n")
    with pytest.raises(ParseError, match=message):
        list(read_findings(path))
