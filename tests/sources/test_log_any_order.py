"""Whatever happens to a log file in whatever order: each line is told once."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fake_host import FakeHost
from tests.sources.log_lines import Follower, _marked, began, lines, texts

LOG = "/var/log/nccl/nccl.n1.7.log"
COPIES = ("/var/log/nccl/*.log", "/var/log/nccl/*.log.*")

__all__ = ["_marked"]
pytestmark = pytest.mark.usefixtures("_marked")
Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "begin", "rest", "rename", "cut", "copy", "poll", "restart"]
        ),
        st.integers(1, 3),
    ),
    max_size=30,
)


class Writer:
    """Writes numbered lines and rotates as told; polls before anything is cut away.

    That is what can be promised: what is cut before anyone looked is lost.
    """

    def __init__(self, follower: Follower, host: FakeHost) -> None:
        self.follower = follower
        self.host = host
        self.count = 0
        self.copies = 0
        self.half = ""
        self.read: list[str] = []
        host.append(LOG, "")

    def do(self, step: Step) -> None:
        """Do one step."""
        name, number = step
        getattr(self, name)(number)

    def append(self, number: int) -> None:
        """Write whole lines."""
        self.rest(1)
        first = self.count + 1
        self.count += number
        self.host.append(LOG, lines(*range(first, self.count + 1)))

    def poll(self, number: int) -> None:
        """Let the follower look."""
        self.read += self.follower.polls(number)

    def rest(self, _number: int) -> None:
        """Write the end of a line that was begun."""
        if self.half:
            self.host.append(LOG, "\n")
            self.half = ""

    def rename(self, _number: int) -> None:
        """Rotate by renaming to a name that patterns find."""
        self.rest(1)
        self.copies += 1
        self.host.rotate(LOG, f"{LOG}.{self.copies}")
        self.host.append(LOG, "")

    def cut(self, _number: int) -> None:
        """Cut the file once all was read, as NCCL does on opening it again."""
        self.rest(1)
        self.poll(6)
        self.host.truncate(LOG)

    def copy(self, _number: int) -> None:
        """Rotate by copying within the patterns; the copy may hold unread lines."""
        self.rest(1)
        self.copies += 1
        held = self.host.read(LOG)
        assert isinstance(held, bytes)
        self.host.append(f"{LOG}.{self.copies}", held)
        self.host.truncate(LOG)

    def restart(self, _number: int) -> None:
        """Start a new agent with what was saved at the last poll."""
        self.poll(6)
        self.follower.restart()
        self.host.now += 1

    def begin(self, _number: int) -> None:
        """Begin a line, unless one has begun."""
        if not self.half:
            self.count += 1
            self.half = f"MARK {self.count}"
            self.host.append(LOG, self.half)


class TestAnyOrder:
    @given(STEPS)
    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_every_line_is_told_once(self, steps: list[Step]) -> None:
        """Whatever is appended, renamed, cut after reading, and however polls fall."""
        host, follower = began(paths=COPIES)
        writer = Writer(follower, host)
        writer.poll(6)
        for step in steps:
            writer.do(step)
        writer.rest(1)
        writer.poll(8)
        assert sorted(writer.read) == sorted(texts(*range(1, writer.count + 1)))
