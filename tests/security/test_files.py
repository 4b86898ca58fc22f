"""Files that are written: with the modes that are documented, and never through a link."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fabricmon.gate.journal import FILE as JOURNAL
from fabricmon.gate.journal import Journal
from fabricmon.host.segments import FOLDER as HISTORY
from tests.security.whole_life import Life
from tests.support.servers import free_port

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[2] / "docs/security.md"
UMASKS = ("000", "022")
SEGMENT = f"{HISTORY}/n.trace.jsonl.gz"
SECRET = b"a file of somebody else, which is his alone\n"


def documented() -> dict[str, int]:
    """Return the modes that the manual promises, by the name of the file."""
    rows = re.findall(
        r"^\| `([a-z./-]+)` \| `(0\d{3})` \|", DOCUMENT.read_text(), re.MULTILINE
    )
    return {name: int(mode, 8) for name, mode in rows}


def modes(*folders: Path) -> dict[str, int]:
    """Return the modes of all that lies below folders, by name.

    Without what an agent that lives is just writing beside its place.
    """
    found: dict[str, int] = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        if not path.is_dir() and path.suffix != ".new":
            with suppress(FileNotFoundError):
                name = SEGMENT if path.parent.name == HISTORY else path.name
                found[name] = stat.S_IMODE(path.lstat().st_mode)
    return found


def with_umask(umask: str) -> list[str]:
    """Return what runs a command under a umask."""
    return ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]


def fabricmon(umask: str, folder: Path, *words: str) -> None:
    """Run a command of fabricmon on the node in a folder."""
    config = folder / "agent" / "fabricmon.yaml"
    command = [*with_umask(umask), sys.executable, "-m", "fabricmon", *words]
    done = subprocess.run(
        [*command, "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def umask_of(umask: str) -> Iterator[None]:
    """Have a umask for a while."""
    before = os.umask(int(umask, 8))
    try:
        yield
    finally:
        os.umask(before)


class TestModes:
    @pytest.mark.parametrize("umask", UMASKS)
    def test_of_an_agent(self, tmp_path: Path, umask: str) -> None:
        """While it lives and after; its folders let nobody else write or look."""
        life = Life(tmp_path, free_port(), with_umask(umask))
        agent = life.agent
        agent.run_folder.rmdir()  # so that it makes its own
        own = (agent.state_folder, agent.run_folder, life.textfile.parent)
        seen: dict[str, int] = {}
        life.before_the_end = lambda: seen.update(modes(*own))
        try:
            life.live()
            seen |= modes(*own)
            folders = [stat.S_IMODE(folder.stat().st_mode) for folder in own[:2]]
        finally:
            agent.close()
        promised = documented()
        assert seen == {name: promised[name] for name in seen}
        assert {*seen} == {
            *("state.msgpack", "mqtt-spool.sqlite", "mqtt-spool.sqlite-wal"),
            *("redaction.key", ".lock", "agent.sock", "fabricmon.prom", SEGMENT),
        }
        assert folders == [0o700, 0o755]

    @pytest.mark.parametrize("umask", UMASKS)
    def test_of_commands(self, tmp_path: Path, umask: str) -> None:
        """A recording, a bundle and the maintenance file."""
        life = Life(tmp_path, free_port())
        life.agent.close()
        trace, bundle = tmp_path / "node.trace.jsonl.gz", tmp_path / "bundle.tar.gz"
        fabricmon(umask, tmp_path, "record", str(trace), "--for", "0.2")
        fabricmon(umask, tmp_path, "support", str(bundle), "--seconds", "1")
        fabricmon(umask, tmp_path, "maintenance", "set", "--for", "1h")
        promised = documented()
        found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (trace, bundle)}
        found |= modes(life.agent.run_folder)
        assert found == {name: promised[name] for name in found}
        assert len(found) == 3

    @pytest.mark.parametrize("umask", UMASKS)
    def test_of_the_gate(self, tmp_path: Path, umask: str) -> None:
        """The journal and what SQLite puts beside it; its folder is not for all."""
        folder = tmp_path / "state"
        with umask_of(umask):
            journal = Journal(str(folder))
            seen = modes(folder)
            journal.close()
        promised = documented()
        assert {name: promised[name] for name in seen} == seen
        assert JOURNAL in seen
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750 & ~int(umask, 8)

    def test_every_promise_is_kept_somewhere(self) -> None:
        """The table of the manual has no row that nothing here looks at."""
        assert set(documented()) == {
            *("state.msgpack", "mqtt-spool.sqlite", "mqtt-spool.sqlite-wal"),
            *("redaction.key", ".lock", "agent.sock", "fabricmon.prom", SEGMENT),
            *("node.trace.jsonl.gz", "bundle.tar.gz", "maintenance.json"),
            *("journal.sqlite", "journal.sqlite-wal"),
        }


class Victim:
    """A file of somebody else, and links to it in places that are known beforehand."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "victim"
        self.file.write_bytes(SECRET)
        self.file.chmod(0o600)
        self._inode = self.file.stat().st_ino

    def plant(self, *places: Path) -> None:
        """Put a link to it in each place."""
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.file)

    @property
    def is_unharmed(self) -> bool:
        """Tell whether it is as it was."""
        found = self.file.stat()
        same = (found.st_ino, stat.S_IMODE(found.st_mode)) == (self._inode, 0o600)
        return same and self.file.read_bytes() == SECRET


class TestLinks:
    def test_of_an_agent(self, tmp_path: Path) -> None:
        """Links in all its places are replaced, and it does its work."""
        life, victim = Life(tmp_path, free_port()), Victim(tmp_path)
        state, run = life.agent.state_folder, life.agent.run_folder
        victim.plant(
            state / "state.msgpack",
            state / ".state.msgpack.new",
            state / ".redaction.key.new",
            run / "agent.new",
            life.textfile,
            life.textfile.with_name(".fabricmon.prom.new"),
        )
        try:
            life.live()
        finally:
            life.agent.close()
        assert victim.is_unharmed
        assert (state / "state.msgpack").stat().st_size > 100
        assert not (state / "state.msgpack").is_symlink()

    def test_of_what_an_agent_opens_in_place(self, tmp_path: Path) -> None:
        """The spool and the socket are refused where they are links; both are said."""
        life, victim = Life(tmp_path, free_port()), Victim(tmp_path)
        state, run = life.agent.state_folder, life.agent.run_folder
        victim.plant(state / "mqtt-spool.sqlite", run / "agent.sock")
        agent = life.agent
        try:
            agent.start()
            agent.until(lambda: agent.lines("spool_degraded"), "the spool is refused")
            assert agent.lines("socket_unavailable")
            agent.stop()
        finally:
            agent.close()
        assert victim.is_unharmed

    def test_of_the_lock(self, tmp_path: Path) -> None:
        """A lock that is a link is not taken, so nothing is saved, and that is said."""
        life, victim = Life(tmp_path, free_port()), Victim(tmp_path)
        agent = life.agent
        victim.plant(agent.state_folder / ".lock")
        try:
            agent.start()
            agent.until(lambda: agent.lines("state_unsaved"), "it says so")
            agent.stop()
        finally:
            agent.close()
        assert victim.is_unharmed
        assert not (agent.state_folder / "state.msgpack").exists()

    def test_of_commands(self, tmp_path: Path) -> None:
        """What root writes into folders of others goes through none of their links."""
        life, victim = Life(tmp_path, free_port()), Victim(tmp_path)
        life.agent.close()
        trace, bundle = tmp_path / "t.jsonl", tmp_path / "b.tar.gz"
        plan = life.agent.run_folder / "maintenance.json"
        victim.plant(trace.with_name("t.jsonl.part"), bundle.with_name("b.tar.gz.part"))
        fabricmon("022", tmp_path, "record", str(trace), "--for", "0.2", "--force")
        fabricmon("022", tmp_path, "support", str(bundle), "--seconds", "1")
        victim.file.write_bytes(b"[]\n")
        victim.plant(plan)
        fabricmon("022", tmp_path, "maintenance", "set", "--for", "1h")
        assert victim.file.read_bytes() == b"[]\n"
        victim.file.write_bytes(SECRET)
        assert victim.is_unharmed
        assert not any(path.is_symlink() for path in (trace, bundle, plan))

    def test_of_the_gate(self, tmp_path: Path) -> None:
        """A journal that is a link is an error, not another program's data base."""
        victim = Victim(tmp_path)
        victim.plant(tmp_path / "state" / JOURNAL)
        with pytest.raises(Exception, match="journal"):
            Journal(str(tmp_path / "state"))
        assert victim.is_unharmed
