"""The text of iblinkinfo, with and without -l: keys are GUID and port.

Rates are those on the wire of one lane (106.25 Gbps is NDR). A link that is down
leaves width and speed blank.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import FabricLink, FabricPort, PortReport, Report
from fabricmon.parse.speeds import by_signalling, rate_of
from fabricmon.parse.sysfs import (
    parse_guid,
    parse_lanes,
    parse_lid,
    parse_phys_state,
    parse_state,
)
from fabricmon.parse.text import decimal, lines, number, quoted
from fabricmon.parse.words import LinkLayer, Rate
from fabricmon.value import Value

TOOL = "iblinkinfo"
_TYPES = {"CA": "CA", "Switch": "SW", "Router": "RT"}
_COULD_BE = "Could be "


class _Header(Value, frozen=True):
    """The node that the lines below belong to; a CA's lines have their own GUID."""

    type: str
    guid: str | None
    name: str | None


class _Line(Value, frozen=True):
    """One port and, where it is connected, the cable at it."""

    port: PortReport
    link: FabricLink | None


def iblinkinfo_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return every port, and every cable once although both ends list it."""
    found = tuple(_lines(stdout))
    links = {
        # Not by GUID: without -l the far end has none. Nor by LID alone: before a
        # subnet manager came all of them are 0.
        frozenset((end.name, end.lid, end.port) for end in (link.a, link.b)): link
        for link in reversed(list(filter(None, (line.link for line in found))))
    }
    ports = {(line.port.device, line.port.port): line.port for line in found}
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not ports and not errors:
        errors = (nothing_found(TOOL, "port"),)
    return Report(
        TOOL, tuple(ports.values()), errors, links=tuple(reversed(links.values()))
    )


def _lines(text: str) -> Iterator[_Line]:
    header = _Header("", None, None)
    for line in lines(text):
        near, arrow, rest = line.partition("==(")
        middle, _, far = rest.partition(")==>")
        if arrow:
            found = _line(header, near, middle, far)
            if found is not None:
                yield found
        else:
            header = _header(line) or header


def _header(line: str) -> _Header | None:
    """Read ``CA: node004 mlx5_0:`` or ``Switch: 0x... MF0;leaf:MQM8700/U1:``."""
    kind, colon, rest = line.partition(": ")
    if not colon or kind not in _TYPES:
        return None
    name = rest.strip().removesuffix(":").strip()
    first, _, others = name.partition(" ")
    guid = parse_guid(first) if first.startswith("0x") else None
    return _Header(_TYPES[kind], guid, (others if guid else name).strip() or None)


def _line(header: _Header, near: str, middle: str, far: str) -> _Line | None:
    end = _end(near, header)
    if end is None or end.guid is None or end.port is None:
        return None
    words, _, phys = middle.partition("/")
    rate = _rate(words.split())
    port = PortReport(
        device=end.guid,
        port=end.port,
        state=parse_state(words.split()[-1] if words.split() else ""),
        phys_state=parse_phys_state(phys),
        link_layer=LinkLayer.INFINIBAND,
        rate=rate,
        lid=end.lid,
        guid=end.guid,
    )
    other = _end(far, _Header("", None, None))
    if other is None or other.port is None:
        return _Line(port, None)
    width = None if rate.width is None else f"{rate.width}x"
    return _Line(port, FabricLink(end, other, width, rate.speed, _could_be(far)))


def _end(text: str, header: _Header) -> FabricPort | None:
    """Read ``0xGUID "name" LID PORT[EXT]``, where GUID and name may be missing."""
    before, bracket, after = text.partition("[")
    if not bracket:
        return None
    words = before.rpartition('"')[2].split() if '"' in before else before.split()
    first = before.split(None, 1)[:1]
    guid = parse_guid(first[0]) if first and first[0].startswith("0x") else header.guid
    numbers = [decimal(word) for word in words[-2:]]
    lid, port = numbers if len(numbers) == 2 else (None, None)  # noqa: PLR2004
    name = quoted(before, '"') or quoted(after, '"') or header.name
    return FabricPort(
        header.type or None,
        parse_lid(str(lid)) if lid is not None else None,
        port,
        guid,
        name.strip() if name else None,
    )


def _rate(words: list[str]) -> Rate:
    """Read width and lane speed of ``4X 53.125 Gbps Active``."""
    width = parse_lanes(words[0]) if words else None
    speed = None
    if "Gbps" in words[1:]:
        speed = by_signalling(number(words[words.index("Gbps", 1) - 1]))
    return rate_of(width, speed)


def _could_be(text: str) -> str | None:
    """Read ``(Could be 4X Could be 106.25 Gbps)`` behind the far end's name."""
    inside = text.rpartition("(")[2].rpartition(")")[0]
    parts = [part.strip() for part in inside.split(_COULD_BE)[1:]]
    return ", ".join(parts) or None
