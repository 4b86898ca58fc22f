"""EFA: what its devices count of drops and of operations that failed."""

from __future__ import annotations

from fabricmon.catalogue import Directory
from fabricmon.detect.transport import Transport
from fabricmon.model import Action, Part, Severity
from tests.rails import Rails

FILES = dict.fromkeys(
    (
        "rx_drops", "rx_pkts", "tx_pkts", "retrans_pkts", "rdma_read_wr_err",
        "rdma_write_wr_err",
    ),
    Directory.HW_COUNTERS,
)  # fmt: skip
PACKETS = 2e6  # a second


def node_of() -> Rails:
    """Return a node of EFA devices that are busy."""
    node = Rails(Transport, files=FILES, driver="efa")
    node.all(rx_pkts=PACKETS, tx_pkts=PACKETS)
    node.run(60)
    return node


class TestDrops:
    """``receiver_stall``: packets that the device drops as they arrive."""

    def test_packets_dropped_on_receipt(self) -> None:
        """One in a hundred is told of here, where no pause and no refusal can be."""
        node = node_of()
        node.every(3, rx_drops=20_000)
        node.run(60)
        (finding,) = node.found("receiver_stall")
        assert finding.subject.device == "mlx5_3"
        assert finding.severity is Severity.WARNING
        assert finding.evidence[0].signal == "rx_drops"

    def test_nobody_is_blamed_for_drops_alone(self) -> None:
        """Too many senders and a slow host look alike: the device only sees it."""
        node = node_of()
        node.every(3, rx_drops=20_000)
        node.run(60)
        (finding,) = node.found("receiver_stall")
        assert (finding.part, finding.action) == (Part.OBSERVER, Action.NONE)
        assert "this host or its senders" in finding.summary

    def test_a_few_drops_are_nothing(self) -> None:
        """Below a hundred a second the transport sends again without a loss of time."""
        node = node_of()
        node.every(3, rx_drops=50)
        node.run(300)
        assert node.opened == []

    def test_it_is_not_blind(self) -> None:
        """A device that counts its drops shows a receiver that does not keep up."""
        node = node_of()
        blind = {each.kind for each in node.detectors[0].blind(node.step())}
        assert "receiver_stall" not in blind

    def test_drops_of_other_drivers_need_flow_control_beside(self) -> None:
        """Where pause is counted, the settings of flow control are judged instead."""
        node = Rails(Transport)
        node.every(3, rx_discards_phy=20_000)
        node.run(60)
        assert node.opened == []


class TestFailures:
    """``transport_retries``: reads and writes that ended in an error."""

    def test_operations_that_go_on_to_fail(self) -> None:
        """Five hundred a second for minutes: a victim, and a warning as it lasts."""
        node = node_of()
        node.every(3, rdma_read_wr_err=500)
        node.run(120)
        assert node.open_of("transport_retries").finding.severity is Severity.INFO
        node.run(180)
        (finding,) = node.found("transport_retries")
        assert (finding.part, finding.action) == (Part.VICTIM, Action.NONE)
        assert finding.severity is Severity.WARNING
        assert "reads or writes failed" in finding.summary

    def test_the_end_of_a_job(self) -> None:
        """Ten thousand writes thrown away within seconds on every device (N19)."""
        node = node_of()
        for rail in range(8):
            node.grow(node.rail(rail), rdma_write_wr_err=10_000)
        node.run(180)
        assert node.opened == []
