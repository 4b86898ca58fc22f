from fabricmon.model import Absence, LinkStatus, PortId, Target
from fabricmon.parse.words import PhysState, PortState, Rate
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import RXE, SYSFS
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import every, hca_of, only, poll

PORT = f"{RDMA_CLASS}/mlx5_0/ports/1"


def read(source: str, host: FakeHost, device: str = "mlx5_0") -> LinkStatus:
    """Return the one status that a poll of a device with one port gives."""
    return only(LinkStatus, poll(source, host, Target(device, hca_of(host, device))))


class TestState:
    def test_only_state_is_read(self) -> None:
        """Each file more would be five firmware commands more."""
        host = mlx5_node(1)
        target = Target("mlx5_0", hca_of(host, "mlx5_0"))
        host.opened.clear()
        (status,) = poll("state", host, target)
        assert dict(host.opened) == {f"{PORT}/state": 1}
        assert status == LinkStatus(
            PortId("mlx5_0", 1), host.now, PortState.ACTIVE, complete=False
        )

    def test_costs_five_firmware_reads(self) -> None:
        """A read of state is a query of the port, five commands on mlx5."""
        host = mlx5_node(1)
        read("state", host)
        assert host.firmware_reads == 5

    def test_software_costs_none(self) -> None:
        """Soft-RoCE answers from memory: it has no PCI function."""
        host = FakeHost(RXE / "before.manifest")
        assert read("state", host, "rxe0").state is PortState.ACTIVE
        assert read("link_detail", host, "rxe0").complete
        assert host.firmware_reads == 0

    def test_unreadable_state_says_why(self) -> None:
        """A state that cannot be read is not down."""
        host = mlx5_node(1)
        host.fail(f"{PORT}/state", "EIO")
        status = read("state", host)
        assert (status.state, status.absent) == (None, (Absence("state", "EIO"),))

    def test_every_port_is_read(self) -> None:
        """A device of two ports gives two states."""
        host = FakeHost(SYSFS / "sysfs-mlx4-dual-mlx5-1x.manifest")
        records = poll("state", host, Target("mlx4_0", hca_of(host, "mlx4_0")))
        assert [each.port.port for each in every(LinkStatus, records)] == [1, 2]

    def test_without_identity_nothing_is_read(self) -> None:
        """A device of which nothing is known yet is left alone."""
        assert poll("state", mlx5_node(1), Target("mlx5_0")) == ()


class TestLinkDetail:
    def test_all_of_the_link(self) -> None:
        """Physical state, rate and LIDs come with the state."""
        host = mlx5_node(1)
        assert read("link_detail", host) == LinkStatus(
            port=PortId("mlx5_0", 1),
            at=host.now,
            state=PortState.ACTIVE,
            phys_state=PhysState.LINK_UP,
            rate=Rate(400.0, 4, "NDR"),
            lid=0x640,
            sm_lid=0x5DD,
        )

    def test_one_bad_file_costs_itself(self) -> None:
        """MANA cannot tell its rate; the state is there all the same."""
        host = FakeHost(SYSFS / "sysfs-mana-rate-einval.manifest")
        status = read("link_detail", host, "mana_0")
        assert (status.state, status.rate) == (PortState.ACTIVE, Rate())
        assert Absence("rate", "EINVAL") in status.absent

    def test_costs_twenty_five_firmware_reads(self) -> None:
        """State, physical state, rate and both LIDs each query the port."""
        host = mlx5_node(1)
        read("link_detail", host)
        assert host.firmware_reads == 25
