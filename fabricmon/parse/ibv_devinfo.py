"""The text of ibv_devinfo, with and without -v."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import PortReport, Report
from fabricmon.parse.speeds import by_code, rate_of
from fabricmon.parse.sysfs import (
    parse_guid,
    parse_lanes,
    parse_lid,
    parse_link_layer,
    parse_phys_state,
    parse_sm_lid,
    parse_state,
)
from fabricmon.parse.text import decimal, lines
from fabricmon.parse.text import field as key_and_value
from fabricmon.parse.words import LinkLayer, Rate

TOOL = "ibv_devinfo"


@dataclass(slots=True)
class _Block:
    """Fields of one device or port as they are read; never leaves this file."""

    fields: dict[str, str] = field(default_factory=dict)
    ports: dict[int, dict[str, str]] = field(default_factory=dict)


def ibv_devinfo_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return every port; the rate is known only where -v printed width and speed."""
    devices: dict[str, _Block] = {}
    fields: dict[str, str] | None = None
    device: _Block | None = None
    for line in lines(stdout):
        key, value = key_and_value(line)
        if key == "hca_id" and value:
            device = devices.setdefault(value, _Block())
            fields = device.fields
        elif device is not None and key == "port" and decimal(value) is not None:
            fields = device.ports.setdefault(int(value), {})
        elif fields is not None:
            fields.setdefault(key, value)
    ports = tuple(_ports(devices))
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not ports and not errors:
        errors = (nothing_found(TOOL, "port"),)
    return Report(TOOL, ports, errors)


def _ports(devices: dict[str, _Block]) -> Iterator[PortReport]:
    for name, device in devices.items():
        shared = device.fields.get
        for port, fields in device.ports.items():
            own = fields.get
            yield PortReport(
                device=name,
                port=port,
                state=parse_state(own("state", "")),
                phys_state=parse_phys_state(own("phys_state", "")),
                link_layer=_layer(own("link_layer", "")),
                rate=_rate(own("active_width", ""), own("active_speed", "")),
                lid=parse_lid(own("port_lid", "")),
                sm_lid=parse_sm_lid(own("sm_lid", "")),
                node_guid=parse_guid(shared("node_guid", "")),
                fw=shared("fw_ver") or None,
            )


def _layer(text: str) -> LinkLayer | None:
    return parse_link_layer(text) if text else None


def _rate(width: str, speed: str) -> Rate:
    """Read ``4X (2)`` and ``25.0 Gbps (32)``; the code says it without rounding."""
    lanes = parse_lanes(width.partition(" ")[0])
    return rate_of(lanes, by_code(decimal(speed.rpartition("(")[2].rstrip(")"))))
