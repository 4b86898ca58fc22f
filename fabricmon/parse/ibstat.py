"""The text of ibstat: whole listings, ``ibstat CA PORT``, pastes with blanks.

Old versions stop at the first device that fails (ibpanic, status 255); newer ones
warn, go on and exit 0. What was printed before or after counts either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msgspec import field

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import PortReport, Report, ToolFailure
from fabricmon.parse.sysfs import (
    parse_guid,
    parse_lid,
    parse_link_layer,
    parse_phys_state,
    parse_rate,
    parse_sm_lid,
    parse_state,
)
from fabricmon.parse.text import decimal, lines, quoted
from fabricmon.parse.text import field as key_and_value
from fabricmon.value import State

TOOL = "ibstat"
MAX_HEADER_WORDS = 2  # iWARP RNIC 'x'
_STOPPED = "; ibstat stopped there, later devices are not listed"


class _Block(State):
    """Fields of one device or port as they are read; never leaves this file."""

    fields: dict[str, str] = field(default_factory=dict)
    ports: dict[int, _Block] = field(default_factory=dict)


def ibstat_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return every port that was printed and everything that could not be read."""
    devices = _read_blocks(stdout)
    said = failures(TOOL, stdout, stderr, exit_status)
    errors = (*map(_stopped, said), *_unfinished(devices))
    ports = tuple(
        _port(name, number, device, port)
        for name, device in devices.items()
        for number, port in device.ports.items()
    )
    if not ports and not errors:
        errors = (nothing_found(TOOL, "port"),)
    return Report(TOOL, ports, errors)


def _read_blocks(text: str) -> dict[str, _Block]:
    devices: dict[str, _Block] = {}
    device = port = None
    for line in lines(text):
        name = _device_name(line)
        if name is not None:
            device = port = devices.setdefault(name, _Block())
            continue
        key, value = key_and_value(line)
        number = decimal(key.removeprefix("Port ")) if not value else None
        if device is None:
            continue
        if number is not None and key.startswith("Port "):
            port = device.ports.setdefault(number, _Block())
        elif port is not None:
            port.fields.setdefault(key, value)
    return devices


def _device_name(line: str) -> str | None:
    """Return x of ``CA 'x'``, ``CA: 'x'``, ``iWARP RNIC 'x'``, ``??? 'x'``."""
    text = line.strip()
    kind, opening, _ = text.partition("'")
    words = kind.split()
    if not opening or not text.endswith("'") or not 0 < len(words) <= MAX_HEADER_WORDS:
        return None
    if ":" in kind.rstrip().removesuffix(":"):
        return None
    return quoted(text) or None


def _port(name: str, number: int, device: _Block, port: _Block) -> PortReport:
    own, shared = port.fields.get, device.fields.get
    return PortReport(
        device=name,
        port=number,
        state=parse_state(own("State", "")),
        phys_state=parse_phys_state(own("Physical state", "")),
        link_layer=parse_link_layer(own("Link layer", "")),
        # "Effective speed" is another thing: more for a bond, less for a capped VF.
        rate=parse_rate(own("Rate", "")),
        lid=parse_lid(own("Base lid", "")),
        sm_lid=parse_sm_lid(own("SM lid", "")),
        guid=parse_guid(own("Port GUID", "")),
        node_guid=parse_guid(shared("Node GUID", "")),
        fw=shared("Firmware version") or None,
        hca_type=shared("CA type") or None,
    )


def _stopped(error: ToolFailure) -> ToolFailure:
    if error.device is None or not error.message.startswith("ibpanic:"):
        return error
    return replace(error, message=error.message + _STOPPED)


def _unfinished(devices: dict[str, _Block]) -> Iterator[ToolFailure]:
    """Yield the devices whose listing breaks off before their last port."""
    for name, device in devices.items():
        promised = decimal(device.fields.get("Number of ports", ""))
        listed = len(device.ports)
        if promised is not None and listed < promised:
            message = f"{name} has {promised} ports, {listed} of them in this text"
            yield ToolFailure(TOOL, message, device=name)
