"""What happened, by the logs: roots, consequences, phases, jobs."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Logs, Stories
from fabricmon.model import LogEvent, LogSeverity
from fabricmon.stories.nature import Nature, Phase
from fabricmon.stories.story import Story
from fabricmon.stories.votes import Shape
from tests.story.told import (
    DOWN,
    UP,
    events_of,
    only,
    retried,
    setting,
    started,
    told,
)

DAY = "2026-04-14"


def root_flags(story: Story) -> dict[str, bool]:
    """Return for each loud kind and status whether it is a root."""
    return {
        f"{event.kind} {event.status}": event.root
        for event in story.finish()
        if event.severity is not LogSeverity.INFO or not event.root
    }


def test_one_event_of_several_processes_is_one() -> None:
    """Each process of the host reads the same event of the device."""
    story = told(
        "".join(f"n1:{pid}:{pid + 70} [0] {DOWN}\n\n" for pid in range(100, 108))
    )
    trouble = only(story)
    assert (trouble.reports, trouble.processes, trouble.downs) == (8, 8, 1)
    assert (trouble.root.device, trouble.root.port) == ("mlx5_3", 1)


def test_the_same_event_later_is_another() -> None:
    """Within two seconds it is one, after that the port fell again."""
    stamps = [f"{DAY} 10:00:00", f"{DAY} 10:00:01", f"{DAY} 10:00:09"]
    story = Story(Logs(), tells=True)
    text = "".join(f"[{stamp}] n1:7:8 [0] {DOWN}\n" for stamp in stamps)
    early = [one for event in events_of(text) for one in story.add(event)]
    assert [event.count for event in (*early, *story.finish())] == [2, 1]
    assert story.dropped == 0


def test_channels_to_one_peer_are_one() -> None:
    """Ports of the peer's sockets differ, the pair of nodes does not."""
    text = retried("n1", 7, "10.0.0.2") + retried("n1", 7, "10.0.0.2").replace(
        "53811", "50721"
    )
    (event,) = told(text).finish()
    assert event.count == 2


def test_flushes_follow_from_the_first_error() -> None:
    """Status 5 behind a 12 is context, though it is a WARN."""
    story = told(retried("n1", 7, "10.0.0.2") + retried("n1", 7, "10.0.0.2", status=5))
    assert only(story).consequences == 1
    _, flush = story.finish()
    assert (flush.root, flush.severity) == (False, LogSeverity.INFO)
    assert flush.cause == "flush_after_error"


def test_a_flush_before_its_root_in_the_file_follows_too() -> None:
    """Threads write late: order in a file is not order in time."""
    story = told(retried("n1", 7, "10.0.0.2", status=5) + retried("n1", 7, "10.0.0.2"))
    assert only(story).root.status == 12


def test_a_flush_alone_is_an_error_with_its_cause_elsewhere() -> None:
    """The first error is on the other side, or before this log."""
    trouble = only(told(retried("n1", 7, "10.0.0.2", status=5)))
    assert trouble.root.severity is LogSeverity.ERROR
    assert trouble.root.cause == "flush_root_cause_elsewhere"


def test_the_first_warning_of_a_process_is_the_root() -> None:
    """What fails in the same process within a minute follows from it."""
    text = """
    n1:7:80 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable

    n1:7:80 [0] proxy.cc:1519 NCCL WARN [Proxy Service 1] Failed to execute operation Connect from rank 1, retcode 2

    n1:7:81 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n1<41009>
    """
    trouble = only(told(text))
    assert trouble.root.kind == "ib_modify_qp_failed"
    assert trouble.consequences == 2


def test_an_event_that_several_processes_share_is_the_root_of_each() -> None:
    """The device failed for both: what fails then in either follows."""
    fatal = "NCCL WARN NET/IB : Got async event : local catastrophic error"
    call = "misc/ibvwrap.cc:220 NCCL WARN Call to ibv_get_async_event failed"
    text = "".join(
        f"n1:{p}:9 [0] x.cc:80 {fatal}\nn1:{p}:9 [0] {call}\n" for p in (7, 8)
    )
    trouble = only(told(text))
    assert (trouble.nature, trouble.consequences) == (Nature.DEVICE, 2)


def test_a_failure_an_hour_later_is_a_root_of_its_own() -> None:
    """A minute is what one failure explains."""
    text = retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:00") + retried(
        "n1", 7, "10.0.0.2", stamp=f"{DAY} 11:00:00", status=9
    )
    assert [one.root.status for one in told(text).troubles()] == [12, 9]


def test_consequences_on_the_peer_follow_from_its_failure() -> None:
    """Node n2 only saw its socket close; n1 knows why."""
    text = {
        "n1.log": "n1:7:8 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
        + retried("n1", 7, "10.9.9.9"),
        "n2.log": "n2:9:10 [0] misc/socket.cc:49 NCCL WARN socketProgress: "
        "Connection closed by remote peer 10.0.0.1<42117>\n",
    }
    assert only(told(text)).node == "n1"


def test_a_port_error_explains_the_completions_of_peers() -> None:
    """The peer is named by host name, with other punctuation."""
    trouble = only(
        told(f"gnode-48:7:8 [0] {DOWN}\n" + retried("gnode-51", 9, "gnode48"))
    )
    assert (trouble.node, trouble.nature) == ("gnode-48", Nature.LINK)
    assert trouble.consequences == 1


def test_a_port_error_behind_the_completion_of_its_process_explains_it() -> None:
    """The thread that hears of events may be late: one trouble, and one root."""
    failed = retried("n1", 7, "10.0.0.2")
    trouble = only(told(failed + f"n1:7:8 [0] {DOWN}\n"))
    assert (trouble.nature, trouble.reports) == (Nature.LINK, 1)
    assert (trouble.processes, trouble.consequences) == (1, 1)


FAILED_DEVICE = (
    "n1:7:8 [0] transport/net_ib/p2p_resiliency.cc:1 NCCL WARN NET/IB: Device 0 marked "
    "as failed. Initiating recovery? Yes (send comm=0x7f03, outstandingRecovery=0)\n"
)


def test_a_failed_device_has_the_name_of_the_completion_before() -> None:
    """Its own is a number inside a merged NIC; alone it stays that."""
    trouble = only(told(retried("n1", 7, "10.0.0.2") + FAILED_DEVICE))
    assert trouble.root.kind == "resiliency_device_failed"
    assert (trouble.root.device, trouble.consequences) == ("mlx5_3", 1)
    assert only(told(FAILED_DEVICE)).root.device == "0"


def test_the_channels_of_one_rank_do_not_tell_the_nic_of_several() -> None:
    """Eight ranks fail; that the first one sends by mlx5_3 is nothing."""
    text = (
        NICS
        + started("n1", 7, 3, f"{DAY} 10:00:00")
        + CHANNEL.format("02/0", 3, 11, "send", "IB/1/GDRDMA")
        + "".join(
            retried("n1", pid, "10.0.0.2").replace(" hca mlx5_3", "")
            for pid in (7, 9, 11)
        )
    )
    assert only(told(text)).devices == ()


CLOSED = (
    "n1:7:8 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote "
    "peer 10.10.6.4<36138>\nn1:7:8 [0] NCCL INFO misc/socket.cc:628 -> 6\n"
    "n1:7:8 [0] NCCL INFO bootstrap.cc:701 -> 6\n"
)


def test_a_stranger_who_closes_during_the_bootstrap_is_a_scanner() -> None:
    """The trace tells where, and nobody in the logs has that address."""
    assert only(told(CLOSED)).root.cause == "port_scan_or_health_probe"


def test_a_rank_that_closes_during_the_bootstrap_is_no_scanner() -> None:
    """It has its own log, which may say why."""
    known = "n2:7:8 [0] NCCL INFO Bootstrap : Using eth0:10.10.6.4<0>\n"
    assert only(told(known + CLOSED)).root.cause is None


def test_a_watchdog_follows_from_a_root_half_an_hour_before() -> None:
    """Watchdogs speak when their time-out has passed."""
    text = retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:00") + (
        f"[{DAY} 10:30:01] n1:7:7 [0] NCCL INFO x\n"
        "[rank3]:[E414 10:30:01.005271823 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800068 milliseconds "
        "before timing out.\n"
    )
    assert only(told(text)).root.status == 12


def test_a_watchdog_alone_is_a_root_and_blames_no_link() -> None:
    """A time-out is no proof of a fault of the fabric."""
    text = (
        "[rank3]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, "
        "NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 "
        "milliseconds before timing out.\n"
    )
    trouble = only(told(text))
    assert trouble.root.kind == "pytorch_watchdog_timeout"
    assert not trouble.nature.blames_link


def test_proxies_that_close_before_the_watchdog_follow_from_it() -> None:
    """They precede it in the file although it began the abort."""
    text = """
    n1:7:80 [0] proxy.cc:1521 NCCL WARN [Proxy Service 0] Failed to execute operation Close from rank 0, retcode 3
    [rank9]:[E118 04:54:22.061694977 ProcessGroupNCCL.cpp:616] [Rank 9] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=66, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600025 milliseconds before timing out.
    """
    assert only(told(text)).root.kind == "pytorch_watchdog_timeout"


@pytest.mark.parametrize("status", [4, 9, 10])
def test_memory_and_access_errors_never_blame_a_link(status: int) -> None:
    """Whenever they come: they are software or the host."""
    for stamp in (f"{DAY} 10:00:05", f"{DAY} 12:00:00"):
        text = started("n1", 7, 3, f"{DAY} 10:00:00") + retried(
            "n1", 7, "10.0.0.2", stamp=stamp, status=status
        )
        assert not only(told(text)).nature.blames_link


def test_nvlink_never_blames_a_link() -> None:
    """NVLS is within the node."""
    text = (
        "n1:7:8 [5] transport/nvls.cc:265 NCCL WARN Failed to bind NVLink SHARP (NVLS) "
        "Multicast memory of size 2097152 : CUDA error 401 'x'.\n"
    )
    assert only(told(text)).nature is Nature.GPU


def test_a_port_that_came_back_flapped() -> None:
    """Port error, port active, as often as one thread saw it."""
    text = "".join(f"n1:{pid}:9 [0] {DOWN}\nn1:{pid}:9 [0] {UP}\n" for pid in (7, 7, 8))
    trouble = only(told(text))
    assert trouble.flap is True
    assert trouble.downs == 2


def test_a_port_that_stays_down_did_not_flap() -> None:
    """It never came back, as far as the log tells."""
    assert only(told(f"n1:7:9 [0] {DOWN}\n")).flap is False


def test_retries_that_run_out_at_once_are_configuration() -> None:
    """Within a minute of the start there never was a way."""
    text = started("n1", 7, 3, f"{DAY} 10:00:00") + retried(
        "n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:31"
    )
    trouble = only(told(text))
    assert (trouble.phase, trouble.nature) == (Phase.START, Nature.CONFIGURATION)


def test_retries_that_run_out_after_hours_are_link_or_peer() -> None:
    """What worked has broken."""
    text = started("n1", 7, 3, f"{DAY} 10:00:00") + retried(
        "n1", 7, "10.0.0.2", stamp=f"{DAY} 13:00:00"
    )
    trouble = only(told(text))
    assert (trouble.phase, trouble.nature) == (Phase.RUNNING, Nature.PATH)


def test_without_times_the_phase_is_not_made_up() -> None:
    """A completion with an error may be either."""
    assert only(told(retried("n1", 7, "10.0.0.2"))).phase is Phase.UNKNOWN


def test_arrival_stands_in_for_times_that_a_log_has_not() -> None:
    """A live reader knows when a line came."""
    (event,) = events_of(retried("n1", 7, "10.0.0.2"))
    story = Story(Logs())
    story.add(event, 1000.0)
    assert only(story).first == 1000.0


def test_the_earliest_in_time_leads_whatever_the_order_of_files() -> None:
    """Files are read one after the other, their events go by time."""
    later = retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:20")
    first = retried("n2", 9, "10.0.0.3", stamp=f"{DAY} 10:00:00")
    troubles = told({"a": later, "b": first}).troubles()
    assert [one.node for one in troubles] == ["n2", "n1"]


def test_a_failure_is_over_five_minutes_after_its_last_line() -> None:
    """Not while lines come, of it or of what follows; a port's state is no line."""
    story = told(retried("n1", 7, "10.0.0.2"), at=1000.0)
    assert [one.over for one in story.troubles(1299.0)] == [False]
    assert [one.over for one in story.troubles(1300.0)] == [True]
    down = told(f"n1:7:9 [0] {DOWN}\n", at=1000.0)
    assert [one.over for one in down.troubles(1300.0)] == [True]


def test_what_follows_a_failure_keeps_it_open_but_does_not_revive_it() -> None:
    """A flush within five minutes is of it, one later finds it over."""
    (cause,) = events_of(retried("n1", 7, "10.0.0.2"))
    (flush,) = events_of(retried("n1", 7, "10.0.0.2", status=5))
    story = Story(Logs())
    for event, at in ((cause, 1000.0), (flush, 1030.0), (flush, 1900.0)):
        story.add(event, at)
        assert only(story).heard == min(at, 1030.0)
    assert only(story).consequences == 2
    assert [one.over for one in story.troubles(1901.0)] == [True]


def test_a_report_that_all_is_well_closes_nothing() -> None:
    """RAS compares launch counts: a stuck data path looks sound to it."""
    summary = (
        "    0         1        32         8       256       256   RUNNING      OK\n"
    )
    story = told(retried("n1", 7, "10.0.0.2"), at=1000.0)
    for event in events_of(summary):
        story.add(event, 1100.0)
    assert not only(story).over


def test_a_job_survives_what_its_settings_say() -> None:
    """Version 2.20 waits 2^18; the environment wins."""
    head = "n1:7:8 [3] NCCL INFO NCCL version 2.20.5+cuda12.4\n"
    text = head + retried("n1", 7, "10.0.0.2")
    budget = only(told(text)).budget
    assert budget is not None
    assert budget.seconds == pytest.approx(7.5, rel=0.01)
    slow = (
        head + setting("n1", 7, "NCCL_IB_TIMEOUT", "22") + retried("n1", 7, "10.0.0.2")
    )
    budget = only(told(slow)).budget
    assert budget is not None
    assert budget.seconds == pytest.approx(120, rel=0.01)


def test_a_job_on_sockets_has_no_retries_of_queue_pairs() -> None:
    """The budget would be about a network that it does not use."""
    text = "n1:7:8 [3] NCCL INFO NCCL version 2.20.5+cuda12.4\n"
    (job,) = told(text + "n1:7:8 [3] NCCL INFO Using network Socket\n").jobs()
    assert job.budget is None


def test_settings_that_differ_between_ranks_are_named() -> None:
    """Who has which value."""
    text = "".join(
        started("n1", pid, pid, f"{DAY} 10:00:00")
        + setting("n1", pid, "NCCL_IB_GID_INDEX", "3" if pid < 9 else "1")
        + setting("n1", pid, "NCCL_DEBUG_FILE", f"/tmp/{pid}")
        for pid in (7, 8, 9)
    )
    (job,) = told(text).jobs()
    (found,) = job.disagreements
    assert found.name == "NCCL_IB_GID_INDEX"
    assert [(use.value, use.number) for use in found.uses] == [("3", 2), ("1", 1)]


def test_ranks_of_two_jobs_may_differ() -> None:
    """Only ranks of one communicator must agree."""
    one = started("n1", 7, 0, f"{DAY} 10:00:00") + setting("n1", 7, "NCCL_IB_TC", "106")
    other = started("n1", 8, 0, f"{DAY} 10:00:00").replace("0x65e0", "0x77aa")
    jobs = told(one + other + setting("n1", 8, "NCCL_IB_TC", "0")).jobs()
    assert len(jobs) == 2
    assert not any(job.disagreements for job in jobs)


CHANNEL = "n1:7:8 [3] NCCL INFO Channel {} : {}[3] -> {}[3] [{}] via NET/{}\n"
NICS = (
    "n1:7:8 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/IB [RO]; "
    "OOB eth0:10.0.0.1<0>\n"
)


def test_channels_lead_to_the_hcas_that_they_use() -> None:
    """NCCL's index is not the number in the device's name."""
    text = (
        NICS
        + started("n1", 7, 3, f"{DAY} 10:00:00")
        + CHANNEL.format("02/0", 3, 11, "send", "IB/1/GDRDMA")
        + retried("n1", 7, "10.0.0.2").replace(" hca mlx5_3", "")
    )
    story = told(text)
    (route,) = story.roster.node("n1").routes.values()
    assert (route.channel, route.rank, route.peer_rank) == (2, 3, 11)
    assert (route.device, route.gpu_direct) == ("mlx5_3", True)
    assert only(story).devices == ("mlx5_3",)


SOCKETS = "n1:7:8 [3] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
SHAPE = (
    "n1:7:8 [3] NCCL INFO comm 0x5 rank 3 nRanks 16 nNodes {} localRanks 8 localRank 3 "
    "MNNVL 0\n"
)


@pytest.mark.parametrize(("nodes", "fallback"), [(2, True), (1, False)])
def test_sockets_matter_where_the_job_spans_nodes(nodes: int, fallback: bool) -> None:  # noqa: FBT001
    """Within one node nothing goes over them."""
    text = SOCKETS + "n1:7:8 [3] NCCL INFO Using network Socket\n" + SHAPE.format(nodes)
    (job,) = told(text).jobs()
    assert job.fallback is fallback
    assert job.nodes == nodes


def test_sockets_of_a_job_of_unknown_size_are_no_verdict() -> None:
    """Nothing is made up."""
    (job,) = told("n1:7:8 [3] NCCL INFO Using network Socket\n").jobs()
    assert job.fallback is None


def test_a_channel_by_sockets_proves_the_fallback() -> None:
    """Channels over a network are between nodes."""
    (job,) = told(CHANNEL.format("01/0", 9, 0, "receive", "Socket/0")).jobs()
    assert job.fallback is True


def test_votes_go_to_the_node_behind_the_addresses() -> None:
    """Three nodes name three addresses of one."""
    own = "".join(
        f"bad:7:8 [0] NCCL INFO Bootstrap : Using eth{n}:10.0.0.{n}<0>\n"
        for n in range(3)
    )
    text = own + "".join(retried(f"n{n}", 9, f"10.0.0.{n}") for n in range(3))
    (suspect,) = told(text).suspects()
    assert (suspect.name, suspect.votes, suspect.certain) == ("bad", 3, True)


def test_flushes_do_not_vote() -> None:
    """Their queue pairs were in error for another reason."""
    text = "".join(retried(f"n{n}", 9, "10.0.0.9", status=5) for n in range(3))
    assert told(text).suspects() == ()


def test_the_rank_that_does_not_report_is_named() -> None:
    """All others wait for it in the same operation."""
    text = "".join(
        started("n1", 100 + rank, rank, f"{DAY} 10:00:00", 4)
        + (
            f"[rank{rank}]:[E414 10:30:01.005 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, "
            "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600068 "
            "milliseconds before timing out.\n"
            if rank != 2
            else ""
        )
        for rank in range(4)
    )
    (job,) = told(text).jobs()
    assert job.stuck is not None
    assert job.stuck.silent == (2,)


def storm(number: int) -> list[LogEvent]:
    """Return events that are all different."""
    (event,) = events_of(retried("n1", 7, "10.0.0.2", stamp=f"{DAY} 10:00:00"))
    return [replace(event, peer=f"10.{n >> 8}.{n & 255}.1") for n in range(number)]


def test_a_storm_of_different_errors_keeps_memory_bounded_and_is_one() -> None:
    """What leaves memory is counted, and the trouble still tells all of it."""
    story = Story(Logs(stories=Stories(open_groups=64)))
    for event in storm(5000):
        story.add(event)
    trouble = only(story)
    assert trouble.reports + trouble.consequences == 5000
    assert story.dropped >= 5000 - 64
    assert len(story.finish()) <= 64


def test_a_storm_of_one_error_drops_nothing() -> None:
    """Repeats are counted, not kept."""
    story = Story(Logs())
    (event,) = storm(1)
    for _ in range(10_000):
        story.add(event)
    assert story.dropped == 0
    (folded,) = story.finish()
    assert folded.count == 10_000


def test_context_never_pushes_failures_out() -> None:
    """A flood of start-up lines leaves the error where it is."""
    story = told(retried("n1", 7, "10.0.0.2"), Stories(open_groups=16))
    for number in range(200):
        for event in events_of(setting("n1", number, f"NCCL_X{number}", "1")):
            story.add(event)
    assert only(story).root.status == 12
    assert 12 in {event.status for event in story.finish()}


def test_what_leaves_memory_is_handed_out_where_it_is_wanted() -> None:
    """So that a long log can be printed as it is read."""
    story = Story(Logs(stories=Stories(open_groups=8)), tells=True)
    early = [one for event in storm(100) for one in story.add(event)]
    assert len(early) + len(story.finish()) == 100


def test_old_troubles_are_forgotten() -> None:
    """A live story does not grow for ever."""
    story = told(retried("n1", 7, "10.0.0.2"), at=1000.0)
    story.forget(2000.0)
    assert story.troubles() == ()
    assert story.suspects() == ()


def test_one_rail_on_many_nodes_is_told_as_a_rail() -> None:
    """By NCCL's own list of devices, which gives each its index."""
    text = "".join(
        NICS.replace("n1:", f"n{n}:").replace("10.0.0.1", f"10.0.0.{n}")
        + retried(f"n{n}", 7, f"10.0.0.{n ^ 1}")
        for n in range(4)
    )
    rail = told(text).suspects()[0]
    assert (rail.shape, rail.name) == (Shape.RAIL, "rail 1")


def test_a_peer_that_is_named_by_its_gid_is_its_node() -> None:
    """Each node prints the GID of its own port beside that of the peer."""
    text = retried("n2", 7, "10.0.0.1").replace(
        "::ffff:10.9.3.1", "::ffff:10.9.3.7"
    ) + (
        "n1:7:8 [5] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 "
        "Connection timed out, on dev mlx5_6:1, curr state INIT, next state RTR, local "
        "GID index 3, local GID ::ffff:10.9.3.2, remote GID ::ffff:10.9.3.7\n"
    )
    assert told(text).troubles()[1].peer_nodes == ("n2",)


def test_a_line_without_head_belongs_to_the_only_host_of_its_file() -> None:
    """Exceptions quote the library without its head."""
    text = retried("n1", 7, "10.0.0.2") + (
        "ncclRemoteError: A call failed possibly due to a network error.\n"
    )
    assert only(told(text)).node == "n1"


def test_two_devices_of_a_node_are_two_troubles() -> None:
    """A port error on one explains nothing of the other."""
    text = f"n1:7:9 [0] {DOWN}\n" + retried("n1", 8, "10.0.0.2", hca="mlx5_5")
    assert len(told(text).troubles()) == 2


CORPUS = [
    event
    for log in sorted((Path(__file__).parent.parent / "data" / "nccl").glob("*.log"))
    for event in events_of(log.read_text(errors="replace"), log.name)
]


@given(st.lists(st.sampled_from(CORPUS), max_size=60), st.integers(1, 40))
def test_no_event_is_lost_or_counted_twice(events: list[LogEvent], room: int) -> None:
    """In any order and however little room there is."""
    story = Story(Logs(stories=Stories(open_groups=room)), tells=True)
    out = [one for event in events for one in story.add(event)]
    out += story.finish()
    assert sum(event.count for event in out) == sum(event.count for event in events)
    troubles = story.troubles()
    told_of = sum(one.reports + one.consequences for one in troubles)
    assert told_of <= sum(event.count for event in events)
