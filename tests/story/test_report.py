"""The report for people on the logs of a dead job."""

import pytest

from fabricmon.stories.report import MAX_TIMELINE, Reading, report
from tests.story.told import DOWN, UP, retried, setting, started, told

DAY = "2026-04-14"


def reported(text: str | dict[str, str], reading: Reading | None = None) -> str:
    """Return the report on a log, or on several by name."""
    story = told(text)
    events = story.finish()
    return "\n".join(report(story, events, reading or Reading(1), "docs/runbooks/"))


def test_who_failed_first_where_to_whom_and_since_when() -> None:
    """What an operator asks, in one place."""
    text = (
        started("n1", 7, 3, f"{DAY} 10:00:00")
        + setting("n1", 7, "NCCL_IB_TIMEOUT", "18")
        + retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 13:00:00")
        + retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 13:00:01", status=5)
    )
    told_text = reported(text)
    first = told_text.index("Who failed first")
    for fact in (
        "n1 rank 3: ib_completion_error 12",
        "mlx5_3",
        "10.0.0.2",
        f"{DAY} 13:00:00.000 UTC",
        "link or peer",
        "after traffic",
        "1 report follows from it",
        "about 7.52 s",
        "docs/runbooks/nccl_error.md",
    ):
        assert fact in told_text[first:], fact


def test_a_failure_at_the_start_is_called_configuration_not_cable() -> None:
    """The difference decides whether somebody walks into the data hall."""
    text = started("n1", 7, 3, f"{DAY} 10:00:00") + retried(
        "n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:20"
    )
    assert "configuration: these two have never reached each other" in reported(text)


def test_elastic_fabric_adapters_have_no_gid_index() -> None:
    """What helps there is another thing than on verbs."""
    request = (
        "n1:7:8 [0] ofi_process_cq:1039 NCCL WARN NET/OFI Request 0x7f2a completed with "
        "error. RC: 20. Error: unknown error. Completed length: 0, Request: { dev: 1 }\n"
    )
    assert "security group" in reported(request)
    assert "NCCL_IB_GID_INDEX" not in reported(request)
    full = (
        "libfabric:7:1732088551::efa:cq:efa_cq_open():92<warn> Unable to create "
        "extended CQ: Cannot allocate memory\n"
    )
    assert "ulimit -l" in reported(full)


def test_a_scanner_is_no_peer() -> None:
    """Nobody need look at a node that is not of the job."""
    text = (
        "n1:7:8 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by "
        "remote peer 10.10.6.4<36138>\nn1:7:8 [0] NCCL INFO bootstrap.cc:701 -> 6\n"
    )
    assert "nothing of the fabric" in reported(text)


def test_a_container_without_devices_is_told_so() -> None:
    """The NIC is there, the container may not open it."""
    text = (
        "n1:7:8 [0] transport/net_ib.cc:148 NCCL WARN NET/IB : Unable to open device "
        "mlx5_bond_0\nn1:7:8 [0] NCCL INFO Using network Socket\n"
    )
    assert "no RDMA device could be used" in reported(text)


def test_a_flap_is_called_a_flap() -> None:
    """The port is back: its runbook is another."""
    text = reported(f"n1:7:9 [0] {DOWN}\nn1:7:9 [0] {UP}\n")
    assert "link flap" in text
    assert "docs/runbooks/port_flap.md" in text


def test_suspects_stand_in_a_table_with_their_votes() -> None:
    """Who names whom."""
    text = reported("".join(retried(f"n{n}", 9, "10.0.0.9") for n in range(4)))
    row = next(line for line in text.splitlines() if "column" in line)
    assert row.split()[:3] == ["4", "4", "column"]
    assert "named by n0, n1, n2, n3" in text


def test_settings_that_differ_are_told_with_their_ranks() -> None:
    """The value of each, and who has it."""
    text = "".join(
        started("n1", pid, pid, f"{DAY} 10:00:00")
        + setting("n1", pid, "NCCL_IB_GID_INDEX", str(pid))
        for pid in (3, 5)
    )
    line = next(one for one in reported(text).splitlines() if "disagree" in one)
    assert "NCCL_IB_GID_INDEX: 3 (1: n1 rank 3); 5 (1: n1 rank 5)" in line


def test_sockets_within_one_node_are_no_matter() -> None:
    """Nothing between nodes goes over them."""
    text = (
        "n1:7:8 [3] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
        "n1:7:8 [3] NCCL INFO Using network Socket\n"
        "n1:7:8 [3] NCCL INFO comm 0x5 rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 "
        "MNNVL 0\n"
    )
    assert "nccl_fallback.md" not in reported(text)


def test_the_timeline_is_in_order_of_time_and_bounded() -> None:
    """The first lines count: the others follow from them."""
    text = "".join(
        retried(f"n{n}", 9, "10.0.0.9", stamp=f"{DAY} 10:{59 - n:02}:00")
        for n in range(60)
    )
    lines = reported(text).splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("Timeline"))
    timeline = lines[begin + 1 : begin + 1 + MAX_TIMELINE]
    assert timeline == sorted(timeline)
    assert "and 20 more" in lines[begin + 1 + MAX_TIMELINE]


def test_a_sound_log_says_so() -> None:
    """No failure is no failure, not silence."""
    assert "No failure is in these logs." in reported("nothing of interest\n")


def test_what_was_not_read_is_said() -> None:
    """A report on half of a log says that it is half."""
    text = reported(
        "x\n", Reading(2, 10, 3, skipped_bytes=99, skipped_lines=1, unread=1)
    )
    assert "Not read: 1" in text
    assert "1 lines too long" in text


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x07", "\x9b31m", "\u202e"])
def test_nothing_from_a_log_steers_the_terminal(evil: str) -> None:
    """Escapes, bells and turned text are shown, not obeyed."""
    text = reported(retried("n1", 7, f"ev{evil}il") + setting("n1", 7, "NCCL_A", evil))
    assert all(line.isprintable() for line in text.split("\n"))
