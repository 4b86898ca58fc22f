"""What a real agent opens: nothing that is excluded, nothing for writing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.agent import CLASS, AgentProcess, Node
from tests.support.programs import require
from tests.support.servers import wait_until

CALLS = (
    *("open", "openat", "openat2", "creat", "truncate", "ftruncate"),
    *("mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2"),
    *("unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat"),
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "mknod", "mknodat"),
    *("mount", "umount2", "execve", "bind"),
)
CHANGING = set(CALLS) - {"open", "openat", "openat2", "execve"}
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
HARMLESS = re.compile(r"^/dev/(null|tty)$|\.pyc(\.\d+)?$|/__pycache__$")


@dataclass(frozen=True)
class Call:
    """One system call: its name, the paths that it names, and all of it."""

    name: str
    paths: tuple[str, ...]
    text: str

    @property
    def changes_something(self) -> bool:
        """Tell whether it could leave a trace in the file system."""
        if "AF_INET" in self.text:  # a port is no file
            return False
        return self.name in CHANGING or WRITING.search(self.text) is not None


@dataclass(frozen=True)
class Traced:
    """An agent that has run, the node that it watched, and its system calls."""

    node: Node
    agent: AgentProcess
    calls: tuple[Call, ...]


def read(path: Path) -> Iterator[Call]:
    """Yield the system calls that `strace -f` wrote."""
    for line in path.read_text("utf-8", "replace").splitlines():
        found = re.match(r"\d+ +(\w+)\((.*)", line)
        if found is not None:
            yield Call(found[1], tuple(re.findall(r'"([^"]*)"', found[2])), found[2])


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """Run an agent under strace: it starts, finds something, and stops."""
    strace = require("strace")
    folder = tmp_path_factory.mktemp("traced")
    node, out = Node(folder), folder / "calls"
    # Whoever opened this would hang: a trap beside the trace.
    node.hang(f"{CLASS}/mlx5_1/ports/1/state")
    # -D: the agent stays our child, and gets our signals.
    prefix = [strace, "-D", "-f", "-o", str(out), "-e", f"trace={','.join(CALLS)}"]
    config = {"devices": {"exclude": ["mlx5_1"]}}
    agent = AgentProcess(folder, config, prefix)
    try:
        agent.start()
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        agent.until(lambda: agent.findings("port_down"), "the port is down", 30)
        assert agent.get("/metrics")
        end = re.compile(rf"^{agent.pid} +\+\+\+ exited with 0", re.MULTILINE)
        agent.stop()
        wait_until(
            lambda: end.search(out.read_text()) is not None, 20, "the trace is written"
        )
        yield Traced(node, agent, tuple(read(out)))
    finally:
        agent.close()


def test_the_trace_is_whole(traced: Traced) -> None:
    """Files of the node were opened, and the state was written: both are seen."""
    opened = {path for call in traced.calls for path in call.paths}
    assert any(path.endswith("mlx5_0/ports/1/state") for path in opened)
    assert any(path.endswith("/state.msgpack") for path in opened)


def test_an_excluded_device_is_never_opened(traced: Traced) -> None:
    """Neither its files nor its folder, by whatever path."""
    real = (traced.node.root / CLASS / "mlx5_1").resolve()
    own = (f"{CLASS}/mlx5_1", str(real.relative_to(traced.node.root)))
    touched = [
        path
        for call in traced.calls
        for path in call.paths
        for name in own
        if name in path
    ]
    assert touched == []


def test_an_excluded_device_is_nowhere(traced: Traced) -> None:
    """It is not told, not even that it is there."""
    assert "mlx5_1" not in traced.agent.log_file.read_text()


def test_nothing_is_written_elsewhere(traced: Traced) -> None:
    """Every change to the file system is below the state or the run folder."""
    own = (str(traced.agent.state_folder), str(traced.agent.run_folder))
    elsewhere = [
        call
        for call in traced.calls
        if call.changes_something
        for path in call.paths[:1]
        if not path.startswith(own) and not HARMLESS.search(path)
    ]
    assert elsewhere == []


def test_no_program_is_run(traced: Traced) -> None:
    """On a copied tree there is nothing that a tool could tell; strace starts one."""
    programs = [call.paths[0] for call in traced.calls if call.name == "execve"]
    assert {Path(program).name.startswith("python") for program in programs} == {True}
