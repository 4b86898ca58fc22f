"""A recording of logs, followed again by whoever replays it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.config import Config, Logs
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace_read import TraceReader
from tests.fake_host import FakeHost
from tests.sources.log_lines import Follower, _marked, lines, texts
from tests.traces import read_all

__all__ = ["_marked"]
pytestmark = pytest.mark.usefixtures("_marked")
LOG = "/var/log/nccl/n1.log"
CONFIG = Config(logs=Logs(start_seconds=1e6))


class Recorded:
    """A node that is followed and recorded at once."""

    def __init__(self, folder: Path) -> None:
        self.node = FakeHost()
        self.trace = folder / "n.trace.jsonl"
        self.recorder = RecordingHost(self.node, self.trace, "n")
        self.follower = Follower(self.recorder, CONFIG, self.pass_time)
        self.read = self.follower.polls(6)

    def pass_time(self, seconds: float) -> None:
        self.node.now += seconds

    def replay(self) -> list[str]:
        """End the recording; return what its replay tells."""
        self.read += self.follower.polls(8)
        self.recorder.close()
        assert self.recorder.error is None
        assert self.recorder.unfaithful == 0
        host = ReplayHost(TraceReader(self.trace))
        follower = Follower(host, CONFIG, lambda s: host.advance(host.monotonic() + s))
        found = follower.polls(int(self.node.now - 1000) + 8)
        host.close()
        return found


class TestRecording:
    def test_appended_cut_and_renamed(self, tmp_path: Path) -> None:
        """Each in the words of the format."""
        made = Recorded(tmp_path)
        made.node.append(LOG, lines(1))
        made.read += made.follower.polls(6)
        made.node.truncate(LOG)
        made.node.append(LOG, lines(2))
        made.read += made.follower.polls(6)
        made.node.rotate(LOG, f"{LOG}.1")
        made.node.append(LOG, lines(3))
        assert sorted(made.replay()) == sorted(made.read) == texts(1, 2, 3)
        records, problems = read_all(made.trace)
        assert problems == []
        assert [r.truncate for r in records if r.truncate] == [[LOG]]
        assert [list(r.rotate) for r in records if r.rotate] == [[LOG]]

    def test_a_log_that_was_there_holds_what_was_read_of_it(
        self, tmp_path: Path
    ) -> None:
        """Its megabytes of before are nobody's business."""
        node = FakeHost()
        node.append(LOG, "x" * (1 << 20) + "\n" + lines(1))
        trace = tmp_path / "n.trace.jsonl"
        recorder = RecordingHost(node, trace, "n")
        follower = Follower(recorder, Config(), lambda _: None)
        assert follower.poll() == texts(1)
        recorder.close()
        assert trace.stat().st_size < 1 << 18

    @given(
        st.lists(
            st.sampled_from(["append", "poll", "cut", "rename"]),
            max_size=12,
        )
    )
    @settings(
        max_examples=10,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_a_replay_tells_the_same(
        self, tmp_path_factory: pytest.TempPathFactory, steps: list[str]
    ) -> None:
        """Whatever happens to the file, each line once."""
        made = Recorded(tmp_path_factory.mktemp("trace"))
        count = renames = 0
        for step in steps:
            if step == "append":
                count += 1
                made.node.append(LOG, lines(count))
            elif step == "poll":
                made.read += made.follower.polls(1)
            elif count:
                made.read += made.follower.polls(6)
                if step == "cut":
                    made.node.truncate(LOG)
                else:
                    renames += 1
                    made.node.rotate(LOG, f"{LOG}.{renames}")
                    made.node.append(LOG, "")
        again = made.replay()
        assert sorted(again) == sorted(made.read)
        assert sorted(again) == sorted(texts(*range(1, count + 1)))
