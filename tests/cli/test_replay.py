"""The command `fabricmon replay`, as it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from tests.findings import check_stream
from tests.stories import FIRST, SECOND, goes_down, outage, trace

Json = dict[str, Any]
Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a trace of a node with one outage."""
    return outage(tmp_path / "node01")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return a trace of another node."""
    header = {"node": "node02"}
    folder = tmp_path / "node02"
    return trace(folder, (45, goes_down(SECOND)), end=200, header=header)


def read(path: Path) -> list[Json]:
    """Return the findings in a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_findings(path: Path, tmp_path: Path, capsysbinary: Capture) -> None:
    """One object a line, as the contract has it, in a file."""
    out = tmp_path / "out.jsonl"
    assert main(["replay", str(path), "--findings", str(out)]) == 0
    found = read(out)
    check_stream(found)
    assert ("port_down", "open") in {(each["kind"], each["state"]) for each in found}
    assert capsysbinary.readouterr() == (b"", b"")


def test_the_screen(path: Path, tmp_path: Path, capsysbinary: Capture) -> None:
    """A dash writes the same to standard output."""
    out = tmp_path / "out.jsonl"
    main(["replay", str(path), "--findings", str(out)])
    main(["replay", str(path), "--findings", "-"])
    assert capsysbinary.readouterr().out == out.read_bytes()


def test_nothing_found(tmp_path: Path) -> None:
    """A healthy node gives a file that is there and empty."""
    out = tmp_path / "out.jsonl"
    path = trace(tmp_path / "well", end=100)
    assert main(["replay", str(path), "--findings", str(out)]) == 0
    assert out.read_bytes() == b""


def test_several_nodes(path: Path, other: Path, tmp_path: Path) -> None:
    """All go to one file, in order of time."""
    out = tmp_path / "out.jsonl"
    main(["replay", str(path), str(other), "--findings", str(out)])
    found = read(out)
    assert {each["subject"]["node"] for each in found} == {"node01", "node02"}
    assert [each["t"] for each in found] == sorted(each["t"] for each in found)


def test_metrics(path: Path, capsysbinary: Capture) -> None:
    """The exposition as it was at the end of the trace."""
    words = ["replay", str(path), "--findings", os.devnull, "--metrics", "-"]
    assert main(words) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert f'fabricmon_port_verdict{{device="{FIRST}",port="1"}} 2' in lines
    assert any(line.startswith("fabricmon_finding_open{") for line in lines)


def test_metrics_of_several_nodes(
    path: Path, other: Path, capsysbinary: Capture
) -> None:
    """One exposition shows one node: that is a usage error."""
    words = ["replay", str(path), str(other), "--findings", "-", "--metrics", "x"]
    assert main(words) == 64
    shown = capsysbinary.readouterr()
    assert shown.out == b""
    assert b"give one trace" in shown.err


def test_configuration(path: Path, tmp_path: Path, capsysbinary: Capture) -> None:
    """A file that is given decides."""
    file = tmp_path / "given.yaml"
    file.write_text("kinds: {port_down: 'off'}\n")
    main(["replay", str(path), "--findings", "-", "--config", str(file)])
    assert b'"port_down"' not in capsysbinary.readouterr().out


def test_lines_that_cannot_be_used(path: Path, capsysbinary: Capture) -> None:
    """Each is named with its file and number; the rest is replayed."""
    with path.open("a") as stream:
        stream.write("nonsense\n")
    assert main(["replay", str(path), "--findings", "-"]) == 0
    shown = capsysbinary.readouterr()
    number = path.read_text().count("\n")
    assert f"{path}:{number}: ".encode() in shown.err
    assert b'"port_down"' in shown.out


@pytest.mark.parametrize(
    ("text", "reason", "status"),
    [(None, "no such file", 64), ("nonsense\n", ":1: ", 70), ("", ":1: ", 70)],
    ids=["absent", "no header", "empty"],
)
def test_no_trace(
    tmp_path: Path,
    capsysbinary: Capture,
    text: str | None,
    reason: str,
    status: int,
) -> None:
    """One line names file and reason; nothing is written."""
    path, out = tmp_path / "x.trace.jsonl", tmp_path / "out"
    if text is not None:
        path.write_text(text)
    assert main(["replay", str(path), "--findings", str(out)]) == status
    (line,) = capsysbinary.readouterr().err.decode().splitlines()
    assert str(path) in line
    assert reason in line
    assert not out.exists()


def test_no_place_for_the_findings(
    path: Path, tmp_path: Path, capsysbinary: Capture
) -> None:
    """One line names the place."""
    out = tmp_path / "none" / "out"
    assert main(["replay", str(path), "--findings", str(out)]) == 70
    (line,) = capsysbinary.readouterr().err.decode().splitlines()
    assert str(out) in line


def test_a_reader_that_has_seen_enough(path: Path) -> None:
    """`| head` ends it without a word."""
    readable, writable = os.pipe()
    os.close(readable)
    command = [sys.executable, "-m", "fabricmon", "replay", str(path)]
    done = subprocess.run(
        [*command, "--findings", "-"],
        check=False,
        stdout=writable,
        stderr=subprocess.PIPE,
    )
    os.close(writable)
    assert (done.returncode, done.stderr) == (0, b"")
