"""Transceivers: sensors of the kernel, and what a host has beyond files."""

from dataclasses import replace

import pytest

from fabricmon.host.trace import Module
from fabricmon.model import ModuleStatus, PortId, Target
from tests.fake_host import FakeHost
from tests.sources.mlx5_node import function_of, mlx5_node
from tests.sources.polls import every, hca_of, only, poll

SENSOR = "hwmon/hwmon3"


def with_sensor(**sensors: str) -> FakeHost:
    """Return a node whose HCA has sensors ``temp1=LABEL``, each at 61 degrees."""
    host = mlx5_node(1)
    folder = f"{function_of(0)}/{SENSOR}"
    for prefix, label in sensors.items():
        host.put(f"{folder}/{prefix}_label", f"{label}\n")
        host.put(f"{folder}/{prefix}_input", 61000)
        host.put(f"{folder}/{prefix}_crit", 78000)
    return host


def status_of(host: FakeHost) -> ModuleStatus:
    """Poll the only HCA."""
    records = poll("modules", host, Target("mlx5_0", hca_of(host, "mlx5_0")))
    return only(ModuleStatus, records)


class TestSensors:
    def test_module(self) -> None:
        """Temperature and the vendor's limit, from the sensor of the transceiver."""
        found = status_of(with_sensor(temp1="asic", temp2="Module0"))
        assert (found.port, found.temperature_c) == (PortId("mlx5_0", 1), 61.0)
        assert found.alarm_c == 78.0
        assert found.source == "pci/0000:1a:00.0/hwmon/hwmon3/temp2_input"

    def test_the_chip_is_no_module(self) -> None:
        """It runs hotter and has limits of its own: it is not even read."""
        host = with_sensor(temp1="asic")
        assert poll("modules", host, Target("mlx5_0", hca_of(host, "mlx5_0"))) == ()
        assert host.opened[f"{function_of(0)}/{SENSOR}/temp1_input"] == 0

    def test_the_hottest_of_several(self) -> None:
        """A port with a twin module is as hot as its hotter half."""
        host = with_sensor(temp1="Module0", temp2="Module1")
        host.put(f"{function_of(0)}/{SENSOR}/temp2_input", 71500)
        assert status_of(host).temperature_c == 71.5

    def test_cool_modules_cost_one_command(self) -> None:
        """The limit is asked for only where it may matter."""
        host = with_sensor(temp2="Module0")
        host.put(f"{function_of(0)}/{SENSOR}/temp2_input", 42000)
        before = host.firmware_reads
        assert status_of(host).alarm_c is None
        assert host.firmware_reads == before + 1
        assert host.opened[f"{function_of(0)}/{SENSOR}/temp2_crit"] == 0

    @pytest.mark.parametrize("text", ["N/A\n", "", "255000000000\n", "-273000\n"])
    def test_nonsense(self, text: str) -> None:
        """What no sensor says is no temperature."""
        host = with_sensor(temp2="Module0")
        host.put(f"{function_of(0)}/{SENSOR}/temp2_input", text)
        assert poll("modules", host, Target("mlx5_0", hca_of(host, "mlx5_0"))) == ()

    def test_sensor_that_fails(self) -> None:
        """An unreadable sensor is none."""
        host = with_sensor(temp2="Module0")
        host.fail(f"{function_of(0)}/{SENSOR}/temp2_input", "EIO")
        assert poll("modules", host, Target("mlx5_0", hca_of(host, "mlx5_0"))) == ()


class TestBeyondFiles:
    def test_diagnostics_of_the_host(self) -> None:
        """A trace has light as well as heat."""
        host = mlx5_node(1)
        host.modules["mlx5_0/1"] = Module(
            temperature_c=66.0, rx_power_dbm=(-3.0, None, -8.0)
        )
        found = status_of(host)
        assert found.temperature_c == 66.0
        assert found.receive_power_dbm == (-3.0, -8.0)
        assert found.source == "module/mlx5_0/1"

    def test_nothing_gives_no_record(self) -> None:
        """A copper cable says nothing."""
        host = mlx5_node(1)
        host.modules["mlx5_0/1"] = Module(vendor="V")
        assert poll("modules", host, Target("mlx5_0", hca_of(host, "mlx5_0"))) == ()


def test_virtual_functions_are_left_alone() -> None:
    """Their transceiver is that of the physical function."""
    host = with_sensor(temp2="Module0")
    hca = replace(hca_of(host, "mlx5_0"), is_vf=True)
    records = poll("modules", host, Target("mlx5_0", hca))
    assert every(ModuleStatus, records) == ()
