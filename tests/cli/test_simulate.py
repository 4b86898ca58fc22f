"""``fabricmon simulate``: folders, lists and mistakes."""

from pathlib import Path

import pytest

from fabricmon.cli import CONFIG_ERROR, USAGE_ERROR, main
from fabricmon.sim.load import shipped

OWN = "{name: own, summary: Own., nodes: 2, duration: 60, inject: [{what: F05, onset: 20}]}"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a small scenario."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_a_fleet_is_written(own: Path, tmp_path: Path) -> None:
    """What the command line says wins over the file."""
    out = tmp_path / "deep" / "fleet"
    words = ["simulate", str(own), "--out", str(out), "--nodes", "3"]
    assert main([*words, "--duration", "40", "--jobs", "1", "--seed", "5"]) == 0
    assert len(list(out.glob("*.trace.jsonl.gz"))) == 3
    assert '"duration": 40.0' in (out / "truth.json").read_text()
    assert '"seed": 5' in (out / "truth.json").read_text()


def test_another_fleet_is_not_written_over(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But the same scenario and seed again, or what is told to be."""
    out = tmp_path / "fleet"
    words = ["simulate", str(own), "--out", str(out), "--jobs", "1"]
    assert main(words) == 0
    before = (out / "truth.json").read_bytes()
    assert main(words) == 0
    assert main([*words, "--seed", "2"]) == USAGE_ERROR
    assert f"{out}: this holds another fleet" in capsys.readouterr().err
    assert (out / "truth.json").read_bytes() == before
    assert main([*words, "--seed", "2", "--force"]) == 0
    (out / "truth.json").unlink()
    assert main(words) == USAGE_ERROR


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each, with its summary."""
    assert main(["simulate", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(shipped())


def test_a_bad_file_is_one_line(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file, the key and what to do; nothing is written."""
    own.write_text(OWN.replace("F05", "F99"), encoding="utf-8")
    out = tmp_path / "fleet"
    words = ["simulate", str(own), "--out", str(out)]
    assert main(words) == CONFIG_ERROR
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{own}:1: inject[0].what" in said
    assert not out.exists()


def test_a_class_that_the_profile_cannot_have_names_the_file(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only shows when the fleet is made is told like the rest."""
    own.write_text(OWN.replace("F05", "F34"), encoding="utf-8")
    assert main(["simulate", str(own), "--out", str(tmp_path / "x")]) == CONFIG_ERROR
    assert str(own) in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["own.yaml"], ["--nodes", "0", "own.yaml"]])
def test_wrong_usage_is_said(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a scenario and a folder there is nothing to do."""
    try:
        status = main(["simulate", *words])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    assert status == USAGE_ERROR
    assert "simulate" in capsys.readouterr().err
