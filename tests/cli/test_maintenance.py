"""The command `fabricmon maintenance`, as it is called."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.cli import main
from fabricmon.model import MaintenanceWindow
from fabricmon.sources.maintenance import FILE, parse_plan

Windows = list[dict[str, Any]]


class Command:
    """The command on a run folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / FILE
        self.capsys = capsys
        self.errors = ""

    def __call__(self, *words: str, status: int = 0) -> str:
        """Run it, expect a status, and return what it printed."""
        assert main(["maintenance", *words]) == status
        shown = self.capsys.readouterr()
        self.errors = shown.err
        return shown.out

    @property
    def windows(self) -> Windows:
        """What lies in the file."""
        found: Windows = json.loads(self.file.read_text())
        return found

    def plan(self) -> tuple[MaintenanceWindow, ...]:
        """Return what the agent makes of the file."""
        plan = parse_plan(self.file.read_bytes(), str(self.file), 0.0)
        assert plan.error is None
        return plan.windows


@pytest.fixture
def command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Return the command, with an empty run folder."""
    monkeypatch.setenv("FABRICMON_RUN_FOLDER", str(tmp_path))
    return Command(tmp_path, capsys)


def left(window: MaintenanceWindow) -> timedelta:
    """Return how long a window is still open."""
    return datetime.fromtimestamp(window.until, UTC) - datetime.now(UTC)


class TestSet:
    @pytest.mark.parametrize(
        ("span", "seconds"),
        [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400)],
    )
    def test_for_so_long(self, command: Command, span: str, seconds: int) -> None:
        """The agent reads the end that was meant."""
        command("set", "--for", span)
        (window,) = command.plan()
        assert left(window).total_seconds() == pytest.approx(seconds, abs=10)

    def test_until(self, command: Command) -> None:
        """An end in another time zone is the same moment."""
        command("set", "--until", "2999-01-01T02:00:00+02:00")
        (window,) = command.plan()
        assert window.until == datetime(2999, 1, 1, tzinfo=UTC).timestamp()

    def test_ports_and_reason(self, command: Command) -> None:
        """Both reach the agent; it is said what is in force now."""
        shown = command(
            *("set", "--for", "1h", "--reason", "new cable"),
            *("--ports", "mlx5_0/1", "mlx5_1/1"),
        )
        (window,) = command.plan()
        assert window.ports == ("mlx5_0/1", "mlx5_1/1")
        assert window.reason == "new cable"
        assert "mlx5_0/1 mlx5_1/1  new cable" in shown

    def test_a_port_that_is_not_there(
        self, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """It may be a typing error: it is said, and noted all the same."""
        there = tmp_path / "root/sys/class/infiniband/mlx5_0/ports/1"
        there.mkdir(parents=True)
        monkeypatch.setenv("FABRICMON_ROOT", str(tmp_path / "root"))
        command("set", "--for", "1h", "--ports", "mlx5_0/1", "mlx5_O/1")
        assert command.errors.count("\n") == 1
        assert "mlx5_O/1" in command.errors
        assert len(command.plan()) == 1

    def test_several(self, command: Command) -> None:
        """A second window joins the first."""
        command("set", "--for", "1h", "--ports", "mlx5_0/1")
        command("set", "--for", "2h")
        assert [window.ports for window in command.plan()] == [("mlx5_0/1",), ()]

    @pytest.mark.parametrize(
        ("words", "remedy"),
        [
            ([], "--for or --until"),
            (["--for", "1h", "--until", "2999-01-01T00:00:00Z"], "--for or --until"),
            (["--for", "soon"], "90s, 30m, 2h or 1d"),
            (["--for=-1h"], "90s, 30m, 2h or 1d"),
            (["--until", "2999-01-01T00:00:00"], "time zone"),
            (["--until", "1999-01-01T00:00:00Z"], "has passed"),
            (["--until", "tomorrow"], "2026-01-31T18:00:00Z"),
            (["--for", "1h", "--ports", "mlx5_0"], "device/port"),
        ],
    )
    def test_wrong(self, command: Command, words: list[str], remedy: str) -> None:
        """One line says what to write; nothing is changed."""
        assert command("set", *words, status=64) == ""
        assert command.errors.count("\n") == 1
        assert remedy in command.errors
        assert not command.file.exists()


class TestClear:
    def test_all(self, command: Command) -> None:
        """Without ports everything ends."""
        command("set", "--for", "1h", "--ports", "mlx5_0/1")
        command("set", "--for", "1h")
        shown = command("clear")
        assert shown.count("cleared: until ") == 2
        assert "mlx5_0/1" in shown
        assert shown.endswith("no maintenance\n")
        assert command.plan() == ()

    @pytest.mark.parametrize("word", ["--for=1h", "--until=2999-01-01T00:00:00Z"])
    def test_an_end(self, command: Command, word: str) -> None:
        """Whoever gives one meant something else: nothing is cleared."""
        command("set", "--for", "1h")
        command("clear", word, status=64)
        assert word.partition("=")[0] in command.errors
        assert len(command.plan()) == 1

    def test_one(self, command: Command) -> None:
        """With ports, the window of exactly these."""
        command("set", "--for", "1h", "--ports", "mlx5_0/1", "mlx5_1/1")
        command("set", "--for", "1h", "--ports", "mlx5_2/1")
        command("clear", "--ports", "mlx5_1/1", "mlx5_0/1")
        assert [window.ports for window in command.plan()] == [("mlx5_2/1",)]

    def test_nothing_there(self, command: Command) -> None:
        """Clearing twice is no error."""
        assert "no maintenance" in command("clear")


class TestShow:
    def test_changes_nothing(self, command: Command) -> None:
        """Also where the file is not there."""
        assert command("show") == "no maintenance\n"
        assert not command.file.exists()

    def test_the_whole_node(self, command: Command) -> None:
        """A window without ports says so."""
        command("set", "--for", "1h")
        assert "the whole node" in command("show")

    def test_what_has_ended(self, command: Command) -> None:
        """It is not shown, and dropped with the next change."""
        old = {"until": "2020-01-01T00:00:00Z", "ports": [], "reason": ""}
        command.file.write_text(json.dumps([old]))
        assert command("show") == "no maintenance\n"
        command("set", "--for", "1h")
        assert len(command.windows) == 1


class TestFile:
    def test_any_reader_may_read_it(self, command: Command) -> None:
        """The agent may run as another user."""
        command("set", "--for", "1h")
        assert command.file.stat().st_mode & 0o777 == 0o644
        assert [path.name for path in command.file.parent.iterdir()] == [FILE]

    def test_keys_of_others_stay(self, command: Command) -> None:
        """Another program may write more than this one knows."""
        window = {"until": "2999-01-01T00:00:00Z", "ticket": "OPS-7"}
        command.file.write_text(json.dumps([window]))
        command("set", "--for", "1h")
        assert command.windows[0]["ticket"] == "OPS-7"

    @pytest.mark.parametrize("text", ["nonsense", "{}", '"text"', "", "\x00"])
    def test_no_list(self, command: Command, text: str) -> None:
        """What somebody else wrote there is not overwritten; it is named."""
        command.file.write_text(text)
        command("set", "--for", "1h", status=64)
        assert str(command.file) in command.errors
        assert command.file.read_text() == text

    def test_no_folder(
        self, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The agent never ran here: one line names the place."""
        monkeypatch.setenv("FABRICMON_RUN_FOLDER", str(tmp_path / "none"))
        command("set", "--for", "1h", status=70)
        assert str(tmp_path / "none") in command.errors
        assert "start the agent" in command.errors

    @given(
        windows=st.lists(
            st.one_of(
                st.none(),
                st.integers(),
                st.text(max_size=3),
                st.fixed_dictionaries(
                    {},
                    optional={
                        "until": st.one_of(
                            st.sampled_from(["2999-01-01T00:00:00Z", "2999-01-01"]),
                            st.none(),
                            st.integers(),
                        ),
                        "ports": st.one_of(
                            st.none(), st.text(max_size=3), st.lists(st.integers())
                        ),
                        "reason": st.one_of(st.none(), st.text(max_size=3)),
                    },
                ),
            ),
            max_size=4,
        )
    )
    @settings(
        max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_entries_of_any_shape(self, command: Command, windows: list[Any]) -> None:
        """Whatever else writes there, the command shows what it understands."""
        command.file.write_text(json.dumps(windows))
        assert command("show")
