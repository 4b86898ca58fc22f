"""What GPUDirect and flow control need of the node."""

from __future__ import annotations

import struct

import pytest

from fabricmon.config import Config, Devices
from fabricmon.model import NO_CLASS, HostPath, PriorityUse
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.sources.polls import only, poll

ROOT = "/sys/devices/pci0000:80/0000:80:01.0"
NIC = "0000:81:00.0"
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  "
    "Release Build  (root@host)  Wed Feb 26 02:14:38 UTC 2025\n"
)
CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  "
    "Sun May 12 19:39:15 UTC 2024\n"
)


def plain() -> FakeHost:
    """Return the recorded RoCE node: one port behind a root port, no GPU."""
    return FakeHost(SYSFS / "sysfs-roce-retrans-heavy.manifest")


def with_gpu(*, shared: bool = True) -> FakeHost:
    """Return it with a switch above the port, and a GPU below that or elsewhere."""
    host = FakeHost()
    switch = f"{ROOT}/0000:82:00.0"
    nic = f"{switch}/0000:83:00.0/0000:84:00.0"
    gpu = f"{switch}/0000:83:01.0/0000:85:00.0"
    if not shared:
        gpu = "/sys/devices/pci0000:00/0000:00:01.0/0000:05:00.0"
    host.put(f"{nic}/infiniband/mlx5_0/node_type", "1: CA\n")
    host.put(f"{nic}/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n")
    host.link(f"{nic}/infiniband/mlx5_0/device", "../..")
    host.link("/sys/class/infiniband/mlx5_0", f"{nic}/infiniband/mlx5_0")
    host.put(f"{nic}/net/eth0/ifindex", 3)
    host.link("/sys/class/net/eth0", f"{nic}/net/eth0")
    for path, code in ((nic, "0x020700"), (gpu, "0x030200"), (switch, "0x060400")):
        host.put(f"{path}/class", f"{code}\n")
        host.link(f"/sys/bus/pci/devices/{path.rpartition('/')[2]}", path)
    for number in ("00", "01"):
        port = f"{switch}/0000:83:{number}.0"
        host.put(f"{port}/class", "0x060400\n")
        host.link(f"/sys/bus/pci/devices/0000:83:{number}.0", port)
    return host


def acs(control: int, size: int = 4096) -> bytes:
    """Return the configuration of a switch port whose first capability is ACS."""
    raw = bytearray(4096)
    struct.pack_into("<I", raw, 0x100, 1 << 16 | 0x0D)
    struct.pack_into("<H", raw, 0x106, control)
    return bytes(raw[:size])


def look(host: FakeHost, config: Config | None = None) -> HostPath:
    """Return what the source finds."""
    return only(HostPath, poll("host_path", host, config=config))


class TestMemory:
    def test_nothing_known(self) -> None:
        """Without a GPU driver nothing is said of GPU memory, translation or ACS."""
        path = look(plain())
        assert (path.peer_memory, path.dma_buf) == (None, None)
        assert (path.iommu_translates, path.acs_redirects) == (None, None)
        assert path.near_gpus == ()

    @pytest.mark.parametrize("module", ["nvidia_peermem", "nv_peer_mem"])
    def test_the_module(self, module: str) -> None:
        """The module is loaded, by its new name or its old one."""
        host = plain()
        host.folder("/sys/module/nvidia")
        assert look(host).peer_memory is False
        host.folder(f"/sys/module/{module}")
        assert look(host).peer_memory is True

    @pytest.mark.parametrize(
        ("version", "kernel", "shares"),
        [
            (OPEN, "6.8.0-1021-nvidia\n", True),
            (OPEN, "5.10.0-28-amd64\n", False),
            (OPEN, "5.15.0\n", True),
            (CLOSED, "6.8.0\n", False),
            (OPEN, "next\n", None),
        ],
    )
    def test_dma_buf(self, version: str, kernel: str, *, shares: bool | None) -> None:
        """NVIDIA's open driver has it, on kernels that take it."""
        host = plain()
        host.put("/proc/driver/nvidia/version", version)
        host.put("/proc/sys/kernel/osrelease", kernel)
        assert look(host).dma_buf is shares


class TestPci:
    def test_a_switch_in_common(self) -> None:
        """A port below the switch of a GPU is near it; one across the node is not."""
        assert look(with_gpu()).near_gpus == ("mlx5_0",)
        assert look(with_gpu()).devices == ("mlx5_0",)
        assert look(with_gpu(shared=False)).near_gpus == ()

    def test_excluded_devices_are_not_looked_at(self) -> None:
        """Excluded means never opened."""
        host = with_gpu()
        config = Config(devices=Devices(exclude=("mlx5_0",)))
        assert look(host, config).near_gpus == ()
        assert not [path for path in host.opened if "mlx5_0" in path]

    @pytest.mark.parametrize(
        ("kind", "translates"),
        [("DMA-FQ\n", True), ("DMA\n", True), ("identity\n", False)],
    )
    def test_the_group_of_a_device_tells(self, kind: str, *, translates: bool) -> None:
        """The kernel says for each group whether addresses are translated."""
        host = with_gpu()
        host.put("/sys/kernel/iommu_groups/7/type", kind)
        nic = host.target("/sys/bus/pci/devices/0000:84:00.0")
        host.link(f"{nic}/iommu_group", "/sys/kernel/iommu_groups/7")
        assert look(host).iommu_translates is translates

    @pytest.mark.parametrize(
        ("line", "translates"),
        [
            ("quiet intel_iommu=on\n", True),
            ("quiet intel_iommu=on iommu=pt\n", False),
            ("quiet\n", None),
        ],
    )
    def test_the_command_line_tells(
        self, line: str, *, translates: bool | None
    ) -> None:
        """Where groups have no type, the kernel's command line is all there is."""
        host = with_gpu()
        host.folder("/sys/kernel/iommu_groups/7")
        host.put("/proc/cmdline", line)
        assert look(host).iommu_translates is translates

    def test_no_iommu(self) -> None:
        """Without groups nothing is translated."""
        host = with_gpu()
        host.folder("/sys/kernel/iommu_groups")
        assert look(host).iommu_translates is False

    @pytest.mark.parametrize(
        ("nic", "gpu", "redirects"),
        [
            (acs(0), acs(0), False),
            (acs(0x1D), acs(0), True),
            (acs(0), acs(0x1D), True),
            (acs(0x1D, 64), acs(0, 64), None),
            (acs(0), acs(0, 64), None),
        ],
    )
    def test_switch_ports(
        self, nic: bytes, gpu: bytes, *, redirects: bool | None
    ) -> None:
        """The ports of the switch that GPU and NIC share are read, where that is let."""
        host = with_gpu()
        host.put("/sys/bus/pci/devices/0000:83:00.0/config", nic)
        host.put("/sys/bus/pci/devices/0000:83:01.0/config", gpu)
        assert look(host).acs_redirects is redirects


class TestInterfaces:
    def test_those_of_containers_are_not_asked(self) -> None:
        """Hundreds of them cost nothing; the others say whether they are up."""
        host = plain()
        for name, state in (("eno1", "up"), ("eno2", "down"), ("lo", "unknown")):
            host.put(f"/sys/class/net/{name}/operstate", f"{state}\n")
        for number in range(400):
            host.put(f"/sys/class/net/veth{number}/operstate", "up\n")
        host.opened.clear()
        path = look(host)
        assert {"eno1", "eno2", "lo"} <= set(path.interfaces)
        assert {"eno1", "lo"} <= set(path.interfaces_up)
        assert "eno2" not in path.interfaces_up
        assert len(path.interfaces) == 256
        assert not [path for path in host.opened if "veth" in path]


class TestBridging:
    def test_what_the_kernel_says(self) -> None:
        """Each RoCE port's network device, at the firmware commands that it costs."""
        host = with_gpu()
        host.bridges["eth0"] = PriorityUse("eth0", pfc_enabled=(3,))
        assert look(host).priorities == (PriorityUse("eth0", pfc_enabled=(3,)),)
        assert host.firmware_reads == 28

    def test_files_of_the_driver(self) -> None:
        """ECN on both sides, a traffic class that the driver enforces, and trust."""
        host = with_gpu()
        table = (0,) * 64
        host.bridges["eth0"] = PriorityUse("eth0", (3,), None, table)
        for side in ("roce_np", "roce_rp"):
            for priority in range(8):
                on = priority == 3 or side == "roce_np"
                path = f"/sys/class/net/eth0/ecn/{side}/enable/{priority}"
                host.put(path, int(on))
        tclass = "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
        host.put(tclass, "Global tclass=106\n")
        assert look(host).priorities == (PriorityUse("eth0", (3,), (3,), table, 106),)
        host.put("/sys/class/net/eth0/qos/trust", "pcp\n")
        (use,) = look(host).priorities
        assert use.dscp_to_priority == ()
        host.bridges["eth0"] = PriorityUse("eth0", (3,), None, ())
        host.put("/sys/class/net/eth0/qos/trust", "dscp\n")
        (use,) = look(host).priorities
        assert use.dscp_to_priority is None

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", NO_CLASS),
            ("Global tclass=106\nsrc_ip=10.0.0.1 tclass=8\n", 106),
            ("src_ip=10.0.0.1 tclass=8\n", NO_CLASS),
            ("Global tclass=x\n", None),
        ],
    )
    def test_a_class_that_is_not_enforced(self, text: str, found: int | None) -> None:
        """None is enforced, or nobody could look: these are two answers."""
        host = with_gpu()
        host.put("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", text)
        host.bridges["eth0"] = PriorityUse("eth0", (3,))
        (use,) = look(host).priorities
        assert use.traffic_class == found

    def test_the_type_of_service_of_rdma_cm(self) -> None:
        """Read where somebody made its folder, else not known."""
        host = with_gpu()
        host.bridges["eth0"] = PriorityUse("eth0", (3,))
        assert look(host).priorities[0].default_tos is None
        folder = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1"
        host.put(f"{folder}/default_roce_tos", "106\n")
        assert look(host).priorities[0].default_tos == 106

    def test_infiniband_is_not_asked(self) -> None:
        """Priorities of Ethernet say nothing of it, and asking would cost."""
        host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
        for name in ("mlx5_bond_0",):
            host.remove(f"/sys/class/infiniband/{name}")
        assert look(host).priorities == ()
        assert host.firmware_reads == 0
