import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from fabricmon.host.live_files import (
    LIMIT_BYTES,
    PAGE_BYTES,
    Kernel,
    failure,
    open_and_read,
    read_once,
    real_path,
)
from fabricmon.host.protocol import ReadError


def never() -> bool:
    """Keep no descriptor."""
    return False


def always() -> bool:
    """Keep every descriptor."""
    return True


def open_descriptors() -> int:
    """Count what this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class TestRealPath:
    @pytest.mark.parametrize("told_by", ["/proc/self/fd", "/nowhere"])
    def test_follows_links(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_by: str
    ) -> None:
        """Also where there is no /proc to ask, and leaves nothing open."""
        monkeypatch.setattr("fabricmon.host.live_files._OPEN", told_by)
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to("there")
        before = open_descriptors()

        assert real_path(f"{tmp_path}/link") == f"{tmp_path.resolve()}/there"
        with pytest.raises(FileNotFoundError):
            real_path(f"{tmp_path}/gone")
        assert open_descriptors() == before

    @pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
    def test_without_a_free_descriptor(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """What is there does not count as absent."""
        (tmp_path / "link").symlink_to(tmp_path)

        def none_free(*_: object) -> int:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "open", none_free)
        assert real_path(f"{tmp_path}/link") == str(tmp_path.resolve())

    def test_goes_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kernel's note that it is deleted is no part of a path."""
        place = tmp_path / "there"
        place.mkdir()
        kernel = os.open

        def goes(path: str, flags: int) -> int:
            descriptor = kernel(path, flags)
            place.rmdir()
            return descriptor

        monkeypatch.setattr(os, "open", goes)
        with pytest.raises(FileNotFoundError):
            real_path(str(place))


class TestReadOnce:
    def test_content(self, tmp_path: Path) -> None:
        """A file's bytes come as they are, also those that are no text."""
        (tmp_path / "file").write_bytes(b"\xff\x00 4: ACTIVE\n")

        assert read_once(str(tmp_path / "file")) == b"\xff\x00 4: ACTIVE\n"

    @pytest.mark.parametrize("size", [0, 1, 2047, 2048, 4096, 4097, LIMIT_BYTES])
    def test_every_size_is_read_whole(self, tmp_path: Path, size: int) -> None:
        """No file up to the limit is cut, whatever pages it fills."""
        content = os.urandom(size)
        (tmp_path / "file").write_bytes(content)

        assert read_once(str(tmp_path / "file")) == content

    def test_large(self, tmp_path: Path) -> None:
        """One byte above the limit is an error, not a cut content."""
        (tmp_path / "file").write_bytes(bytes(LIMIT_BYTES + 1))

        assert read_once(str(tmp_path / "file")) == ReadError("EFBIG")

    def test_endless(self) -> None:
        """A file without end is given up at the limit."""
        assert read_once("/dev/zero") == ReadError("EFBIG")

    def test_records_of_proc(self) -> None:
        """A file of several pages that the kernel hands out in records is not cut."""
        with subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as cat:
            assert cat.stdin is not None
            assert cat.stdout is not None
            cat.stdin.write(b"started\n")
            cat.stdin.flush()
            cat.stdout.readline()  # from here on it waits, and nothing of it changes
            path = Path(f"/proc/{cat.pid}/smaps")
            content, expected = read_once(str(path)), path.read_bytes()
            cat.stdin.close()

        assert len(expected) > 2 * PAGE_BYTES
        assert content == expected

    @pytest.mark.parametrize(
        ("name", "error"),
        [
            ("absent", "ENOENT"),
            ("file/below", "ENOTDIR"),
            ("folder", "EISDIR"),
            ("loop", "ELOOP"),
            ("n" * 300, "ENAMETOOLONG"),
            ("zero\0byte", "EINVAL"),
            ("\ud800", "EINVAL"),
        ],
    )
    def test_errors(self, tmp_path: Path, name: str, error: str) -> None:
        """What cannot be read has the kernel's reason, and nothing is raised."""
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        (tmp_path / "loop").symlink_to("loop")

        assert read_once(f"{tmp_path}/{name}") == ReadError(error)

    def test_link(self, tmp_path: Path) -> None:
        """A link is followed."""
        (tmp_path / "file").write_text("7\n")
        (tmp_path / "link").symlink_to("file")

        assert read_once(str(tmp_path / "link")) == b"7\n"

    def test_pipe_blocks_until_it_is_written(self, tmp_path: Path) -> None:
        """A pipe hangs its reader as a dead device would, and gives all in the end."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        contents: list[bytes | ReadError] = []
        reader = Thread(target=lambda: contents.append(read_once(str(pipe))))
        reader.start()
        assert not contents

        with pipe.open("wb") as writer:
            writer.write(b"a" * 5000)
        reader.join(10)

        assert contents == [b"a" * 5000]


class TestFailure:
    @pytest.mark.parametrize(
        ("number", "name"),
        [(5, "EIO"), (95, "EOPNOTSUPP"), (4000, "errno 4000"), (None, "errno None")],
    )
    def test_name(self, number: int | None, name: str) -> None:
        """Errors have the kernel's names, also where Python prefers another."""
        assert failure(number) == ReadError(name)


class TestOpenAndRead:
    def test_keep(self, tmp_path: Path) -> None:
        """A regular file's descriptor is handed over on demand."""
        (tmp_path / "file").write_text("7\n")

        opened = open_and_read(str(tmp_path / "file"), always)

        assert opened.content == b"7\n"
        assert opened.descriptor is not None
        os.close(opened.descriptor)

    @pytest.mark.parametrize(
        ("name", "keep"), [("file", never), ("link", always), ("folder", always)]
    )
    def test_not_kept(
        self, tmp_path: Path, name: str, keep: Callable[[], bool]
    ) -> None:
        """What is not wanted, or may lead elsewhere next time, is closed."""
        (tmp_path / "file").write_text("7\n")
        (tmp_path / "link").symlink_to("file")
        (tmp_path / "folder").mkdir()
        before = open_descriptors()

        assert open_and_read(str(tmp_path / name), keep).descriptor is None

        assert open_descriptors() == before


class TestKernel:
    @pytest.mark.parametrize("path", ["/sys", "/proc", "/sys/class/net/lo/"])
    def test_of_the_kernel(self, path: str) -> None:
        """/sys and /proc are the kernel's."""
        assert Kernel().owns_path(path)

    def test_of_somebody(self, tmp_path: Path) -> None:
        """A folder on a disk is not, and a path to nowhere neither."""
        assert not Kernel().owns_path(str(tmp_path))
        assert not Kernel().owns_path(str(tmp_path / "absent"))
