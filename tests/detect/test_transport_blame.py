"""What a fault of this port explains, and what it does not: who is blamed for what."""

from __future__ import annotations

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.transport import Transport
from fabricmon.model import Action, Finding, Part, Severity
from tests.node import RAILS
from tests.rails import MLX5, Rails

FILES = {**MLX5, "req_rnr_retries_exceeded": Directory.HW_COUNTERS}
STALL_SECONDS = 6  # of PCIe stall: a fault of this port, and no cause of refusals


def stalled(*rails: int) -> Rails:
    """Return a node where the host held up these rails for a while."""
    node = Rails(Transport, files=FILES)
    node.run(60)
    for rail in rails or (2,):
        node.grow(node.rail(rail), outbound_pci_stalled_wr_events=STALL_SECONDS)
    node.run(30)
    return node


def is_innocent(finding: Finding) -> bool:
    """Tell whether a port is told of as a victim, with nothing to do there."""
    return (finding.part, finding.action) == (Part.VICTIM, Action.NONE)


def shown(finding: Finding, signal: str) -> object:
    """Return the value of an item of evidence."""
    return next(item.value for item in finding.evidence if item.signal == signal)


class TestRefusals:
    """A peer that posts no receives is the cause, whatever this port had."""

    def test_a_stall_here_is_no_cause_of_refusals(self) -> None:
        """Refusals of a peer stay information, and say which sign is unrelated."""
        node = stalled()
        node.every(2, rnr_nak_retry_err=5000)
        node.run(300)
        (finding,) = node.found("transport_retries")
        assert is_innocent(finding)
        assert finding.severity is Severity.INFO
        assert "not this port" in finding.summary
        told = shown(finding, "local_evidence")
        assert told == "unrelated: outbound_pci_stalled_wr_events"

    def test_a_flap_of_before_is_no_cause_of_refusals(self) -> None:
        """A link that is back for a quarter of an hour lets its peer post receives."""
        node = Rails(Transport)
        node.grow(node.rail(2), link_downed=1)
        node.run(840)
        node.every(2, rnr_nak_retry_err=5000)
        node.run(30)
        (finding,) = node.found("transport_retries")
        assert is_innocent(finding)

    def test_rails_refused_alike_are_one_story(self) -> None:
        """The rail with a stall is not singled out of eight that a peer refuses."""
        node = stalled()
        node.all(rnr_nak_retry_err=5000)
        node.run(60)
        (finding,) = node.found("transport_retries")
        assert is_innocent(finding)
        assert "and 7 more" in finding.summary

    def test_a_peer_that_was_never_ready(self) -> None:
        """Queue pairs that died of refusals are a warning, and no fault of a stall."""
        node = stalled()
        node.grow(node.rail(2), req_rnr_retries_exceeded=1)
        node.run(20)
        (finding,) = node.found("retries_exhausted")
        assert is_innocent(finding)
        assert finding.severity is Severity.WARNING
        assert "peer never ready" in finding.summary

    def test_losses_beside_refusals_are_judged_by_a_fault_of_this_port(self) -> None:
        """A damaged link explains the packets that are lost, and stays the culprit."""
        node = Rails(Transport)
        node.grow(node.rail(2), symbol_error=500)
        node.run(60)
        node.every(2, rnr_nak_retry_err=5000, packet_seq_err=30)
        node.run(60)
        (finding,) = node.found("transport_retries")
        assert (finding.part, finding.action) == (Part.CULPRIT, Action.INSPECT)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("port_xmit_constraint_errors", "config_mismatch"),
        ("out_of_buffer", "receiver_stall"),
    ],
)
def test_no_device_is_inspected_for_settings_and_processes(
    file: str, kind: str
) -> None:
    """A wrong partition and a late process are here, and no stall explains them."""
    node = stalled()
    node.every(2, **{file: 2000})
    node.run(60)
    (finding,) = node.found(kind)
    assert (finding.part, finding.action) == (Part.CULPRIT, Action.NONE)


class TestDamageOfBefore:
    """Only damage of this link explains damage that arrives."""

    @pytest.mark.parametrize("sign", ["outbound_pci_stalled_wr_events", "link_downed"])
    def test_an_unrelated_sign_does_not_hide_it(self, sign: str) -> None:
        """A stall or one flap of this port marks no packets as damaged before it."""
        node = Rails(Transport, infos=RAILS)
        node.every(2, port_rcv_remote_physical_errors=5)
        node.run(620)
        node.grow(node.rail(2), **{sign: STALL_SECONDS})
        node.run(120)
        (finding,) = node.found("fabric_suspect")
        assert (finding.part, finding.action) == (Part.OBSERVER, Action.NONE)
        assert finding.subject.device is None
        assert shown(finding, "local_evidence") == f"unrelated: {sign}"
