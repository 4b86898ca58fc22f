import pytest

from fabricmon.config import Config, Devices
from fabricmon.model import Absence, Hca, HcaPort, PortId, ReadFailure, Target
from fabricmon.parse.words import LinkLayer
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import RXE, SYSFS
from tests.sources.mlx5_node import add_ipoib, function_of, mlx5_node
from tests.sources.polls import hca_of, only, poll

VF_CASE = SYSFS / "sysfs-odd-state-text-vf.manifest"


class TestIdentity:
    def test_what_the_files_say(self) -> None:
        """Names, GUIDs, firmware and place come from the device's own files."""
        hca = hca_of(mlx5_node(1), "mlx5_0")
        assert (hca.hca_type, hca.board_id) == ("MT4129", "MT_0000000838")
        assert (hca.firmware, hca.node_type) == ("28.41.1000", "1: CA")
        assert hca.node_guid == "0x2c883103009a0000"
        assert (hca.pci_address, hca.driver) == ("0000:1a:00.0", "mlx5_core")
        assert hca.pci_path == function_of(0)
        assert hca.ports == (
            HcaPort(
                PortId("mlx5_0", 1),
                LinkLayer.INFINIBAND,
                "0x2c883103009ab500",
                ("ib0",),
                "ib0",
            ),
        )

    def test_costs_no_firmware_read(self) -> None:
        """The kernel answers all of it from memory, so it may be asked each minute."""
        host = mlx5_node(1)
        hca_of(host, "mlx5_0")
        assert host.firmware_reads == 0

    def test_the_same_twice(self) -> None:
        """Two polls of an unchanged device give equal records, whatever the time."""
        host = mlx5_node(1)
        first = hca_of(host, "mlx5_0")
        host.now += 60
        assert hca_of(host, "mlx5_0") == first

    def test_software_device(self) -> None:
        """Rxe has no PCI function; its `parent` tells the driver."""
        hca = hca_of(FakeHost(RXE / "before.manifest"), "rxe0")
        assert (hca.driver, hca.pci_address, hca.firmware) == ("rxe", None, None)
        assert hca.ports[0].netdevs == ("v0",)

    def test_numa_node(self) -> None:
        """-1 is what a machine says that does not tell."""
        host = mlx5_node(2)
        host.put(f"{function_of(0)}/numa_node", "1\n")
        host.put(f"{function_of(1)}/numa_node", "-1\n")
        found = [hca_of(host, name).numa_node for name in ("mlx5_0", "mlx5_1")]
        assert found == [1, None]

    def test_optional_files_are_absent(self) -> None:
        """A file that does not exist is told from one that fails."""
        host = FakeHost(SYSFS / "sysfs-efa.manifest")
        host.fail(f"{RDMA_CLASS}/rdmap144s27/board_id", "EIO")
        absent = hca_of(host, "rdmap144s27").absent
        assert Absence("hca_type", "ENOENT") in absent
        assert Absence("board_id", "EIO") in absent

    def test_port_numbers_need_not_begin_at_one(self) -> None:
        """The ports are those of the folder, in the order of their numbers."""
        hca = hca_of(FakeHost(VF_CASE), "mlx5_5")
        assert [port.id.port for port in hca.ports] == [2]

    def test_driver_loaded_again(self) -> None:
        """A driver makes its network devices anew, so their number tells."""
        host = mlx5_node(1)
        before = hca_of(host, "mlx5_0").driver_instance
        host.put(f"{function_of(0)}/net/ib0/ifindex", 40)
        after = hca_of(host, "mlx5_0").driver_instance
        assert None not in {before, after}
        assert before != after

    def test_vlans_do_not_look_like_a_reload(self) -> None:
        """Network devices that come later do not change which driver runs."""
        host = mlx5_node(1)
        before = hca_of(host, "mlx5_0").driver_instance
        host.put(f"{function_of(0)}/net/ib0.8001/ifindex", 77)
        host.link("/sys/class/net/ib0.8001", f"../..{function_of(0)[4:]}/net/ib0.8001")
        assert hca_of(host, "mlx5_0").driver_instance == before


class TestFailures:
    def test_device_that_went_away(self) -> None:
        """A device that is gone by now is a failure, not an identity."""
        host = mlx5_node(1)
        failure = only(ReadFailure, poll("identity", host, Target("mlx5_7")))
        assert (failure.device, failure.errno) == ("mlx5_7", "ENOENT")

    def test_device_without_ports(self) -> None:
        """A device whose driver failed is known, and said to have no ports."""
        host = mlx5_node(1)
        host.remove(f"{RDMA_CLASS}/mlx5_0/ports")
        records = poll("identity", host, Target("mlx5_0"))
        assert only(Hca, records).ports == ()
        assert only(ReadFailure, records).file == f"{RDMA_CLASS}/mlx5_0/ports"


class TestVirtualFunctions:
    def test_told_by_its_link(self) -> None:
        """The link to the physical function makes a virtual one."""
        hca = hca_of(FakeHost(VF_CASE), "mlx5_4")
        assert (hca.is_vf, hca.pf_address) == (True, "0000:1a:00.0")

    def test_physical_function_is_none(self) -> None:
        """Having virtual functions does not make one."""
        hca = hca_of(FakeHost(VF_CASE), "mlx5_0")
        assert (hca.is_vf, hca.pf_address) == (False, None)

    def test_subfunction_is_one_too(self) -> None:
        """A slice of a function on the auxiliary bus has its owner's address."""
        host = mlx5_node(1)
        slice_folder = f"{function_of(0)}/mlx5_core.sf.4"
        host.put(f"{slice_folder}/infiniband/mlx5_9/ports/1/state", "4: ACTIVE\n")
        host.link(f"{slice_folder}/infiniband/mlx5_9/device", "../../../mlx5_core.sf.4")
        host.link(f"{RDMA_CLASS}/mlx5_9", f"../..{slice_folder[4:]}/infiniband/mlx5_9")
        hca = hca_of(host, "mlx5_9")
        assert (hca.is_vf, hca.pf_address) == (True, "0000:1a:00.0")
        assert hca.pci_address == "0000:1a:00.0"

    @pytest.mark.parametrize(
        ("mode", "ports", "has_plans"),
        [("fold", 1, False), ("export", 1, True), ("ignore", 0, False)],
    )
    def test_modes(self, mode: str, ports: int, has_plans: bool) -> None:  # noqa: FBT001
        """Folded ones are watched for state alone, ignored ones not even that."""
        devices = Devices(virtual_functions=mode)  # type: ignore[arg-type]
        host = FakeHost(VF_CASE)
        hca = hca_of(host, "mlx5_4", Config(devices=devices))
        assert (len(hca.ports), bool(hca.plans)) == (ports, has_plans)
        assert hca.is_vf


class TestNetdevs:
    def test_infiniband_goes_by_the_function(self) -> None:
        """ib4 belongs to mlx5_6: only the PCI function tells."""
        host = FakeHost(SYSFS / "sysfs-dgx-netdev-down-flaps.manifest")
        assert hca_of(host, "mlx5_6").ports[0].netdevs == ("ib4",)

    def test_bond_comes_first_its_member_is_the_wire(self) -> None:
        """RDMA names the bond; the function's own device has the cable."""
        host = FakeHost(SYSFS / "sysfs-bnxt-bond-lossy.manifest")
        (port,) = hca_of(host, "bnxt_re-bond0").ports
        assert port.netdevs == ("bond0", "ens26np0")
        assert port.physical_netdev == "ens26np0"

    def test_two_ports_are_told_apart_by_dev_port(self) -> None:
        """`dev_port` counts from 0, ports from 1."""
        host = mlx5_node(1)
        add_ipoib(host, 0)
        host.put(f"{RDMA_CLASS}/mlx5_0/ports/2/link_layer", "InfiniBand\n")
        net = f"{function_of(0)}/net/ibsecond"
        host.put(f"{net}/dev_port", "1\n")
        host.link("/sys/class/net/ibsecond", f"../..{net[4:]}")
        ports = hca_of(host, "mlx5_0").ports
        assert [port.netdevs for port in ports] == [("ib0",), ("ibsecond",)]

    def test_gid_tables_are_not_read_to_their_end(self) -> None:
        """1024 empty slots cost a few reads; a hole before the last does not hide it."""
        host = FakeHost(RXE / "before.manifest")
        ndevs = f"{RDMA_CLASS}/rxe0/ports/1/gid_attrs/ndevs"
        for slot in range(2, 1024):
            host.fail(f"{ndevs}/{slot}", "EINVAL")
        host.put(f"{ndevs}/4", "vlan7\n")
        (port,) = hca_of(host, "rxe0").ports
        assert port.netdevs == ("v0", "vlan7")
        assert sum(path.startswith(ndevs) for path in host.opened) < 16

    def test_full_gid_table_is_bounded(self) -> None:
        """A table without an empty slot ends as well."""
        host = FakeHost(RXE / "before.manifest")
        ndevs = f"{RDMA_CLASS}/rxe0/ports/1/gid_attrs/ndevs"
        for slot in range(1024):
            host.put(f"{ndevs}/{slot}", "v0\n")
        hca_of(host, "rxe0")
        assert sum(path.startswith(ndevs) for path in host.opened) == 32
