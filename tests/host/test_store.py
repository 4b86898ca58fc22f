"""The state file: replaced as a whole, refused when it is of no use."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fabricmon.host.store import FILE, LOCK, Store, StoreProblem
from fabricmon.saved import MAX_BYTES, VERSION, SavedState, encode

STATE = SavedState(node="node-1", boot_id="boot-1", seq=7, written=1.5)
NEXT = msgspec.structs.replace(STATE, seq=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a state folder that does not exist yet."""
    return tmp_path / "var" / "fabricmon"


@pytest.fixture
def store(folder: Path) -> Store:
    """Return the store of that folder."""
    return Store(str(folder))


class TestRoundTrip:
    def test_nothing_is_saved_yet(self, store: Store) -> None:
        """A first start is no problem."""
        assert store.load() is None

    def test_what_is_saved_is_loaded(self, store: Store) -> None:
        """The folder is made on the way."""
        assert store.save(STATE) is None
        assert store.load() == STATE

    def test_it_is_replaced(self, store: Store, folder: Path) -> None:
        """The newest state is the only one, and nothing else is left behind."""
        store.save(STATE)
        store.save(NEXT)
        assert store.load() == NEXT
        assert {path.name for path in folder.iterdir()} == {FILE, LOCK}

    def test_only_the_owner_reads_it(self, store: Store, folder: Path) -> None:
        """Names of nodes and jobs are nobody else's business."""
        store.save(STATE)
        assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600


class TestCrash:
    def test_what_a_crash_left_is_replaced(self, store: Store, folder: Path) -> None:
        """A half-written file under the temporary name is in nobody's way."""
        folder.mkdir(parents=True)
        (folder / f".{FILE}.new").write_bytes(b"half")
        assert store.save(STATE) is None
        assert store.load() == STATE

    def test_a_link_is_not_written_through(self, store: Store, folder: Path) -> None:
        """Whoever puts a link in the folder does not get another file overwritten."""
        folder.mkdir(parents=True)
        victim = folder.parent / "victim"
        victim.write_text("mine")
        (folder / f".{FILE}.new").symlink_to(victim)
        assert store.save(STATE) is None
        assert victim.read_text() == "mine"

    def test_the_file_is_on_disk_before_it_takes_the_name(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A power cut leaves the old state or the new one, never an empty file."""
        order: list[str] = []
        sync, replace = os.fsync, Path.replace

        def note_sync(descriptor: int) -> None:
            order.append("sync")
            sync(descriptor)

        def note_replace(path: Path, target: Path) -> Path:
            order.append("replace")
            return replace(path, target)

        monkeypatch.setattr(os, "fsync", note_sync)
        monkeypatch.setattr(Path, "replace", note_replace)
        store.save(STATE)
        assert order == ["sync", "replace", "sync"]


HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


class TestOthers:
    def test_another_agent_saves_here(self, store: Store, folder: Path) -> None:
        """Two that write would save each other's half; once it is gone, we save."""
        folder.mkdir(parents=True)
        (folder / LOCK).touch()
        words = [sys.executable, "-c", HOLDER, str(folder / LOCK)]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            problem = store.save(STATE)
            other.communicate(b"\n")
        assert problem is not None
        assert "another agent saves here" in str(problem)
        assert store.load() is None
        assert store.save(NEXT) is None
        store.close()
        assert store.load() == NEXT

    def test_a_lock_of_another_user(
        self, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What one run as root left in our folder does not keep us from saving."""
        folder.mkdir(parents=True)
        left = folder / LOCK
        left.touch()
        theirs, kernel = left.stat().st_ino, os.open

        def refuses(path: Any, *rest: Any, **more: Any) -> int:
            if path == left and left.exists() and left.stat().st_ino == theirs:
                raise PermissionError(errno.EACCES, "Permission denied")
            return kernel(path, *rest, **more)

        with left.open("rb"):  # so that its number is not used again
            monkeypatch.setattr(os, "open", refuses)
            assert store.save(STATE) is None
        assert store.load() == STATE


class TestRefused:
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    def test_a_full_or_read_only_disk(
        self, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """One clear problem; the state before stays as it was."""
        store.save(STATE)

        def fail(*_args: Any) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)
        problem = store.save(NEXT)
        monkeypatch.undo()
        assert isinstance(problem, StoreProblem)
        assert problem.errno == errno.errorcode[code]
        assert "not saved" in str(problem)
        assert store.load() == STATE
        assert {path.name for path in folder.iterdir()} == {FILE, LOCK}

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        """A file where the folder should be is told, not raised."""
        (tmp_path / "state").write_text("a file")
        problem = Store(str(tmp_path / "state")).save(STATE)
        assert problem is not None
        assert problem.errno in {"ENOTDIR", "EEXIST"}

    def test_a_state_that_is_no_text(self, store: Store) -> None:
        """Names that cannot be written are told, not raised."""
        problem = store.save(msgspec.structs.replace(STATE, node="\udc80"))
        assert problem is not None
        assert problem.errno is None

    def test_a_state_without_end(self, store: Store) -> None:
        """The file is bounded on the way in."""
        store.save(STATE)
        huge = msgspec.structs.replace(STATE, counters=bytes(MAX_BYTES + 1))
        problem = store.save(huge)
        assert problem is not None
        assert "too many" in problem.message
        assert store.load() == STATE


class TestIgnored:
    @pytest.mark.parametrize(
        ("raw", "why"),
        [
            (b"", "damaged"),
            (b"\x00\xff garbage", "damaged"),
            (encode(STATE)[:-3], "damaged"),
            (encode(msgspec.structs.replace(STATE, version=VERSION + 1)), "newer"),
            (bytes(MAX_BYTES + 1), "larger"),
        ],
    )
    def test_a_useless_file(
        self, store: Store, folder: Path, raw: bytes, why: str
    ) -> None:
        """It is ignored with one line that says where and why."""
        folder.mkdir(parents=True)
        (folder / FILE).write_bytes(raw)
        problem = store.load()
        assert isinstance(problem, StoreProblem)
        assert why in problem.message
        assert str(problem).startswith(f"{folder / FILE}: ignored: ")

    def test_it_is_replaced_by_the_next_save(self, store: Store, folder: Path) -> None:
        """A damaged file does not stay in the way."""
        folder.mkdir(parents=True)
        (folder / FILE).write_bytes(b"garbage")
        assert store.save(STATE) is None
        assert store.load() == STATE

    def test_an_unreadable_file(self, store: Store, folder: Path) -> None:
        """A folder in its place is told by its errno."""
        (folder / FILE).mkdir(parents=True)
        problem = store.load()
        assert isinstance(problem, StoreProblem)
        assert problem.errno == "EISDIR"

    def test_a_pipe_does_not_hang(self, store: Store, folder: Path) -> None:
        """A pipe that nobody writes to is an empty file."""
        folder.mkdir(parents=True)
        os.mkfifo(folder / FILE)
        assert isinstance(store.load(), StoreProblem)
