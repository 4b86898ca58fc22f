"""Whatever a node does, the link detectors survive it and keep their word."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.detect.flaps import Flaps
from fabricmon.detect.inventory_check import DevicePresence
from fabricmon.detect.ipoib import IpoibState
from fabricmon.detect.link_state import LinkState
from fabricmon.detect.rate import LinkRate
from fabricmon.model import Action, LinkEvent, MissingDevice, Severity
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate
from tests.node import Node
from tests.views import NDR, boot, port

PORTS = 3
INFOS = tuple(
    port(
        f"mlx5_{rail}",
        link_layer=LinkLayer.ETHERNET if rail == 0 else LinkLayer.INFINIBAND,
        netdev=f"net{rail}",
        netdevs=(f"net{rail}",),
        pci_address=f"0000:0{rail}:00.0",
    )
    for rail in range(PORTS)
)
RAIL = st.integers(0, PORTS - 1)
DEEDS = st.one_of(
    st.tuples(st.just("link"), RAIL, st.none() | st.sampled_from(PortState)),
    st.tuples(st.just("phys"), RAIL, st.sampled_from(PhysState)),
    st.tuples(
        st.just("rate"), RAIL, st.sampled_from([NDR, Rate(10, 4, "SDR"), Rate()])
    ),
    st.tuples(st.just("count"), RAIL, st.integers(0, 300)),
    st.tuples(st.just("reset"), RAIL, st.none() | st.integers(0, 255)),
    st.tuples(st.just("event"), RAIL, st.sampled_from([True, False, None])),
    st.tuples(st.just("interface"), RAIL, st.sampled_from(["up", "down", None])),
    st.tuples(st.just("missing"), RAIL, st.integers(1, 30)),
    st.tuples(st.sampled_from(["back", "boot", "restart"]), RAIL, st.none()),
    st.tuples(st.just("pass"), RAIL, st.sampled_from([1.0, 5.0, 60.0, 4000.0])),
)


def do(node: Node, deed: str, rail: int, what: object) -> None:
    """Let one thing happen to the node."""
    where = node.rail(rail)
    match deed, what:
        case "missing", int():
            gone = MissingDevice(where.device, node.now, what, (INFOS[rail],))
            node.missing = (gone,)
        case "back", _:
            node.missing = ()
        case "boot", _:
            node.boot = replace(boot(node.now, None), boot_id=f"boot-{node.now}")
        case "restart", _:
            node.restart()
        case "pass", float():
            node.step_all(what)
        case _:
            do_to_port(node, deed, rail, what)


def do_to_port(node: Node, deed: str, rail: int, what: object) -> None:
    """Let one thing happen to a port of the node."""
    where, each = node.rail(rail), node.of(node.rail(rail))
    match deed, what:
        case "link", PortState() | None:
            node.link(what, where=where)
        case "phys", PhysState() if each.status:
            each.status = replace(each.status, phys_state=what)
        case "rate", Rate() if each.status:
            each.status = replace(each.status, rate=what)
        case "count", int():
            node.grow(where, link_downed=what % 7, carrier_down_count=what)
        case "reset", int() | None:
            node.put(where, link_downed=what)
        case "event", bool() | None:
            node.events += (LinkEvent(node.now, f"net{rail}", what, gone=what is None),)
        case "interface", str() | None:
            node.interface(rail, what, carrier=what == "up" if what else None)


@settings(max_examples=60, deadline=None)
@given(st.lists(DEEDS, max_size=60))
def test_any_course_of_events(course: list[tuple[str, int, object]]) -> None:
    """Nothing raises; what is told is short, proven, and asks for nothing in vain."""
    detectors = (DevicePresence, LinkState, Flaps, LinkRate, IpoibState)
    node = Node(*detectors, infos=INFOS)
    for deed, rail, what in course:
        do(node, deed, rail, what)
        node.step_all(1.0)
        for finding in node.findings:
            assert finding.evidence
            assert len(finding.summary) <= 120
            assert finding.severity is not Severity.INFO or (
                finding.action is Action.NONE
            )
        assert all(node.past(each).downtime_seconds >= 0 for each in range(PORTS))
    ids = [i.id for i in node.incidents.open()]
    assert len(ids) == len(set(ids))
