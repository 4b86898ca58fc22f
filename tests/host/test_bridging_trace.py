"""Data centre bridging in traces: read, and written by a recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricmon.host.bridging_trace import from_trace
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Bridging
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import PriorityUse
from tests import traces
from tests.fake_host import FakeHost

LOSSLESS = PriorityUse(
    "eth0",
    pfc_enabled=(3,),
    ecn_enabled=(3,),
    dscp_to_priority=tuple(3 if dscp == 26 else 0 for dscp in range(64)),
)


class TestReading:
    def test_what_a_trace_says(self, tmp_path: Path) -> None:
        """PFC, ECN and the map of a device, from then on; null ends it."""
        host = traces.replay(
            tmp_path,
            {
                "t": 0,
                "dcb": {
                    "eth0": {
                        "pfc_enabled": [3],
                        "ecn": {"roce_np": {"3": 1, "4": 1}, "roce_rp": {"3": True}},
                        "dscp_to_priority": {"26": 3},
                    }
                },
            },
            {"t": 5, "dcb": {"eth0": None}},
        )
        assert host.bridging("eth0", 28) == LOSSLESS
        assert host.firmware_reads == 28
        assert host.bridging("eth1") is None
        host.advance(5)
        assert host.bridging("eth0") is None

    @pytest.mark.parametrize(
        ("ecn", "enabled"),
        [
            ({"enabled": [3, 4, 9, "x"]}, (3, 4)),
            ({"3": True, "4": 0}, (3,)),
            ({"on": {"enabled": [3]}, "off": {"a": 1}}, (3,)),
            ({"a": 1}, None),
            ({"a": {"b": {"c": 1}}}, None),
        ],
    )
    def test_spellings_of_ecn(
        self, ecn: dict[str, Any], enabled: tuple[int, ...] | None
    ) -> None:
        """Drivers name it in their own ways; what is not understood is not known."""
        use = from_trace("eth0", Bridging(ecn=ecn))
        assert use is not None
        assert use.ecn_enabled == enabled

    @pytest.mark.parametrize("known", [None, {}])
    def test_no_map_is_not_an_unread_one(self, known: dict[str, int] | None) -> None:
        """A port that looks at no DSCP differs from one that nobody could ask."""
        use = from_trace("eth0", Bridging(dscp_to_priority=known))
        assert use is not None
        assert use.dscp_to_priority == (None if known is None else ())

    def test_numbers_that_are_none(self) -> None:
        """A DSCP or priority that does not exist is passed over."""
        known = Bridging(dscp_to_priority={"64": 1, "x": 2, "7": 9, "8": 1})
        use = from_trace("eth0", known)
        assert use is not None
        assert use.dscp_to_priority == tuple(int(dscp == 8) for dscp in range(64))


def test_a_recording_answers_as_the_node_did(tmp_path: Path) -> None:
    """What was asked is in the trace, and what changed, and that it went away."""
    node = FakeHost()
    path = tmp_path / "node.trace.jsonl"
    recorder = RecordingHost(node, path, "node")
    answers: list[PriorityUse | None] = []
    by_tag = PriorityUse("eth0", pfc_enabled=(), dscp_to_priority=())
    for use in (LOSSLESS, LOSSLESS, PriorityUse("eth0", pfc_enabled=()), by_tag, None):
        node.bridges.pop("eth0", None)
        if use is not None:
            node.bridges["eth0"] = use
        answers.append(recorder.bridging("eth0"))
        node.now += 10
    recorder.close()
    assert recorder.unfaithful == 0
    replay = ReplayHost(TraceReader(path))
    for seconds, answer in zip((0, 10, 20, 30, 40), answers, strict=True):
        replay.advance(seconds)
        assert replay.bridging("eth0") == answer
    replay.close()
    assert path.read_text().count('"dcb"') == 6
