import pytest

from fabricmon.catalogue import Directory, Group
from fabricmon.host.protocol import ReadError
from fabricmon.model import PortId, ReadFailure, Reading, Target
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import hca_of, only, poll

STATISTICS = {
    "rx_packets": 12,
    "rx_prio3_pause": 7,
    "rx_pcs_symbol_err_phy": 2,
    "rx0_packets": 5,
    "tx_prio3_pause": 9,
}


def target_of(host: FakeHost, name: str) -> Target:
    """Return a device as the scheduler gives it to the source."""
    return Target(name, hca_of(host, name))


class TestDriver:
    def test_known_names_are_chosen(self) -> None:
        """Of hundreds of statistics those of the catalogue are kept, with values."""
        host = mlx5_node(1)
        host.netdev_statistics["ib0"] = dict(STATISTICS)
        reading = only(Reading, poll("driver", host, target_of(host, "mlx5_0")))
        values = zip(reading.specs, reading.values, strict=True)
        assert {spec.file: value for spec, value in values} == {
            "rx_prio3_pause": 7,
            "rx_pcs_symbol_err_phy": 2,
            "tx_prio3_pause": 9,
        }
        assert reading.port == PortId("mlx5_0", 1)
        assert {spec.directory for spec in reading.specs} == {Directory.ETHTOOL}
        assert {spec.group for spec in reading.specs} == {Group.DRIVER}

    def test_specs_are_the_same_at_each_poll(self) -> None:
        """A window can tell from the tuple itself that nothing but values changed."""
        host = mlx5_node(1)
        host.netdev_statistics["ib0"] = dict(STATISTICS)
        target = target_of(host, "mlx5_0")
        first, second = (only(Reading, poll("driver", host, target)) for _ in range(2))
        assert all(a is b for a, b in zip(first.specs, second.specs, strict=True))

    def test_bond_is_asked_at_its_member(self) -> None:
        """A bond has no driver statistics; the interface below it has."""
        host = FakeHost(SYSFS / "sysfs-bnxt-bond-lossy.manifest")
        host.netdev_statistics["ens26np0"] = {"rx_pfc_ena_frames_pri3": 4}
        target = target_of(host, "bnxt_re-bond0")
        assert only(Reading, poll("driver", host, target)).values == (4,)

    def test_virtual_functions_are_left_alone(self) -> None:
        """Their call can block for long while a job runs."""
        host = FakeHost(SYSFS / "sysfs-odd-state-text-vf.manifest")
        target = target_of(host, "mlx5_4")
        host.netdev_statistics = _Untouchable()
        assert poll("driver", host, target) == ()

    @pytest.mark.parametrize("errno", ["EOPNOTSUPP", "ENODEV"])
    def test_no_statistics_is_no_failure(self, errno: str) -> None:
        """Drivers without statistics are usual."""
        host = mlx5_node(1)
        host.netdev_statistics["ib0"] = ReadError(errno)
        assert poll("driver", host, target_of(host, "mlx5_0")) == ()

    def test_refused_statistics_are_a_failure(self) -> None:
        """A call that is not permitted is said."""
        host = mlx5_node(1)
        host.netdev_statistics["ib0"] = ReadError("EPERM")
        records = poll("driver", host, target_of(host, "mlx5_0"))
        failure = only(ReadFailure, records)
        assert (failure.device, failure.port) == ("mlx5_0", 1)
        assert (failure.file, failure.errno) == ("ethtool:ib0", "EPERM")

    def test_nothing_known_is_no_reading(self) -> None:
        """A reading without a single counter is none."""
        host = mlx5_node(1)
        host.netdev_statistics["ib0"] = {"odd": 1}
        assert poll("driver", host, target_of(host, "mlx5_0")) == ()


class _Untouchable(dict[str, dict[str, int] | ReadError]):
    """Statistics that nobody may ask for."""

    def get(self, *_args: object) -> ReadError:
        """Fail the test."""
        raise AssertionError("statistics of a virtual function were asked for")
