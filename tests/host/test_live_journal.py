"""The kernel's log as journald keeps it, followed by a real journalctl."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host import live_journal
from fabricmon.host.live import LiveHost
from fabricmon.host.live_journal import JournalLog
from fabricmon.host.protocol import KernelLine, ReadError
from tests.support.programs import require
from tests.support.servers import wait_until

DOWN = "mlx5_core 0000:1a:00.0 eth3: Link down"
UP = "mlx5_core 0000:1a:00.0 eth3: Link up"
BOOT = "8a46497b-8218-4fc0-8de6-2c8886a9c0c4"
MACHINE = "0123456789abcdef0123456789abcdef"
WRITER = "/lib/systemd/systemd-journal-remote"


class Journal:
    """A node's journal, and the one who writes it."""

    def __init__(self, root: Path) -> None:
        require("journalctl")
        self.said = 0
        self.root = root
        self.file = root / "var/log/journal" / MACHINE / "system.journal"
        for path, text in (
            ("etc/machine-id", MACHINE),
            ("proc/sys/kernel/random/boot_id", BOOT),
        ):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{text}\n")
        self.file.parent.mkdir(parents=True)
        self._writer = subprocess.Popen(
            (require(WRITER), f"--output={self.file}", "-"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def say(self, seconds: float, text: bytes | str, **fields: str) -> None:
        """Write an entry as journald does of a record of the kernel."""
        octets = text.encode() if isinstance(text, str) else text
        known = {
            "__REALTIME_TIMESTAMP": str(1_790_000_000_000_000 + int(seconds * 1e6)),
            "__MONOTONIC_TIMESTAMP": str(int(seconds * 1e6)),
            "_BOOT_ID": BOOT.replace("-", ""),
            "_TRANSPORT": "kernel",
            "SYSLOG_FACILITY": "0",
        } | fields
        head = "".join(f"{name}={value}\n" for name, value in known.items()).encode()
        size = len(octets).to_bytes(8, "little")
        assert self._writer.stdin is not None
        self._writer.stdin.write(head + b"MESSAGE\n" + size + octets + b"\n\n")
        self._writer.stdin.flush()
        self.said += 1

    def wait(self) -> None:
        """Wait until the last entry can be read."""
        wait_until(self._is_written, 20, "a journal")

    def _is_written(self) -> bool:
        words = (f"--directory={self.file.parent}", "--output=cat", "--quiet")
        told = subprocess.run(
            ("journalctl", *words), check=False, capture_output=True
        ).stdout
        return told.count(b"\n") >= self.said

    def close(self) -> None:
        """End the writer, which closes the file."""
        assert self._writer.stdin is not None
        self._writer.stdin.close()
        self._writer.wait(10)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Make a node with a journal."""
    made = Journal(tmp_path)
    yield made
    made.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JournalLog]:
    """Open nothing yet; end what it started."""
    made = JournalLog(str(tmp_path))
    yield made
    made.close()


def first(log: JournalLog, count: int, now: float = 100.0) -> list[KernelLine]:
    """Return the next lines, once there are so many."""
    found: list[KernelLine] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found += log.lines(now) or ()
        time.sleep(0.01)
    return found


class TestFollowing:
    def test_what_was_and_what_comes(self, journal: Journal, log: JournalLog) -> None:
        """Lines of this boot at the times of the monotonic clock, then each new one."""
        journal.say(3.0, DOWN)
        journal.wait()
        assert first(log, 1) == [KernelLine(3.0, DOWN)]
        journal.say(9.5, UP)
        assert first(log, 1) == [KernelLine(9.5, UP)]
        assert log.lines(100.0) == ()

    def test_only_the_kernel_and_this_boot(
        self, journal: Journal, log: JournalLog
    ) -> None:
        """A program cannot pose as the kernel, and another boot is history."""
        journal.say(1.0, DOWN, _TRANSPORT="syslog")
        journal.say(2.0, DOWN, SYSLOG_FACILITY="3")
        journal.say(3.0, DOWN, _BOOT_ID="f" * 32)
        journal.say(4.0, "usb 1-1: new high-speed USB device")
        journal.say(5.0, UP)
        journal.wait()
        assert first(log, 1) == [KernelLine(5.0, UP)]

    def test_octets_that_are_no_text(self, journal: Journal, log: JournalLog) -> None:
        """They are told like those of /dev/kmsg."""
        journal.say(1.0, DOWN.encode() + b"\x1b\xff")
        journal.wait()
        assert first(log, 1) == [
            KernelLine(1.0, f"{DOWN}\x1b\N{REPLACEMENT CHARACTER}")
        ]

    def test_a_reader_that_ended(self, journal: Journal, log: JournalLog) -> None:
        """It is said, and a minute later another goes on without telling twice."""
        journal.say(1.0, DOWN)
        journal.wait()
        assert first(log, 1) == [KernelLine(1.0, DOWN)]
        assert log._process is not None
        log._process.kill()
        wait_until(lambda: log.lines(100.0) is None, 20, "the end of journalctl")
        journal.say(2.0, UP)
        journal.wait()
        assert log.lines(159.0) is None
        assert first(log, 1, 200.0) == [KernelLine(2.0, UP)]

    def test_a_journal_that_moves(self, journal: Journal, log: JournalLog) -> None:
        """Made persistent, or flushed late: its reader follows, and repeats nothing."""
        journal.say(1, DOWN)
        journal.wait()
        assert len(first(log, 1)) == 1
        moved = journal.root / "run/log/journal"
        moved.parent.mkdir(parents=True)
        (journal.root / "var/log/journal").rename(moved)
        journal.file = moved / MACHINE / "system.journal"
        journal.say(2, UP)
        journal.wait()
        found = first(log, 1, now=100.0 + live_journal.RETRY_SECONDS)
        assert [line.text for line in found] == [UP]

    def test_the_end_leaves_no_process(self, journal: Journal, log: JournalLog) -> None:
        """Closing ends journalctl."""
        journal.say(1.0, DOWN)
        journal.wait()
        first(log, 1)
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        names = [Path(f"/proc/{each}/comm").read_text().strip() for each in children]
        assert "journalctl" in names
        log.close()
        assert not log.is_followed
        left = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        assert len(left) == len(children) - 1


class TestRefusal:
    def test_no_journal(self, log: JournalLog) -> None:
        """A node without a journal starts nothing."""
        assert log.lines(0.0) is None
        assert not log.is_followed

    def test_not_allowed(
        self, journal: Journal, log: JournalLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without the right it is not followed: silence would look like health."""
        journal.say(1.0, DOWN)
        journal.wait()
        monkeypatch.setattr("fabricmon.host.live_journal.os.access", lambda *_: False)
        assert log.lines(0.0) is None
        monkeypatch.undo()
        assert log.lines(59.0) is None
        assert log.lines(60.0) is not None

    def test_no_journalctl(
        self, journal: Journal, log: JournalLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A container without it has no log."""
        journal.say(1.0, DOWN)
        journal.wait()
        monkeypatch.setenv("PATH", "/nonexistent")
        assert log.lines(0.0) is None


class TestLiveHost:
    def host(self, monkeypatch: pytest.MonkeyPatch, root: Path, kmsg: str) -> LiveHost:
        """Return a host that is taken for the node of ``root``."""
        host = LiveHost(str(root))
        monkeypatch.setattr(host, "_is_node", True)
        host._kernel_log._error = ReadError(kmsg)
        host._kernel_log._retry_at = float("inf")
        return host

    def test_takes_the_place_of_the_device(
        self, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where /dev/kmsg may not be opened, the journal is read."""
        journal.say(1.0, DOWN)
        journal.wait()
        host = self.host(monkeypatch, tmp_path, "EPERM")
        try:
            deadline = time.monotonic() + 20
            found = host.kernel_log()
            while found == () and time.monotonic() < deadline:
                time.sleep(0.01)
                found = host.kernel_log()
            assert found == (KernelLine(1.0, DOWN),)
        finally:
            host.close()

    def test_a_device_that_failed_later_is_not_replaced(
        self, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it had told would be told again."""
        journal.say(1.0, DOWN)
        journal.wait()
        host = self.host(monkeypatch, tmp_path, "ENODEV")
        try:
            assert host.kernel_log() == ReadError("ENODEV")
        finally:
            host.close()

    def test_without_either(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is told is why the device cannot be read."""
        host = self.host(monkeypatch, tmp_path, "EACCES")
        try:
            assert host.kernel_log() == ReadError("EACCES")
        finally:
            host.close()


class TestHostility:
    @given(st.lists(st.binary(max_size=60)))
    def test_any_output(self, pieces: list[bytes]) -> None:
        """Nothing that could be printed makes it fail."""
        log = JournalLog()
        for piece in pieces:
            assert log._lines_of(piece, 1.0) == []

    def test_a_line_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is dropped whole, and the next one is read."""
        monkeypatch.setattr(live_journal, "LONGEST_LINE_BYTES", 100)
        log = JournalLog()
        entry = f'{{"__MONOTONIC_TIMESTAMP":"2000000","MESSAGE":"{DOWN}"}}\n'.encode()
        assert log._lines_of(b"x" * 200, 9.0) == []
        assert log._lines_of(b"y" * 50, 9.0) == []
        assert log._lines_of(b"\n" + entry, 9.0) == [KernelLine(2.0, DOWN)]

    @pytest.mark.parametrize("text", ["null", "[300]", "[1,2]", '"usb"', "7"])
    def test_texts_of_every_sort(self, text: str) -> None:
        """What cannot be a line of ours is none."""
        entry = f'{{"__MONOTONIC_TIMESTAMP":"1","MESSAGE":{text}}}\n'.encode()
        assert JournalLog()._lines_of(entry, 9.0) == []
