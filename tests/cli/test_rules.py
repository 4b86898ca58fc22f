"""`fabricmon rules` prints the rules of a site, and refuses what it cannot read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricmon.cli import CONFIG_ERROR, main
from tests.support.programs import require


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Run the command and return what it printed, as YAML."""
    assert main(["rules", *words]) == 0
    return yaml.safe_load(capsys.readouterr().out)


def rules_of(document: Any) -> dict[str, Any]:
    """Return rules by their name."""
    return {
        rule.get("alert", rule.get("record")): rule
        for group in document["groups"]
        for rule in group["rules"]
    }


def test_it_prints_a_file_that_promtool_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With labels of the site in place of the usual ones."""
    words = ["--set", "where.cluster_label=site", "--set", "where.node_label=host"]
    assert main(["rules", *words, "--set", 'where.selector=job="fm"']) == 0
    text = capsys.readouterr().out
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    command = [require("promtool"), "check", "rules", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    exprs = [rule["expr"] for rule in rules_of(yaml.safe_load(text)).values()]
    assert [e for e in exprs if re.search(r"[(,\s{](cluster|node)\s*[,)=!]", e)] == []
    assert 'max by (site, host) (fabricmon_build_info{job="fm"})' in text


def test_the_label_job_of_jobs_is_not_the_target(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A matcher of the site for `job` is left out where the agent has that label."""
    made = rules_of(printed(capsys, "--set", 'where.selector=job="fm",env="prod"'))
    text = made["node:fabricmon_job:seen"]["expr"]
    assert 'fabricmon_job_info{env="prod"}' in text
    assert 'job="fm"' not in text


def test_a_file_and_a_setting(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The setting wins over the file, which wins over the default."""
    file = tmp_path / "site.yaml"
    file.write_text("pace: {keep_seconds: 45, evaluation_seconds: 20}\n")
    words = ("--config", str(file), "--set", "pace.evaluation_seconds=10")
    document = printed(capsys, *words)
    assert "[45s]" in rules_of(document)["finding:fabricmon_open:kept"]["expr"]
    assert document["groups"][0]["interval"] == "10s"


def test_the_operators_object(capsys: pytest.CaptureFixture[str]) -> None:
    """The same groups, in a PrometheusRule."""
    plain = printed(capsys)
    words = ("--format", "prometheusrule", "--name", "fm", "--namespace", "monitoring")
    made = printed(capsys, *words)
    assert (made["kind"], made["metadata"]["name"]) == ("PrometheusRule", "fm")
    assert made["metadata"]["namespace"] == "monitoring"
    assert made["spec"] == plain


def test_groups_can_be_had_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of one node at a time on the shards, the others centrally."""
    whole = printed(capsys)["groups"]
    words = ("--group", "fabricmon.findings", "--group", "fabricmon.agents")
    assert printed(capsys, *words)["groups"] == whole[:2]


def test_a_group_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The error says which there are."""
    assert main(["rules", "--group", "findings"]) == CONFIG_ERROR
    assert "there are fabricmon.findings, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("info", {"notice": "info", "severity": "info"}),
        ("warning", {"severity": "warning"}),
    ],
)
def test_a_severity_of_the_site(
    severity: str, expected: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It stands in place of the finding's own; what is milder is no page."""
    rule = rules_of(printed(capsys, "--set", f"severities.FabricPortDown={severity}"))
    labels = rule["FabricPortDown"]["labels"]
    assert labels == {"kind": "port_down", "origin": "node"} | expected
    turned = '"notice", "ticket", "notice", "page"' in rule["FabricPortDown"]["expr"]
    assert turned is (severity == "warning")


def test_an_alert_that_is_off_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The others stay."""
    made = rules_of(printed(capsys, "--set", "severities.FabricCongestion=off"))
    assert "FabricCongestion" not in made
    assert "FabricPortDown" in made


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "where.clusterlabel=x",
            "where.clusterlabel: no such key (did you mean cluster_label?)",
        ),
        (
            "severities.FabricPortDwn=off",
            "severities.FabricPortDwn: no alert has this name (did you mean FabricPortDown?)",
        ),
        (
            "severities.FabricPortDown=loud",
            "severities.FabricPortDown: is none of its words (write critical or warning or info or off)",
        ),
        ("pace.keep_seconds=soon", "pace.keep_seconds: expected `float`, got `str`"),
        ("where.selector=job", "where.selector: 'job' is no matcher"),
        ("where", "'where' sets nothing"),
        ("where.cluster_label.x=1", "where.cluster_label: expected `str`"),
    ],
)
def test_a_wrong_option_is_one_error(
    setting: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the key and what to write."""
    assert main(["rules", "--set", setting]) == CONFIG_ERROR
    told = capsys.readouterr()
    assert message in told.err
    assert (told.err.count("\n"), told.out) == (1, "")


def test_a_wrong_file_is_named_with_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As compilers do."""
    file = tmp_path / "site.yaml"
    file.write_text("pace:\n  keep_seconds: 20\n  hold: 3\n")
    assert main(["rules", "--config", str(file)]) == CONFIG_ERROR
    assert f"{file}:3: pace.hold: no such key" in capsys.readouterr().err


def test_the_list_names_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    made = rules_of(printed(capsys))
    assert main(["rules", "--list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(made) <= set(words)
