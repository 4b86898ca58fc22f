import pytest

from fabricmon.config import Config, Devices
from fabricmon.model import DeviceList
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import Sweep, only, poll


def list_devices(host: FakeHost, config: Config | None = None) -> DeviceList:
    """Return what one poll of the source gives."""
    return only(DeviceList, poll("devices", host, config=config))


class TestDevices:
    def test_names_are_listed(self) -> None:
        """Links into the device tree are devices."""
        assert list_devices(mlx5_node(2)).names == ("mlx5_0", "mlx5_1")

    def test_no_class_is_an_error(self) -> None:
        """A node without RDMA drivers is told from one without devices."""
        found = list_devices(FakeHost(SYSFS / "sysfs-no-class-dir.manifest"))
        assert (found.names, found.error) == ((), "ENOENT")

    def test_empty_class_is_no_error(self) -> None:
        """Drivers without a device give an empty list."""
        host = FakeHost()
        host.folder(RDMA_CLASS)
        assert (list_devices(host).names, list_devices(host).error) == ((), None)

    def test_unreadable_class_keeps_its_errno(self) -> None:
        """A class that cannot be read is neither absent nor empty."""
        host = mlx5_node(1)
        host.fail_folder(RDMA_CLASS, "EACCES")
        assert list_devices(host).error == "EACCES"

    @pytest.mark.parametrize(
        ("devices", "names"),
        [
            (Devices(exclude=("mlx5_1",)), ("mlx5_0", "mlx5_2")),
            (Devices(include=("mlx5_[12]",)), ("mlx5_1", "mlx5_2")),
            (Devices(include=("mlx5_*",), exclude=("*_2",)), ("mlx5_0", "mlx5_1")),
        ],
    )
    def test_patterns_choose(self, devices: Devices, names: tuple[str, ...]) -> None:
        """What is not included, or is excluded, is not listed."""
        assert list_devices(mlx5_node(3), Config(devices=devices)).names == names

    def test_excluded_is_never_opened(self) -> None:
        """No source touches a file or folder of an excluded device."""
        host = mlx5_node(2)
        config = Config(devices=Devices(exclude=("mlx5_1",)))
        assert len(Sweep(host, config).records()) > 0
        touched = [*host.opened, *host.listed]
        assert any("mlx5_0/" in path for path in touched)
        assert not any("mlx5_1" in path for path in touched)
