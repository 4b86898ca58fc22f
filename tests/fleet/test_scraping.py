"""What would have been scraped of a node that is replayed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fabricmon.fleet.playing import NodeTrace, Player, join_nodes, play_all
from fabricmon.fleet.scraping import JOB, Scraping, write_openmetrics
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import PortPlace
from fabricmon.replaying import Replay
from fabricmon.replaying_fleet import leaf_places
from fabricmon.sim.truth import FleetFile, LeafPort
from fabricmon.sinks.exposition import Exposition
from tests.stories import FIRST, comes_up, goes_down, trace

START = 1767600000.0
NODE = "node01"


def scraped(path: Path, folder: Path, scraping: Scraping, node: str = NODE) -> str:
    """Play a trace with scrapes; return all of it as OpenMetrics."""
    folder.mkdir(exist_ok=True)
    played = Player(folder, scraping).play(NodeTrace(node, path))
    out = folder / "all.om"
    write_openmetrics([played.metrics], out)
    return out.read_text()


def parsed(text: str) -> dict[str, Metric]:
    """Parse strictly, as the standard has it."""
    families: Iterable[Metric] = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {family.name: family for family in families}


def at(sample: Sample) -> float:
    """Return when a sample was taken, in seconds of the trace."""
    assert sample.timestamp is not None
    return round(float(str(sample.timestamp)) - START, 3)


def up(text: str) -> dict[float, float]:
    """Return whether each scrape was answered, by seconds of the trace."""
    samples = parsed(text)["up"].samples
    return {at(s): s.value for s in samples}


def silent(answered: dict[float, float]) -> list[float]:
    """Return when nobody answered."""
    return [t for t, value in answered.items() if not value]


def values(text: str, metric: str, **labels: str) -> dict[float, float]:
    """Return the samples of a metric by seconds of the trace."""
    return {
        at(sample): sample.value
        for family in parsed(text).values()
        for sample in family.samples
        if sample.name == metric and labels.items() <= sample.labels.items()
    }


@pytest.fixture
def down(tmp_path: Path) -> Path:
    """Return a trace in which a port goes down at 100 s."""
    return trace(tmp_path / "down", (100, goes_down(FIRST)), end=300)


class TestTimes:
    def test_every_interval_from_the_start(self, down: Path, tmp_path: Path) -> None:
        """At an offset, none beyond the end."""
        times = list(up(scraped(down, tmp_path / "x", Scraping(15))))
        assert len(times) == 20
        assert 0 <= times[0] < 15
        assert times[-1] <= 300
        steps = {round(b - a, 3) for a, b in pairwise(times)}
        assert steps == {15.0}

    def test_offset_of_each_node_is_its_own(self) -> None:
        """The same in each replay, spread over the interval, never on its edge."""
        scraping = Scraping(15)
        first = [scraping.times(f"n{i}", START)(0) - START * 1000 for i in range(200)]
        assert first == [
            scraping.times(f"n{i}", START)(0) - START * 1000 for i in range(200)
        ]
        assert 2 <= min(first) < 1500
        assert 13500 < max(first) < 15000

    def test_fleet_that_starts_between(self) -> None:
        """Scrapes keep to the clock, whenever a trace begins."""
        early, late = (Scraping(15).times("n", START + s) for s in (0, 31.7))
        assert (late(0) - early(0)) % 15000 == 0
        assert 0 <= late(0) - (START + 31.7) * 1000 < 15000


class TestSamples:
    def test_same_numbers_as_the_agent_exports(
        self, down: Path, tmp_path: Path
    ) -> None:
        """Each line of /metrics at that moment, with its time."""
        text = scraped(down, tmp_path / "x", Scraping(15))
        end = list(up(text))[-1]
        replay = Replay(down)
        list(replay.changes())
        exposition = Exposition(replay.pipeline.config, clock=replay.host.monotonic)
        exposition.publish(replay.pipeline.snapshot)
        now = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for metric in exposition.metrics()
            for sample in metric.samples
            if "infiniband_state" in sample.name or "finding" in sample.name
        }
        ours = {
            (
                s.name,
                frozenset(i for i in s.labels.items() if i[0] not in ADDED),
            ): s.value
            for family in parsed(text).values()
            for s in family.samples
            if at(s) == end and ("infiniband_state" in s.name or "finding" in s.name)
        }
        assert len(now) > 2
        assert ours == now

    def test_labels_of_the_scraper(self, down: Path, tmp_path: Path) -> None:
        """Which target it is; those of the agent stay."""
        scraping = Scraping(15, cluster='c"1', cluster_label="dc", node_label="host")
        text = scraped(down, tmp_path / "x", scraping)
        sample = parsed(text)["fabricmon_port_verdict"].samples[0]
        wanted = {"dc": 'c"1', "host": NODE, "instance": NODE, "job": JOB}
        assert wanted.items() <= sample.labels.items()
        assert {"device", "port"} <= set(sample.labels)

    def test_series_ends_with_what_it_is_of(self, tmp_path: Path) -> None:
        """A finding that is resolved is not scraped any more."""
        parts = ((100, goes_down(FIRST)), (160, comes_up(FIRST, 2)))
        path = trace(tmp_path / "t", *parts, end=300)
        text = scraped(path, tmp_path / "x", Scraping(15))
        found = values(text, "fabricmon_finding_open", kind="port_down")
        assert 100 < min(found) < 130
        assert 145 < max(found) <= 175

    def test_age_grows_between_the_steps(self, down: Path, tmp_path: Path) -> None:
        """The exposition knows the time of the scrape."""
        text = scraped(down, tmp_path / "x", Scraping(7))
        ages = values(text, "fabricmon_snapshot_age_seconds").values()
        assert all(0 <= age < 30 for age in ages)
        assert len(set(ages)) > 3

    def test_only_what_is_kept(self, down: Path, tmp_path: Path) -> None:
        """A pattern of whole names; ``up`` is always there."""
        scraping = Scraping(15, keep="fabricmon_port_verdict|fabricmon_finding")
        families = parsed(scraped(down, tmp_path / "x", scraping))
        assert set(families) == {"up", "fabricmon_port_verdict"}


ADDED = ("job", "instance", "node", "cluster")


class TestSilence:
    def test_gap(self, tmp_path: Path) -> None:
        """An agent that does not run does not answer; then it does."""
        path = trace(tmp_path / "t", (100, {"gap": 60}), end=300)
        times = silent(up(scraped(path, tmp_path / "x", Scraping(15))))
        assert len(times) == 4
        assert all(100 <= t < 160 for t in times)

    def test_restart(self, tmp_path: Path) -> None:
        """The new agent's metrics follow those of the old one."""
        path = trace(tmp_path / "t", (100, {"gap": 20, "restart": True}), end=300)
        answered = up(scraped(path, tmp_path / "x", Scraping(5)))
        assert all(100 <= t < 120 for t in silent(answered))
        assert len(silent(answered)) == 4
        assert max(answered) > 290

    def test_gap_that_reaches_the_end(self, tmp_path: Path) -> None:
        """The node stayed silent."""
        path = trace(tmp_path / "t", (100, {"gap": 500}), end=300)
        text = scraped(path, tmp_path / "x", Scraping(15))
        answered = up(text)
        assert all(bool(value) == (t < 100) for t, value in answered.items())
        assert max(answered) > 280
        assert max(values(text, "fabricmon_node_verdict")) < 100

    def test_clock_step(self, tmp_path: Path) -> None:
        """Times are the scraper's; what the node exports is by its own clock."""
        parts = ((50, {"wall_step": -3600.0}), (100, goes_down(FIRST)))
        path = trace(tmp_path / "t", *parts, end=300)
        text = scraped(path, tmp_path / "x", Scraping(15))
        assert max(up(text)) > 280
        last = values(text, "fabricmon_port_last_down_timestamp_seconds", device=FIRST)
        assert last
        assert all(value < START - 3000 for value in last.values())


class TestFleet:
    def test_merged_by_family(self, down: Path, tmp_path: Path) -> None:
        """Nodes stand beside each other in one valid text; their files are gone."""
        work = tmp_path / "w"
        work.mkdir()
        traces = [NodeTrace("a", down), NodeTrace("b", down)]
        played = play_all(Player(work, Scraping(15)), traces)
        fleet = join_nodes(played, "c", work / "all.om")
        families = parsed(fleet.samples.read_text())
        nodes = {s.labels["node"] for s in families["fabricmon_port_verdict"].samples}
        assert nodes == {"a", "b"}
        assert [each.name for each in work.iterdir()] == ["all.om"]
        assert (fleet.begin, fleet.end) == (START, START + 300)

    def test_several_processors(self, down: Path, tmp_path: Path) -> None:
        """The same text, whatever their number."""
        texts = []
        for jobs in (1, 2):
            work = tmp_path / f"w{jobs}"
            work.mkdir()
            traces = [NodeTrace("a", down), NodeTrace("b", down)]
            played = play_all(Player(work, Scraping(60)), traces, jobs=jobs)
            texts.append(join_nodes(played, "c", work / "om").samples.read_text())
        assert texts[0] == texts[1]

    def test_leafs_are_the_topology(self, down: Path, tmp_path: Path) -> None:
        """The folder knows on which leaf a port is; the node's identity has it."""
        port = LeafPort(node=NODE, device=FIRST, port=1)
        places = leaf_places(FleetFile(nodes=(NODE,), leafs={"leaf7": (port,)}))
        assert places == {NODE: (PortPlace(f"{FIRST}/1", leaf="leaf7"),)}
        assert leafs(down, places[NODE]) == {"leaf7", None}

    def test_own_topology_wins(self, tmp_path: Path) -> None:
        """What a trace says of itself is not overruled."""
        header = {"topology": {"ports": {f"{FIRST}/1": {"leaf": "own"}}}}
        path = trace(tmp_path / "t", end=30, header=header)
        assert "own" in leafs(path, (PortPlace(f"{FIRST}/1", leaf="other"),))


def leafs(path: Path, places: Iterable[PortPlace]) -> set[str | None]:
    """Return the leafs of a node's ports, as the agent comes to know them."""
    replay = Replay(ReplayHost(TraceReader(path)), None, tuple(places))
    list(replay.changes())
    return {port.info.leaf for port in replay.pipeline.snapshot.ports}
