import os
import select
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from fabricmon.host import live_netlink
from fabricmon.host.live import LiveHost
from fabricmon.host.protocol import CommandOutput, Host, ReadError, Statistic
from fabricmon.model import LinkEvent
from tests.support.namespace import apart, ip
from tests.support.programs import require

CLASS = "/sys/class/infiniband"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a tree with one HCA, laid out and linked as sysfs does."""
    device = tmp_path / "sys/devices/pci0000:00/0000:00:05.0/infiniband/mlx5_0"
    (device / "ports/1").mkdir(parents=True)
    (device / "ports/1/state").write_text("4: ACTIVE\n")
    (device / "node_guid").write_text("0002:c903:0001:0203\n")
    folder = tmp_path / "sys/class/infiniband"
    folder.mkdir(parents=True)
    up = "../../devices/pci0000:00/0000:00:05.0/infiniband/mlx5_0"
    (folder / "mlx5_0").symlink_to(up)
    return tmp_path


@pytest.fixture
def host(root: Path) -> Iterator[LiveHost]:
    """Return a host that looks at the tree."""
    live = LiveHost(str(root), watch_links=True)
    yield live
    live.close()


@pytest.fixture
def node() -> Iterator[LiveHost]:
    """Return a host that looks at the node that runs the test."""
    live = LiveHost()
    yield live
    live.close()


class TestOwnFolders:
    def test_are_not_below_the_root(self, tmp_path: Path) -> None:
        """A container reads the node's files below the root, its own as they are."""
        own = tmp_path / "run"
        own.mkdir()
        (own / "plan").write_text("own")
        (tmp_path / "runner").write_text("other")
        live = LiveHost(str(tmp_path / "host"), own_folders=[str(own)])

        assert live.read(f"{own}/plan") == b"own"
        assert live.names(str(own)) == ("plan",)
        assert isinstance(live.read(f"{tmp_path}/runner"), ReadError)
        live.close()

    def test_nothing_in_them_can_block(self, tmp_path: Path) -> None:
        """Prologs and init containers write there: a pipe would stop who reads it."""
        os.mkfifo(tmp_path / "job.json")
        (tmp_path / "zero.json").symlink_to("/dev/zero")
        (tmp_path / "folder.json").mkdir()
        live = LiveHost(str(tmp_path / "host"), own_folders=[str(tmp_path)])

        assert live.read(f"{tmp_path}/job.json") == ReadError("EINVAL")
        assert live.read(f"{tmp_path}/zero.json") == ReadError("EINVAL")
        assert live.read(f"{tmp_path}/folder.json") == ReadError("EISDIR")
        live.close()


class TestFiles:
    def test_is_a_host(self, host: LiveHost) -> None:
        """It is what sources ask."""
        as_host: Host = host

        assert as_host.firmware_reads == 0

    def test_read(self, host: LiveHost) -> None:
        """A path as seen on the node is read below the root."""
        path = f"{CLASS}/mlx5_0/ports/1/state"

        assert host.read(path) == b"4: ACTIVE\n"
        assert host.read_many([path, f"{CLASS}/mlx5_1/node_guid"]) == [
            b"4: ACTIVE\n",
            ReadError("ENOENT"),
        ]

    def test_names(self, host: LiveHost, root: Path) -> None:
        """Names are sorted; a missing folder is an error, an empty one is not."""
        (root / "sys/class/infiniband_mad").mkdir()

        assert host.names(f"{CLASS}/mlx5_0") == ("node_guid", "ports")
        assert host.names(f"{CLASS}_mad") == ()
        assert host.names(f"{CLASS}_verbs") == ReadError("ENOENT")
        assert host.names(f"{CLASS}/mlx5_0/node_guid") == ReadError("ENOTDIR")
        assert host.names("/\0") == ReadError("EINVAL")

    def test_target(self, host: LiveHost) -> None:
        """A link's target is told as seen on the node, without the root."""
        target = "/sys/devices/pci0000:00/0000:00:05.0/infiniband/mlx5_0"

        assert host.target(f"{CLASS}/mlx5_0") == target
        assert host.target(f"{CLASS}/mlx5_1") is None
        assert host.target("/\0") is None

    def test_target_below_a_linked_root(self, root: Path, tmp_path: Path) -> None:
        """A root that is a link itself is taken off all the same."""
        (tmp_path / "linked").symlink_to(root)

        linked = LiveHost(str(tmp_path / "linked"))

        assert linked.target(CLASS) == CLASS
        linked.close()

    def test_target_outside(self, host: LiveHost, root: Path) -> None:
        """A link out of the root is followed by the kernel as it stands."""
        (root / "outside").symlink_to("/proc/sys")

        assert host.target("/outside") == "/proc/sys"

    def test_boot_id(self, host: LiveHost, node: LiveHost) -> None:
        """The boot has an identity, or none where nothing says it."""
        real = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

        assert node.boot_id() == real
        assert host.boot_id() == ""

    def test_firmware_reads(self, host: LiveHost) -> None:
        """No read is lost in the count, from however many threads."""
        path = f"{CLASS}/mlx5_0/node_guid"

        def work() -> None:
            for _ in range(200):
                host.read(path, 5)
                host.read_many([path], 1)

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert host.firmware_reads == 4 * 200 * 6

    def test_forget(self, host: LiveHost, root: Path) -> None:
        """A device that is gone keeps nothing open."""
        os.utime(root / "sys/class/infiniband/mlx5_0", (1e9, 1e9))
        host.read_many([f"{CLASS}/mlx5_0/node_guid"])
        assert host._descriptors.kept == 1

        host.forget(f"{CLASS}/mlx5_0")

        assert host._descriptors.kept == 0

    def test_clocks(self, node: LiveHost) -> None:
        """Time goes on."""
        assert node.monotonic() <= node.monotonic()
        assert node.wall() > 1e9


class TestCopiedTree:
    """A tree of files is no node: nothing of this node may be mixed in."""

    def test_no_link_events(self, host: LiveHost) -> None:
        """There is a reason for the lack of events, to be told once."""
        assert host.link_events() == ()
        assert host.link_descriptor is None
        assert "other network devices" in str(host.link_error)

    def test_no_statistics(self, host: LiveHost, root: Path) -> None:
        """A device of the tree has not the statistics of ours of that name."""
        (root / "sys/class/net/eth0").mkdir(parents=True)

        assert host.statistics("eth0") == ReadError("ENODEV")

    def test_no_commands(self, host: LiveHost) -> None:
        """A tool would tell of this node."""
        assert host.command("ibstat", 10) == ReadError("ENOENT")


class TestNode:
    def test_command(self, node: LiveHost) -> None:
        """A real ibstat runs, whatever it finds."""
        require("ibstat")

        assert isinstance(node.command("ibstat", 20), CommandOutput)

    def test_statistics(self, node: LiveHost) -> None:
        """The kernel is asked, and says that loopback has none."""
        assert node.statistics("lo") == ReadError("EOPNOTSUPP")

    def test_links_not_watched(self, node: LiveHost) -> None:
        """Who does not want events gets none, and no error."""
        assert node.link_events() == ()
        assert node.link_error is None

    def test_kernel_files(self, node: LiveHost) -> None:
        """Real sysfs files are kept open, wherever they were made just now."""
        paths = ("/sys/class/net/lo/mtu", "/sys/class/net/lo/ifindex")

        assert node.read_many(paths) == node.read_many(paths) == [b"65536\n", b"1\n"]
        assert node._descriptors.kept == 2

    def test_not_allowed_to_listen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without netlink the host works, and says what it lacks."""

        def refuse() -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(live_netlink, "_listen", refuse)

        live = LiveHost(watch_links=True)

        assert live.link_error is not None
        assert live.link_error.errno == "EPERM"
        assert live.link_events() == ()
        live.close()


class TestMountedNode:
    def test_same_network(self, tmp_path: Path) -> None:
        """Below the root of a container with the node's network all is there."""

        def look(root: Path) -> tuple[object, tuple[LinkEvent, ...]]:
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            live = LiveHost(str(root), watch_links=True)
            assert live.link_descriptor is not None
            ip("link", "set", "v0", "up")
            live.drain_links()
            readable, _, _ = select.select([live.link_descriptor], [], [], 0)
            assert not readable
            events = live.link_events()
            statistics = live.statistics("v0")
            assert live.link_overruns == 0
            live.close()
            return statistics, events

        statistics, events = apart(look, tmp_path)

        assert isinstance(statistics, tuple)
        assert isinstance(statistics[0], Statistic)
        assert {event.netdev for event in events} >= {"v0"}

    def test_other_network(self, tmp_path: Path) -> None:
        """Below the root of a container with a network of its own nothing is mixed."""

        def look(root: Path) -> tuple[object, object, LiveHost]:
            ip("link", "add", "v0", "index", "70", "type", "veth", "peer", "name", "v1")
            outside = LiveHost("/proc/self/root", watch_links=True)
            live = LiveHost(str(root / "sys/.."), watch_links=True)
            shown = live._shown_netdevs()
            live.close()
            return shown, outside.link_error, outside

        shown, error, outside = apart(look, tmp_path)

        assert (70, "v0") in shown  # type: ignore[operator]
        assert "other network devices" in str(error)
        assert outside.statistics("lo") == ReadError("ENODEV")
        assert outside.names("/sys/class/net") == tuple(
            sorted(entry.name for entry in Path("/sys/class/net").iterdir())
        )
        outside.close()
