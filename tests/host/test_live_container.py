"""A node seen from a container: /sys of the node elsewhere, the rest of our own."""

from __future__ import annotations

from pathlib import Path

from fabricmon.config import Config
from fabricmon.driving import live_host
from fabricmon.host.live import LiveHost
from fabricmon.host.protocol import ReadError

ABSENT = ReadError("ENOENT")


def mounted(root: Path) -> str:
    """Have the kernel's /sys below a root, as a pod has it."""
    (root / "sys").symlink_to("/sys")
    return str(root)


class TestContainer:
    def test_kernel_tells_what_is_the_same_everywhere(self, tmp_path: Path) -> None:
        """Boot and up-time, without a mount of the node's /proc."""
        host = LiveHost(mounted(tmp_path))
        uptime = host.read("/proc/uptime")
        assert isinstance(uptime, bytes)
        assert float(uptime.split()[0]) > 0
        own = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert host.boot_id() == own

    def test_processes_are_not_the_nodes(self, tmp_path: Path) -> None:
        """Those of the container are no answer to a question about the node's."""
        host = LiveHost(mounted(tmp_path))
        assert host.read("/proc/1/cgroup") == ABSENT
        assert host.read("/proc/sys/kernel/hostname") == ABSENT

    def test_proc_of_the_node_comes_first(self, tmp_path: Path) -> None:
        """Where it is mounted."""
        root = mounted(tmp_path)
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "uptime").write_text("5.00 5.00\n")
        assert LiveHost(root).read("/proc/uptime") == b"5.00 5.00\n"

    def test_copied_tree_says_nothing_of_this_kernel(self, tmp_path: Path) -> None:
        """It is of another node."""
        (tmp_path / "sys").mkdir()
        assert LiveHost(str(tmp_path)).read("/proc/uptime") == ABSENT

    def test_maintenance_file_is_our_own(self, tmp_path: Path) -> None:
        """As mounted from a ConfigMap: a link that is exchanged with its folder."""
        folder = tmp_path / "maintenance"
        (folder / "..data").mkdir(parents=True)
        (folder / "..data" / "maintenance.json").write_text("[]")
        (folder / "maintenance.json").symlink_to("..data/maintenance.json")
        file = str(folder / "maintenance.json")
        host = live_host(Config(root="/nowhere", maintenance_file=file))
        assert host.read(file) == b"[]"
