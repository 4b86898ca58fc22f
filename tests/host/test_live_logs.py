"""Log files on a real disk, made by users who do what they like."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.config import Config, Logs
from fabricmon.host.live import LiveHost
from fabricmon.host.live_logs import DELETED_SECONDS, LOOK_SECONDS, LiveLogs
from fabricmon.host.protocol import LogFile, ReadError
from tests.sources.log_lines import Follower, _marked, lines, texts

__all__ = ["_marked"]


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Disk:
    """Logs below a temporary root."""

    def __init__(self, root: Path, limit: int = 16) -> None:
        self.root = root
        self.clock = Clock()
        prefix = str(root)
        self.logs = LiveLogs(prefix, prefix, self.names, limit, self.clock)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        try:
            folder = Path(f"{self.root}{path}")
            return tuple(sorted(each.name for each in folder.iterdir()))
        except NotADirectoryError:
            return ReadError("ENOTDIR")
        except OSError:
            return ReadError("ENOENT")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as stream:
            stream.write(text)
        return file

    def look(self, path: str) -> LogFile:
        (found,) = self.logs.files([path])
        assert isinstance(found, LogFile)
        return found

    def read(self, file: LogFile, offset: int = 0) -> bytes | ReadError:
        return self.logs.read(file.path, file.serial, offset, 100)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path)
    yield found
    found.logs.close()
    assert found.logs.kept == 0


class TestFinding:
    def test_newest_first_up_to_a_limit(self, disk: Disk) -> None:
        """Old logs lie about; what is beyond the limit is counted."""
        for number in range(5):
            file = disk.write(f"/l/{number}.log", "x")
            os.utime(file, (0, number))
        found = disk.logs.find("/l/*.log", 2)
        assert [file.path for file in found.files] == ["/l/4.log", "/l/3.log"]
        assert found.more == 3

    def test_only_regular_files(self, disk: Disk, tmp_path: Path) -> None:
        """A FIFO would hang the reader, a link may lead anywhere."""
        disk.write("/l/a.log", "x")
        os.mkfifo(tmp_path / "l/fifo.log")
        (tmp_path / "l/link.log").symlink_to("a.log")
        (tmp_path / "l/folder.log").mkdir()
        found = disk.logs.find("/l/*.log", 9)
        assert [file.path for file in found.files] == ["/l/a.log"]

    def test_what_is_no_file(self, disk: Disk, tmp_path: Path) -> None:
        """Absent, a FIFO, a device and a name that no file can have are told apart."""
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "null").symlink_to("/dev/null")
        found = disk.logs.files(["/absent", "/fifo", "/null", "/\0"])
        errors = [each.errno for each in found if isinstance(each, ReadError)]
        assert errors == ["ENOENT", "EINVAL", "EINVAL", "EINVAL"]


class TestReading:
    def test_from_an_offset_on(self, disk: Disk) -> None:
        """And nothing at the end."""
        disk.write("/a", "0123456789")
        file = disk.look("/a")
        assert disk.read(file, 7) == b"789"
        assert disk.read(file, 10) == b""

    def test_the_rest_of_a_file_that_was_renamed(self, disk: Disk) -> None:
        """Its name leads to another file by then."""
        old = disk.write("/a", "old")
        file = disk.look("/a")
        disk.read(file)
        old.rename(old.with_suffix(".1"))
        disk.write("/a.1", "er")
        disk.write("/a", "new")
        assert disk.read(file, 3) == b"er"
        assert disk.read(disk.look("/a")) == b"new"

    def test_another_file_that_was_never_opened(self, disk: Disk) -> None:
        """The one that was meant is gone."""
        old = disk.write("/a", "old")
        file = disk.look("/a")
        old.rename(old.with_suffix(".1"))
        disk.write("/a", "new")
        assert disk.read(file) == ReadError("ESTALE")

    def test_a_fifo_in_the_place_of_a_log_does_not_hang(self, disk: Disk) -> None:
        """It came between the look and the read."""
        old = disk.write("/a", "x")
        file = disk.look("/a")
        old.unlink()
        os.mkfifo(old)
        assert disk.read(file) == ReadError("EINVAL")

    def test_a_link_in_the_place_of_a_log_is_not_followed(self, disk: Disk) -> None:
        """It might lead to another tenant's file."""
        disk.write("/secret", "x")
        old = disk.write("/a", "x")
        file = disk.look("/a")
        old.unlink()
        old.symlink_to("secret")
        assert disk.read(file) == ReadError("EINVAL")

    def test_nothing_outside_the_root_is_read(self, tmp_path: Path) -> None:
        """Also through a folder that is a link."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/a").write_text("x")
        (tmp_path / "root").mkdir()
        (tmp_path / "root/l").symlink_to(tmp_path / "outside")
        disk = Disk(tmp_path / "root")
        assert disk.read(disk.look("/l/a")) == ReadError("EXDEV")

    def test_through_the_root_of_a_process_no_link_is_followed(self) -> None:
        """A container's absolute link would lead to a file of the node."""
        root = Path("/proc/self/root").resolve()
        assert root == Path("/")
        disk = Disk(Path("/"))
        disk.logs = LiveLogs("", "", disk.names, 16, disk.clock)
        inside = f"/proc/{os.getpid()}/root/proc/self/cwd"
        (file,) = disk.logs.files([f"{inside}/pyproject.toml"])
        if isinstance(file, LogFile):
            assert disk.read(file) == ReadError("ENOTDIR")

    def test_through_the_working_folder_of_a_process(self, tmp_path: Path) -> None:
        """A relative NCCL_DEBUG_FILE lies there."""
        (tmp_path / "x.log").write_text("hello")
        logs = LiveLogs("", "", lambda _: (), 16)
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            (file,) = logs.files([f"/proc/{os.getpid()}/cwd/x.log"])
            assert isinstance(file, LogFile)
            assert logs.read(file.path, file.serial, 0, 9) == b"hello"
        finally:
            os.chdir(here)
            logs.close()


class TestDescriptors:
    def test_as_many_as_allowed(self, tmp_path: Path) -> None:
        """The one that was not asked for longest makes room."""
        disk = Disk(tmp_path, limit=2)
        for name in "abc":
            disk.write(f"/{name}", name)
            assert disk.read(disk.look(f"/{name}")) == name.encode()
        assert disk.logs.kept == 2
        assert disk.read(disk.look("/a")) == b"a"
        disk.logs.close()

    def test_a_deleted_file_is_let_go_of(self, disk: Disk) -> None:
        """It would keep its blocks on the disk; while it grows, somebody writes."""
        file = disk.look("/" + disk.write("/a", "x").name)
        other = disk.look("/" + disk.write("/b", "x").name)
        with (disk.root / "a").open("a") as writer:
            disk.read(file)
            disk.read(other)
            (disk.root / "a").unlink()
            disk.clock.now += LOOK_SECONDS
            writer.write("y")
            writer.flush()
            assert disk.read(file) == b"xy"
            disk.clock.now += DELETED_SECONDS - 1
            disk.read(other)
            assert disk.logs.kept == 2
        disk.clock.now += LOOK_SECONDS
        disk.read(other)
        assert disk.logs.kept == 1
        assert disk.read(file) == ReadError("ENOENT")


STEPS = st.lists(
    st.sampled_from(["append", "rename", "truncate", "copytruncate", "poll"]),
    max_size=14,
)
PATTERNS = ("/l/*.log", "/l/*.log.*")


@pytest.mark.usefixtures("_marked")
class TestFollowing:
    @given(STEPS)
    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_every_line_is_told_once(
        self, tmp_path_factory: pytest.TempPathFactory, steps: list[str]
    ) -> None:
        """Real files, as logrotate and NCCL treat them; cut only after reading."""
        root = tmp_path_factory.mktemp("root")
        (root / "l").mkdir()
        log = root / "l/nccl.log"
        host = LiveHost(str(root))
        times = [host.monotonic()]
        host.monotonic = lambda: times[-1]  # type: ignore[method-assign]
        config = Config(logs=Logs(paths=PATTERNS))
        follower = Follower(host, config, lambda s: times.append(times[-1] + s))
        read = follower.polls(6)
        count = copies = 0
        for step in steps:
            if step == "append":
                count += 1
                with log.open("a") as stream:
                    stream.write(lines(count))
            elif step == "poll":
                read += follower.polls(1)
            elif log.exists():
                copies += 1
                read += follower.polls(6)
                if step == "rename":
                    log.rename(f"{log}.{copies}")
                elif step == "truncate":
                    os.truncate(log, 0)
                else:
                    Path(f"{log}.{copies}").write_bytes(log.read_bytes())
                    read += follower.polls(6)
                    os.truncate(log, 0)
        read += follower.polls(8)
        host.close()
        assert sorted(read) == sorted(texts(*range(1, count + 1)))
