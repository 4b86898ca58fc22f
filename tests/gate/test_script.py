"""Calls of the site's script: what it gets, and that nothing of it lasts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricmon.gate.decision import Outcome
from fabricmon.gate.journal import Ended
from fabricmon.gate.script import Call, Runner, call_of
from fabricmon.gate.settings import Script
from tests.gate.gates import report
from tests.support.servers import wait_until

Make = Callable[[str], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write scripts of bash."""

    def write(text: str) -> Path:
        path = tmp_path / "script"
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def run(path: Path, given: bytes = b"", seconds: float = 10, **more: object) -> Ended:
    """Run a script with the arguments of a finding."""
    settings = Script(path=str(path), timeout_seconds=seconds, **more)  # type: ignore[arg-type]
    return Runner().run(Call((str(path), "n1", "fabricmon: x"), given), settings)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class TestCall:
    def test_what_it_gets(self) -> None:
        """The node, a reason that begins with the prefix, and the finding."""
        call = call_of("/bin/x", report())

        assert call.arguments == ("/bin/x", "n1", "fabricmon: mlx5_0/1 DOWN")
        assert json.loads(call.input)["subject"]["node"] == "n1"
        assert json.loads(call.input)["schema"] == "fabricmon.finding/1"

    @pytest.mark.parametrize("node", ["$(id)", "-n", "a b", "a\nb", "", "x;y", "a/b"])
    def test_forged_node(self, node: str) -> None:
        """No name that is none ever becomes an argument."""
        with pytest.raises(ValueError, match=r".*"):
            call_of("/bin/x", report(node))

    def test_forged_place(self) -> None:
        """What a reason quotes cannot be code to a shell."""
        told = report(device="$(id)`id`'\"\\\n\x1b[31m", kind="port_flapping")
        reason = call_of("/bin/x", told).arguments[2]

        assert reason.isprintable()
        assert not set(reason) & set("$`'\"\\\n")


def test_arguments_and_input(make: Make) -> None:
    """They arrive as they are, whatever they hold."""
    path = make('printf "%s|" "$#" "$@"; cat')
    given = json.dumps({"node": "$(touch /tmp/x)`id`"}).encode()

    ended = run(path, given)
    assert ended.outcome is Outcome.DONE
    assert ended.output == f"2|n1|fabricmon: x|{given.decode()}"


def test_environment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees what it needs and what is configured, and nothing of the gate's."""
    monkeypatch.setenv("SECRET", "x")
    ended = run(make("env"), environment={"SLURM_CONF": "/etc/slurm.conf"})
    names = {line.partition("=")[0] for line in ended.output.splitlines()}

    assert names - {"PWD", "SHLVL", "_"} == {"PATH", "LC_ALL", "SLURM_CONF"}


def test_failure(make: Make) -> None:
    """Its status and what it said are known."""
    ended = run(make("echo no such node >&2; exit 3"))

    assert (ended.outcome, ended.status) == (Outcome.FAILED, 3)
    assert ended.output == "no such node\n"


def test_killed_by_itself(make: Make) -> None:
    """A signal is a failure."""
    assert run(make("kill -SEGV $$")).outcome is Outcome.FAILED


def test_cannot_be_started(tmp_path: Path) -> None:
    """A script that is gone is a failure with a reason."""
    ended = run(tmp_path / "none")

    assert ended.outcome is Outcome.FAILED
    assert "No such file" in ended.output


def test_slow_with_children(make: Make, tmp_path: Path) -> None:
    """Time up: it is killed with all it started, deaf or not; the end is unknown."""
    pids = tmp_path / "pids"
    path = make(f"trap '' TERM\nsleep 60 & echo $! $$ >{pids}\nsleep 60")
    begun = time.monotonic()

    ended = run(path, seconds=0.5)
    assert ended.outcome is Outcome.TIMEOUT
    assert time.monotonic() - begun < 5
    for pid in pids.read_text().split():
        wait_until(lambda pid=int(pid): not is_alive(pid), 5, "it is gone")  # type: ignore[misc]


def test_child_that_holds_the_output(make: Make, tmp_path: Path) -> None:
    """What it leaves behind neither holds up the gate nor lives on."""
    pid = tmp_path / "pid"
    begun = time.monotonic()

    ended = run(make(f"sleep 60 & echo $! >{pid}; echo done"))
    assert (ended.outcome, ended.output) == (Outcome.DONE, "done\n")
    assert time.monotonic() - begun < 5
    wait_until(lambda: not is_alive(int(pid.read_text())), 5, "it is gone")


def test_output_is_bounded(make: Make) -> None:
    """It may say as much as it likes; the beginning is kept."""
    ended = run(make("head -c 10000000 /dev/zero | tr '\\0' x"), output_bytes=100)

    assert ended.outcome is Outcome.DONE
    assert ended.output == "x" * 100


def test_reads_nothing(make: Make) -> None:
    """A script that does not look at its input is not waited for."""
    assert run(make("exit 0"), b"x" * (1 << 22)).outcome is Outcome.DONE


def test_reads_late(make: Make) -> None:
    """A large finding arrives whole."""
    ended = run(make("sleep 0.2; wc -c"), b"x" * (1 << 20))

    assert ended.output.strip() == str(1 << 20)


def test_told_to_stop(make: Make) -> None:
    """When the gate ends, so does the script; what it did is not known."""
    runner, begun = Runner(), time.monotonic()
    path = make("sleep 60")
    threading.Timer(0.3, runner.stop).start()
    ended = runner.run(
        Call((str(path), "n1", "x"), b""), Script(path=str(path), timeout_seconds=60)
    )

    assert ended.outcome is Outcome.INTERRUPTED
    assert time.monotonic() - begun < 3
    late = runner.run(Call((str(path),), b""), Script(path=str(path)))
    assert late.outcome is Outcome.FAILED


def test_descriptors(make: Make) -> None:
    """Nothing stays open."""
    path = make("cat")
    run(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        run(path, b"x")

    assert len(list(Path("/proc/self/fd").iterdir())) == before
