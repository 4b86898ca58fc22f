"""The object that check and parse print."""

import json

from fabricmon.cli.document import check_document, dump, render
from fabricmon.detect.sample import Judgement
from fabricmon.model import Verdict
from fabricmon.parse.report import (
    CounterValue,
    PortReport,
    Report,
    ToolFailure,
    Unavailable,
)
from fabricmon.parse.words import PhysState, PortState, Rate

DOWN = PortReport(
    "mlx5_1", 1, PortState.DOWN, PhysState.POLLING, rate=Rate(40, 4, "QDR")
)
UP = PortReport(
    "mlx5_0",
    1,
    PortState.ACTIVE,
    PhysState.LINK_UP,
    rate=Rate(2.5, 1, "SDR"),
    counters=(CounterValue("port_rcv_data", 2**64 - 1),),
    unavailable=(Unavailable("link_downed", "EINVAL"),),
)
PORT_KEYS = {
    *("device", "port", "state", "phys_state", "link_layer", "rate_gbps", "width"),
    *("speed", "lid", "sm_lid", "guid", "node_guid", "fw", "hca_type", "netdev"),
    *("pci_address", "driver", "rail", "role", "verdict", "reasons", "counters"),
    *("hw_counters", "saturated", "unavailable"),
}


class TestContent:
    """Keys and values."""

    def test_the_top_has_its_keys(self) -> None:
        """A reader finds them in every document."""
        content = check_document(Report("ibstat", (UP,)), node="n1").content
        keys = {"schema", "node", "verdict", "ports", "findings", "errors"}
        assert content.keys() == keys

    def test_a_port_has_all_keys(self) -> None:
        """What the input does not say is null."""
        (port,) = check_document(Report("ibstat", (PortReport("a", 1),))).content[
            "ports"
        ]
        assert port.keys() == PORT_KEYS
        assert port["lid"] is None

    def test_whole_rates_have_no_fraction(self) -> None:
        """40 is 40, and 2.5 stays 2.5."""
        ports = check_document(Report("ibstat", (UP, DOWN))).content["ports"]
        assert [json.dumps(port["rate_gbps"]) for port in ports] == ["2.5", "40"]

    def test_counters_are_exact(self) -> None:
        """The largest one survives the way through JSON."""
        text = dump(check_document(Report("ibstat", (UP,))))
        assert b"18446744073709551615" in text

    def test_what_is_unavailable_has_its_reason(self) -> None:
        """Beside the counters, not among them."""
        (port,) = check_document(Report("ibstat", (UP,))).content["ports"]
        assert port["unavailable"] == {"link_downed": "EINVAL"}

    def test_a_failure_names_file_or_tool(self) -> None:
        """The file where no tool stood between."""
        failures = (
            ToolFailure("ibstat", "x", "a"),
            ToolFailure(None, "y", "a", file="rate", errno="EINVAL"),
        )
        errors = check_document(Report("ibstat", errors=failures)).content["errors"]
        assert [(item.get("tool"), item.get("file")) for item in errors] == [
            ("ibstat", None),
            (None, "rate"),
        ]

    def test_another_judge_may_decide(self) -> None:
        """A caller that knows more than the report does."""

        def judge(_: PortReport) -> Judgement:
            return Judgement(Verdict.DEGRADED, ("below the expected rate",))

        found = check_document(Report("ibstat", (UP,)), judge=judge)
        assert found.verdict is Verdict.DEGRADED
        assert found.exit_status == 1


class TestRender:
    """The same for a human."""

    def test_bad_news_comes_first(self) -> None:
        """The port that is down stands above the healthy one."""
        text = render(check_document(Report("ibstat", (UP, DOWN))))
        assert text.index("mlx5_1/1") < text.index("mlx5_0/1")

    def test_the_rate_of_a_port_that_is_down_is_not_shown(self) -> None:
        """It is a default of the driver."""
        assert "40 Gb/s" not in render(check_document(Report("ibstat", (DOWN,))))

    def test_what_was_not_read_is_said(self) -> None:
        """With the device, where it is known."""
        report = Report(
            "ibstat", (UP,), (ToolFailure("ibstat", "stat failed", "mlx5_9"),)
        )
        assert "not read: mlx5_9: stat failed" in render(check_document(report))
