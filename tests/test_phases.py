"""Nodes do not poll in the same moment."""

from collections import Counter
from pathlib import Path

import pytest

from fabricmon.agent import Settings
from fabricmon.assembly import make_pipeline
from fabricmon.cli import main, run
from fabricmon.config_load import build
from fabricmon.driving import LiveDrive
from fabricmon.pipeline import Moment
from fabricmon.registry import SOURCES
from fabricmon.schedule import Schedule, phase_of
from tests.fake_host import FakeHost
from tests.running import DirectReader

NODES = [f"node{number:04}" for number in range(4096)]


@pytest.mark.parametrize("period", [1.0, 5.0, 30.0, 60.0])
def test_spreads_within_every_period(period: float) -> None:
    """Of thousands of nodes about as many poll in each tenth of a period."""
    tenths = Counter(int(phase_of(node) % period / period * 10) for node in NODES)

    assert len(tenths) == 10
    assert max(tenths.values()) < 1.3 * len(NODES) / 10


def test_never_all_at_once() -> None:
    """Thousands of nodes that started together poll in hundreds of milliseconds."""
    due = [round(Schedule(-phase_of(node)).next_on_grid(1.0, 0.0), 3) for node in NODES]

    assert len(set(due)) > 900
    assert max(Counter(due).values()) < 20


def test_moves_polls() -> None:
    """A pipeline polls at its start, and from then on where its phase says."""
    host = FakeHost()
    loaded = build({}, (), ())
    reader = DirectReader(host, SOURCES, loaded.config)
    pipeline = make_pipeline(host, reader, loaded, "node-1", phase=0.25)
    pipeline.step(Moment(host.now, host.wall(), 0))

    assert reader.take()
    grid = {round(host.now - 0.25 + n, 6) for n in range(-1, 120)}
    assert round(pipeline.next_due, 6) in grid


def test_the_agent_has_that_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fabricmon run` gives the agent the phase of its node."""
    started: list[Settings] = []

    async def serve(settings: Settings, drive: LiveDrive) -> None:
        started.append(settings)
        drive.close(0)

    monkeypatch.setattr(run, "_serve", serve)
    file = tmp_path / "fabricmon.yaml"
    file.write_text("node: node0001\nisolation: {cores: off}\n")
    main(["run", "--config", str(file)])

    assert [each.phase for each in started] == [phase_of("node0001")]


def test_a_node_keeps_its_place() -> None:
    """The phase is the node's, also after a restart or on another Python."""
    assert phase_of("node0001") == phase_of("node0001")
    assert phase_of("node0001") == pytest.approx(538.824208)


def test_names_of_any_bytes() -> None:
    """A host name that is no text has a phase too."""
    assert 0 <= phase_of("node\udcff") < 3600
