"""The text of ``rdma link`` (iproute2): new and old form, and JSON."""

from __future__ import annotations

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.rdma_json import JsonLink, json_links
from fabricmon.parse.report import PortReport, Report
from fabricmon.parse.sysfs import (
    parse_lid,
    parse_phys_state,
    parse_sm_lid,
    parse_state,
)
from fabricmon.parse.text import decimal, lines
from fabricmon.parse.words import LinkLayer
from fabricmon.value import Value

TOOL = "rdma_link"
_KEYS = frozenset({"state", "physical_state", "lid", "sm_lid", "netdev"})


class LinkLine(Value, frozen=True):
    """One line: whose it is, and the words after that.

    ``indexed`` lines are those of old versions: ``2/1: mlx5_0/1: state ...``.
    """

    device: str
    port: int
    words: tuple[str, ...]
    indexed: bool


def rdma_link_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return every link that was printed."""
    found = [
        *filter(None, map(split_link, lines(stdout))),
        *map(_from_json, json_links(stdout)),
    ]
    ports = {(link.device, link.port): _port(link) for link in found}
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not ports and not errors:
        errors = (nothing_found(TOOL, "link"),)
    return Report(TOOL, tuple(ports.values()), errors)


def _from_json(link: JsonLink) -> LinkLine:
    """Return the words that the text form would have."""
    words = (word for pair in link.fields for word in map(str, pair))
    return LinkLine(link.device, link.port, tuple(words), indexed=False)


def split_link(line: str) -> LinkLine | None:
    """Find device and port at the start of a line; None where there is no link."""
    words = line.split()
    if words[:1] == ["link"]:
        words = words[1:]
    indexed = _identity(words, 1) is not None and words[0].endswith(":")
    if indexed:
        words = words[1:]
    identity = _identity(words, 0)
    if identity is None:
        return None
    return LinkLine(*identity, tuple(words[1:]), indexed)


def _identity(words: list[str], position: int) -> tuple[str, int] | None:
    if len(words) <= position:
        return None
    device, slash, port = words[position].removesuffix(":").rpartition("/")
    number = decimal(port)
    return (device, number) if slash and device and number is not None else None


def _port(link: LinkLine) -> PortReport:
    pairs = zip(link.words, link.words[1:], strict=False)
    fields = {key: value for key, value in pairs if key in _KEYS}
    return PortReport(
        device=link.device,
        port=link.port,
        state=parse_state(fields.get("state", "")),
        phys_state=parse_phys_state(fields.get("physical_state", "")),
        link_layer=_layer(fields, indexed=link.indexed),
        lid=parse_lid(fields.get("lid", "")),
        sm_lid=parse_sm_lid(fields.get("sm_lid", "")),
        netdev=fields.get("netdev"),
    )


def _layer(fields: dict[str, str], *, indexed: bool) -> LinkLayer | None:
    """Conclude the link layer, which is not printed.

    Only InfiniBand links have LIDs. A network device without them means Ethernet,
    but not in the old form, which came with kernels that did not report LIDs.
    """
    if "lid" in fields:
        return LinkLayer.INFINIBAND
    return LinkLayer.ETHERNET if "netdev" in fields and not indexed else None
