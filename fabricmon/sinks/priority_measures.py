"""What is exported of the priorities of RoCE ports: settings as text, to be compared.

A label is empty, which is none, where a setting cannot be read. Texts are short and of
few kinds, whatever a switch or driver says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from zlib import crc32

from fabricmon.model import NO_CLASS, PortInfo, Role
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.measures import Sample
from fabricmon.sinks.port_measures import Hardware

MOST_ENTRIES = 8
"""Of a DSCP map that are written out; a longer one is told by a checksum."""

DSCPS_OF_A_PRIORITY = 8
"""Where nobody sets a map, the priority is the upper three bits of the DSCP."""

NONE = "none"
PLAIN = "default"
BY_TAG = "pcp"
"""The port goes by the tag of a frame, not by its DSCP."""


def priorities(hardware: Hardware) -> Iterator[Sample]:
    """Settings of the compute RoCE ports, of those where any can be read."""
    for port in hardware.ports:
        use = port.priorities
        if use is None or not _is_compared(port.info):
            continue
        texts = (
            _listed(use.pfc_enabled),
            _listed(use.ecn_enabled),
            dscp_text(use.dscp_to_priority),
            NONE if use.traffic_class == NO_CLASS else _number(use.traffic_class),
            _number(use.default_tos),
        )
        if any(texts):
            yield Sample((port.info.id.device, port.info.id.port, *texts), 1)


def dscp_text(table: tuple[int, ...] | None) -> str:
    """Return a DSCP map by what it has beside the usual one, such as ``26:4,48:6``.

    Where most of it is priority 0, it is told by the rest: ``*:0,26:3``.
    """
    if table is None:
        return ""
    if not table:
        return BY_TAG
    own = _entries(table, lambda dscp: dscp // DSCPS_OF_A_PRIORITY)
    if len(own) <= MOST_ENTRIES:
        return ",".join(own) or PLAIN
    beside = _entries(table, lambda _: 0)
    if len(beside) <= MOST_ENTRIES:
        return ",".join(("*:0", *beside))
    return f"crc32:{crc32(bytes(table)):08x}"


def _entries(table: tuple[int, ...], usual: Callable[[int], int]) -> list[str]:
    return [
        f"{dscp}:{priority}"
        for dscp, priority in enumerate(table)
        if priority != usual(dscp)
    ]


def _is_compared(info: PortInfo) -> bool:
    return (
        info.role is Role.COMPUTE
        and info.link_layer is LinkLayer.ETHERNET
        and not info.is_vf
    )


def _listed(values: tuple[int, ...] | None) -> str:
    if values is None:
        return ""
    return ",".join(str(value) for value in sorted(set(values))) or NONE


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
