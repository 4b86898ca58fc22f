"""Missing counters are said to be out of sight only where they are."""

from __future__ import annotations

import pytest

from fabricmon.detect.network_sight import OUT_OF_SIGHT, UNCOUNTED, uncounted
from fabricmon.model import BootInfo
from fabricmon.parse.words import LinkLayer
from tests.views import make_view, port, port_view


@pytest.mark.parametrize(
    ("layer", "tells_links", "reason"),
    [
        (LinkLayer.ETHERNET, False, OUT_OF_SIGHT),
        (LinkLayer.ETHERNET, True, UNCOUNTED),
        (LinkLayer.INFINIBAND, False, UNCOUNTED),
    ],
)
def test_reason(layer: LinkLayer, *, tells_links: bool, reason: str) -> None:
    """Only RoCE has counters in network devices, only an agent outside misses them."""
    seen = port_view(port(link_layer=layer))
    boot = BootInfo(0.0, "b", 100.0, None, tells_links)
    assert uncounted(make_view(ports=(seen,), boot=boot)) == reason
