"""The kernel's log, as /dev/kmsg gives it: one record a read, never waiting."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host import live_kmsg
from fabricmon.host.live import LiveHost
from fabricmon.host.live_kmsg import KernelLog, parse_record
from fabricmon.host.protocol import KernelLine, ReadError

DOWN = "mlx5_core 0000:1a:00.0 eth3: Link down"


class Kernel:
    """Stands in for the device: each read gives the next record, or fails."""

    def __init__(self) -> None:
        self.answers: list[bytes | int] = []
        self.opened = 0

    def say(self, number: int, text: str, seconds: float = 1.0, level: int = 4) -> None:
        """Let a record wait."""
        head = f"{level},{number},{int(seconds * 1e6)},-;"
        self.answers.append(f"{head}{text}\n SUBSYSTEM=pci\n".encode())

    def read(self, _descriptor: int, _size: int) -> bytes:
        """Answer as the system call does."""
        if not self.answers:
            raise BlockingIOError(errno.EAGAIN, "nothing")
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Put a kernel in the place of the device."""
    made = Kernel()
    monkeypatch.setattr("fabricmon.host.live_kmsg.os.read", made.read)
    return made


@pytest.fixture
def log(tmp_path: Path, kernel: Kernel) -> Iterator[KernelLog]:
    """Open a log that the kernel stands behind."""
    (tmp_path / "kmsg").touch()
    made = KernelLog(str(tmp_path / "kmsg"))
    yield made
    made.close()


class TestRecord:
    def test_parts(self) -> None:
        """Priority, number, microseconds, text; what follows the text is left out."""
        record = parse_record(b"6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n")
        assert record is not None
        assert record.number == 339
        assert record.seconds == pytest.approx(5.1409)
        assert record.is_of_kernel
        assert record.text == b"NET: Registered"

    def test_a_program_wrote_it(self) -> None:
        """Who may write to the device can forge any text, but not the facility."""
        record = parse_record(b"12,340,5140900,-;mlx5_core 0000:1a:00.0: Link down")
        assert record is not None
        assert not record.is_of_kernel

    @pytest.mark.parametrize("data", [b"", b"x", b"1,2;x", b"a,b,c,-;x", b"1,2,3"])
    def test_damage(self, data: bytes) -> None:
        """What is no record is none."""
        assert parse_record(data) is None

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data: bytes) -> None:
        """Nothing raises."""
        parse_record(data)


class TestLines:
    def test_only_what_concerns_rdma_devices(
        self, log: KernelLog, kernel: Kernel
    ) -> None:
        """Other lines, and those of programs, never leave the file."""
        kernel.say(1, "sshd: something private")
        kernel.say(2, DOWN)
        kernel.say(3, DOWN, level=12)
        assert log.lines(50.0) == (KernelLine(1.0, DOWN),)
        assert log.lines(51.0) == ()

    def test_time_of_a_new_line(self, log: KernelLog, kernel: Kernel) -> None:
        """The log's clock drifts: a line came after the last look and before this."""
        assert log.lines(100.0) == ()
        kernel.say(1, DOWN, seconds=90.0)
        kernel.say(2, DOWN, seconds=104.0)
        kernel.say(3, DOWN, seconds=130.0)
        lines = log.lines(105.0)
        assert isinstance(lines, tuple)
        assert [line.at for line in lines] == [100.0, 104.0, 105.0]

    def test_lost_lines_are_counted(self, log: KernelLog, kernel: Kernel) -> None:
        """The kernel says once that it overwrote some; the numbers say how many."""
        kernel.say(5, DOWN)
        assert log.lines(10.0) == (KernelLine(1.0, DOWN),)
        kernel.answers.append(errno.EPIPE)
        kernel.say(9, DOWN, seconds=11.0)
        assert log.lines(12.0) == (KernelLine(11.0, "", 3), KernelLine(11.0, DOWN))

    def test_beginning_is_no_loss(self, log: KernelLog, kernel: Kernel) -> None:
        """What was gone before the agent came is not counted."""
        kernel.say(4711, DOWN)
        assert log.lines(10.0) == (KernelLine(1.0, DOWN),)

    def test_bounded(
        self, log: KernelLog, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A storm is read in parts; nothing of it is lost."""
        monkeypatch.setattr(live_kmsg, "MOST_RECORDS", 2)
        for number in range(3):
            kernel.say(number + 1, DOWN)
        assert [len(log.lines(10.0)) for _ in range(3)] == [2, 1, 0]  # type: ignore[arg-type]

    def test_device_goes_and_comes(self, log: KernelLog, kernel: Kernel) -> None:
        """After an error it is opened again a minute later, and read on."""
        kernel.say(1, DOWN)
        assert log.lines(10.0) == (KernelLine(1.0, DOWN),)
        kernel.answers.append(errno.ENODEV)
        assert log.lines(20.0) == ReadError("ENODEV")
        kernel.say(1, DOWN)
        kernel.say(2, DOWN, seconds=85.0)
        assert log.lines(30.0) == ReadError("ENODEV")
        assert log.lines(90.0) == (KernelLine(85.0, DOWN),)


class TestRefusal:
    def test_no_such_file(self, tmp_path: Path) -> None:
        """A sandbox without the device says so."""
        assert KernelLog(str(tmp_path / "none")).lines(0.0) == ReadError("ENOENT")

    def test_not_asked_again_at_once(self, tmp_path: Path) -> None:
        """A minute passes before it is tried again."""
        log = KernelLog(str(tmp_path / "kmsg"))
        assert log.lines(0.0) == ReadError("ENOENT")
        (tmp_path / "kmsg").touch()
        assert log.lines(59.0) == ReadError("ENOENT")
        assert log.lines(60.0) == ()
        log.close()

    def test_copied_tree(self, tmp_path: Path) -> None:
        """The log of this machine is not that of the node whose files were copied."""
        host = LiveHost(str(tmp_path))
        try:
            assert host.kernel_log() == ReadError("ENOENT")
        finally:
            host.close()


def test_running_kernel() -> None:
    """Where it may be read at all, it is read without waiting."""
    log = KernelLog("/dev/kmsg")
    try:
        lines = log.lines(1e9)
        assert isinstance(lines, tuple | ReadError)
        assert log.lines(1e9) in ((), lines)
    finally:
        log.close()
