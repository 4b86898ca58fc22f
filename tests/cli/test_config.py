"""The command `fabricmon config`, as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from fabricmon.cli import main
from fabricmon.config_load import load
from fabricmon.config_manual import keys

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a configuration that sets one key."""
    path = tmp_path / "fabricmon.yaml"
    path.write_text("link_state:\n  down_seconds: 20\n")
    return path


def test_check(file: Path, capsys: Capture) -> None:
    """One line names the file and the hash that metrics show."""
    assert main(["config", "check", "--config", str(file)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert str(file) in line
    assert load(file, {}).hash in line


def test_tls_files_that_are_not_there(tmp_path: Path, capsys: Capture) -> None:
    """What `run` would refuse is refused here, with the key."""
    path = tmp_path / "tls.yaml"
    path.write_text("listen: {tls_certificate: /nope, tls_key: /nope}\n")
    assert main(["config", "check", "--config", str(path)]) == 78
    assert "listen.tls_certificate: /nope: " in capsys.readouterr().err


def test_show(file: Path, capsys: Capture) -> None:
    """Every key with its value, and who set it."""
    assert main(["config", "show", "--config", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"link_state.down_seconds: 20.0  # {file}:2" in lines
    shown = {line.partition(":")[0] for line in lines if not line.startswith("#")}
    assert shown == {key.path for key in keys()}
    assert sum("# default" in line for line in lines) == len(shown) - 1


def test_files_beside_it(file: Path, capsys: Capture) -> None:
    """`conf.d` is read after it, and wins."""
    more = file.parent / "conf.d" / "10-site.yaml"
    more.parent.mkdir()
    more.write_text("link_state: {down_seconds: 30}\n")
    main(["config", "show", "--config", str(file)])
    shown = capsys.readouterr().out
    assert f"link_state.down_seconds: 30.0  # {more}:1" in shown
    assert f"# read {more}" in shown


def test_schema(capsys: Capture) -> None:
    """A JSON schema that an editor takes, and that knows every key."""
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(schema)
    assert judge.is_valid({"link_state": {"down_seconds": 20}})
    assert not judge.is_valid({"link_state": {"down_secs": 20}})
    assert not judge.is_valid({"link_state": {"down_seconds": "soon"}})
