from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.config_load import build
from fabricmon.errors import TraceError
from fabricmon.replaying import Replay
from fabricmon.replaying_fleet import in_order, replay_fleet, replay_node
from fabricmon.sim.score_files import read_fleet, trace_paths
from tests.sim.folders import folder


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, ...]:
    """Return the traces of a small fleet."""
    path = folder(tmp_path / "fleet")
    return trace_paths(path, read_fleet(path))


def test_same_as_one_by_one(traces: tuple[Path, ...]) -> None:
    """A node gives what it gives alone, and all are put in order of time."""
    results = replay_fleet(traces)
    alone = [len(list(Replay(trace).changes())) for trace in traces]
    assert [len(result.found) for result in results] == alone
    times = [float(str(document.t)) for document in in_order(results)]
    assert len(times) == sum(alone) > 1
    assert times == sorted(times)


def test_several_processors(traces: tuple[Path, ...]) -> None:
    """The same, whatever the number of processors."""
    assert replay_fleet(traces, jobs=2) == replay_fleet(traces)


def test_progress(traces: tuple[Path, ...]) -> None:
    """Each node that is done is told of."""
    seen: list[tuple[int, int]] = []
    replay_fleet(traces, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_configuration(traces: tuple[Path, ...]) -> None:
    """A configuration that is given wins over the traces' own."""
    loaded = build({"kinds": {"port_down": "off"}}, (), ())
    kinds = {each.document.kind for each in replay_node(traces[0], loaded).found}
    assert "port_down" not in kinds


def test_no_trace(tmp_path: Path) -> None:
    """A file that is no trace ends it with its name."""
    path = tmp_path / "n.trace.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(TraceError, match=str(path)):
        replay_fleet([path])
