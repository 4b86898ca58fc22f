"""Drops that flow control should have prevented, on a bond."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.detect.congestion import Congestion
from fabricmon.model import HostPath, JobView, PriorityUse
from tests.rails import ROCE, Rails

BONDS = tuple(
    replace(info, netdev=f"bond{n}", netdevs=(f"bond{n}", f"eth{n}"))
    for n, info in enumerate(ROCE)
)
DROPS = {"rx_discards_phy": 500.0, "out_of_sequence": 500.0}


def found(pfc: tuple[int, ...], **rates: float) -> list[dict[str, object]]:
    """Return the evidence of each mismatch where members of bonds have this PFC."""
    node = Rails(Congestion, infos=BONDS)
    uses = tuple(PriorityUse(f"eth{n}", pfc) for n in range(len(BONDS)))
    node.job = JobView(host_path=HostPath(0.0, priorities=uses))
    node.every(2, **DROPS, **rates)
    node.run(120)
    return [
        {item.signal: item.value for item in finding.evidence}
        for finding in node.found("config_mismatch")
    ]


def test_its_members_say_which_priority_is_lossless() -> None:
    """Data of priority 0 is lossless there: the settings are right."""
    assert found((0,), rx_prio0_bytes=1e9) == []


def test_its_members_say_that_none_is() -> None:
    """Whatever priority the data has, it can be lost; their PFC is the evidence."""
    (evidence,) = found((), rx_prio3_bytes=1e9)
    assert evidence["pfc_enabled"] == "none"
