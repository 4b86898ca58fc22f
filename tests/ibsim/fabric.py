"""A live InfiniBand fabric: ibsim, subnet managers, and what can be done to them.

Tools of infiniband-diags are attached to an HCA by a library that is loaded into them
(libumad2sim); it answers what they ask of the kernel by asking the simulator.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from tests.ibsim.netlist import Adapter, adapters_of, netlist
from tests.support.programs import MISSING, require
from tests.support.servers import STOP_SECONDS, wait_until

MASTER, STANDBY = adapters_of("node02")[:2]
"""Where subnet managers run: of equal ones that with the lower GUID rules.

One that comes back must not outrank the one that rules: it would send a trap to get the
fabric back, of which the simulator drops the answer, and then wait for that for ever.
"""

START_SECONDS = 30.0
SWEEP_SECONDS = 90.0
TOOL_SECONDS = 10.0

_NUMBERS = itertools.count()
_MANAGER = """\
force_link_speed 0
force_link_speed_ext 0
force_link_width 0
force_log_flush TRUE
sminfo_polling_timeout 300
polling_retry_number 2
transaction_timeout 100
transaction_retries 1
"""
"""Links stay as narrow as they are; a standby notices within seconds, not a minute."""


def library() -> str:
    """Return the library that attaches tools to the simulator, or skip the test."""
    require("ibsim")
    found = re.search(r"^sim_so=(.*)$", _script(), re.MULTILINE)
    path = found.group(1).strip() if found else ""
    if not Path(path).is_file():
        pytest.skip(f"{MISSING}libumad2sim.so (apt-get install libumad2sim0)")
    return path


def _script() -> str:
    script = shutil.which("ibsim-run")
    return Path(script).read_text() if script else ""


class Fabric:
    """One simulated fabric, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self._library = library()
        require("flock")
        self._ibstat = require("ibstat")  # the real one: its double is on PATH later
        self._socket = f"fabricmon-{os.getpid()}-{next(_NUMBERS)}"
        self._log = folder / "ibsim.log"
        self._attached = folder / "attached"
        self._marks = itertools.count()
        self._simulator: subprocess.Popen[bytes] | None = None
        self._managers: dict[str, subprocess.Popen[bytes]] = {}

    # Its life

    def start(self) -> None:
        """Start the simulator; without a subnet manager every port is in INIT."""
        self.tools.mkdir(parents=True)
        self._attached.touch()
        (self.folder / "net").write_text(netlist())
        with self._log.open("wb") as log:
            self._simulator = subprocess.Popen(
                [*_guard(), require("ibsim"), "-s", "net"],
                cwd=self.folder,
                env=os.environ | {"IBSIM_SOCKNAME": self._socket},
                stdin=subprocess.PIPE,  # its console; at its end it would spin
                stdout=log,
                stderr=log,
            )
        wait_until(
            lambda: b"simulator ready" in self._log.read_bytes(),
            START_SECONDS,
            "the simulator is ready",
        )

    def close(self) -> None:
        """End all that was started."""
        with suppress(OSError):
            self._signal(signal.SIGCONT)
        for manager in self._managers.values():
            _end(manager)
        if self._simulator is not None:
            _end(self._simulator)
            assert self._simulator.stdin is not None
            self._simulator.stdin.close()

    # Subnet managers

    def start_manager(
        self, at: Adapter, *, standby: bool = False, priority: int = 5
    ) -> None:
        """Run a subnet manager at an HCA; wait until it rules, or waits as standby."""
        folder = self.folder / f"manager-{at.name}"
        folder.mkdir(exist_ok=True)
        config = f"{_MANAGER}sm_priority {priority}\n"
        (folder / "opensm.conf").write_text(config)
        log = folder / "opensm.log"
        log.unlink(missing_ok=True)
        places = {"OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
        with (folder / "out").open("wb") as out:
            self._managers[at.name] = subprocess.Popen(
                [*_guard(), require("opensm"), "-F", "opensm.conf", "-f", str(log)],
                cwd=folder,
                env=os.environ | self._environment(at) | places,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        word = "Entering STANDBY" if standby else "SUBNET UP"
        self.await_manager(at, word)

    def await_manager(self, at: Adapter, word: str = "SUBNET UP") -> None:
        """Wait until the manager at an HCA has logged a word."""
        log = self.folder / f"manager-{at.name}" / "opensm.log"
        wait_until(
            lambda: log.exists() and word in log.read_text(errors="replace"),
            SWEEP_SECONDS,
            f"the subnet manager says {word}",
        )

    def kill_manager(self, at: Adapter) -> None:
        """End the manager at an HCA at once, as a crash would."""
        manager = self._managers.pop(at.name)
        manager.kill()
        manager.wait()
        self._forget_dead()

    # What happens to links and counters

    def unlink(self, *adapters: Adapter) -> None:
        """Pull the cables of these HCAs."""
        for each in adapters:
            self.console(f'Unlink "{each.name}"[1]')

    def relink(self, *adapters: Adapter) -> None:
        """Plug the cables in again."""
        for each in adapters:
            self.console(f'ReLink "{each.name}"[1]')

    def count(self, at: Adapter, field: str, value: int) -> None:
        """Let a counter of a port stand at a value."""
        self.console(f'PerformanceSet "{at.name}"[1] PortCounters.{field}={value}')

    def lid(self, of: Adapter) -> int:
        """Return the LID that the simulator has for a port."""
        found = re.search(r"\[1\].* lid (\d+) lmc", self.console(f'Dump "{of.name}"'))
        assert found
        return int(found.group(1))

    def freeze(self) -> None:
        """Let the simulator answer nobody from now on; no tool is attached then."""
        self._signal(signal.SIGSTOP)
        while self.running_tools():
            self._signal(signal.SIGCONT)
            wait_until(lambda: not self.running_tools(), TOOL_SECONDS, "no tool runs")
            self._signal(signal.SIGSTOP)
        self._attached.write_text("")

    def thaw(self) -> None:
        """Let it go on.

        It would panic at the connections of tools that were killed meanwhile, so that
        their ends are put back for as long as it takes note of them.
        """
        with self._ghosts() as number:
            self._signal(signal.SIGCONT)
            wait_until(
                lambda: len(self._dead_clients()) >= number,
                TOOL_SECONDS,
                "all connections are seen",
            )
            self._forget_dead()

    def console(self, command: str) -> str:
        """Give the simulator a command; return what it answers."""
        assert self._simulator is not None
        assert self._simulator.stdin is not None
        begin, mark = self._log.stat().st_size, f"#done-{next(self._marks)}."
        # It reads at most 126 bytes a line, and repeats comments.
        self._simulator.stdin.write(f"{command}\n{mark}\n".encode())
        self._simulator.stdin.flush()

        def answer() -> str:
            return self._log.read_bytes()[begin:].decode(errors="replace")

        wait_until(lambda: mark in answer(), TOOL_SECONDS, f"answer to {command}")
        return answer().partition(mark)[0]

    # Tools

    def run(self, at: Adapter, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a tool as if on the host of an HCA that is its only one."""
        return subprocess.run(
            words,
            cwd=self.tools,
            env=os.environ | self._environment(at),
            capture_output=True,
            text=True,
            timeout=TOOL_SECONDS,
            check=False,
        )

    def ibstat_of(self, *adapters: Adapter) -> Path:
        """Write an ``ibstat`` that shows these HCAs as those of one host.

        The real one is run once for each: the library shows a tool a single HCA.
        """
        folder = self.folder / f"bin-{adapters[0].host}"
        folder.mkdir(exist_ok=True)
        runs = "".join(f"run {each.device} SIM_HOST={each.name}\n" for each in adapters)
        script = folder / "ibstat"
        script.write_text(
            "#!/bin/sh\n"
            f"cd {self.tools} && exec 9<{self._attached} && flock -s 9 || exit 1\n"
            "status=0\n"
            "run() {\n"
            f"  said=$(sh -c 'echo $$ >>{self._attached}; exec \"$@\" 9<&-' sh env"
            f' LD_PRELOAD={self._library} IBSIM_SOCKNAME={self._socket} "$2"'
            f" {self._ibstat}) || status=$?\n"
            '  printf "%s\\n" "$said" | sed "s/ibsim0/$1/"\n'
            f"}}\n{runs}exit $status\n"
        )
        script.chmod(0o755)
        return folder

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Let no ``ibstat`` look meanwhile: what changes here changes at once."""
        with self._attached.open() as lock:
            flock(lock, LOCK_EX)
            yield

    def running_tools(self) -> list[int]:
        """Return the processes of the real ``ibstat`` that run."""
        return [pid for pid in self._tool_pids() if _lives(pid)]

    @property
    def tool_runs(self) -> int:
        """How often the real ``ibstat`` was started since the fabric was frozen."""
        return len(self._tool_pids())

    def _environment(self, at: Adapter) -> dict[str, str]:
        return {
            "LD_PRELOAD": self._library,
            "IBSIM_SOCKNAME": self._socket,
            "SIM_HOST": at.name,
        }

    # Clients that are gone: each holds one of ten places

    def _dead_clients(self) -> list[tuple[int, int]]:
        found = re.findall(r"Client (\d+): pid (\d+) ", self.console("Attached"))
        clients = [(int(number), int(pid)) for number, pid in found]
        return [(number, pid) for number, pid in clients if not _lives(pid)]

    def _forget_dead(self) -> None:
        for number, _ in self._dead_clients():
            self.console(f"X {number}")
        for folder in self.tools.glob("sys-*"):
            if not _lives(int(folder.name.removeprefix("sys-"))):
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _ghosts(self) -> Iterator[int]:
        """Stand in for the tools that were killed while nobody answered them."""
        ends = []
        for pid in [pid for pid in self._tool_pids() if not _lives(pid)]:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            end.bind(f"\0{self._socket}:in{pid}\0")
            ends.append(end)
        yield len(ends)
        for end in ends:
            end.close()

    def _tool_pids(self) -> list[int]:
        return [int(pid) for pid in self._attached.read_text().split()]

    def _signal(self, number: int) -> None:
        assert self._simulator is not None
        os.kill(self._simulator.pid, number)


def _guard() -> list[str]:
    # The kernel ends the child should the test process die before it can.
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lives(pid: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in {"Z", "X"}
    return False
