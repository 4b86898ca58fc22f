"""The commands `fabricmon replay --fleet` and `fabricmon score`, as they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from tests.findings import check_stream
from tests.sim.folders import TRUTH, folder

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet of two nodes with a fault each."""
    return folder(tmp_path / "fleet")


@pytest.fixture
def findings(fleet: Path, tmp_path: Path) -> Path:
    """Return what the agent found in it."""
    out = tmp_path / "found.jsonl"
    assert main(["replay", "--fleet", str(fleet), "--findings", str(out)]) == 0
    return out


def test_replay_fleet(findings: Path) -> None:
    """All nodes go to one file, in order of time."""
    found = [json.loads(line) for line in findings.read_bytes().splitlines()]
    for node in ("node01", "node02"):
        mine = [each for each in found if each["subject"]["node"] == node]
        assert mine
        check_stream(mine)
    assert [each["t"] for each in found] == sorted(each["t"] for each in found)


def test_replay_fleet_on_two_processors(
    fleet: Path, findings: Path, tmp_path: Path
) -> None:
    """The same file."""
    out = tmp_path / "two.jsonl"
    words = ["replay", "--fleet", str(fleet), "--findings", str(out), "--jobs", "2"]
    assert main(words) == 0
    assert out.read_bytes() == findings.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a trace, or --fleet FOLDER"),
        (["--fleet", "f", "a.trace"], "not both"),
        (["--fleet", "f", "--metrics", "-"], "one node"),
        (["--fleet", "f", "--jobs", "0"], "no number from 1"),
        (["--fleet", "f", "--jobs", "many"], "no number from 1"),
    ],
)
def test_misuse(words: list[str], message: str, capsys: Capture) -> None:
    """What does not go together is said in one line, with the status of misuse."""
    try:
        status: object = main(["replay", *words, "--findings", "-"])
    except SystemExit as exit_:
        status = exit_.code
    assert status == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_no_fleet(tmp_path: Path, capsys: Capture) -> None:
    """A folder that is none is one line, and no output file is made."""
    out = tmp_path / "out.jsonl"
    words = ["replay", "--fleet", str(tmp_path / "none"), "--findings", str(out)]
    assert main(words) == 64
    assert "none/fleet.json: cannot be read" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("absent", ["fleet.json", "found.jsonl"])
def test_score_of_what_is_not_there(
    fleet: Path, findings: Path, absent: str, capsys: Capture
) -> None:
    """A file that is missing is wrong usage, said in one line."""
    (findings if absent == findings.name else fleet / absent).unlink()
    assert main(["score", str(fleet), str(findings)]) == 64
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert absent in err


def test_text(fleet: Path, findings: Path, capsys: Capture) -> None:
    """A person reads what became of each fault, and the measures."""
    assert main(["score", str(fleet), str(findings)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("small, seed 1000")
    faults = [line for line in lines if line.startswith("| F10")]
    assert len(faults) == 2
    assert all("| found" in line for line in faults)
    assert "recall, local evidence: 100 % (2/2)" in lines
    assert "actionable precision: 100 % (2/2)" in lines


def test_json(fleet: Path, findings: Path, capsys: Capture) -> None:
    """A program reads the same."""
    assert main(["score", str(fleet), str(findings), "--format", "json"]) == 0
    document: Json = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fabricmon.score/1"
    assert document["passed"] is True
    assert [each["outcome"] for each in document["run"]["answers"]] == ["found"] * 2
    assert document["summary"]["local"]["found"] == {"hits": 2, "total": 2}


def test_several_files(
    fleet: Path, findings: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Findings may be spread over files."""
    lines = findings.read_bytes().splitlines(keepends=True)
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, part in enumerate(parts):
        part.write_bytes(b"".join(lines[number::2]))
    assert main(["score", str(fleet), *map(str, parts)]) == 0
    assert "100 % (2/2)" in capsys.readouterr().out


def test_misses_and_mistakes(tmp_path: Path, capsys: Capture) -> None:
    """What was not found and what was said wrongly are named."""
    path = folder(tmp_path / "fleet", TRUTH)
    wrong = tmp_path / "wrong.jsonl"
    finding = {
        "t": 60, "kind": "link_errors", "severity": "warning", "action": "inspect",
        "subject": {"node": "node02", "device": "mlx5_0", "port": 1},
    }  # fmt: skip
    wrong.write_text(json.dumps(finding) + "\n", encoding="utf-8")
    main(["score", str(path), str(wrong)])
    lines = capsys.readouterr().out.splitlines()
    assert sum("| missed" in line for line in lines) == 2
    assert "false action: link_errors on node02/mlx5_0/1 at 60 s" in lines


def test_no_truth(tmp_path: Path, findings: Path, capsys: Capture) -> None:
    """A recorded fleet cannot be scored, and that is said."""
    recorded = folder(tmp_path / "recorded", None)
    assert main(["score", str(recorded), str(findings)]) == 64
    assert "only a simulated fleet knows the truth" in capsys.readouterr().err
