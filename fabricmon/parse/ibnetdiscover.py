"""The text of ``ibnetdiscover --ports``: one line for each end of each cable."""

from __future__ import annotations

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import FabricLink, FabricPort, OpenPort, Report
from fabricmon.parse.sysfs import parse_guid
from fabricmon.parse.text import decimal, lines

TOOL = "ibnetdiscover"
UNKNOWN_SPEED = "???"
_TYPES = frozenset({"CA", "SW", "RT"})
_END = 4  # words that describe one end: type, LID, port, GUID


def ibnetdiscover_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the cables, each once although both ends list it, and the open ports."""
    links: dict[frozenset[tuple[str | None, int | None]], FabricLink] = {}
    unconnected: list[OpenPort] = []
    for line in lines(stdout):
        found = _line(line)
        if isinstance(found, FabricLink):
            ends = frozenset((end.guid, end.port) for end in (found.a, found.b))
            links.setdefault(ends, found)
        elif found is not None:
            unconnected.append(found)
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not links and not unconnected and not errors:
        errors = (nothing_found(TOOL, "port"),)
    return Report(
        TOOL,
        errors=errors,
        tells_state=False,
        links=tuple(links.values()),
        unconnected=tuple(unconnected),
    )


def _line(line: str) -> FabricLink | OpenPort | None:
    words = line.split(None, _END + 2)
    end = _end(words)
    if end is None or len(words) <= _END + 2:
        return None
    width, speed, rest = words[_END:]
    if not rest.startswith("- "):
        port = _named(end, _plain(rest))
        return OpenPort(port, None if speed == UNKNOWN_SPEED else speed)
    far = rest[2:].split(None, _END)
    other = _end(far)
    if other is None:
        return None
    near_name, far_name = _names(far[_END] if len(far) > _END else "")
    return FabricLink(
        _named(end, near_name),
        _named(other, far_name),
        width,
        None if speed == UNKNOWN_SPEED else speed,
    )


def _end(words: list[str]) -> FabricPort | None:
    if len(words) < _END or words[0] not in _TYPES:
        return None
    guid = parse_guid(words[3])
    return FabricPort(words[0], decimal(words[1]), decimal(words[2]), guid, None)


def _named(end: FabricPort, name: str | None) -> FabricPort:
    return FabricPort(end.type, end.lid, end.port, end.guid, name)


def _names(text: str) -> tuple[str | None, str | None]:
    """Read ``( 'node01 HCA-1' - 'ibsw-l1' )``; names may hold blanks and dashes."""
    inside = text.strip().removeprefix("(").removesuffix(")").strip()
    separator = "' - '" if "' - '" in inside else " - "
    near, _, far = inside.partition(separator)
    return _plain(near), _plain(far)


def _plain(name: str) -> str | None:
    """Drop quotes, which old versions do not print, and the blanks around."""
    return name.strip().removeprefix("'").removesuffix("'").strip() or None
