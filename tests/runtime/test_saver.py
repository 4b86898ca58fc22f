from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fabricmon.host.store import FILE, Store, StoreProblem
from fabricmon.runtime.saver import SAVE_SECONDS, Saver
from fabricmon.saved import SavedState
from tests.support.servers import wait_until

TAKEN = {"EEXIST", "ENOTDIR"}  # a file stands where the folder should be


def state(seq: int = 1) -> SavedState:
    """Return a state that its number tells from others."""
    return SavedState(node="node01", boot_id="b1", seq=seq, written=1.0)


@pytest.fixture
def saver(tmp_path: Path) -> Saver:
    """Return a saver of an empty folder."""
    return Saver(str(tmp_path))


def errno(saver: Saver) -> str | None:
    """Return which error the last save gave."""
    return saver.problem.errno if saver.problem else None


def saved(folder: Path) -> int | None:
    """Return the number of the state that is on disk."""
    found = Store(str(folder)).load()
    return found.seq if isinstance(found, SavedState) else None


class SlowStore:
    """A disk that takes a state only when it is let; keeps those it took."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.begun = threading.Event()
        self.taken: list[int] = []

    def save(self, new: SavedState) -> StoreProblem | None:
        """Take a state once that is allowed."""
        self.begun.set()
        self.free.wait(10)
        self.taken.append(new.seq)
        return None

    def close(self) -> None:
        """Nothing is held."""


class TestLoad:
    def test_what_was_saved(self, saver: Saver, tmp_path: Path) -> None:
        """The next agent gets it."""
        Store(str(tmp_path)).save(state(7))
        assert saver.load() == state(7)
        assert saver.problem is None

    def test_nothing(self, saver: Saver) -> None:
        """The first start on a node is no problem."""
        assert saver.load() is None
        assert saver.problem is None

    def test_damaged(self, saver: Saver, tmp_path: Path) -> None:
        """It is ignored, and the reason kept for whoever logs."""
        (tmp_path / FILE).write_bytes(b"\xc1")
        assert saver.load() is None
        assert saver.problem is not None
        assert FILE in str(saver.problem)


class TestDue:
    def test_changes_are_saved_at_once(self, saver: Saver) -> None:
        """A finding that opened must not be told again after a crash."""
        assert saver.is_due(100.0, changed=True)

    def test_at_rest(self, saver: Saver) -> None:
        """Once a minute, counted from the start or the last time."""
        assert not saver.is_due(100.0, changed=False)
        assert not saver.is_due(100.0 + SAVE_SECONDS - 1, changed=False)
        assert saver.is_due(100.0 + SAVE_SECONDS, changed=False)
        saver.offer(state(), 100.0 + SAVE_SECONDS)
        assert not saver.is_due(100.0 + SAVE_SECONDS + 1, changed=False)
        saver.finish(state(), 10)


class TestOffer:
    def test_it_comes_to_the_disk(self, saver: Saver, tmp_path: Path) -> None:
        """Soon, and without waiting for the end."""
        saver.offer(state(3), 0.0)
        wait_until(lambda: saved(tmp_path) == 3, 10, "the state is on disk")
        saver.offer(state(4), 1.0)
        wait_until(lambda: saved(tmp_path) == 4, 10, "the next one, too")
        saver.finish(state(5), 10)

    def test_a_slow_disk_delays_nobody(self, saver: Saver) -> None:
        """Those who wait are replaced by the newest; the caller never waits."""
        disk = SlowStore()
        saver._store = disk  # type: ignore[assignment]
        saver.offer(state(1), 0.0)
        assert disk.begun.wait(10)
        for seq in range(2, 50):
            saver.offer(state(seq), 0.0)
        assert disk.taken == []
        disk.free.set()
        assert saver.finish(state(50), 10)
        assert disk.taken[0] == 1
        assert disk.taken[-1] == 50
        assert len(disk.taken) <= 3

    def test_a_problem_is_kept_until_it_is_over(
        self, saver: Saver, tmp_path: Path
    ) -> None:
        """The folder may come back: a disk is emptied, a mount is repaired."""
        in_the_way = tmp_path / "state"
        in_the_way.write_text("a file where the folder should be")
        blocked = Saver(str(in_the_way))
        blocked.offer(state(), 0.0)
        wait_until(lambda: errno(blocked) in TAKEN, 10, "the problem is known")
        in_the_way.unlink()
        blocked.offer(state(9), 1.0)
        assert blocked.finish(state(9), 10)
        assert errno(blocked) is None
        assert saved(in_the_way) == 9


class TestFinish:
    def test_the_last_state_is_saved(self, saver: Saver, tmp_path: Path) -> None:
        """Also where nothing was ever offered before."""
        assert saver.finish(state(5), 10)
        assert saved(tmp_path) == 5

    def test_a_disk_that_hangs_does_not_hold_the_end(self, saver: Saver) -> None:
        """The end waits as long as it was told to, and says that it was in vain."""
        disk = SlowStore()
        saver._store = disk  # type: ignore[assignment]
        assert not saver.finish(state(), 0.05)
        disk.free.set()
        assert saver._thread is not None
        saver._thread.join(10)
        assert not saver._thread.is_alive()

    def test_the_file_is_its_owner_s(self, saver: Saver, tmp_path: Path) -> None:
        """Names and addresses of a cluster are nobody else's business."""
        saver.finish(state(), 10)
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


class TestShortage:
    def test_no_thread(
        self, saver: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is a problem that is told; the next state tries again."""

        def refuse(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            saver.offer(state(1), 0.0)
            assert "can't start new thread" in str(saver.problem)
            assert not saver.finish(state(1), 0.1)
        again = Saver(str(tmp_path))
        assert again.finish(state(2), 10)
        assert (saved(tmp_path), again.has_saved) == (2, True)

    def test_a_disk_with_a_bug(self, saver: Saver, tmp_path: Path) -> None:
        """An error that nobody foresaw is told, and the next state is saved."""
        store = saver._store
        path = str(tmp_path / FILE)

        class Broken:
            path = ""

            def save(self, _state: SavedState) -> StoreProblem | None:
                raise ValueError("embedded null byte")

        saver._store = Broken()  # type: ignore[assignment]
        saver.offer(state(1), 0.0)
        wait_until(lambda: saver.problem is not None, 10, "the problem is known")
        assert "embedded null byte" in str(saver.problem)
        assert not saver.has_saved
        saver._store = store
        assert saver.finish(state(2), 10)
        assert Path(path).exists()
