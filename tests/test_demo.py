"""The embedded node: its trace, its story, and the command that plays it."""

import gzip
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

from fabricmon.cli.demo import SPEED, TRACE
from fabricmon.model import IncidentState, PortSnapshot, Verdict
from fabricmon.replaying import Change, Replay
from tests import traces
from tests.support.demo import Demo
from tests.support.servers import answers, wait_until

ROOT = Path(__file__).parent.parent
GENERATOR = ROOT / "tools" / "demo_trace.py"
SHIPPED = Path(str(files("fabricmon"))) / TRACE

FIRST_SECONDS = 10
"""Who starts the demo sees the first finding before so many seconds are over."""

STORY_SECONDS = 100
"""By then everything has happened and is resolved."""

WAIT = 20.0


@dataclass
class Story:
    """What the agent concluded about the embedded node."""

    end: float
    changes: tuple[Change, ...]
    ports: tuple[PortSnapshot, ...]
    verdict: Verdict

    def lives(self, state: IncidentState) -> list[tuple[str, str | None]]:
        """Return kind and device of what opened or was resolved, in order."""
        found = [change.incident for change in self.changes]
        return [
            (each.finding.kind, each.finding.subject.device)
            for each in found
            if each.state is state
        ]


@pytest.fixture(scope="module")
def story() -> Story:
    """Replay the embedded trace, once for all tests."""
    replay = Replay(SHIPPED)
    changes = tuple(replay.changes())
    assert replay.problems == ()
    snapshot = replay.pipeline.snapshot
    return Story(replay.host.end, changes, snapshot.ports, snapshot.verdict)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Start demos, and stop them."""
    started: list[Demo] = []

    def begin(*words: str, **more: object) -> Demo:
        started.append(Demo(tmp_path, *words, **more))  # type: ignore[arg-type]
        started[-1].start()
        return started[-1]

    yield begin
    for demo in started:
        demo.stop()


def run(demo: Demo) -> subprocess.CompletedProcess[str]:
    """Run a demo to its end."""
    return subprocess.run(
        demo.command, capture_output=True, text=True, timeout=WAIT, check=False
    )


def generator() -> ModuleType:
    """Load the file that writes the trace."""
    spec = importlib.util.spec_from_file_location("demo_trace", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def short(folder: Path, seconds: float = 20) -> str:
    """Write a trace of a node without devices that ends soon."""
    return str(traces.write(folder, [{"t": 0, "dir": ["/sys"]}, {"t": seconds}]))


class TestTrace:
    def test_is_fresh(self, tmp_path: Path) -> None:
        """The generator writes the trace that is committed.

        Compared unpacked: versions of zlib pack the same text differently.
        """
        again = tmp_path / TRACE
        generator().write(again)
        assert gzip.decompress(again.read_bytes()) == gzip.decompress(
            SHIPPED.read_bytes()
        ), "run: make generate"

    def test_goes_to_the_package(self) -> None:
        """Without an argument the generator writes what is committed."""
        assert generator().PLACE == ROOT / "fabricmon" / TRACE

    def test_is_small(self) -> None:
        """A toy must not make the package heavy."""
        assert SHIPPED.stat().st_size < 200_000

    def test_page_is_in_the_package(self) -> None:
        """Style and script come with the wheel, as the trace does."""
        sinks = files("fabricmon.sinks")
        assert all(sinks.joinpath(f"page.{kind}").is_file() for kind in ("css", "js"))


class TestStory:
    def test_first_finding_comes_soon(self, story: Story) -> None:
        """At the usual speed something is to be seen within ten seconds."""
        first = story.changes[0]
        assert first.incident.state is IncidentState.OPEN
        assert first.t <= FIRST_SECONDS * SPEED

    def test_everything_happens(self, story: Story) -> None:
        """A flap, bit errors, an outage and half a rate, each on its own rail."""
        assert story.lives(IncidentState.OPEN) == [
            ("port_flap", "mlx5_3"),
            ("link_errors", "mlx5_5"),
            ("port_down", "mlx5_6"),
            ("port_flap", "mlx5_6"),
            ("rate_degraded", "mlx5_6"),
        ]

    def test_everything_heals(self, story: Story) -> None:
        """What opened is resolved in time, and the node ends as it began."""
        resolved = story.lives(IncidentState.RESOLVED)
        assert sorted(resolved) == sorted(story.lives(IncidentState.OPEN))
        assert story.changes[-1].t <= STORY_SECONDS * SPEED
        assert story.verdict is Verdict.HEALTHY
        assert {port.verdict for port in story.ports} == {Verdict.HEALTHY}

    def test_pause_before_it_starts_again(self, story: Story) -> None:
        """The healthy node is to be seen for a moment, but nobody waits long."""
        assert 5 <= (story.end - story.changes[-1].t) / SPEED <= 20
        assert story.end <= STORY_SECONDS * SPEED

    def test_node_is_a_whole_one(self, story: Story) -> None:
        """Eight rails, storage and management are told apart."""
        rails = [port.info.rail for port in story.ports]
        roles = [port.info.role.value for port in story.ports]
        assert sorted(rail for rail in rails if isinstance(rail, int)) == [*range(8)]
        assert [roles.count(role) for role in ("compute", "storage", "management")] == [
            8,
            2,
            1,
        ]
        assert all(port.traffic_received for port in story.ports)


class TestCommand:
    def test_ends_with_the_trace(self, tmp_path: Path) -> None:
        """With --once the demo is over when the trace is, and says where it was."""
        words = ["--once", "--speed", "1000", "--trace", short(tmp_path)]
        demo = Demo(tmp_path, *words)
        done = run(demo)
        assert done.returncode == 0, done.stderr
        assert f"Page:    http://127.0.0.1:{demo.port}/" in done.stdout
        assert "it ends by itself" in done.stdout

    def test_starts_again_on_the_same_address(
        self, start: Callable[..., Demo], tmp_path: Path
    ) -> None:
        """At the end of the trace page and metrics come back where they were."""
        demo = start("--speed", "20", "--trace", short(tmp_path))
        wait_until(lambda: len(demo.lines("agent_ready")) >= 3, WAIT, "it starts again")
        wait_until(lambda: answers(f"{demo.url}/now"), WAIT, "the page answers")
        assert "node01" in demo.page()
        metrics = f"http://127.0.0.1:{demo.metrics_port}/metrics"
        wait_until(lambda: answers(metrics), WAIT, "the metrics answer")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_ends_when_it_is_told(
        self,
        start: Callable[..., Demo],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        number: signal.Signals,
    ) -> None:
        """SIGTERM and Ctrl-C end it cleanly; it leaves no files."""
        folder = tmp_path / "tmp"
        folder.mkdir()
        monkeypatch.setenv("TMPDIR", str(folder))
        demo = start()
        assert len(list(folder.iterdir())) == 1
        assert demo.end(number) == 0
        assert list(folder.iterdir()) == []
        assert len(demo.lines("agent_stopped")) == 1

    def test_trace_that_is_none(self, tmp_path: Path) -> None:
        """A file that is no trace is one clear error."""
        wrong = tmp_path / "wrong.jsonl"
        wrong.write_text("nothing\n")
        demo = Demo(tmp_path, "--trace", str(wrong))
        done = run(demo)
        assert done.returncode != 0
        assert "wrong.jsonl" in done.stderr
        assert "Traceback" not in done.stderr

    def test_trace_that_is_absent(self, tmp_path: Path) -> None:
        """Addresses at which nothing will answer are not announced."""
        done = run(Demo(tmp_path, "--trace", str(tmp_path / "absent")))
        assert done.returncode != 0
        assert done.stdout == ""
        assert "absent" in done.stderr

    def test_check_reaches_it(self, start: Callable[..., Demo]) -> None:
        """The demo says what to type, and that asks the demo."""
        said = start().log.read_text()
        (line,) = (x for x in said.splitlines() if x.startswith("Check:"))
        setting, *words = shlex.split(line.removeprefix("Check:"))
        name, _, folder = setting.partition("=")
        assert words == ["fabricmon", "check"]
        done = subprocess.run(
            [sys.executable, "-m", "fabricmon", "check"],
            env=os.environ | {name: folder},
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
        assert "mlx5_7/1" in done.stdout
        assert "(from the running agent)" in done.stdout

    def test_address_in_use(self, start: Callable[..., Demo], tmp_path: Path) -> None:
        """A second demo says which address is taken."""
        first = start()
        done = run(first)
        assert done.returncode != 0
        assert str(first.metrics_port) in done.stderr
        assert "Traceback" not in done.stderr

    def test_node_without_devices_shows_it(
        self, start: Callable[..., Demo], tmp_path: Path
    ) -> None:
        """`run --or-demo` plays the embedded node where there is nothing to watch."""
        root = tmp_path / "root"
        root.mkdir()
        demo = start("--or-demo", command=("run",), config={"root": str(root)})
        wait_until(lambda: "mlx5_7/1" in demo.page(), WAIT, "the embedded node shows")
        said = demo.log.read_text()
        assert "No RDMA device on this node" in said
        assert demo.url in said
