"""A log read piece by piece says what it says as a whole."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, LogState, read_log

DATA = Path(__file__).parent.parent / "data" / "nccl"
LOGS = sorted(DATA.glob("*.log"))
TABLE = RuleTable.of()


def whole(data: bytes) -> tuple[LogEvent, ...]:
    """Return the events of a log that is read at once."""
    return read_log(data, NEW_LOG, "x.log", TABLE, final=True).events


def in_pieces(data: bytes, cuts: list[int]) -> tuple[LogEvent, ...]:
    """Return the events of a log that is cut at these places."""
    state: LogState = NEW_LOG
    found: list[LogEvent] = []
    begin = 0
    for end in [*sorted(cuts), len(data)]:
        batch = read_log(data[begin:end], state, "x.log", TABLE)
        found += batch.events
        state, begin = batch.state, end
    return (*found, *read_log(b"", state, "x.log", TABLE, final=True).events)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
@settings(max_examples=10)
@given(data=st.data())
def test_cuts_do_not_matter(log: Path, data: st.DataObject) -> None:
    """A file that grows while it is read says the same in the end."""
    text = log.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    assert in_pieces(text, cuts) == whole(text)


def test_events_name_their_file_line_and_offset() -> None:
    """Somebody will want to look."""
    text = b"nothing\n\nn1:7:8 [0] x.cc:1 NCCL WARN NET/IB : Got async event : port error\n"
    (event,) = whole(text)
    assert (event.file, event.line_number, event.offset) == ("x.log", 3, 9)


def test_a_state_can_be_read_from_twice() -> None:
    """A replay may run a poll twice: nothing in a state changes."""
    log = (DATA / "15-no-device-plugin-socket.log").read_bytes()
    half = len(log) // 2
    state = read_log(log[:half], NEW_LOG, "x", TABLE).state
    once = read_log(log[half:], state, "x", TABLE, final=True)
    assert read_log(log[half:], state, "x", TABLE, final=True) == once


def test_lines_are_counted() -> None:
    """Also those that say nothing."""
    assert read_log(b"a\nb\nc", NEW_LOG, "x", TABLE, final=True).lines == 3
