"""Names, reasons and summaries that try to be more than text."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.model import (
    Absence,
    Blindness,
    ErrnoCount,
    Evidence,
    Finding,
    Health,
    MaintenanceWindow,
    PortId,
    ReadFailure,
    Severity,
    Snapshot,
    Subject,
    Verdict,
)
from fabricmon.parse.words import PortState
from fabricmon.sinks.page_document import document
from tests.sinks import nodes, pages

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover=alert(1) x="',
    "' onfocus='alert(1)",
    "</style></script></title><svg/onload=alert(1)>",
    "&lt;script&gt;&#60;b&#62;",
    "javascript:alert(1)",
    "]]><!--",
    "\u202e\u2066gnp.exe\u200b",
    "\x00\x1b[31m\r\n\udc80\ud800",
    "x" * 10_000,
    "e\u0301" * 3000,
)
STRUCTURE = "mlx5_0"


def node_of(said: str) -> Snapshot:
    """Return a node on which everything that can be a text is this one."""
    port = nodes.port(said)
    identity = PortId(said, 1)
    info = replace(
        port.info,
        netdev=said, pci_address=said, driver=said, pf=said, guid=said, leaf=said,
        hca_type=said, board_id=said, firmware=said, rail=said,
    )  # fmt: skip
    status = replace(
        nodes.port().status,  # type: ignore[type-var]
        port=identity, state=PortState.ACTIVE, absent=(Absence("rate", said),),
    )  # fmt: skip
    finding = Finding(
        kind=said,
        subject=Subject(
            device=said, port=1, rail=said, netdev=said, peer=said, leaf=said,
            job=said, comm=said,
        ),
        onset=nodes.WALL,
        evidence=(Evidence(said, said, said, said, said, 60.0),),
        summary=said,
        severity=Severity.CRITICAL,
    )  # fmt: skip
    incident = replace(
        nodes.incident(), id=said, finding=finding, node=said, runbook=said
    )
    return nodes.node(
        replace(
            port,
            info=info, status=status, verdict=Verdict.UNKNOWN, reasons=(said,),
            saturated=(said,),
        ),
        node=said,
        incidents=(incident,),
        blind=(Blindness(said, said),),
        class_error=f"E{said}",
        failures=(ReadFailure(said, 1, said, said, said),),
        maintenance=(MaintenanceWindow(nodes.WALL + 60, (said,), f"R{said}"),),
        maintenance_error=said,
        unsaved=ReadFailure(None, None, said, said, said),
        note=f"N{said}",
        config_hash=said,
        health=(
            Health(
                said, said, False, nodes.NOW, 0.01, 5.0, None,
                (ErrnoCount(said, 1),), f"Q{said}",
            ),
            Health(said, said, True, nodes.NOW, 0.01, 5.0, None),
        ),
    )  # fmt: skip


def structure(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Return every element of the page with the names of its attributes."""
    return [(each.tag, *each.attrib) for each in pages.tree(snapshot).iter()]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: ascii(attack[:20]))
def test_text_stays_text(attack: str) -> None:
    """A hostile text makes no element and no attribute, wherever it stands."""
    assert structure(node_of(attack)) == structure(node_of(STRUCTURE))


@given(st.text(st.characters(), min_size=1))
def test_any_text_stays_text(said: str) -> None:
    """The same of every text that there can be."""
    assert structure(node_of(said)) == structure(node_of(STRUCTURE))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: ascii(attack[:20]))
def test_document_around_it(attack: str) -> None:
    """The title of the page is no way in either, and nothing grows without bound."""
    page = document(node_of(attack))
    assert page.count("<script>") == page.count("</script>") == 1
    assert page.count("<title>") == page.count("</title>") == 1
    assert "onerror=" not in page.replace("&lt;img src=x onerror=", "")
    assert len(page.encode()) < 200_000
