"""When polls are due: the grid, the flight marks, and what is said of each source."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fabricmon.lanes import Progress
from fabricmon.model import Outcome, Repeats, Target
from fabricmon.schedule import MAX_ERRNOS, Entry, Schedule
from fabricmon.sources.protocol import Lane, Scope, Source

ORIGIN = 1000.0
DEVICES = frozenset({Lane.DEVICE})


def source(name: str = "state", lane: Lane = Lane.DEVICE) -> Source:
    """Return a source that is never polled here."""
    return Source(name, Scope.HCA, lane, lambda _periods: 5.0, lambda *_: ())


def outcome(entry: Entry, ended: float, started: float | None = None) -> Outcome:
    """Return that the poll of an entry has ended."""
    return Outcome(entry.job, ended if started is None else started, ended)


@pytest.fixture
def schedule() -> Schedule:
    """Return an empty schedule."""
    return Schedule(ORIGIN)


def add(
    schedule: Schedule,
    device: str = "mlx5_0",
    period: float = 5.0,
    what: Source | None = None,
) -> Entry:
    """Add a source at the origin and return its entry."""
    what = what or source()
    schedule.add(what, Target(device), period, ORIGIN)
    entry = schedule.entry(what.name, device)
    assert entry is not None
    return entry


class TestRepeats:
    def test_in_flight_only_while_a_poll_is(self, schedule: Schedule) -> None:
        """A job that repeats is submitted once, and followed by its reader."""
        entry = add(schedule)
        entry.repeat(Repeats(ORIGIN + 1, 0.5, ORIGIN + 3, 1.0))
        assert schedule.take_due(ORIGIN) == [entry]
        assert entry.in_flight_since is None
        assert schedule.next_due == ORIGIN + 8
        schedule.follow([Progress(entry.job, ORIGIN + 1, None)])
        (health,) = schedule.health()
        assert (health.last_success, health.in_flight_since) == (ORIGIN + 1, None)
        schedule.follow([Progress(entry.job, ORIGIN + 1, ORIGIN + 1.5)])
        assert [each.file for each in schedule.hung(ORIGIN + 2)] == ["state"]

    def test_late_end(self, schedule: Schedule) -> None:
        """One that did not end in time counts as any other poll."""
        entry = add(schedule)
        entry.repeat(Repeats(ORIGIN, 0.5, ORIGIN + 3, 1.0))
        schedule.take_due(ORIGIN)
        assert schedule.take_due(ORIGIN + 8) == [entry]
        assert entry.in_flight_since == ORIGIN + 8

    def test_of_another_target(self, schedule: Schedule) -> None:
        """What an earlier device of the name does tells nothing of this one."""
        entry = add(schedule)
        job = entry.job
        entry.aim(Target("mlx5_0"))
        schedule.follow([Progress(job, ORIGIN + 1, ORIGIN + 1)])
        assert (entry.last_success, entry.in_flight_since) == (None, None)


class TestDue:
    def test_no_period_is_too_short(self, schedule: Schedule) -> None:
        """Not even one below a step of floating-point time is due for ever."""
        entry = add(schedule, period=1e-300)
        assert schedule.take_due(ORIGIN) == [entry]
        assert entry.due > ORIGIN

    def test_new_entries_are_due_at_once(self, schedule: Schedule) -> None:
        """Nobody waits a period for the first value."""
        entry = add(schedule)
        assert schedule.next_due == ORIGIN
        assert schedule.take_due(ORIGIN) == [entry]

    def test_nothing_to_do(self, schedule: Schedule) -> None:
        """Without entries nothing is ever due."""
        assert schedule.next_due is None
        assert schedule.take_due(ORIGIN + 1e6) == []

    def test_late_polls_do_not_move_the_next_ones(self, schedule: Schedule) -> None:
        """Polls of one period fall together, however late one of them was."""
        entry = add(schedule)
        schedule.take_due(ORIGIN + 1.3)
        assert entry.due == ORIGIN + 5

    def test_what_was_missed_is_not_made_up_for(self, schedule: Schedule) -> None:
        """After a minute without running there is one poll, not twelve."""
        entry = add(schedule)
        assert schedule.take_due(ORIGIN + 61) == [entry]
        assert schedule.next_due == ORIGIN + 65

    def test_due_things_come_in_order(self, schedule: Schedule) -> None:
        """First what was due first, then what was added first."""
        first, second = add(schedule, "mlx5_1"), add(schedule, "mlx5_0")
        schedule.hasten("state", "mlx5_0", ORIGIN - 1)
        assert schedule.take_due(ORIGIN) == [second, first]

    def test_one_in_flight_is_not_taken_again(self, schedule: Schedule) -> None:
        """A read that hangs is not read once more behind it."""
        entry = add(schedule)
        schedule.take_due(ORIGIN)
        assert schedule.take_due(ORIGIN + 5) == []
        schedule.settle(outcome(entry, ORIGIN + 6), failed=False)
        assert schedule.take_due(ORIGIN + 10) == [entry]

    def test_known_entries_keep_their_time(self, schedule: Schedule) -> None:
        """Identity is read every minute and adds every source again."""
        entry = add(schedule)
        schedule.take_due(ORIGIN)
        fresh = Target("mlx5_0")
        schedule.add(source(), fresh, 5.0, ORIGIN + 1)
        assert schedule.next_due == ORIGIN + 5
        assert entry.target is fresh


class TestChanges:
    def test_hastening(self, schedule: Schedule) -> None:
        """A poll is moved forward, never back."""
        add(schedule)
        schedule.take_due(ORIGIN)
        schedule.hasten("state", "mlx5_0", ORIGIN + 2)
        schedule.hasten("state", "mlx5_0", ORIGIN + 4)
        assert schedule.next_due == ORIGIN + 2

    def test_hastening_what_is_not_there(self, schedule: Schedule) -> None:
        """A device without that source is no error."""
        schedule.hasten("driver", "mlx5_0", ORIGIN)
        assert schedule.next_due is None

    def test_a_shorter_period_counts_at_once(self, schedule: Schedule) -> None:
        """Suspicion does not wait for the end of a long period."""
        entry = add(schedule, period=60)
        schedule.take_due(ORIGIN)
        schedule.set_period(entry, 1, ORIGIN + 2)
        assert schedule.next_due == ORIGIN + 3

    def test_a_longer_period_counts_after_the_next_poll(
        self, schedule: Schedule
    ) -> None:
        """What is planned already still happens."""
        entry = add(schedule, period=1)
        schedule.take_due(ORIGIN)
        schedule.settle(outcome(entry, ORIGIN), failed=False)
        schedule.set_period(entry, 60, ORIGIN)
        assert schedule.take_due(ORIGIN + 1) == [entry]
        assert schedule.next_due == ORIGIN + 60

    def test_postponing(self, schedule: Schedule) -> None:
        """A quarantined group is left alone, and then falls back on the grid."""
        entry = add(schedule)
        schedule.postpone(entry, ORIGIN + 603)
        assert schedule.next_due == ORIGIN + 603
        schedule.take_due(ORIGIN + 603)
        assert schedule.next_due == ORIGIN + 605

    def test_removed_targets_are_not_polled(self, schedule: Schedule) -> None:
        """All sources of that device go, those of others stay."""
        add(schedule, "mlx5_0")
        other = add(schedule, "mlx5_1")
        schedule.remove("mlx5_0")
        assert schedule.take_due(ORIGIN) == [other]
        assert schedule.entry("state", "mlx5_0") is None

    def test_answers_of_removed_targets_are_dropped(self, schedule: Schedule) -> None:
        """A read that returns after its device has gone belongs to nothing."""
        entry = add(schedule)
        schedule.take_due(ORIGIN)
        schedule.remove("mlx5_0")
        assert schedule.settle(outcome(entry, ORIGIN + 1), failed=False) is None

    def test_starting_over(self, schedule: Schedule) -> None:
        """A second look polls these lanes again, and waits for them again."""
        entry = add(schedule)
        slow = add(schedule, what=source("driver", Lane.DRIVER))
        for each in schedule.take_due(ORIGIN):
            schedule.settle(outcome(each, ORIGIN), failed=False)
        schedule.start_over(DEVICES, ORIGIN + 1)
        assert not schedule.has_settled(DEVICES, ORIGIN)
        assert schedule.take_due(ORIGIN + 1) == [entry]
        assert slow.due == ORIGIN + 5


class TestFlight:
    def test_nothing_has_settled_at_first(self, schedule: Schedule) -> None:
        """An empty schedule has seen nothing, and is not done."""
        assert not schedule.has_settled(DEVICES, ORIGIN)
        add(schedule)
        assert not schedule.has_settled(DEVICES, ORIGIN)

    def test_all_of_the_lanes_must_have_settled(self, schedule: Schedule) -> None:
        """Other lanes do not count."""
        entry = add(schedule)
        add(schedule, what=source("driver", Lane.DRIVER))
        schedule.take_due(ORIGIN)
        schedule.settle(outcome(entry, ORIGIN), failed=True)
        assert schedule.has_settled(DEVICES, ORIGIN - 1)

    def test_what_hangs_is_not_waited_for(self, schedule: Schedule) -> None:
        """It is once it runs for long; before, it may still answer."""
        add(schedule)
        schedule.take_due(ORIGIN)
        assert not schedule.has_settled(DEVICES, ORIGIN - 1)
        assert schedule.has_settled(DEVICES, ORIGIN)

    def test_the_longest_of_a_lane_hangs(self, schedule: Schedule) -> None:
        """The others wait behind it, and those of another device are well."""
        hangs = add(schedule)
        add(schedule, "mlx5_1")
        for each in schedule.take_due(ORIGIN):
            if each is not hangs:
                schedule.settle(outcome(each, ORIGIN), failed=False)
        schedule.add(source("errors"), Target("mlx5_0"), 5.0, ORIGIN + 1)
        schedule.take_due(ORIGIN + 1)
        (failure,) = schedule.hung(ORIGIN + 1)
        assert (failure.device, failure.file) == ("mlx5_0", hangs.source.name)
        assert schedule.hung(ORIGIN - 1) == ()

    def test_a_device_is_awaited_until_all_of_it_was_polled(
        self, schedule: Schedule
    ) -> None:
        """Or until the rest hangs; other devices do not matter."""
        state = add(schedule)
        add(schedule, what=source("errors"))
        add(schedule, "mlx5_1")
        assert schedule.awaits("mlx5_0", ORIGIN - 1)
        schedule.take_due(ORIGIN)
        schedule.settle(outcome(state, ORIGIN), failed=False)
        assert schedule.awaits("mlx5_0", ORIGIN - 1)
        assert not schedule.awaits("mlx5_0", ORIGIN)
        assert not schedule.awaits("mlx5_9", ORIGIN - 1)

    def test_tools_do_not_hang(self, schedule: Schedule) -> None:
        """They are ended at their own, later deadline."""
        add(schedule, "", what=source("ibstat", Lane.TOOL))
        schedule.take_due(ORIGIN)
        assert schedule.hung(ORIGIN + 10) == ()

    def test_lanes(self, schedule: Schedule) -> None:
        """A device has a lane of its own; driver statistics share one."""
        state = add(schedule)
        driver = add(schedule, what=source("driver", Lane.DRIVER))
        assert (state.job.lane, driver.job.lane) == ("device:mlx5_0", "driver")


class TestHealth:
    def test_before_the_first_answer(self, schedule: Schedule) -> None:
        """Nothing succeeded yet, and something is in flight."""
        add(schedule)
        schedule.take_due(ORIGIN)
        (health,) = schedule.health()
        assert (health.last_success, health.in_flight_since) == (None, ORIGIN)

    def test_success(self, schedule: Schedule) -> None:
        """When it was, and how long it took."""
        entry = add(schedule)
        schedule.take_due(ORIGIN)
        schedule.settle(outcome(entry, ORIGIN + 2, ORIGIN + 1), failed=False)
        (health,) = schedule.health()
        assert health.ok
        assert (health.last_success, health.duration_seconds) == (ORIGIN + 2, 1)
        assert health.in_flight_since is None

    def test_failure_keeps_the_last_success(self, schedule: Schedule) -> None:
        """Its age is what grows."""
        entry = add(schedule)
        schedule.settle(outcome(entry, ORIGIN), failed=False)
        schedule.settle(outcome(entry, ORIGIN + 5), failed=True)
        (health,) = schedule.health()
        assert not health.ok
        assert health.last_success == ORIGIN

    def test_the_record_is_the_same_until_something_changes(
        self, schedule: Schedule
    ) -> None:
        """A hundred sources cost next to nothing while all is well."""
        entry = add(schedule)
        before = schedule.health()[0]
        assert schedule.health()[0] is before
        entry.count_errors(iter(["EIO"]))
        assert schedule.health()[0] is not before

    def test_errors_are_counted_by_name(self, schedule: Schedule) -> None:
        """In the order of the names, whatever came first."""
        entry = add(schedule)
        entry.count_errors(iter(["EIO", "EINVAL", "EIO"]))
        (health,) = schedule.health()
        counted = [(error.errno, error.count) for error in health.errors]
        assert counted == [("EINVAL", 1), ("EIO", 2)]

    def test_names_without_end_are_bounded(self, schedule: Schedule) -> None:
        """Text in place of a number is no errno and must not fill the memory."""
        entry = add(schedule)
        entry.count_errors(f"text {number}" for number in range(100))
        assert len(entry.errors) == MAX_ERRNOS + 1
        assert entry.errors["other"] == 100 - MAX_ERRNOS


class Polling(RuleBasedStateMachine):
    """Random adding, taking, ending, moving and removing of polls."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule(ORIGIN)
        self.now = ORIGIN
        self.flying: list[Entry] = []

    @rule(
        device=st.sampled_from("abc"),
        name=st.sampled_from(["state", "errors"]),
        period=st.sampled_from([0.3, 1.0, 5.0, 7.7, 60.0]),
    )
    def add(self, device: str, name: str, period: float) -> None:
        """Add a source of a device."""
        self.schedule.add(source(name), Target(device), period, self.now)

    @rule(seconds=st.floats(0, 100, allow_nan=False))
    def take(self, seconds: float) -> None:
        """Let time pass and take what is due: none of it is in flight."""
        self.now += seconds
        before = {id(entry): entry.due for entry in self.entries()}
        taken = self.schedule.take_due(self.now)
        assert len({id(entry) for entry in taken}) == len(taken)
        for entry in taken:
            assert not any(each is entry for each in self.flying)
            assert before[id(entry)] <= self.now
            steps = (entry.due - ORIGIN) / entry.period
            assert isclose(steps, round(steps), abs_tol=1e-6)
            self.flying.append(entry)
        due = self.schedule.next_due
        assert due is None or due > self.now

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), failed=st.booleans())
    def end(self, data: st.DataObject, *, failed: bool) -> None:
        """Let a poll end."""
        entry = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        known = self.schedule.entry(entry.source.name, entry.target.name)
        settled = self.schedule.settle(outcome(entry, self.now), failed=failed)
        assert settled is known

    @rule(device=st.sampled_from("abc"), seconds=st.floats(-5, 50))
    def hasten(self, device: str, seconds: float) -> None:
        """Move a poll forward."""
        self.schedule.hasten("state", device, self.now + seconds)

    @rule(device=st.sampled_from("abc"), seconds=st.floats(0, 700))
    def postpone(self, device: str, seconds: float) -> None:
        """Leave a source alone for a while."""
        entry = self.schedule.entry("errors", device)
        if entry is not None:
            self.schedule.postpone(entry, self.now + seconds)

    @rule(device=st.sampled_from("abc"), period=st.sampled_from([0.3, 2.0, 30.0]))
    def pace(self, device: str, period: float) -> None:
        """Change a rhythm."""
        entry = self.schedule.entry("state", device)
        if entry is not None:
            self.schedule.set_period(entry, period, self.now)

    @rule(device=st.sampled_from("abc"))
    def remove(self, device: str) -> None:
        """Let a device go; what it had in flight may still end."""
        self.schedule.remove(device)
        self.flying = [e for e in self.flying if e.target.name != device]

    @invariant()
    def next_due_is_the_first_of_all(self) -> None:
        """Whoever sleeps until then misses nothing and wakes for nothing."""
        dues = [entry.due for entry in self.entries()]
        assert self.schedule.next_due == (min(dues) if dues else None)

    @invariant()
    def flight_marks_are_right(self) -> None:
        """Health says of each source whether a poll of it is going on."""
        flying = {(entry.source.name, entry.target.name) for entry in self.flying}
        told = {
            (health.source, health.unit)
            for health in self.schedule.health()
            if health.in_flight_since is not None
        }
        assert told == flying

    def entries(self) -> list[Entry]:
        """Return every entry that there is."""
        found = (
            self.schedule.entry(name, device)
            for name in ("state", "errors")
            for device in "abc"
        )
        return [entry for entry in found if entry is not None]


TestPolling = Polling.TestCase
TestPolling.settings = settings(max_examples=60, stateful_step_count=40)


@given(st.integers(1, 10**6), st.sampled_from([0.05, 0.1, 0.2, 0.3, 0.7]))
def test_a_moment_on_the_grid_is_not_due_again(steps: int, period: float) -> None:
    """In floating point it is often just before its own place on the grid."""
    schedule = Schedule(0.0)
    moment = steps * period
    due = schedule.next_on_grid(period, moment)
    assert due - moment == pytest.approx(period, rel=1e-3)
