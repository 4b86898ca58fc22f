from fabricmon.model import Absence, PciLink, PciStatus, Reading, Record, Target
from tests.fake_host import FakeHost
from tests.manifest import RXE, SYSFS
from tests.sources.mlx5_node import function_of, mlx5_node
from tests.sources.polls import every, hca_of, only, poll

TABLE = "RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n"


def node_with_links() -> FakeHost:
    """Return a node whose HCA has eight lanes where the slot could have sixteen."""
    host = mlx5_node(1)
    function = function_of(0)
    slot = function.rpartition("/")[0]
    for folder, width in ((function, "8"), (slot, "8")):
        host.put(f"{folder}/current_link_speed", "16.0 GT/s PCIe\n")
        host.put(f"{folder}/current_link_width", f"{width}\n")
        host.put(f"{folder}/max_link_speed", "32.0 GT/s PCIe\n")
        host.put(f"{folder}/max_link_width", "16\n")
    return host


def records_of(host: FakeHost, name: str) -> tuple[Record, ...]:
    """Poll the source for a device."""
    return poll("pci", host, Target(name, hca_of(host, name)))


class TestLink:
    def test_both_ends(self) -> None:
        """The device's own link and that of the slot above it."""
        host = node_with_links()
        link = PciLink(16.0, 8, 32.0, 16)
        assert records_of(host, "mlx5_0") == (
            PciStatus("mlx5_0", host.now, "0000:1a:00.0", link, link),
        )

    def test_dead_device(self) -> None:
        """A device that fell off the bus answers with impossible numbers."""
        host = node_with_links()
        host.put(f"{function_of(0)}/current_link_width", "63\n")
        host.put(f"{function_of(0)}/current_link_speed", "Unknown\n")
        (status,) = records_of(host, "mlx5_0")
        assert isinstance(status, PciStatus)
        assert (status.link.speed_gts, status.link.width) == (None, None)

    def test_absent_files_say_so(self) -> None:
        """A machine that does not tell gives no numbers, and reasons."""
        status = only(PciStatus, records_of(mlx5_node(1), "mlx5_0"))
        assert (status.link, status.slot) == (PciLink(), PciLink())
        assert Absence("current_link_speed", "ENOENT") in status.absent
        assert Absence("slot current_link_speed", "ENOENT") in status.absent

    def test_virtual_functions_have_no_link_of_their_own(self) -> None:
        """What they would say is that of the physical function."""
        host = FakeHost(SYSFS / "sysfs-odd-state-text-vf.manifest")
        assert records_of(host, "mlx5_4") == ()

    def test_function_at_the_host_bridge_has_no_slot(self) -> None:
        """Right below the host bridge there is nothing to compare with."""
        host = FakeHost(SYSFS / "sysfs-odd-state-text-vf.manifest")
        status = only(PciStatus, records_of(host, "mlx5_0"))
        assert status.slot == PciLink()
        assert not any(each.file.startswith("slot") for each in status.absent)

    def test_software_device_has_none(self) -> None:
        """Rxe is on no bus."""
        assert records_of(FakeHost(RXE / "before.manifest"), "rxe0") == ()


class TestErrors:
    def reading(self, text: str) -> Reading:
        """Return the reading of a device with one error table."""
        host = mlx5_node(1)
        host.put(f"{function_of(0)}/aer_dev_correctable", text)
        (reading,) = every(Reading, records_of(host, "mlx5_0"))
        return reading

    def test_total_of_the_table(self) -> None:
        """The kernel's own total counts."""
        assert self.reading(TABLE).values == (4,)

    def test_sum_where_there_is_no_total(self) -> None:
        """Some kernels print the kinds alone."""
        assert self.reading("RxErr 3\nBadTLP 2\n").values == (5,)

    def test_no_table_is_no_zero(self) -> None:
        """Text that is no table gives no value."""
        reading = self.reading("what is this\n")
        assert reading.values == (None,)
        assert reading.absent == (Absence("aer_dev_correctable", "no table"),)
