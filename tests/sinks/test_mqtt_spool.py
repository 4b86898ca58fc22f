"""The spool: order, bounds, kill -9, and disks that do not do their work."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.sinks.mqtt_disk import Bounds
from fabricmon.sinks.mqtt_spool import ASIDE, FILE, Spool

ROOMY = Bounds(10_000, 1 << 24)


def opened(folder: Path, bounds: Bounds = ROOMY, in_memory: int = 100) -> Spool:
    """Return a spool that is open."""
    spool = Spool(str(folder), bounds, in_memory)
    spool.open()
    return spool


def payloads(spool: Spool, most: int = 10_000) -> list[bytes]:
    """Return what waits, oldest first."""
    return [each.payload for each in spool.oldest(most)]


def numbered(first: int, last: int) -> list[bytes]:
    """Return so many payloads."""
    return [b"%d" % number for number in range(first, last + 1)]


class TestOrder:
    def test_first_in_first_out(self, tmp_path: Path) -> None:
        """What was delivered is gone, the rest stays in order."""
        spool = opened(tmp_path)
        spool.append(numbered(1, 9))
        batch = spool.oldest(4)
        spool.delivered(batch[-1].number)
        assert payloads(spool) == numbered(5, 9)
        assert spool.waiting == 5

    def test_over_a_restart(self, tmp_path: Path) -> None:
        """What waits is there for the next one, before what comes then."""
        spool = opened(tmp_path)
        spool.append(numbered(1, 3))
        spool.close()
        spool = opened(tmp_path)
        spool.append(numbered(4, 5))
        assert payloads(spool) == numbered(1, 5)

    def test_over_kill_9(self, tmp_path: Path) -> None:
        """A killed process loses nothing that it had appended."""
        script = (
            "import sys; sys.path.append('.')\n"
            "from tests.sinks.test_mqtt_spool import *\n"
            f"spool = opened(Path({str(tmp_path)!r}))\n"
            "for number in range(1, 10**6):\n"
            "    spool.append([b'%d' % number]); print(number, flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            said = [int(process.stdout.readline()) for _ in range(200)]
            os.kill(process.pid, signal.SIGKILL)
        found = [int(each) for each in payloads(opened(tmp_path), 1 << 20)]
        assert found[: len(said)] == said
        assert found == list(range(1, len(found) + 1))


class TestBounds:
    def test_rows(self, tmp_path: Path) -> None:
        """The oldest goes first, and is counted."""
        spool = opened(tmp_path, Bounds(5, 1 << 20))
        for each in numbered(1, 12):
            spool.append([each])
        assert payloads(spool) == numbered(8, 12)
        assert spool.dropped == 7

    def test_bytes(self, tmp_path: Path) -> None:
        """Large findings count by their size."""
        spool = opened(tmp_path, Bounds(1000, 100_000))
        spool.append([b"x" * 30_000] * 5)
        assert (spool.waiting, spool.dropped) == (3, 2)

    def test_a_smaller_bound_after_a_restart(self, tmp_path: Path) -> None:
        """What is too much then is dropped and counted."""
        spool = opened(tmp_path)
        spool.append(numbered(1, 50))
        spool.close()
        spool = opened(tmp_path, Bounds(10, 1 << 20))
        assert payloads(spool) == numbered(41, 50)
        assert spool.dropped == 40

    def test_the_file(self, tmp_path: Path) -> None:
        """It stays small whatever passes through, and is its owner's alone."""
        spool = opened(tmp_path, Bounds(1000, 1 << 18))
        for _ in range(60):
            spool.append([b"x" * 1000] * 100)
        spool.close()
        file = tmp_path / FILE
        assert file.stat().st_size < 1 << 21
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


class TestDisks:
    def test_full(self, tmp_path: Path) -> None:
        """A data base that takes no more: memory takes over, the order holds."""
        spool = opened(tmp_path)
        spool.append(numbered(1, 3))
        assert spool._disk is not None
        pages = "PRAGMA max_page_count=1"  # no more than it has
        spool._disk._base.execute(pages)
        big = [b"x" * 20_000, b"y" * 20_000]
        spool.append(big)
        assert "full" in (spool.problem or "")
        assert payloads(spool) == numbered(1, 3)
        spool.delivered(spool.oldest(3)[-1].number)
        assert payloads(spool) == big

    def test_full_memory(self, tmp_path: Path) -> None:
        """Without a disk the oldest in memory goes first, counted."""
        (tmp_path / "file").write_text("")
        spool = opened(tmp_path / "file", in_memory=10)
        spool.append(numbered(1, 25))
        assert payloads(spool) == numbered(16, 25)
        assert (spool.waiting, spool.dropped) == (10, 15)

    def test_held_by_another(self, tmp_path: Path) -> None:
        """Two agents do not share one; the second says so and uses memory."""
        first, second = opened(tmp_path), opened(tmp_path)
        second.append(numbered(1, 2))
        assert "locked" in (second.problem or "")
        assert payloads(second) == numbered(1, 2)
        assert first.problem is None

    def test_taken_back(self, tmp_path: Path) -> None:
        """Once nothing waits in memory the disk is tried again."""
        first, second = opened(tmp_path), opened(tmp_path)
        second.append(numbered(1, 2))
        first.close()
        second.delivered(second.oldest(2)[-1].number)
        second.append(numbered(3, 3))
        assert second.problem is None
        second.close()
        assert payloads(opened(tmp_path)) == numbered(3, 3)

    @settings(max_examples=20)
    @given(damage=st.binary(min_size=1, max_size=200), at=st.integers(0, 20_000))
    def test_damaged(
        self, tmp_path_factory: pytest.TempPathFactory, damage: bytes, at: int
    ) -> None:
        """Whatever is written over it, it never raises, and takes new findings."""
        folder = tmp_path_factory.mktemp("damaged")
        spool = opened(folder)
        spool.append([b"x" * 500] * 30)
        spool.close()
        with (folder / FILE).open("r+b") as file:
            file.seek(at)
            file.write(damage)
        spool = opened(folder)
        spool.append([b"new"])
        while batch := spool.oldest(8):
            last = batch[-1]
            spool.delivered(last.number)
        assert last.payload == b"new"
        spool.close()

    def test_no_data_base(self, tmp_path: Path) -> None:
        """It is put aside, not overwritten: somebody may want to look."""
        (tmp_path / FILE).write_text("something else " * 500)
        spool = opened(tmp_path)
        assert "put aside" in (spool.problem or "")
        assert (tmp_path / f"{FILE}{ASIDE}").exists()
        spool.append(numbered(1, 1))
        assert payloads(spool) == numbered(1, 1)

    def test_a_link(self, tmp_path: Path) -> None:
        """What somebody put in its place is never written through."""
        (tmp_path / "target").write_text("precious")
        (tmp_path / FILE).symlink_to(tmp_path / "target")
        spool = opened(tmp_path)
        spool.append(numbered(1, 1))
        assert spool.problem is not None
        assert (tmp_path / "target").read_text() == "precious"


class TestTopics:
    def test_by_broker(self, tmp_path: Path) -> None:
        """What one broker retains is nothing to another."""
        spool = opened(tmp_path)
        spool.retain("a:1", ["x", "y"])
        spool.release("a:1", ["y"])
        spool.close()
        again = opened(tmp_path)
        assert again.topics("b:1") == ()
        assert again.topics("a:1") == ("x",)
        again.close()
        file = sqlite3.connect(tmp_path / FILE)
        assert file.execute("SELECT topic FROM retained").fetchall() == [("x",)]
        file.close()
