from fabricmon.catalogue import Directory, Group
from fabricmon.config import Config, Devices
from fabricmon.model import Absence, Hca, PortId, ReadFailure, ReadPlan, Target
from fabricmon.sources import identity
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import RXE, SYSFS
from tests.sources.mlx5_node import function_of, mlx5_node
from tests.sources.polls import hca_of, only


def plan_of(hca: Hca, group: Group, port: int = 1) -> ReadPlan:
    """Return the plan of a group; there is never more than one for a port."""
    (plan,) = (
        each.plan
        for each in hca.plans
        if each.group is group and each.plan.port.port == port
    )
    return plan


class TestPlans:
    def test_files_and_specs_belong_together(self) -> None:
        """The path at a place ends with the file of the spec at that place."""
        for each in hca_of(mlx5_node(1), "mlx5_0").plans:
            files = [path.rpartition("/")[2] for path in each.plan.paths]
            assert files == [spec.file for spec in each.plan.specs]

    def test_cost(self) -> None:
        """`counters/` costs a command for each file, `hw_counters/` one for all."""
        hca = hca_of(mlx5_node(1), "mlx5_0")
        costs = {each.group: each.plan.firmware_reads for each in hca.plans}
        assert costs == {
            Group.OUTAGES: 1,
            Group.ERRORS: 7,
            Group.TRAFFIC: 13,
            Group.HARDWARE: 1,
            Group.NETDEV: 0,
            Group.BURST: 2,
        }

    def test_every_group_of_a_plan_is_its_own(self) -> None:
        """Whoever files a reading by its first spec files it right."""
        for each in hca_of(mlx5_node(1), "mlx5_0").plans:
            if each.group is not Group.BURST:
                assert {spec.group for spec in each.plan.specs} == {each.group}

    def test_no_file_is_in_two_plans(self) -> None:
        """Two rhythms of one file would be two pasts of one counter."""
        every = hca_of(mlx5_node(1), "mlx5_0").plans
        plans = [each.plan for each in every if each.group is not Group.BURST]
        paths = [path for plan in plans for path in plan.paths]
        assert len(paths) == len(set(paths))

    def test_bursts_read_bytes_alone(self) -> None:
        """Both directions, and nothing else: they are read several times a second."""
        plan = plan_of(hca_of(mlx5_node(1), "mlx5_0"), Group.BURST)
        files = [spec.file for spec in plan.specs]
        assert files == ["port_rcv_data", "port_xmit_data"]

    def test_what_remembers_outages_is_read_alone(self) -> None:
        """A file a port: it may be read every second."""
        plan = plan_of(hca_of(mlx5_node(1), "mlx5_0"), Group.OUTAGES)
        assert [spec.file for spec in plan.specs] == ["link_downed"]

    def test_what_remembers_outages_among_the_hardware_counters(self) -> None:
        """It costs the burst that one of those files costs."""
        host = mlx5_node(1)
        host.put("/sys/bus/pci/drivers/hfi1/module", "")
        host.remove(f"{function_of(0)}/driver")
        host.link(f"{function_of(0)}/driver", "../../../../bus/pci/drivers/hfi1")
        host.put(f"{RDMA_CLASS}/mlx5_0/ports/1/hw_counters/SwLinkDown", 0)
        plan = plan_of(hca_of(host, "mlx5_0"), Group.OUTAGES)
        assert [spec.file for spec in plan.specs] == ["link_downed", "SwLinkDown"]
        assert plan.firmware_reads == 2

    def test_software_costs_no_firmware_command(self) -> None:
        """Soft-RoCE answers from memory: it has no PCI function."""
        hca = hca_of(FakeHost(RXE / "before.manifest"), "rxe0")
        assert {each.group for each in hca.plans} >= {Group.OUTAGES, Group.HARDWARE}
        assert {each.plan.firmware_reads for each in hca.plans} == {0}

    def test_absent_folder_is_no_plan(self) -> None:
        """EFA has no `counters/`: nothing is planned, nothing failed."""
        hca = hca_of(FakeHost(SYSFS / "sysfs-efa.manifest"), "rdmap144s27")
        assert {each.group for each in hca.plans} == {Group.HARDWARE, Group.BURST}

    def test_unreadable_folder_is_said(self) -> None:
        """A folder that cannot be listed is not taken for an absent one."""
        host = mlx5_node(1)
        host.fail_folder(f"{RDMA_CLASS}/mlx5_0/ports/1/counters", "EACCES")
        assert Absence("counters", "EACCES") in hca_of(host, "mlx5_0").absent

    def test_unreadable_folder_is_named(self) -> None:
        """Whoever mends it sees which of a device's folders it is, and why."""
        host = mlx5_node(1)
        folder = f"{RDMA_CLASS}/mlx5_0/ports/1/counters"
        host.fail_folder(folder, "EACCES")
        found = identity.poll(host, Target("mlx5_0"), Config())
        failure = only(ReadFailure, found)
        assert (failure.file, failure.errno) == (folder, "EACCES")
        assert failure.message.startswith("counters cannot be listed")

    def test_wider_twins_come_first(self) -> None:
        """Old kernels have both; the 32-bit ones are full within a second."""
        host = FakeHost(SYSFS / "sysfs-i40iw-no-pma-mlx4-legacy.manifest")
        specs = plan_of(hca_of(host, "mlx4_0"), Group.TRAFFIC).specs
        places = [spec.file for spec in specs]
        assert places.index("port_rcv_data_64") < places.index("port_rcv_data")

    def test_device_level_counters_stand_under_port_0(self) -> None:
        """Counters of the device itself are none of its first port."""
        host = mlx5_node(1)
        host.put(f"{RDMA_CLASS}/mlx5_0/hw_counters/device_thing", 0)
        plan = plan_of(hca_of(host, "mlx5_0"), Group.HARDWARE, port=0)
        assert plan.port == PortId("mlx5_0", 0)
        assert [spec.directory for spec in plan.specs] == [Directory.DEVICE_HW_COUNTERS]

    def test_pcie_errors(self) -> None:
        """The error tables of the PCI function belong to the device."""
        host = mlx5_node(1)
        for table in ("correctable", "fatal", "nonfatal", "rootport_of_tomorrow"):
            host.put(f"{function_of(0)}/aer_dev_{table}", "TOTAL_ERR_COR 0\n")
        plan = plan_of(hca_of(host, "mlx5_0"), Group.PCI, port=0)
        assert {spec.file for spec in plan.specs} == {
            "aer_dev_correctable",
            "aer_dev_fatal",
            "aer_dev_nonfatal",
        }

    def test_netdev_counters(self) -> None:
        """Of a network device only what the catalogue knows is read."""
        plan = plan_of(hca_of(mlx5_node(1), "mlx5_0"), Group.NETDEV)
        files = {spec.file for spec in plan.specs}
        assert "carrier_down_count" in files
        assert "ifindex" not in files


class TestUnknownFiles:
    def folder(self, host: FakeHost, count: int) -> None:
        """Add counters that no table knows."""
        for number in range(count):
            path = f"{RDMA_CLASS}/mlx5_0/ports/1/hw_counters/odd_{number:03}"
            host.put(path, number)

    def test_are_read_all_the_same(self) -> None:
        """A new driver's counters show before anyone has named them."""
        host = mlx5_node(1)
        self.folder(host, 3)
        specs = plan_of(hca_of(host, "mlx5_0"), Group.HARDWARE).specs
        assert [s.file for s in specs if s.generic] == ["odd_000", "odd_001", "odd_002"]

    def test_keep_their_meaning(self) -> None:
        """Two polls give the same spec object, so that a window goes on."""
        host = mlx5_node(1)
        self.folder(host, 1)
        first, second = (
            plan_of(hca_of(host, "mlx5_0"), Group.HARDWARE).specs for _ in range(2)
        )
        assert all(a is b for a, b in zip(first, second, strict=True))

    def test_are_limited(self) -> None:
        """A driver of hundreds of files cannot flood; what is left out is said."""
        host = mlx5_node(1)
        self.folder(host, 50)
        config = Config(devices=Devices(generic_counters=40))
        hca = hca_of(host, "mlx5_0", config)
        specs = plan_of(hca, Group.HARDWARE).specs
        assert sum(spec.generic for spec in specs) == 40
        reason = "10 unknown counters above devices.generic_counters"
        assert Absence("ports/1", reason) in hca.absent

    def test_of_hfi1_are_not_read(self) -> None:
        """Omni-Path has hundreds of files, of which a list is worth reading."""
        host = mlx5_node(1)
        self.folder(host, 3)
        host.put("/sys/bus/pci/drivers/hfi1/module", "")
        host.remove(f"{function_of(0)}/driver")
        host.link(f"{function_of(0)}/driver", "../../../../bus/pci/drivers/hfi1")
        hca = hca_of(host, "mlx5_0")
        assert hca.driver == "hfi1"
        assert not any(spec.generic for each in hca.plans for spec in each.plan.specs)
