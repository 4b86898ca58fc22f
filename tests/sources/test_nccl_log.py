"""Which lines of which log files are read, whatever happens to the files."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.protocol import ReadError
from fabricmon.model import Target
from fabricmon.sources import nccl_log
from fabricmon.sources.log_cursors import Cursors, resume
from fabricmon.sources.log_reading import shares
from tests.fake_host import FakeHost
from tests.sources.log_lines import _marked, began, follow, lines, texts

LOG = "/var/log/nccl/nccl.n1.7.log"
OLD = "/var/log/nccl/nccl.n1.7.log.1"
COPIES = ("/var/log/nccl/*.log", "/var/log/nccl/*.log.*")

__all__ = ["_marked"]
pytestmark = pytest.mark.usefixtures("_marked")


class TestFollowing:
    def test_a_new_file_is_read_from_its_beginning(self) -> None:
        """It is found within the time between two searches."""
        host, follower = began()
        host.append(LOG, lines(1, 2))
        assert follower.polls(5) == texts(1, 2)
        host.append(LOG, lines(3))
        assert follower.poll() == texts(3)
        assert follower.told[-1].line_number == 3
        assert follower.told[-1].offset == len(lines(1, 2))

    def test_half_a_line_waits_for_its_rest(self) -> None:
        """A torn line is no line."""
        host, follower = began()
        host.append(LOG, "MARK a")
        assert follower.polls(6) == []
        host.append(LOG, "b\n")
        assert follower.poll() == ["MARK ab"]

    def test_a_last_line_without_end_is_told_when_the_file_is_quiet(self) -> None:
        """The process died while it wrote."""
        host, follower = began(quiet_seconds=10)
        host.append(LOG, "MARK a")
        assert follower.polls(20) == ["MARK a"]

    def test_nothing_new_gives_no_record(self) -> None:
        """A quiet node is not judged for it."""
        host, follower = began()
        host.append(LOG, lines(1))
        follower.polls(5)
        before = follower.carried
        host.now += 1
        target = Target(carried=before)
        assert nccl_log.poll(host, target, follower.config) == ()

    def test_a_poll_may_run_twice(self) -> None:
        """A replay does, to learn what it costs; nothing it was given changes."""
        host, follower = began()
        host.append(LOG, lines(1))
        host.now += 5
        target = Target(carried=follower.carried)
        first = nccl_log.poll(host, target, follower.config)
        assert first == nccl_log.poll(host, target, follower.config)
        assert [event.text for event in first[0].events] == texts(1)

    def test_identical_events_of_one_poll_are_counted_as_one(self) -> None:
        """A storm repeats one line for every channel."""
        host, follower = began()
        host.append(LOG, "MARK x\n" * 1000)
        follower.polls(5)
        (event,) = follower.told
        assert (event.count, event.line_number) == (1000, 1)


class TestStart:
    def test_the_end_of_a_file_that_is_written_is_read_back(self) -> None:
        """A whole line at the place where it begins is not lost, half a one is."""
        host = FakeHost()
        host.append(LOG, lines(*range(10, 30)))  # eight bytes each
        assert follow(host, start_bytes=16).poll() == texts(28, 29)
        assert follow(host, start_bytes=17).poll() == texts(28, 29)

    def test_an_old_file_is_not_read_back(self) -> None:
        """What failed yesterday is no news."""
        host = FakeHost()
        host.append(LOG, lines(1))
        host.now += 3600
        follower = follow(host)
        assert follower.poll() == []
        host.append(LOG, lines(2))
        assert follower.poll() == texts(2)

    def test_nothing_is_read_back_where_that_is_wanted(self) -> None:
        """Then the file begins at its end."""
        host = FakeHost()
        host.append(LOG, lines(1))
        follower = follow(host, start_bytes=0)
        assert follower.poll() == []
        host.append(LOG, lines(2))
        assert follower.poll() == texts(2)

    def test_saved_offsets_are_gone_on_from(self) -> None:
        """What was written meanwhile is read, what was read before is not."""
        host, follower = began()
        host.append(LOG, lines(1) + "MARK ha")
        follower.polls(5)
        host.append(LOG, "lf\n")
        host.append("/var/log/nccl/new.log", lines(2))
        follower.restart()
        assert sorted(follower.poll()) == ["MARK 2", "MARK half"]
        assert {e.text: e.line_number for e in follower.told}["MARK half"] == 2

    def test_a_saved_offset_in_another_content_is_not_believed(self) -> None:
        """The number of an inode comes again."""
        host, follower = began()
        host.append(LOG, lines(1, 2, 3))
        follower.polls(5)
        host.truncate(LOG)
        host.append(LOG, lines(*range(100, 110)))
        follower.restart()
        assert follower.poll() == texts(*range(100, 110))

    @pytest.mark.parametrize(
        "saved",
        [b"\xc1", b"\x93\x01", msgspec.msgpack.encode([9, 0.0, []])],
        ids=["no msgpack", "cut off", "newer version"],
    )
    def test_offsets_that_cannot_be_read_are_as_none(self, saved: bytes) -> None:
        """The agent starts as for the first time."""
        found = resume(saved)
        assert (found.files, found.parked, found.began) == ((), (), False)

    def test_damaged_offsets_are_told(self) -> None:
        """Once, by the first poll."""
        follower = follow(FakeHost())
        follower.carried = b"\xc1"
        follower.poll()
        (problem,) = follower.latest.problems
        assert "damaged" in problem


class TestRotation:
    def test_by_rename_loses_nothing(self) -> None:
        """The rest of the old file is read, also where no pattern finds it."""
        host, follower = began()
        host.append(LOG, lines(1))
        follower.polls(5)
        host.append(LOG, lines(2))
        host.rotate(LOG, OLD)
        host.append(LOG, lines(3))
        assert sorted(follower.poll()) == texts(2, 3)
        assert follower.latest.counts.rotations == 1

    def test_a_writer_that_goes_on_in_the_renamed_file(self) -> None:
        """NCCL never opens its log again."""
        host, follower = began()
        host.append(LOG, lines(1))
        follower.polls(5)
        host.rotate(LOG, OLD)
        assert follower.polls(30) == []
        host.append(OLD, lines(2))
        assert follower.poll() == texts(2)

    def test_a_renamed_file_that_is_quiet_is_let_go_of(self) -> None:
        """It costs a read in each poll; a pattern that finds it again goes on."""
        host, follower = began(quiet_seconds=10)
        host.append(LOG, lines(1))
        follower.polls(5)
        host.rotate(LOG, OLD)
        follower.polls(20)
        assert follower.latest.logs == ()
        host.append(OLD, lines(2))
        host.rotate(OLD, LOG)
        assert follower.polls(6) == texts(2)

    def test_by_rename_within_the_patterns_reads_no_line_twice(self) -> None:
        """The old file is known by its serial."""
        host, follower = began(paths=COPIES)
        host.append(LOG, lines(1, 2))
        follower.polls(5)
        host.rotate(LOG, OLD)
        host.append(LOG, lines(3))
        assert follower.polls(12) == texts(3)
        assert {log.path for log in follower.latest.logs} == {LOG, OLD}

    def test_cut_to_nothing(self) -> None:
        """NCCL does so when it opens a log again."""
        host, follower = began()
        host.append(LOG, lines(1, 2, 3))
        follower.polls(5)
        host.truncate(LOG)
        host.append(LOG, lines(4))
        assert follower.poll() == texts(4)
        assert follower.told[-1].line_number == 1
        assert follower.latest.counts.rotations == 1

    def test_cut_and_longer_than_before_at_the_next_poll(self) -> None:
        """Its length does not tell, the bytes before the offset do."""
        host, follower = began()
        host.append(LOG, lines(1, 2, 3))
        follower.polls(5)
        host.truncate(LOG)
        host.append(LOG, lines(*range(4, 20)))
        assert follower.poll() == texts(*range(4, 20))

    def test_by_copy_reads_no_line_twice_and_the_rest_in_the_copy(self) -> None:
        """A copy is known by what it holds where the reading stood."""
        host, follower = began(paths=COPIES)
        host.append(LOG, lines(1, 2))
        follower.polls(5)
        host.append(LOG, lines(3))
        host.append(OLD, lines(1, 2, 3))
        host.truncate(LOG)
        host.append(LOG, lines(4))
        assert sorted(follower.polls(7)) == texts(3, 4)

    def test_a_hole_is_passed_over(self) -> None:
        """A writer that does not append leaves zero bytes before its next line."""
        host, follower = began()
        host.append(LOG, lines(1))
        follower.polls(5)
        host.truncate(LOG)
        host.append(LOG, b"\0" * 5000)
        host.append(LOG, lines(2))
        assert follower.poll() == texts(2)

    def test_a_file_that_vanishes_and_comes_back(self) -> None:
        """A file system is mounted again; the file is the same."""
        host, follower = began(quiet_seconds=3)
        host.append(LOG, lines(1))
        follower.polls(5)
        host.rotate(LOG, "/elsewhere")
        follower.polls(20)
        host.rotate("/elsewhere", LOG)
        host.append(LOG, lines(2))
        assert follower.polls(6) == texts(2)


class TestBounds:
    def test_every_file_has_its_share_of_a_poll(self) -> None:
        """A storm in one does not silence the others."""
        host, follower = began(bytes_per_poll=1 << 20)
        host.append(LOG, ("x" * 1023 + "\n") * 4096)
        host.append("/var/log/nccl/quiet.log", lines(1))
        found: list[str] = []
        while not found:
            found = follower.poll()
        assert found == texts(1)
        assert follower.latest.counts.bytes <= 1 << 20
        behind = {log.path: log.size - log.offset for log in follower.latest.logs}
        assert behind[LOG] > 0

    def test_a_file_that_runs_away_is_read_at_its_end(self) -> None:
        """What is passed over is counted, no line is cut in half."""
        host, follower = began(backlog_bytes=1 << 20, bytes_per_poll=4 << 20)
        host.append(LOG, lines(1))
        follower.polls(5)
        lost = "MARK " + "x" * 1000
        host.append(LOG, f"{lost}\n" * 3000 + lines(2))
        read = follower.poll()
        assert read[-1:] == texts(2)
        assert set(read[:-1]) == {lost}
        counts = follower.latest.counts
        size = len(f"{lost}\n") * 3000
        assert counts.skipped_bytes >= size - (1 << 20)
        assert counts.bytes <= (1 << 20) + 100

    def test_a_storm_has_its_time_and_no_more(self) -> None:
        """Every line of it must be understood; the other logs come first."""
        host, follower = began(poll_milliseconds=100)
        host.append(LOG, ("x" * 1023 + "\n") * 3000)
        host.append("/var/log/nccl/quiet.log", lines(1))
        follower.polls(4)
        real = host.monotonic
        host.monotonic = lambda: real() + 0.05 * host.log_reads[LOG]  # type: ignore[method-assign]
        read = follower.poll()
        del host.monotonic
        assert "MARK 1" in read
        assert 0 < follower.latest.counts.bytes < 5 * nccl_log.SLICE_BYTES

    def test_storms_take_turns(self) -> None:
        """One that does not end must not keep the others from being read at all."""
        host, follower = began(poll_milliseconds=100)
        names = [f"/var/log/nccl/{name}.log" for name in "abc"]
        for name in names:
            host.append(name, "x\n")
        follower.polls(4)
        real = host.monotonic
        host.monotonic = lambda: real() + 0.06 * sum(host.log_reads.values())  # type: ignore[method-assign]
        for size in (3000, 2500, 2000, 1500, 1000):
            for number, name in enumerate(names):
                host.append(name, ("x" * 1023 + "\n") * (size + number))
            follower.poll()
        del host.monotonic
        offsets = {log.path: log.offset for log in follower.latest.logs}
        assert all(offsets[name] > len("x\n") for name in names)

    def test_the_newest_files_are_followed_and_the_others_counted(self) -> None:
        """Thousands of old logs lie about; none is read back when its turn comes."""
        host = FakeHost()
        for number in range(30):
            host.now += 1
            host.append(f"/var/log/nccl/{number:02}.log", lines(number))
        follower = follow(host, max_files=10)
        assert sorted(follower.poll()) == sorted(texts(*range(20, 30)))
        assert follower.latest.counts.left_out == 20
        host.append("/var/log/nccl/15.log", lines(100))
        assert follower.polls(6) == texts(100)

    def test_a_file_that_left_and_came_back_is_not_read_again(self) -> None:
        """Its offset is remembered while others have its place."""
        host, follower = began(max_files=1)
        host.append("/var/log/nccl/a.log", lines(1))
        follower.polls(5)
        host.now += 1
        host.append("/var/log/nccl/b.log", lines(2))
        assert follower.polls(6) == texts(2)
        host.now += 1
        host.append("/var/log/nccl/a.log", lines(3))
        assert follower.polls(6) == texts(3)

    @given(st.lists(st.integers(0, 10_000), max_size=20), st.integers(0, 50_000))
    def test_shares_are_fair(self, wanted: list[int], budget: int) -> None:
        """Nobody gets more than he wants, nothing is left while somebody wants."""
        given = shares(wanted, budget)
        assert all(got <= want for got, want in zip(given, wanted, strict=True))
        assert sum(given) == min(sum(wanted), budget)
        poor = [g for g, w in zip(given, wanted, strict=True) if g < w]
        assert not poor or max(given) - min(poor) <= 1


class TestTrouble:
    def test_a_log_that_may_not_be_read_is_said_with_what_grants_it(self) -> None:
        """And it costs no other log."""
        host, follower = began()
        host.append(LOG, lines(1))
        host.fail("/var/log/nccl/theirs.log", "EACCES")
        assert follower.polls(5) == texts(1)
        (problem,) = follower.latest.problems
        assert problem.startswith("/var/log/nccl/theirs.log: ")
        assert "nccl-logs.conf" in problem

    def test_a_folder_that_may_not_be_listed(self) -> None:
        """The same."""
        host = FakeHost()
        host.fail_folder("/var/log/nccl", "EACCES")
        follower = follow(host)
        follower.poll()
        assert any("/var/log/nccl: " in each for each in follower.latest.problems)

    def test_a_file_that_is_lost_unread_is_counted(self) -> None:
        """Deleted, and nobody has it open."""
        host, follower = began()
        host.put(LOG, lines(1))
        follower.polls(5)
        host.remove(LOG)
        follower.polls(2)
        assert follower.latest.counts.lost_files == 1
        assert follower.latest.logs == ()

    def test_an_error_that_passes(self) -> None:
        """A stale mount comes back."""
        host, follower = began()
        host.append(LOG, lines(1))
        follower.polls(5)
        host.fail(LOG, "EIO")
        assert follower.polls(6) == []
        host.append(LOG, lines(2))
        assert follower.polls(6) == texts(2)


def test_cursors_start_empty() -> None:
    """An agent that knows nothing begins."""
    assert resume(None) == Cursors()


def test_no_right_at_all() -> None:
    """A read that fails for another reason is said as it is."""
    host, follower = began()
    host.fail(LOG, "EIO")
    follower.polls(6)
    assert any("EIO" in problem for problem in follower.latest.problems)
    assert isinstance(host.log_files(["/nothing"])[0], ReadError)
