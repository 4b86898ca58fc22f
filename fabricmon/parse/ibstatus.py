"""The text of ibstatus, a shell script over sysfs; it works where ibstat panics."""

from __future__ import annotations

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import PortReport, Report
from fabricmon.parse.sysfs import (
    parse_guid,
    parse_lid,
    parse_link_layer,
    parse_phys_state,
    parse_rate,
    parse_sm_lid,
    parse_state,
)
from fabricmon.parse.text import decimal, field, lines, quoted
from fabricmon.parse.words import LinkLayer

TOOL = "ibstatus"
_GID_GROUPS = 8


def ibstatus_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return every port; a value that the script calls ``unknown`` is None."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    current: dict[str, str] | None = None
    for line in lines(stdout):
        header = _header(line)
        if header is not None:
            current = found.setdefault(header, {})
        elif current is not None:
            key, value = field(line)
            current.setdefault(key, value)
    ports = tuple(_port(*header, fields) for header, fields in found.items())
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not ports and not errors:
        errors = (nothing_found(TOOL, "port"),)
    return Report(TOOL, ports, errors)


def _header(line: str) -> tuple[str, int] | None:
    """Read ``Infiniband device 'mlx5_0' port 1 status:``."""
    if not line.startswith("Infiniband device '"):
        return None
    device = quoted(line)
    words = line.rpartition("'")[2].split()
    port = decimal(words[1]) if words[:1] == ["port"] and len(words) > 1 else None
    return (device, port) if device and port is not None else None


def _port(device: str, number: int, fields: dict[str, str]) -> PortReport:
    text = fields.get
    layer = parse_link_layer(text("link_layer", ""))
    return PortReport(
        device=device,
        port=number,
        state=parse_state(text("state", "")),
        phys_state=parse_phys_state(text("phys state", "")),
        link_layer=layer,
        rate=parse_rate(text("rate", "")),
        lid=parse_lid(text("base lid", "")),
        sm_lid=parse_sm_lid(text("sm lid", "")),
        guid=_guid(text("default gid", ""), layer),
    )


def _guid(gid: str, layer: LinkLayer | None) -> str | None:
    """Return the port GUID, the lower half of an InfiniBand port's default GID.

    On Ethernet that half is made from a MAC or IP address instead.
    """
    groups = gid.split(":")
    if len(groups) != _GID_GROUPS or layer is LinkLayer.ETHERNET:
        return None
    return parse_guid(":".join(groups[_GID_GROUPS // 2 :]))
