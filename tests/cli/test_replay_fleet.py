"""``fabricmon replay --fleet``: a fleet's folder and the rules over it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fabricmon.cli import USAGE_ERROR, main
from fabricmon.kinds import BY_SLUG
from tests.findings import check_stream
from tests.sim.folders import folder
from tests.support.programs import require

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]

RULES = """
groups:
- name: test
  rules:
  - record: cluster:fabricmon_down:count
    expr: count by (cluster) (fabricmon_infiniband_state_id == 1)
  - alert: TwoDown
    expr: cluster:fabricmon_down:count >= 2
    for: 15s
    labels: {kind: common_cause, severity: warning, origin: fleet}
    annotations: {summary: "{{ $value }} ports of {{ $labels.cluster }}"}
  - alert: PortDown
    expr: fabricmon_finding_open{kind="port_down"} > 0
    labels: {kind: port_down, origin: node}
  - alert: Kindless
    expr: up == 1
    labels: {origin: fleet}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet of two nodes, each with a port that goes down."""
    return folder(tmp_path / "fleet")


@pytest.fixture
def rules(tmp_path: Path) -> str:
    """Return a file with rules that see it."""
    require("prometheus")
    path = tmp_path / "rules.yml"
    path.write_text(RULES)
    return str(path)


def read(path: Path) -> list[Json]:
    """Return the findings in a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.slow
@pytest.mark.server
def test_rules_of_a_file(
    fleet: Path,
    rules: str,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Nodes' findings and what only the fleet sees; beside it all that is told."""
    out, told, text = (tmp_path / name for name in ("out", "told", "text"))
    data = tmp_path / "data"
    words = ["replay", "--fleet", str(fleet), "--rules", rules, "--findings", str(out)]
    words += ["--alerts", str(told), "--openmetrics", str(text)]
    assert main([*words, "--keep-data", str(data)]) == 0

    found = read(out)
    kinds = {(each["kind"], each["subject"]["node"]) for each in found}
    assert {("port_down", "node01"), ("port_down", "node02")} <= kinds
    (both,) = [each for each in found if each["kind"] == "common_cause"]
    assert both["summary"] == "2 ports of replay"
    assert both["t"] < 90
    assert [each["t"] for each in found] == sorted(each["t"] for each in found)

    assert {each["kind"] for each in found} <= set(BY_SLUG)  # as the contract has it

    heard = read(told)
    assert {each["kind"] for each in heard} == {"common_cause", "port_down", "Kindless"}
    check_stream([each for each in heard if each["kind"] == "port_down"])
    (late,) = [each for each in heard if each["kind"] == "common_cause"]
    assert late["t"] == both["t"] + 30

    families: Iterable[Metric] = text_string_to_metric_families(text.read_text())  # type: ignore[no-untyped-call]
    assert {"up", "fabricmon_port_verdict"} <= {each.name for each in families}
    less = [*words[:5], "--findings", str(tmp_path / "o"), "--alerts", "-"]
    assert main(less) == 0  # only the metrics that these rules read
    assert capsysbinary.readouterr().out == told.read_bytes()

    dump = [require("promtool"), "tsdb", "dump", str(data)]
    kept = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    assert "cluster:fabricmon_down:count" in kept


def test_no_rules(fleet: Path, tmp_path: Path) -> None:
    """Only the nodes' findings, and no Prometheus is started."""
    out = tmp_path / "out"
    words = ["replay", "--fleet", str(fleet), "--findings", str(out)]
    assert main([*words, "--rules", "none"]) == 0
    found = read(out)
    for node in ("node01", "node02"):
        check_stream([each for each in found if each["subject"]["node"] == node])
    assert {each["subject"]["node"] for each in found} == {"node01", "node02"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no Prometheus."""
    monkeypatch.setattr("fabricmon.fleet.programs.shutil.which", lambda *_, **__: None)


@pytest.mark.usefixtures("bare")
def test_without_prometheus(fleet: Path, tmp_path: Path, capsys: Capture) -> None:
    """The nodes' findings, and one line that says what is lacking."""
    out, alone = tmp_path / "out", tmp_path / "alone"
    words = ["replay", "--fleet", str(fleet), "--findings"]
    assert main([*words, str(out)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "rules of the fleet were not evaluated: prometheus" in said[0]
    main([*words, str(alone), "--rules", "none"])
    assert out.read_bytes() == alone.read_bytes()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("more", [["--rules", "required"], ["--keep-data", "data"]])
def test_required(
    more: list[str], fleet: Path, tmp_path: Path, capsys: Capture
) -> None:
    """It is an error where somebody counts on it, and nothing is written."""
    out = tmp_path / "out"
    words = ["replay", "--fleet", str(fleet), "--findings", str(out)]
    assert main([*words, *more]) != 0
    assert "apt-get install prometheus" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["TRACE", "--rules", "none"], "--rules is for --fleet"),
        (["TRACE", "--keep-data", "x"], "--keep-data is for --fleet"),
        (["--fleet", "F", "--rules", "none", "--alerts", "-"], "need rules"),
        (["--fleet", "F", "--keep-data", "."], "not empty"),
    ],
)
def test_misuse(
    words: list[str],
    wrong: str,
    fleet: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What does not go together is said."""
    monkeypatch.chdir(fleet)
    trace = str(fleet / "node01.trace.jsonl")
    meant = {"F": str(fleet), "TRACE": trace}
    arguments = [meant.get(word, word) for word in words]
    assert main(["replay", *arguments, "--findings", "-"]) == USAGE_ERROR
    assert wrong in capsys.readouterr().err
