"""A storm of lines is counted while it is read, and takes no more memory than a slice."""

import tracemalloc
from dataclasses import replace

from fabricmon.model import LogEvent, LogSeverity
from fabricmon.parse.nccl_log import NEW_LOG
from fabricmon.sources.log_cursors import Cursor
from fabricmon.sources.log_discovery import LogPlace
from fabricmon.sources.log_repeats import Repeats
from tests.sources.log_lines import began

LOG = "/var/log/nccl/nccl.n1.7.log"
MIB = 1 << 20
EVENT = LogEvent(
    kind="ib_completion_error",
    severity=LogSeverity.CRITICAL,
    rule="C1",
    file=LOG,
    line_number=1,
    offset=0,
    peer="10.0.0.2",
    pid=7,
    text="first",
)


def cursor(serial: str) -> Cursor:
    """Return a file at its beginning."""
    place = LogPlace(LOG, "configured")
    return Cursor(LOG, serial, place, 0, 0, NEW_LOG, b"", 0, 0, 0)


def taken(*events: LogEvent) -> list[LogEvent]:
    """Return what is handed on of these, each a piece of its own."""
    repeats, log = Repeats(), cursor("1:1")
    for event in events:
        repeats.add(log, (event,))
    return [each.event for each in repeats.take()]


class TestRepeats:
    def test_channels_and_threads_are_one(self) -> None:
        """A peer's port is a channel; the first line stands for all."""
        other = replace(
            EVENT, peer_port=4711, thread=12, line_number=9, offset=99, text="second"
        )
        assert taken(EVENT, other, replace(other, count=3)) == [replace(EVENT, count=5)]

    def test_what_differs_in_more_is_another(self) -> None:
        """Each peer, process and field counts, in the order in which they came."""
        others = [
            replace(EVENT, peer="10.0.0.3"),
            replace(EVENT, pid=8),
            replace(EVENT, rule="C2"),
            replace(EVENT, job="4"),
        ]
        assert taken(EVENT, *others, *others) == [
            EVENT,
            *(replace(other, count=2) for other in others),
        ]

    def test_stamps_of_another_minute_are_another(self) -> None:
        """Else nobody knew until when an error went on that was read later."""
        first, near, far = (replace(EVENT, time=60.0 + t) for t in (0, 59, 60))
        assert taken(first, near, far) == [replace(first, count=2), far]

    def test_files_are_told_apart_and_handed_on_once(self) -> None:
        """Whose job a line is about depends on its file."""
        repeats = Repeats()
        assert not repeats
        for serial in ("1:1", "1:2", "1:1"):
            repeats.add(cursor(serial), (EVENT,))
        assert repeats
        found = [(each.log.serial, each.event.count) for each in repeats.take()]
        assert found == [("1:1", 2), ("1:2", 1)]
        assert not [*repeats.take()]

    def test_a_storm_takes_as_much_memory_as_a_slice(self) -> None:
        """Its thousands of lines are never held one by one."""
        host, follower = began(poll_milliseconds=10_000, bytes_per_poll=16 << 20)
        host.append(LOG, _line(0))
        follower.polls(5)
        host.append(LOG, "".join(_line(n) for n in range(1, 6000)))
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        follower.polls(5)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(event.count for event in follower.told) == 6000
        assert len(follower.told) == 1 + 8
        assert peak - before < 2 * MIB


def _line(number: int) -> str:
    return (
        f"n1:{100 + number % 8}:{number} [0] transport/net_ib.cc:2244 NCCL WARN NET/IB: "
        f"Got completion from peer 10.0.0.2<{40_000 + number}> with status=12 opcode=0 "
        "len=0 vendor err 129 (Send) hca mlx5_0\n"
    )
