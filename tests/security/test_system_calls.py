"""What a real agent asks of the kernel in its whole life: to read, and little else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fabricmon
from tests.security.system_calls import (
    CALLS,
    OPENING,
    RUNNING,
    Allowed,
    Call,
    opened,
    read,
    wrongs,
)
from tests.security.whole_life import EXCLUDED, Life, wait_for_the_trace
from tests.support.agent import CLASS
from tests.support.programs import require
from tests.support.servers import Server, mosquitto

pytestmark = [pytest.mark.server, pytest.mark.slow]

PACKAGE = Path(fabricmon.__file__).parent
DOOR = "        self._count(firmware_reads)\n        own = path.startswith"


@dataclass(frozen=True)
class Mutant:
    """What is done on each read of a file of the node, and how strace shows it."""

    line: str
    seen: str


MUTANTS = {
    "a write to a device": Mutant(
        "if path.endswith('/fw_ver'): os.close(os.open(self._prefix + path, os.O_RDWR))",
        "/fw_ver",
    ),
    "a new file": Mutant("open(self._prefix + '/stray', 'a').close()", "/stray"),
    "another mode": Mutant("os.chmod(self._prefix, 0o755)", "chmod("),
    "a program": Mutant("if path.endswith('/fw_ver'): os.system('exit 0')", "/sh"),
    "a stranger": Mutant("socket.socket().connect_ex(('127.0.0.1', 9))", "htons(9)"),
}


@dataclass(frozen=True)
class Traced:
    """A life that is over, its system calls, and what was allowed."""

    life: Life
    calls: tuple[Call, ...]
    allowed: Allowed


def trace(folder: Path, broker: Server, **environment: str) -> Traced:
    """Let an agent live under strace."""
    out = folder / "calls"
    # -D: the agent stays our child, and gets our signals.
    prefix = [require("strace"), "-D", "-f", "-y", "-s", "4096", "-o", str(out)]
    # ?: not every kernel and machine has all of them.
    prefix += ["-e", "trace=" + ",".join(f"?{name}" for name in CALLS)]
    life = Life(folder, broker.port, prefix)
    agent = life.agent
    try:
        life.live(broker, **environment)
        wait_for_the_trace(out, _pid(out))
    finally:
        agent.close()
    allowed = Allowed(
        folders=(
            str(agent.state_folder),
            str(agent.run_folder),
            str(life.textfile.parent),
        ),
        ports=frozenset({broker.port, agent.port}),
        sockets=(agent.supervisor.path, str(agent.run_folder)),
    )
    return Traced(life, read(out), allowed)


def _pid(out: Path) -> int:
    return int(out.read_text("utf-8", "replace").split(maxsplit=1)[0])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that all tests of this file send to."""
    server = mosquitto(tmp_path_factory.mktemp("broker")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, broker: Server) -> Traced:
    """The calls of an agent as it is."""
    return trace(tmp_path_factory.mktemp("traced"), broker)


def test_the_trace_is_whole(traced: Traced) -> None:
    """All that the agent did in its life is seen: else nothing below says anything."""
    seen = {path for call in traced.calls for path in call.paths}
    for end in (
        "mlx5_0/ports/1/state",
        "/state.msgpack",
        "mqtt-spool.sqlite",
        "/redaction.key",
        "/4711.log",
        "/fabricmon.prom",
        "agent.new",
        "fabricmon.yaml",
    ):
        assert any(path.endswith(end) for path in seen), end
    reached = {call.port for call in traced.calls if call.name in {"connect", "bind"}}
    assert traced.allowed.ports <= reached


def test_nothing_else_is_done(traced: Traced) -> None:
    """Writes stay in its folders, connections go where the configuration says."""
    assert wrongs(traced.calls, traced.allowed) == []


def test_the_node_is_only_read(traced: Traced) -> None:
    """No file of the node is opened for anything but reading, also none of a log."""
    root = str(traced.life.node.root)
    found = list(opened(traced.calls, root))
    assert len(found) > 100
    assert [str(call) for call in found if call.writes] == []
    assert [str(c) for c in opened(traced.calls, "/sys") if c.writes] == []


def test_what_is_excluded_is_not_opened(traced: Traced) -> None:
    """Neither its files nor its folder, by whatever path."""
    root = traced.life.node.root
    real = str((root / CLASS / EXCLUDED).resolve())
    touched = [
        str(call)
        for call in traced.calls
        if call.name in OPENING and (real in call.text or f"/{EXCLUDED}" in call.text)
    ]
    assert touched == []


def test_no_program_is_run(traced: Traced) -> None:
    """Of a copied tree no tool could tell anything; the first is started by strace."""
    programs = [call.paths[0] for call in traced.calls if call.name in RUNNING]
    assert {Path(program).name[:6] for program in programs} == {"python"}


@pytest.mark.parametrize("what", MUTANTS)
def test_what_is_forbidden_is_seen(what: str, tmp_path: Path, broker: Server) -> None:
    """An agent that does what it may not is found out: the control of all this."""
    copy = tmp_path / "mutant"
    shutil.copytree(
        PACKAGE, copy / "fabricmon", ignore=shutil.ignore_patterns("__pycache__")
    )
    place = copy / "fabricmon/host/live.py"
    text = place.read_text("utf-8")
    assert text.count(DOOR) == 1
    mutated = text.replace(DOOR, f"        {MUTANTS[what].line}\n{DOOR}")
    place.write_text(mutated, "utf-8")
    found = trace(tmp_path, broker, PYTHONPATH=str(copy))
    shown = wrongs(found.calls, found.allowed)
    assert any(MUTANTS[what].seen in call for call in shown)
