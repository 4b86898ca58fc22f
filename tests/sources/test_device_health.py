"""Health reporters of a device."""

from dataclasses import replace

from fabricmon.model import DeviceHealth, HealthReporter, Target
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import hca_of, only, poll


def test_reporters_of_the_function() -> None:
    """They are asked for by PCI address."""
    host = mlx5_node(1)
    reporters = (HealthReporter("fw", "healthy"), HealthReporter("fw_fatal", "error"))
    host.reporters["0000:1a:00.0"] = reporters
    records = poll("device_health", host, Target("mlx5_0", hca_of(host, "mlx5_0")))
    assert only(DeviceHealth, records) == DeviceHealth("mlx5_0", host.now, reporters)


def test_none_and_virtual_functions() -> None:
    """A device without reporters gives no record, a virtual one is not asked for."""
    host = mlx5_node(1)
    hca = hca_of(host, "mlx5_0")
    assert poll("device_health", host, Target("mlx5_0", hca)) == ()
    host.reporters["0000:1a:00.0"] = (HealthReporter("fw", "error"),)
    target = Target("mlx5_0", replace(hca, is_vf=True))
    assert poll("device_health", host, target) == ()
