"""The status page as a tree, for tests that look at what it says and where."""

import re
from xml.etree import ElementTree as ET

from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    PortSnapshot,
    Severity,
    Snapshot,
    Subject,
)
from fabricmon.sinks.page_document import fragment
from tests.sinks import nodes

_ENTITIES = {"middot": 183, "darr": 8595, "uarr": 8593}
_TYPE = "".join(f'<!ENTITY {name} "&#{code};">' for name, code in _ENTITIES.items())


def tree(snapshot: Snapshot, silent_seconds: float = 0) -> ET.Element:
    """Return the page's content; fails if a tag or attribute is not well formed."""
    html = fragment(snapshot, silent_seconds).replace("<wbr>", "")  # has no end tag
    return ET.fromstring(f"<!DOCTYPE div [{_TYPE}]>{html}")  # noqa: S314 - our own


def words(element: ET.Element | None) -> str:
    """Return all text of an element, with single spaces."""
    assert element is not None
    return re.sub(r"\s+", " ", " ".join(element.itertext())).strip()


def section(snapshot: Snapshot, name: str) -> ET.Element:
    """Return one section of the page."""
    found = tree(snapshot).find(f".//section[@id='{name}']")
    assert found is not None
    return found


def row(snapshot: Snapshot, port: str = "mlx5_0/1") -> ET.Element:
    """Return the row of one port."""
    found = tree(snapshot).find(f".//tr[@data-port='{port}']")
    assert found is not None
    return found


def cell(port: PortSnapshot, name: str, **node: object) -> str:
    """Return what one cell says of a port that is alone on its node."""
    return words(
        row(nodes.node(port, **node), str(port.info.id)).find(f"./td[@class='{name}']")
    )


def incident(
    kind: str = "port_down",
    severity: Severity = Severity.CRITICAL,
    device: str | None = "mlx5_0",
    action: Action = Action.NONE,
    evidence: tuple[Evidence, ...] = (),
    **changes: object,
) -> Incident:
    """Return an open incident of which the test chooses what matters."""
    finding = Finding(
        kind=kind,
        subject=Subject(device=device, port=None if device is None else 1),
        onset=nodes.WALL - 300,
        evidence=evidence,
        summary=f"{kind} of {device}",
        severity=severity,
        action=action,
    )
    return nodes.incident(
        kind, **{"id": f"{kind}-{device}", "finding": finding, **changes}
    )
