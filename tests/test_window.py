"""The window: increases, marks, spans and what they cost."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.catalogue import (
    CounterKind,
    CounterSpec,
    Directory,
    FaultClass,
    Overflow,
    Signal,
)
from fabricmon.config import Config
from fabricmon.model import Absence, Delta, Mark, Move, PortId, Reading, ReadPlan
from fabricmon.window import Window
from tests.views import SPECS, spec

PORT = PortId("mlx5_0", 1)
DAY = 86_400.0
PLAIN = spec("plain")
WIDE = Config()


class Port:
    """One port with one counter: `see` feeds a value and returns the move."""

    def __init__(self, counter: CounterSpec = PLAIN, period: float = 5.0) -> None:
        self.window = Window(WIDE)
        self.specs = (counter,)
        self.period = period
        self.at = 1000.0

    def see(self, value: int | None, after: float | None = None) -> Move | None:
        """Feed a value and return the move it makes, if any."""
        self.at += self.period if after is None else after
        reading = Reading(PORT, self.at, self.specs, (value,))
        moves = self.window.add(reading, self.period)
        return moves[0] if moves else None

    def over(self, seconds: float) -> Delta:
        """Return the increase over so many seconds."""
        delta = self.window.delta(PORT, self.specs[0], seconds)
        assert delta is not None
        return delta


def test_first_sight_that_is_zero_is_no_news() -> None:
    """A counter that starts at zero makes no move."""
    assert Port().see(0) is None


def test_first_sight_gains_nothing() -> None:
    """A value that was there before the agent is told once and counts nothing."""
    port = Port()
    move = port.see(14)
    assert move is not None
    assert (move.previous, move.value, move.increase) == (None, 14, 0)
    assert move.mark is Mark.FIRST
    assert port.over(60).increase == 0


def test_static_value_never_moves() -> None:
    """Old background values (N39) stay silent for ever."""
    port = Port()
    port.see(14)
    assert [port.see(14) for _ in range(100)] == [None] * 100


def test_increase_is_told_with_its_elapsed_time() -> None:
    """A step carries what it gained and the time since the last reading."""
    port = Port()
    port.see(3)
    move = port.see(10, after=7.5)
    assert move is not None
    assert (move.increase, move.seconds, move.mark) == (7, 7.5, Mark.OK)


def test_fall_is_a_reset_without_increase() -> None:
    """A cleared counter (N04) starts anew: no negative rate, no 2^N."""
    port = Port(spec("hw", width=64))
    port.see(1 << 40)
    move = port.see(5)
    assert move is not None
    assert (move.mark, move.increase, move.previous) == (Mark.RESET, 0, 1 << 40)
    assert port.window.resets(PORT) == 1


def test_reset_to_a_smaller_value_is_no_wrap() -> None:
    """A 64-bit counter that falls to a value above zero (N33) was reset."""
    port = Port(SPECS["packet_seq_err"])
    for value in range(0, 10_000, 100):
        port.see(value)
    move = port.see(4000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.RESET, 0)


def test_growth_after_a_reset_counts_from_the_new_value() -> None:
    """The next increase after a reset is that of the new life alone."""
    port = Port()
    for value in (100, 150, 20, 25):
        port.see(value)
    assert port.over(60).increase == 55
    assert port.over(60).mark is Mark.RESET
    assert port.over(5) == Delta(PLAIN, 5, 5.0, Mark.OK, 25)


def test_several_counters_that_fall_together_are_one_reset() -> None:
    """A driver reload clears a whole folder: one reset of the port."""
    window = Window(WIDE)
    specs = (spec("a"), spec("b"))
    window.add(Reading(PORT, 1.0, specs, (9, 9)), 5.0)
    window.add(Reading(PORT, 6.0, specs, (0, 0)), 5.0)
    assert window.resets(PORT) == 1


@pytest.mark.parametrize("width", [4, 8, 16, 32])
def test_ceiling_of_each_width_is_saturated(width: int) -> None:
    """A field that stops at all ones says so when it gets there (N06)."""
    ceiling = (1 << width) - 1
    port = Port(spec("narrow", width=width))
    port.see(ceiling - 1)
    move = port.see(ceiling)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.SATURATED, 1)
    assert port.window.saturated(PORT) == port.specs


def test_counter_saturated_before_the_first_sight_is_known() -> None:
    """A port that lived before (N05) is saturated from the first reading."""
    port = Port(SPECS["link_downed"])
    move = port.see(255)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.SATURATED, 0)
    assert port.window.saturated(PORT) == port.specs
    assert port.over(60).mark is Mark.SATURATED


def test_saturated_counter_that_rests_is_still_not_trusted() -> None:
    """Zero increase at the ceiling is not health, hours later neither."""
    port = Port(SPECS["symbol_error"])
    for value in (0, 65_535, 65_535):
        port.see(value)
    port.see(65_535, after=DAY)
    assert port.over(60) == Delta(port.specs[0], 0, 60.0, Mark.SATURATED, 65_535)


def test_value_above_the_ceiling_means_a_wider_field() -> None:
    """Some devices have 64 bits under the same name: no ceiling is assumed then."""
    port = Port(spec("port_xmit_wait", width=32))
    port.see(1 << 32)
    move = port.see((1 << 32) + 5)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.OK, 5)
    assert port.window.saturated(PORT) == ()


def test_field_that_passes_its_ceiling_is_no_longer_saturated() -> None:
    """A counter that goes on from all ones never stood at its end."""
    port = Port(SPECS["link_downed"])
    for value in (254, 255, 256):
        port.see(value)
    assert port.window.saturated(PORT) == ()
    assert port.over(5).mark is Mark.OK


def test_wider_field_has_a_ceiling_of_its_own() -> None:
    """An 8-bit name that showed more than 255 may still stop at 16 bits."""
    port = Port(SPECS["link_downed"])
    for value in (256, 65_535):
        port.see(value)
    assert port.window.saturated(PORT) == port.specs


def test_cleared_counter_is_saturated_no_more() -> None:
    """After a reset the counter can tell again."""
    port = Port(SPECS["link_downed"])
    port.see(255)
    port.see(0)
    assert port.window.saturated(PORT) == ()
    port.see(1)
    assert port.over(5) == Delta(port.specs[0], 1, 5.0, Mark.OK, 1)


def test_late_reading_is_a_gap_with_its_true_time() -> None:
    """After missed polls (N31) the increase counts, over the time it took."""
    port = Port()
    port.see(0)
    move = port.see(60, after=100.0)
    assert move is not None
    assert (move.increase, move.seconds, move.mark) == (60, 100.0, Mark.GAP)
    assert port.over(10) == Delta(PLAIN, 60, 100.0, Mark.GAP, 60)


def test_two_missed_polls_are_no_gap() -> None:
    """A poll that is late by less than the limit keeps its trust."""
    port = Port()
    port.see(0)
    move = port.see(1, after=15.0)
    assert move is not None
    assert move.mark is Mark.OK


def test_gap_of_a_resting_counter_is_not_news() -> None:
    """Nothing gained over a gap is nothing gained."""
    port = Port()
    port.see(7)
    assert port.see(7, after=DAY) is None
    assert port.over(3600) == Delta(PLAIN, 0, 3600.0, Mark.OK, 7)


def wrapping(previous: int, value: int) -> Move | None:
    """Let a 32-bit queue counter run at 1000/s up to ``previous``, then see value."""
    port = Port(SPECS["packet_seq_err"])
    for poll in range(60, -1, -1):
        port.see(previous - poll * 5000)
    return port.see(value)


def test_busy_field_near_its_end_wraps() -> None:
    """A queue counter of 32 bits that restarts at its end has gone on."""
    move = wrapping((1 << 32) - 1000, 4000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.OK, 5000)


def test_busy_field_far_from_its_end_was_reset() -> None:
    """The same fall from the middle of the field is a reset."""
    move = wrapping(1 << 31, 4000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.RESET, 0)


def test_wrap_that_is_too_fast_is_a_reset() -> None:
    """A fall that would need a hundred times the rate is not believed."""
    move = wrapping((1 << 32) - 1000, 500_000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.RESET, 0)


def test_idle_field_near_its_end_was_reset() -> None:
    """A counter that did not move has no rate that could explain a wrap."""
    port = Port(SPECS["packet_seq_err"])
    for _ in range(10):
        port.see((1 << 32) - 10)
    move = port.see(3)
    assert move is not None
    assert move.mark is Mark.RESET


@pytest.mark.parametrize("overflow", [Overflow.SATURATES, Overflow.NEVER])
def test_only_wrapping_fields_wrap(overflow: Overflow) -> None:
    """For every other field a fall is a reset, however near the end it was."""
    port = Port(spec("narrow", width=32, overflow=overflow))
    for poll in range(60, -1, -1):
        port.see((1 << 32) - 1001 - poll * 5000)
    move = port.see(4000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.RESET, 0)


def test_all_ones_is_not_a_value() -> None:
    """What ionic answers for an unknown counter is neither a value nor a rise."""
    port = Port()
    port.see(5)
    assert port.see((1 << 64) - 1) is None
    assert port.window.value(PORT, PLAIN) is None
    assert [item.file for item in port.window.unreadable(PORT)] == ["plain"]
    move = port.see(6)
    assert move is not None
    assert (move.increase, move.mark) == (1, Mark.OK)


def test_unreadable_counter_has_no_value_and_goes_on_later() -> None:
    """A read error (N15) is not zero; the counter goes on from its last value."""
    port = Port()
    port.see(5)
    assert port.see(None) is None
    assert port.window.value(PORT, PLAIN) is None
    assert port.over(5).value is None
    move = port.see(8)
    assert move is not None
    assert (move.increase, move.seconds, move.mark) == (3, 10.0, Mark.OK)


def test_counter_that_was_never_read_has_no_increase() -> None:
    """Never read is not zero."""
    port = Port()
    port.see(None)
    assert port.window.delta(PORT, PLAIN, 60) is None
    assert port.window.specs(PORT) == ()
    assert port.window.delta(PortId("mlx5_9", 1), PLAIN, 60) is None


def test_unreadable_files_are_named_and_absent_ones_are_not() -> None:
    """A file that fails is reported; one that does not exist is no failure."""
    window = Window(WIDE)
    specs = (spec("a"), spec("b"), spec("c"))
    fails = Absence("b", "EINVAL")
    absent = (Absence("a", "ENOENT"), fails)
    window.add(Reading(PORT, 1.0, specs, (None, None, 3), absent), 5.0)
    assert window.unreadable(PORT) == (fails,)


def test_traffic_moves_are_not_told_but_counted() -> None:
    """Data counters move at every poll: their sums are there, no moves are."""
    port = Port(SPECS["port_rcv_data"], period=15.0)
    assert [port.see(value) for value in (100, 200, 300)] == [None] * 3
    assert port.over(30) == Delta(port.specs[0], 200, 30.0, Mark.OK, 300)


def test_traffic_that_falls_is_told() -> None:
    """A cleared data counter tells that someone cleared the port."""
    port = Port(SPECS["port_rcv_data"])
    port.see(100)
    move = port.see(0)
    assert move is not None
    assert move.mark is Mark.RESET


@pytest.mark.parametrize("kind", [CounterKind.GAUGE, CounterKind.KNOB])
def test_gauges_have_values_and_no_increase(kind: CounterKind) -> None:
    """What goes up and down, or is a setting, is never told and never reset."""
    gauge = replace(PLAIN, kind=kind)
    port = Port(gauge)
    assert [port.see(value) for value in (5, 9, 2)] == [None] * 3
    assert port.window.delta(PORT, gauge, 60) is None
    assert port.window.value(PORT, gauge) == 2
    assert port.window.resets(PORT) == 0


def test_span_longer_than_known_says_so() -> None:
    """A span that begins before the first sight covers what is known."""
    port = Port()
    port.see(0)
    port.see(2)
    assert port.over(3600) == Delta(PLAIN, 2, 5.0, Mark.FIRST, 2)


def test_span_within_rest_covers_what_was_asked() -> None:
    """Where the counter rested, a span may begin between two readings."""
    port = Port()
    for value in (0, 0, 0, 2):
        port.see(value)
    assert port.over(7.0) == Delta(PLAIN, 2, 7.0, Mark.OK, 2)


def test_reading_older_than_the_last_is_dropped() -> None:
    """A late answer of a slow device does not undo a newer one."""
    port = Port()
    port.see(5)
    assert port.see(2, after=-3.0) is None
    assert port.window.value(PORT, PLAIN) == 5


def test_groups_of_a_port_keep_their_own_times() -> None:
    """Files that are read at different moments have different elapsed times."""
    window = Window(WIDE)
    one, two = (spec("a"),), (spec("b"),)
    for specs, at, value in ((one, 0.0, 0), (two, 1.0, 0), (one, 5.0, 1)):
        window.add(Reading(PORT, at, specs, (value,)), 5.0)
    (move,) = window.add(Reading(PORT, 7.5, two, (4,)), 5.0)
    assert move.seconds == 6.5


def test_counters_are_found_by_what_they_mean() -> None:
    """Detectors ask for a signal, whatever the driver calls it."""
    window = Window(WIDE)
    specs = (SPECS["symbol_error"], SPECS["link_downed"])
    window.add(Reading(PORT, 1.0, specs, (0, 0)), 5.0)
    other = (SPECS["rx_pcs_symbol_err_phy"],)
    window.add(Reading(PORT, 1.0, other, (0,)), 5.0)
    assert window.by_signal(PORT, Signal.SYMBOL_ERROR) == (specs[0], other[0])
    assert window.by_signal(PORT, Signal.CNP_SENT) == ()
    assert window.by_signal(PortId("mlx5_9", 1), Signal.SYMBOL_ERROR) == ()


def test_new_list_of_files_keeps_the_past() -> None:
    """A new identity brings a new tuple of the same counters: they go on."""
    window = Window(WIDE)
    a, b, c = spec("a"), spec("b"), spec("c")
    window.add(Reading(PORT, 0.0, (a, b), (1, 1)), 5.0)
    window.add(Reading(PORT, 5.0, (a, b), (2, 1)), 5.0)
    (move,) = window.add(Reading(PortId("mlx5_0", 1), 10.0, (b, a, c), (4, 2, 0)), 5.0)
    assert (move.spec, move.increase, move.seconds) == (b, 3, 5.0)
    assert window.specs(PORT) == (a, b, c)
    assert window.value(PORT, c) == 0


def test_file_that_leaves_the_list_has_no_value() -> None:
    """A counter that is no longer read is not shown as if it were."""
    window = Window(WIDE)
    a, b = spec("a"), spec("b")
    window.add(Reading(PORT, 0.0, (a, b), (1, 1)), 5.0)
    window.add(Reading(PORT, 5.0, (a,), (1,)), 5.0)
    assert window.value(PORT, b) is None
    (move,) = window.add(Reading(PORT, 10.0, (a, b), (1, 3)), 5.0)
    assert (move.increase, move.seconds) == (2, 10.0)


def test_files_that_are_read_no_longer_have_no_values() -> None:
    """Where a whole list of files goes, none is shown, and none counts as full."""
    window = Window(WIDE)
    a, b, c = spec("a"), spec("b"), spec("c", width=8)
    window.add(Reading(PORT, 0.0, (a, c), (1, 255)), 5.0)
    window.add(Reading(PORT, 0.0, (b,), (1,)), 5.0)
    assert window.saturated(PORT) == (c,)
    assert window.leave(ReadPlan(PORT, (a, c), ("/a", "/c"), 0))
    assert [window.value(PORT, each) for each in (a, b, c)] == [None, 1, None]
    assert window.saturated(PORT) == ()
    assert not window.leave(ReadPlan(PORT, (a, c), ("/a", "/c"), 0))
    (move,) = window.add(Reading(PORT, 10.0, (a, c), (3, 255)), 5.0)
    assert (move.increase, move.seconds) == (2, 10.0)
    assert window.saturated(PORT) == (c,)


def test_generic_spec_of_the_same_file_is_the_same_counter() -> None:
    """A spec made anew for an unknown file goes on where the old one was."""
    window = Window(WIDE)
    old, new = (replace(PLAIN, generic=True) for _ in range(2))
    window.add(Reading(PORT, 0.0, (old,), (1,)), 5.0)
    (move,) = window.add(Reading(PORT, 5.0, (new,), (4,)), 5.0)
    assert move.increase == 3
    assert window.specs(PORT) == (new,)
    assert window.delta(PORT, old, 5) == window.delta(PORT, new, 5)


def test_same_name_in_another_folder_is_another_counter() -> None:
    """Files are told apart by folder and name."""
    window = Window(WIDE)
    specs = (PLAIN, replace(PLAIN, directory=Directory.HW_COUNTERS))
    window.add(Reading(PORT, 0.0, specs, (1, 100)), 5.0)
    assert [window.value(PORT, each) for each in specs] == [1, 100]


def test_forgotten_device_is_seen_first_again() -> None:
    """A device that comes back after it was given up has no past."""
    port = Port()
    port.see(5)
    port.window.forget("mlx5_0")
    assert port.window.specs(PORT) == ()
    move = port.see(9)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.FIRST, 0)


def test_restarted_driver_gains_nothing() -> None:
    """After a reload (N03 A) a kept and grown value is a first sight."""
    port = Port()
    port.see(5)
    port.window.rebaseline("mlx5_0", "driver loaded again")
    move = port.see(900)
    assert move is not None
    assert (move.mark, move.increase, move.previous) == (Mark.FIRST, 0, None)


def test_restarted_driver_that_cleared_its_counters_was_reset() -> None:
    """After a reload (N03 B) a smaller value is told as the reset that it is."""
    port = Port()
    port.see(5)
    port.window.rebaseline("mlx5_0", "driver loaded again")
    move = port.see(1)
    assert move is not None
    assert (move.mark, move.previous, move.increase) == (Mark.RESET, 5, 0)
    move = port.see(3)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.OK, 2)


def test_restart_of_one_device_leaves_the_others_alone() -> None:
    """Only the device that was restarted begins anew."""
    port = Port()
    port.see(5)
    port.window.rebaseline("mlx5_1", "driver loaded again")
    move = port.see(6)
    assert move is not None
    assert move.increase == 1


def test_flap_during_an_agent_restart_is_caught() -> None:
    """A counter that remembers outages tells of one while nobody looked (N30)."""
    before = Port(SPECS["link_downed"])
    before.see(3)
    after = Port(SPECS["link_downed"])
    after.at = before.at + 60.0
    after.window.resume(before.window.save("boot-1"), "boot-1")
    move = after.see(4)
    assert move is not None
    assert (move.previous, move.increase, move.seconds) == (3, 1, 65.0)
    assert move.mark is Mark.GAP


def test_other_counters_begin_anew_after_an_agent_restart() -> None:
    """Errors that grew while the agent was away (N30) are no burst."""
    before = Port(SPECS["symbol_error"])
    before.see(3)
    after = Port(SPECS["symbol_error"])
    after.window.resume(before.window.save("boot-1"), "boot-1")
    move = after.see(40_000)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.FIRST, 0)


def test_saved_values_of_another_boot_are_not_used() -> None:
    """A reboot sets counters to zero and up again (N01): no flap."""
    before = Port(SPECS["link_downed"])
    before.see(1)
    after = Port(SPECS["link_downed"])
    after.window.resume(before.window.save("boot-1"), "boot-2")
    move = after.see(3)
    assert move is not None
    assert (move.mark, move.increase) == (Mark.FIRST, 0)


@pytest.mark.parametrize("saved", [b"", b"{}", b"\xff", b'{"boot_id": 1}'])
def test_broken_saved_state_is_refused(saved: bytes) -> None:
    """What is no saved window is a ValueError, nothing else."""
    with pytest.raises(ValueError):
        Window(WIDE).resume(saved, "boot-1")


def test_memory_of_a_counter_is_bounded() -> None:
    """A counter that moves at every poll for two days stays below 4 KiB."""
    port = Port(SPECS["port_rcv_data"])
    for value in range(200):
        port.see(value)
    tracemalloc.start()
    for value in range(200, 30_000):
        port.see(value)
    # Threads of other tests in this process may allocate in other modules meanwhile.
    ours = [
        tracemalloc.Filter(inclusive=True, filename_pattern=f"*/fabricmon/{name}.py")
        for name in ("window", "history")
    ]
    gc.collect()  # frees what Python keeps of tuples for the next ones
    kept = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
    assert kept
    tracemalloc.stop()
    assert sum(each.size for each in kept) < 4096


def test_recent_past_is_fine_and_old_past_is_exact() -> None:
    """After days the last minutes are known by the poll, two hours by the minute."""
    port = Port(spec("errors"))
    for value in range(20_000):
        port.see(value)
    assert port.over(300) == Delta(port.specs[0], 60, 300.0, Mark.OK, 19_999)
    long = port.over(7500)
    assert 7500 <= long.seconds <= 8000
    assert long.increase == round(long.seconds / 5)


STEPS = st.lists(
    st.tuples(
        st.floats(0.1, 40.0).map(lambda x: round(x, 3)),
        st.one_of(st.none(), st.integers(0, 300), st.just(0), st.just(255)),
    ),
    min_size=2,
    max_size=400,
)


@given(
    steps=STEPS,
    ask=st.lists(st.floats(0.1, 9000.0), min_size=1, max_size=5),
    width=st.sampled_from([8, 64]),
    fault_class=st.sampled_from([FaultClass.LINK, FaultClass.TRAFFIC]),
)
def test_spans_are_the_sum_of_the_steps_within(
    steps: list[tuple[float, int | None]],
    ask: list[float],
    width: int,
    fault_class: FaultClass,
) -> None:
    """Whatever comes in, a span is exact for the seconds it names, never negative."""
    port = Port(spec("any", width=width, fault_class=fault_class))
    gained: list[tuple[float, int]] = []
    last: int | None = None
    for after, value in steps:
        port.see(value, after)
        if value is not None:
            gained.append((port.at, max(value - last, 0) if last is not None else 0))
            last = value
    if not gained:
        assert port.window.delta(PORT, port.specs[0], 60) is None
        return
    end = gained[-1][0]
    for seconds in ask:
        delta = port.over(seconds)
        begin = end - delta.seconds
        assert delta.increase == sum(n for at, n in gained if at > begin + 1e-6)
        assert delta.increase >= 0


@given(
    values=st.lists(st.integers(0, 5), min_size=3, max_size=100),
    cut=st.integers(1, 99),
)
def test_any_split_of_time_gives_the_same_sum(values: list[int], cut: int) -> None:
    """At sample times two spans add up to the whole."""
    port = Port()
    total = 0
    for value in values:
        total += value
        port.see(total)
    cut = min(cut, len(values) - 1)
    late = port.over(5.0 * cut)
    assert late.seconds == pytest.approx(5.0 * cut)
    assert late.increase == sum(values[-cut:])
    whole = port.over(5.0 * (len(values) - 1))
    assert whole.increase - late.increase == sum(values[1:-cut])


@given(
    values=st.lists(
        st.one_of(st.none(), st.integers(0, (1 << 64) - 1)), min_size=1, max_size=30
    ),
    overflow=st.sampled_from(Overflow),
    width=st.sampled_from([4, 8, 16, 32, 64]),
)
def test_increases_are_never_negative(
    values: list[int | None], overflow: Overflow, width: int
) -> None:
    """No sequence of values makes an increase below zero or breaks the window."""
    port = Port(spec("any", width=width, overflow=overflow))
    for value in values:
        move = port.see(value)
        assert move is None or move.increase >= 0
        delta = port.window.delta(PORT, port.specs[0], 3600)
        assert delta is None or delta.increase >= 0


def test_name_that_is_no_text_is_not_saved() -> None:
    """A device of a broken name costs the others nothing."""
    window = Window(WIDE)
    for device in ("mlx\udcff", "mlx5_1"):
        specs = (SPECS["link_downed"],)
        window.add(Reading(PortId(device, 1), 1.0, specs, (3,), ()), 5.0)
    assert b"mlx5_1" in window.save("boot-1")
