"""The command `fabricmon explain`, as it is called."""

from __future__ import annotations

import pytest

from fabricmon.cli import main
from fabricmon.config_manual import keys
from fabricmon.kinds import KINDS

SLUGS = [kind.slug for kind in KINDS]


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what the command prints."""
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def test_a_line_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a kind all of them are listed, in the order of the table."""
    lines = explain(capsys).splitlines()
    assert [line.split()[0] for line in lines] == SLUGS


@pytest.mark.parametrize("slug", SLUGS)
def test_one_kind(slug: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its meaning, life, runbook and mode; every line fits a terminal."""
    text = explain(capsys, slug)
    lines = text.splitlines()
    assert lines[0].startswith(f"{slug}: ")
    for word in ("about", "severity", "life"):
        assert any(line.startswith(word) for line in lines)
    assert f"docs/runbooks/{slug}.md" in text
    assert f"kinds.{slug}" in text
    assert max(map(len, lines)) <= 80


def test_the_keys_that_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its default and its reason, so that nobody needs the source."""
    text = explain(capsys, "port_down")
    key = next(key for key in keys() if key.path == "link_state.down_seconds")
    assert f"{key.path} = 10" in text
    assert key.text.split()[0] in text


def test_how_long_errors_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """The time until it is over is not that after which it resolves."""
    text = " ".join(explain(capsys, "link_errors").split())
    assert "holds until a warning window passed, or twice the longest pause" in text
    assert "resolves once it was gone for 30 s" in text


def test_events_and_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    """A flap happened; a port that is down is so until it is not."""
    assert "an event" in explain(capsys, "port_flap")
    assert "an event" not in explain(capsys, "port_down")
