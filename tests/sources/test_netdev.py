from fabricmon.model import Absence, NetdevStatus, PortId, Reading, Target
from tests.fake_host import FakeHost
from tests.manifest import RXE, SYSFS
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import every, hca_of, only, poll

FLAPS = SYSFS / "sysfs-dgx-netdev-down-flaps.manifest"
NET = "/sys/class/net"


def status_of(host: FakeHost, device: str) -> NetdevStatus:
    """Return the status of the one network device of a device."""
    target = Target(device, hca_of(host, device))
    return only(NetdevStatus, poll("netdev", host, target))


class TestStatus:
    def test_up(self) -> None:
        """An interface that is up has a carrier, without asking for it."""
        host = mlx5_node(1)
        assert status_of(host, "mlx5_0") == NetdevStatus(
            PortId("mlx5_0", 1), "ib0", host.now, "up", carrier=True
        )
        assert host.opened[f"{NET}/ib0/carrier"] == 0

    def test_switched_off(self) -> None:
        """While the interface is switched off nobody knows of a carrier."""
        status = status_of(FakeHost(FLAPS), "mlx5_6")
        assert (status.operstate, status.carrier) == ("down", None)
        assert status.absent == (Absence("carrier", "EINVAL"),)

    def test_no_carrier(self) -> None:
        """An interface that is on and has no carrier says so."""
        host = mlx5_node(1)
        host.put(f"{NET}/ib0/operstate", "down\n")
        host.put(f"{NET}/ib0/carrier", "0\n")
        assert status_of(host, "mlx5_0").carrier is False

    def test_unknown_operstate_asks_for_the_carrier(self) -> None:
        """Drivers that do not keep operstate have a carrier all the same."""
        host = mlx5_node(1)
        host.put(f"{NET}/ib0/operstate", "unknown\n")
        assert status_of(host, "mlx5_0").carrier is True

    def test_port_without_network_device(self) -> None:
        """A port that has none gives nothing."""
        host = mlx5_node(1, netdevs=False)
        assert poll("netdev", host, Target("mlx5_0", hca_of(host, "mlx5_0"))) == ()

    def test_software_device(self) -> None:
        """The network device of rxe is that on which it was made."""
        host = FakeHost(RXE / "before.manifest")
        assert status_of(host, "rxe0").netdev == "v0"


def test_carrier_counts() -> None:
    """The counts that remember short outages come as a reading."""
    host = FakeHost(FLAPS)
    records = poll("netdev", host, Target("mlx5_6", hca_of(host, "mlx5_6")))
    (reading,) = every(Reading, records)
    values = dict(
        zip((spec.file for spec in reading.specs), reading.values, strict=True)
    )
    assert values["carrier_down_count"] == 49
    assert values["carrier_changes"] == 98


def test_reaches_no_firmware() -> None:
    """Everything of a network device is free."""
    host = mlx5_node(1)
    poll("netdev", host, Target("mlx5_0", hca_of(host, "mlx5_0")))
    assert host.firmware_reads == 0
