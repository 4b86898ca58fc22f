import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from fabricmon.host.live_command import OUTPUT_BYTES, TOOLS, Commands
from fabricmon.host.protocol import CommandOutput, ReadError
from tests.support.servers import wait_until

TOOL_TABLE = {
    "both": ("sh", "-c", "echo out; echo err >&2; exit 3"),
    "environment": ("env",),
    "folder": ("pwd",),
    "input": ("cat",),
    "flood": ("sh", "-c", f"head -c {3 * OUTPUT_BYTES} /dev/zero; echo end >&2"),
    "killed": ("sh", "-c", "kill -SEGV $$"),
    "slow": ("sh", "-c", "echo started; sleep 1000"),
    "stubborn": ("sh", "-c", "trap '' TERM INT HUP; echo started; sleep 1000"),
    "parent": ("sh", "-c", "sleep 1000 & echo $!; exit 0"),
    "group": ("sh", "-c", "sleep 1000 & echo $!; wait"),
    "absent": ("no-such-tool-anywhere",),
    "useless": ("/etc/passwd",),
}


@pytest.fixture
def commands() -> Iterator[Commands]:
    """Return a runner of shell scripts that stand for tools."""
    runner = Commands(TOOL_TABLE)
    yield runner
    runner.close()


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is not merely waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in {"Z", "X"}


class TestRun:
    def test_outputs_and_status(self, commands: Commands) -> None:
        """Both outputs and the status come back, apart."""
        assert commands.run("both", 10) == CommandOutput(b"out\n", b"err\n", 3)

    def test_environment(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A tool speaks English and sees nothing else of our environment."""
        monkeypatch.setenv("SECRET", "token")
        monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")

        output = commands.run("environment", 10)

        assert isinstance(output, CommandOutput)
        lines = output.stdout.decode().splitlines()
        assert "LC_ALL=C" in lines
        assert not [line for line in lines if line.startswith("SECRET")]

    def test_folder(self, commands: Commands) -> None:
        """A tool keeps no folder of ours busy."""
        assert commands.run("folder", 10) == CommandOutput(b"/\n", b"", 0)

    def test_input_is_empty(self, commands: Commands) -> None:
        """A tool that reads its input does not wait."""
        assert commands.run("input", 10) == CommandOutput(b"", b"", 0)

    def test_flood(self, commands: Commands) -> None:
        """Output beyond the limit is dropped and counted; the tool still ends."""
        output = commands.run("flood", 30)

        assert output == CommandOutput(bytes(OUTPUT_BYTES), b"end\n", 0)
        assert commands.dropped_bytes == 2 * OUTPUT_BYTES

    def test_crash(self, commands: Commands) -> None:
        """A tool that dies by itself has a status, unlike one ended by us."""
        assert commands.run("killed", 10) == CommandOutput(b"", b"", -11)

    @pytest.mark.parametrize("name", ["absent", "unheard-of"])
    def test_not_there(self, commands: Commands, name: str) -> None:
        """A tool that is not installed, or not in the table, is ENOENT."""
        assert commands.run(name, 10) == ReadError("ENOENT")

    def test_not_executable(self, commands: Commands) -> None:
        """What cannot be executed counts as not installed."""
        assert commands.run("useless", 10) == ReadError("ENOENT")

    def test_administrators_folders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tools are found where only root looks."""
        monkeypatch.setenv("PATH", "/nonexistent")

        output = Commands({"ip": ("ip", "-V")}).run("ip", 10)

        assert isinstance(output, CommandOutput)
        assert output.stdout.startswith(b"ip utility")

    def test_known_tools(self) -> None:
        """The table is short, and fixed words."""
        assert dict(TOOLS) == {"ibstat": ("ibstat",)}


class TestDeadline:
    @pytest.mark.parametrize("name", ["slow", "stubborn"])
    def test_ended(self, commands: Commands, name: str) -> None:
        """A tool that takes too long is ended; what it printed is kept."""
        begin = time.monotonic()

        output = commands.run(name, 0.3)

        assert output == CommandOutput(b"started\n", b"", None)
        assert time.monotonic() - begin < 2
        assert commands.abandonments == 0

    @pytest.mark.parametrize(("name", "status"), [("group", None), ("parent", 0)])
    def test_children_end_too(
        self, commands: Commands, name: str, status: int | None
    ) -> None:
        """What a tool started goes with it, also when the tool itself has ended."""
        output = commands.run(name, 0.3)

        assert isinstance(output, CommandOutput)
        assert output.exit_status == status
        child = int(output.stdout)
        wait_until(lambda: not is_running(child), 5, "the child is gone")

    def test_cannot_be_ended(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A tool that the kernel holds is left behind, alone, and reaped later."""
        left: list[int] = []
        monkeypatch.setattr(
            "fabricmon.host.live_command._kill",
            lambda process: left.append(process.pid),
        )

        output = commands.run("slow", 0.2)

        assert output == CommandOutput(b"started\n", b"", None)
        assert commands.abandonments == 1
        assert commands.run("both", 10) == ReadError("EBUSY")
        os.killpg(left[0], 9)
        wait_until(lambda: not is_running(left[0]), 5, "the tool is gone")
        assert isinstance(commands.run("both", 10), CommandOutput)
        assert not Path(f"/proc/{left[0]}").exists()

    def test_close(self, commands: Commands) -> None:
        """At the end of the agent no tool stays behind."""
        outputs: list[CommandOutput | ReadError] = []
        thread = Thread(target=lambda: outputs.append(commands.run("slow", 60)))
        thread.start()
        wait_until(lambda: bool(commands._running), 5, "the tool runs")

        commands.close()
        thread.join(10)

        assert not thread.is_alive()
        (output,) = outputs
        assert isinstance(output, CommandOutput)
        assert output.exit_status is None
