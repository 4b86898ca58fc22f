import os
import resource
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Barrier, Thread

import pytest

from fabricmon.host.live_descriptors import (
    IDLE_SECONDS,
    Descriptors,
    Trust,
    raise_descriptor_limit,
    spare_descriptors,
)
from fabricmon.host.protocol import ReadError
from tests.support.namespace import apart, ip

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """Return a folder of three counters in which nothing changed for long."""
    folder = tmp_path / "mlx5_0"
    return make_device(folder, "1\n")


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    """Return an empty table that is closed in the end."""
    table = Descriptors()
    yield table
    table.close()
    assert table.kept == 0


def make_device(folder: Path, text: str) -> Path:
    """Make a folder of three counters."""
    folder.mkdir()
    for name in ("symbol_error", "link_downed", "port_rcv_errors"):
        (folder / name).write_text(text)
    os.utime(folder, LONG_AGO)
    return folder


def paths_in(folder: Path) -> tuple[str, ...]:
    """Return the paths of the files in a folder."""
    return tuple(sorted(map(str, folder.iterdir())))


def after_exchange(
    descriptors: Descriptors, paths: Sequence[str]
) -> list[bytes | ReadError]:
    """Read; where the folder has another inode than before, that is told first."""
    contents = descriptors.read(paths)
    if contents == [ReadError("ESTALE")] * len(paths):
        contents = descriptors.read(paths)
    return contents


class TestRead:
    def test_first_time(self, device: Path, descriptors: Descriptors) -> None:
        """Files come in the order in which they were asked for."""
        (device / "link_downed").write_text("2\n")
        names = ("symbol_error", "link_downed", "absent")

        contents = descriptors.read([f"{device}/{name}" for name in names])

        assert contents == [b"1\n", b"2\n", ReadError("ENOENT")]

    def test_kept(self, device: Path, descriptors: Descriptors) -> None:
        """What stays open shows the live value."""
        paths = paths_in(device)
        descriptors.read(paths)
        assert descriptors.kept == 3
        (device / "link_downed").write_text("22\n")

        assert descriptors.read(paths) == [b"22\n", b"1\n", b"1\n"]

        assert descriptors.kept == 3

    def test_large_file_is_read_whole_each_time(
        self, device: Path, descriptors: Descriptors
    ) -> None:
        """A kept file that has grown is not cut, and one too large is an error."""
        paths = paths_in(device)
        descriptors.read(paths)
        (device / "link_downed").write_bytes(b"x" * 30_000)
        (device / "symbol_error").write_bytes(b"x" * 300_000)

        contents = descriptors.read(paths)

        assert contents == [b"x" * 30_000, b"1\n", ReadError("EFBIG")]

    def test_nothing_to_read(self, descriptors: Descriptors) -> None:
        """No paths, no contents."""
        assert descriptors.read(()) == []

    def test_prefix(self, device: Path) -> None:
        """A prefix stands before every path."""
        table = Descriptors(str(device.parent))

        assert table.read(["/mlx5_0/symbol_error"]) == [b"1\n"]

        table.close()

    def test_fresh_folder(self, device: Path, descriptors: Descriptors) -> None:
        """Files of a folder that has just changed are read, but not kept open."""
        os.utime(device)

        assert descriptors.read(paths_in(device)) == [b"1\n"] * 3

        assert descriptors.kept == 0

    def test_absent_file_appears(self, device: Path, descriptors: Descriptors) -> None:
        """A file that was not there is looked for each time."""
        paths = (*paths_in(device), str(device / "new"))
        assert descriptors.read(paths)[-1] == ReadError("ENOENT")
        (device / "new").write_text("5\n")

        assert descriptors.read(paths)[-1] == b"5\n"


class TestReplacement:
    def test_file_renamed_over(self, device: Path, descriptors: Descriptors) -> None:
        """A file exchanged by renaming is read anew, not the old one for ever."""
        paths = paths_in(device)
        descriptors.read(paths)
        (device / "fresh").write_text("99\n")
        (device / "fresh").rename(device / "symbol_error")

        assert descriptors.read(paths)[2] == b"99\n"

    def test_folder_made_again(self, device: Path, descriptors: Descriptors) -> None:
        """A removed folder gives ENOENT, one of the same name its own values."""
        paths = paths_in(device)
        descriptors.read(paths)

        shutil.rmtree(device)
        gone = descriptors.read(paths)
        make_device(device, "2\n")
        back = after_exchange(descriptors, paths)

        assert gone == [ReadError("ENOENT")] * 3
        assert back == [b"2\n"] * 3
        assert descriptors.kept == 3

    def test_link_to_another_folder(
        self, device: Path, tmp_path: Path, descriptors: Descriptors
    ) -> None:
        """A class link that leads to another device shows that device."""
        other = make_device(tmp_path / "mlx5_1", "2\n")
        link = tmp_path / "class"
        link.symlink_to(device)
        paths = [f"{link}/symbol_error"]
        assert descriptors.read(paths) == [b"1\n"]

        link.unlink()
        link.symlink_to(other)

        assert after_exchange(descriptors, paths) == [b"2\n"]

    def test_real_device_replaced(self, tmp_path: Path) -> None:
        """A network device made anew under its old name shows the new one's values."""

        def read_twice(root: Path) -> list[list[bytes | ReadError]]:
            ip("link", "add", "v0", "index", "70", "type", "veth", "peer", "name", "v1")
            table = Descriptors(str(root))
            paths = [f"/sys/class/net/v0/{name}" for name in ("ifindex", "mtu")]
            first = table.read(paths)
            assert table.kept == 2
            ip("link", "del", "v0")
            gone = table.read(paths)
            ip("link", "add", "v0", "index", "80", "type", "veth", "peer", "name", "v1")
            back = after_exchange(table, paths)
            table.close()
            return [first, gone, back]

        assert apart(read_twice, tmp_path) == [
            [b"70\n", b"1500\n"],
            [ReadError("ENOENT")] * 2,
            [b"80\n", b"1500\n"],
        ]

    def test_real_devices_swap_names(self, tmp_path: Path) -> None:
        """Devices that exchange their names, as udev makes them, are not mixed up."""

        def read_twice(root: Path) -> list[list[bytes | ReadError]]:
            ip("link", "add", "v0", "index", "70", "type", "veth", "peer", "name", "v1")
            ip("link", "set", "v1", "mtu", "9000")
            table = Descriptors(str(root))
            paths = ["/sys/class/net/v0/mtu"]
            first = table.read(paths)
            assert table.kept == 1
            for old, new in (("v0", "v9"), ("v1", "v0"), ("v9", "v1")):
                ip("link", "set", old, "name", new)
            stale = table.read(paths)
            second = table.read(paths)
            table.close()
            return [first, stale, second]

        assert apart(read_twice, tmp_path) == [
            [b"1500\n"],
            [ReadError("ESTALE")],
            [b"9000\n"],
        ]

    def test_replaced_while_its_folder_is_trusted(self, tmp_path: Path) -> None:
        """ENODEV of a kept descriptor is answered by looking at the path again."""

        def read_without_a_look(root: Path) -> list[list[bytes | ReadError]]:
            ip("link", "add", "v0", "index", "70", "type", "veth", "peer", "name", "v1")
            table = Descriptors(str(root), trust=Trust(kernel=60))
            paths = ("/sys/class/net/v0/ifindex", "/sys/class/net/v0/mtu")
            table.read(paths)
            assert table.kept == 2
            ip("link", "del", "v0")
            ip("link", "add", "v0", "index", "80", "type", "veth", "peer", "name", "v1")
            contents = [table.read(paths), table.read(paths)]
            table.close()
            return contents

        replaced, anew = apart(read_without_a_look, tmp_path)
        assert replaced == [ReadError("ESTALE")] * 2
        assert anew == [b"80\n", b"1500\n"]

    def test_gone_while_its_folder_is_trusted(self, tmp_path: Path) -> None:
        """A device of the kernel that went has no values any more, at once."""

        def read_what_is_gone(root: Path) -> list[bytes | ReadError]:
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            table = Descriptors(str(root), trust=Trust(kernel=60))
            paths = ("/sys/class/net/v0/ifindex", "/sys/class/net/v0/mtu")
            table.read(paths)
            ip("link", "del", "v0")
            contents = table.read(paths)
            table.close()
            return contents

        gone = ReadError("ENOENT")
        assert apart(read_what_is_gone, tmp_path) == [gone, gone]

    def test_trust_is_short_and_shared(self, device: Path) -> None:
        """What one burst sees of a folder, the others of that moment see as well."""
        now = [0.0]
        table = Descriptors(clock=lambda: now[0], trust=Trust(others=1))
        one, two = [str(device / "symbol_error")], [str(device / "link_downed")]
        table.read(one)
        table.read(two)
        new = device.parent / "new"
        new.write_text("7\n")
        new.replace(device / "symbol_error")
        assert table.read(one) == [b"1\n"]
        now[0] = 2.0
        assert table.read(one) == [b"7\n"]
        table.close()


class TestBounds:
    def test_limit(self, device: Path) -> None:
        """Beyond the limit files are read all the same, and it is counted."""
        table = Descriptors(limit=2)

        assert table.read(paths_in(device)) == [b"1\n"] * 3

        assert (table.kept, table.shortages) == (2, 1)
        table.close()

    def test_no_descriptor_left(self, device: Path) -> None:
        """A process that ran out of descriptors gives up those that are idle."""
        table = Descriptors()
        table.read(paths_in(device))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = [os.open(device, os.O_RDONLY)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, hard))
        try:
            contents = table.read([str(device / "symbol_error")])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.close(taken[0])

        assert contents == [b"1\n"]
        assert table.shortages == 1
        table.close()

    def test_idle(self, device: Path) -> None:
        """What nobody read for long is closed."""
        times = iter([1000.0, 1001.0 + IDLE_SECONDS])
        table = Descriptors(clock=lambda: next(times))
        table.read(paths_in(device))

        table.read([str(device / "symbol_error")])

        assert table.kept == 1
        table.close()

    def test_forget(
        self, device: Path, tmp_path: Path, descriptors: Descriptors
    ) -> None:
        """Forgetting a device closes its files, not those of one with a longer name."""
        other = make_device(tmp_path / "mlx5_00", "2\n")
        descriptors.read(paths_in(device))
        descriptors.read(paths_in(other))

        descriptors.forget(str(device))

        assert descriptors.kept == 3
        assert descriptors.read(paths_in(device)) == [b"1\n"] * 3

    def test_spare_descriptors(self) -> None:
        """At most half of what the process may open is kept."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
        try:
            assert spare_descriptors() == 500
            raise_descriptor_limit(1500)
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(1500, hard)
            raise_descriptor_limit(1200)
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(1500, hard)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestThreads:
    def test_hung_reader_holds_only_itself(
        self, device: Path, descriptors: Descriptors
    ) -> None:
        """While one burst hangs, others are read, forgotten and closed."""
        os.mkfifo(device / "zz_pipe")
        os.utime(device, LONG_AGO)
        hung = paths_in(device)
        contents: list[list[bytes | ReadError]] = []
        reader = Thread(target=lambda: contents.append(descriptors.read(hung)))
        reader.start()

        assert descriptors.read(hung[:2]) == [b"1\n", b"1\n"]
        descriptors.forget(str(device))
        descriptors.close()
        with (device / "zz_pipe").open("wb") as pipe:
            pipe.write(b"8\n")
        reader.join(10)

        assert contents == [[b"1\n", b"1\n", b"1\n", b"8\n"]]
        assert descriptors.kept == 0

    def test_same_files_from_many_threads(
        self, device: Path, descriptors: Descriptors
    ) -> None:
        """Threads that read the same files never get each other's descriptors."""
        paths = paths_in(device)
        wrong: list[list[bytes | ReadError]] = []
        start = Barrier(4)

        def work() -> None:
            start.wait()
            for turn in range(300):
                contents = descriptors.read(paths)
                if contents != [b"1\n"] * 3:
                    wrong.append(contents)
                if turn % 50 == 0:
                    descriptors.forget(str(device))

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert not wrong


def test_another_device_of_the_same_name_is_told_once(tmp_path: Path) -> None:
    """Values of another device are not the growth of this one's counters."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link_downed").write_text(f"{len(name)}\n", "ascii")
    link = tmp_path / "mlx5_0"
    link.symlink_to("a")
    descriptors = Descriptors(str(tmp_path))
    paths = ("/mlx5_0/link_downed",)
    assert descriptors.read(paths) == [b"1\n"]
    link.unlink()
    link.symlink_to("b")

    assert descriptors.read(paths) == [ReadError("ESTALE")]
    assert descriptors.read(paths) == [b"1\n"]
