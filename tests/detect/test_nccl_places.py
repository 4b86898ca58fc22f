"""Which port, peer and cause an error in a log is told with: none too many."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.model import LogSeverity, Part, Severity
from tests.detect.nccl_node import PEER, Logged, event, started
from tests.node import pid


def test_what_a_gpu_began_is_about_no_port() -> None:
    """Completions that fail behind it follow from it."""
    node = Logged()
    gpu = event("cuda_failure", status=700, device=None, peer=None, rule="X6")
    node.hear(*started(0), gpu, event(device="mlx5_0"))
    node.grow(pid(5), local_ack_timeout_err=16)
    node.run(30)
    finding = node.error.finding
    assert (finding.subject.device, finding.subject.peer) == (None, None)
    assert finding.severity is Severity.WARNING
    assert "GPU" in finding.summary


def test_many_processes_that_name_no_device() -> None:
    """The NIC of the first one is not that of the others."""
    node = Logged()
    for n in range(8):
        node.hear(*started(n))
    node.run(100)
    node.hear(*[event(device=None, pid=100 + n, rank=n) for n in range(8)])
    assert node.error.finding.subject.device is None
    assert "8 lines of 8 processes" in node.error.finding.summary


def test_no_device_but_one_port_fell() -> None:
    """Its own fault counts for more than retries elsewhere."""
    node = Logged()
    node.down(3)
    node.grow(pid(5), local_ack_timeout_err=16)
    node.hear(*[event(device=None, pid=100 + n, rank=n) for n in range(8)])
    assert node.error.finding.subject.device == "mlx5_3"
    assert node.part is Part.CULPRIT


def test_a_watchdog_long_after_the_port_fell() -> None:
    """It speaks ten minutes later; the port is still down."""
    node = Logged()
    node.down(3)
    node.run(900)
    late = "pytorch_watchdog_timeout"
    told = {"status": "ALLREDUCE seq 7", "device": None, "peer": None, "rule": "W1"}
    node.hear(*[event(late, pid=100 + n, rank=n, **told) for n in range(8)])
    assert node.error.finding.subject.device == "mlx5_3"
    assert "W1 pytorch_watchdog_timeout" in node.signals("port_down")


def test_sockets_are_no_matter_of_a_port() -> None:
    """A start-up over TCP that fails beside a port that retries or fell."""
    node = Logged()
    node.down(3)
    node.hear(event("socket_connect_failed", status=111, device=None, rule="S1"))
    assert node.error.finding.subject.device is None


def test_a_start_on_a_port_that_fell_is_no_set_up() -> None:
    """What the port shows decides, and the summary says so first."""
    node = Logged()
    node.hear(*started(3))
    node.down(3)
    node.hear(event(pid=103))
    finding = node.error.finding
    assert finding.severity is Severity.CRITICAL
    assert "at the start: link;" in finding.summary
    well = Logged()
    well.hear(*started(3))
    well.hear(event(pid=103))
    assert "at the start: configuration;" in well.error.finding.summary


def test_a_peer_that_crashed_is_one_item_of_evidence() -> None:
    """Eight ports say the same."""
    node = Logged()
    node.hear(*[event(device=f"mlx5_{n}", pid=100 + n) for n in range(8)])
    assert node.signals().count("C1 ib_completion_error") == 1
    assert "8 lines of 8 processes" in node.error.finding.summary


def test_a_device_by_its_number() -> None:
    """The completion before it names what is number 0 of a merged NIC."""
    node = Logged()
    failed = event(
        "resiliency_device_failed", device="0", status="x", peer=None, rule="R1"
    )
    node.hear(event(), replace(failed, line_number=2))
    assert node.error.finding.subject.device == "mlx5_3"
    assert "R1 resiliency_device_failed" in node.signals()


def test_a_protection_fault_beside_a_port_that_fell() -> None:
    """It is the host's memory, whatever the port shows: neither explains the other."""
    node = Logged()
    node.down(3)
    node.hear(event(status=4))
    node.run(15)
    assert node.part is Part.OBSERVER
    assert "no port is at fault" in node.error.finding.summary
    assert "link_downed" not in node.signals()
    assert "C1 ib_completion_error" not in node.signals("port_down")


def test_a_call_that_names_no_device_is_about_none() -> None:
    """The NIC of the rank's channels need not be the one that ran out of room."""
    node = Logged()
    node.hear(*started(3))
    call = event("ib_verbs_failed", status="ibv_reg_mr", device=None, peer=None)
    node.hear(replace(call, pid=103, rank=3, rule="V2"))
    assert node.error.finding.subject.device is None


def test_a_row_of_the_operator_says_itself_how_bad_it_is() -> None:
    """Nobody else knows what its line means."""
    node = Logged()
    own = {"rule": "site_1", "library": None, "device": None, "status": None}
    node.hear(event("site_event", **own))
    assert node.error.finding.severity is Severity.CRITICAL
    mild = Logged()
    mild.hear(event("site_event", severity=LogSeverity.WARNING, **own))
    assert mild.error.finding.severity is Severity.WARNING


def test_several_peers_behind_the_one_that_was_told() -> None:
    """The subject stays as it was told; the summary does not hide the others."""
    node = Logged()
    node.hear(event())
    node.hear(*[event(peer=f"10.20.0.{n}", pid=100 + n) for n in range(20, 24)])
    assert node.error.finding.subject.peer == PEER
    assert f"to {PEER} and others:" in node.error.finding.summary
