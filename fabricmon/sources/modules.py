"""Transceivers: temperature from hwmon, and what the host has of them beyond files.

Each sensor file costs mlx5 a register of its firmware. Only sensors that call
themselves a module are read: that of the chip runs hotter and has other limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.host.trace import Module
from fabricmon.model import Hca, ModuleStatus, PortId, Target
from fabricmon.parse.text import decode
from fabricmon.value import Value

MOST_SENSORS = 16
"""Sensors of a device that are looked at."""

ASK_CELSIUS = 55.0
"""The vendor's limit, a command more, is asked for from here on: it is 70 or above."""

_MODULE = "module"  # how the label of a transceiver's sensor begins, in lower case
_INPUT = "_input"
_MILLI = 1e-3
_DEGREES = (-60.0, 250.0)  # what no sensor leaves that works


class _Sensor(Value, frozen=True):
    """One reading of a sensor, degrees Celsius."""

    degrees: float
    alarm: float | None
    source: str


def poll(host: Host, target: Target, _config: Config) -> tuple[ModuleStatus, ...]:
    """Read the transceiver of each port; one that says nothing gives no record."""
    hca = target.hca
    if hca is None or hca.is_vf:
        return ()
    sensors = list(_sensors(host, hca))
    found: list[ModuleStatus] = []
    for place, port in enumerate(hca.ports):
        told = host.module(str(port.id))
        status = _status(port.id, host.monotonic(), told, _of_port(sensors, hca, place))
        if status.temperature_c is not None or status.receive_power_dbm:
            found.append(status)
    return tuple(found)


def _of_port(sensors: list[_Sensor], hca: Hca, place: int) -> _Sensor | None:
    """Return the sensor of a port: by order, or the hottest of a single port's."""
    if len(sensors) == len(hca.ports):
        return sensors[place]
    single = len(hca.ports) == 1 and bool(sensors)
    return max(sensors, key=lambda sensor: sensor.degrees) if single else None


def _status(
    port: PortId, at: float, told: Module | None, sensor: _Sensor | None
) -> ModuleStatus:
    degrees = None if told is None else told.temperature_c
    lanes = told.rx_power_dbm if told is not None and told.rx_power_dbm else ()
    return ModuleStatus(
        port=port,
        at=at,
        temperature_c=degrees if sensor is None else sensor.degrees,
        alarm_c=None if sensor is None else sensor.alarm,
        receive_power_dbm=tuple(lane for lane in lanes if lane is not None),
        source=f"module/{port}" if sensor is None else sensor.source,
    )


def _sensors(host: Host, hca: Hca) -> Iterator[_Sensor]:
    """Read the sensors of a device's transceivers, in the order of their numbers."""
    if hca.pci_path is None or hca.pci_address is None:
        return
    folder = f"{hca.pci_path}/hwmon"
    for name in _names(host, folder):
        place = f"{folder}/{name}"
        files = _names(host, place)
        for label in [f for f in files if f.endswith("_label")][:MOST_SENSORS]:
            prefix = label.removesuffix("_label")
            text = host.read(f"{place}/{label}")
            is_module = isinstance(text, bytes) and decode(
                text
            ).strip().lower().startswith(_MODULE)
            if not is_module or prefix + _INPUT not in files:
                continue
            degrees = _degrees(host.read(f"{place}/{prefix}{_INPUT}", 1))
            alarm = None
            ask = degrees is not None and degrees >= ASK_CELSIUS
            if ask and f"{prefix}_crit" in files:
                alarm = _degrees(host.read(f"{place}/{prefix}_crit", 1))
            if degrees is not None:
                source = f"pci/{hca.pci_address}/hwmon/{name}/{prefix}{_INPUT}"
                yield _Sensor(degrees, alarm or None, source)


def _names(host: Host, folder: str) -> tuple[str, ...]:
    names = host.names(folder)
    return () if isinstance(names, ReadError) else names


def _degrees(raw: bytes | ReadError) -> float | None:
    """Return degrees of a file that holds thousandths of them."""
    if isinstance(raw, ReadError):
        return None
    text = decode(raw).strip()
    if not text.removeprefix("-").isdigit() or len(text) > 9:  # noqa: PLR2004
        return None
    degrees = int(text) * _MILLI
    low, high = _DEGREES
    return degrees if low < degrees < high else None
