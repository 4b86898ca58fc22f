"""A parser for tests of following: every line that holds ``MARK`` is an event.

What a line means is the rule table's; what is tested here is which lines are read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fabricmon.config import Config, Logs
from fabricmon.host.protocol import Host
from fabricmon.model import LogEvent, LogNews, LogSeverity, Target
from fabricmon.parse.log_lines import Anchors, read_lines
from fabricmon.parse.nccl_log import LogBatch, LogState
from fabricmon.sources import log_reading, nccl_log
from tests.fake_host import FakeHost

MARK = "MARK"
_ANCHORS = Anchors.of([MARK.encode()])


def read_marked(
    data: bytes, state: LogState, file: str, _table: object, *, final: bool = False
) -> LogBatch:
    """Stand for `fabricmon.parse.nccl_log.read_log`; ``pid=N`` is taken as such."""
    batch = read_lines(state.carry, data, _ANCHORS, final=final)
    events = tuple(
        LogEvent(
            "marked",
            LogSeverity.INFO,
            "T1",
            file,
            line.line_number,
            line.offset,
            text=line.text,
            status=line.text,
            pid=line.pid,
            host=line.host,
        )
        for line in batch.lines
    )
    return LogBatch(
        events,
        replace(state, carry=batch.carry),
        batch.lines_seen,
        batch.skipped_bytes,
        batch.skipped_lines,
    )


@pytest.fixture
def _marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(log_reading, "read_log", read_marked)
        patch.setattr(nccl_log, "rule_table", lambda _rules: None)
        yield


@dataclass
class Follower:
    """Polls a host again and again, as a pipeline would; ``pass_time`` moves its clock."""

    host: Host
    config: Config
    pass_time: Callable[[float], None]
    carried: object = None
    saved: bytes = b""
    told: list[LogEvent] = field(default_factory=list)
    news: LogNews | None = None

    def poll(self, seconds: float = 1.0) -> list[str]:
        """Let time pass and poll; return the texts of new events, repeats counted."""
        self.pass_time(seconds)
        records = nccl_log.poll(self.host, Target(carried=self.carried), self.config)
        if not records:
            return []
        (self.news,) = records
        self.carried, self.saved = self.news.cursors, self.news.saved
        self.told += self.news.events
        return [e.text for e in self.news.events for _ in range(e.count)]

    def polls(self, number: int) -> list[str]:
        """Poll several times; return all texts."""
        return [text for _ in range(number) for text in self.poll()]

    def restart(self) -> None:
        """Go on as a new agent, with nothing but what was saved."""
        self.carried = self.saved

    @property
    def latest(self) -> LogNews:
        """The last news there was."""
        assert self.news is not None
        return self.news


def lines(*numbers: int) -> str:
    """Return marked lines."""
    return "".join(f"{MARK} {number}\n" for number in numbers)


def texts(*numbers: int) -> list[str]:
    """Return what is told of `lines`."""
    return [f"{MARK} {number}" for number in numbers]


def follow(host: FakeHost, **logs: Any) -> Follower:
    """Follow the logs of a host; keys are those of the configuration."""

    def pass_time(seconds: float) -> None:
        host.now += seconds

    return Follower(host, Config(logs=Logs(**logs)), pass_time)


def began(**logs: Any) -> tuple[FakeHost, Follower]:
    """Return a host without logs that is followed already."""
    host = FakeHost()
    follower = follow(host, **logs)
    follower.poll()
    return host, follower
