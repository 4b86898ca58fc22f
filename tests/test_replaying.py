"""One recorded node through the pipeline of a live one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.cli.replay import in_order
from fabricmon.config_load import build
from fabricmon.errors import TraceError
from fabricmon.host.inline import InlineReader
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Header
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import Role
from fabricmon.registry import SOURCES
from fabricmon.replaying import Change, Replay, topology
from tests import traces
from tests.findings import check_stream, documents
from tests.stories import (
    FIRST,
    SECOND,
    beginning,
    comes_up,
    file,
    goes_down,
    outage,
    trace,
)

Json = dict[str, Any]


def kinds(found: list[Json]) -> list[tuple[str, str]]:
    """Return what was told, in order."""
    return [(each["kind"], each["state"]) for each in found]


def play(path: Path, config: Json | None = None) -> list[Json]:
    """Replay a trace and return its findings."""
    loaded = None if config is None else build(config, (), ())
    found = documents(Replay(path, loaded).changes())
    check_stream(found)
    return found


class TestStory:
    def test_an_outage(self, tmp_path: Path) -> None:
        """It is found while it lasts, and resolved when it is over."""
        found = play(outage(tmp_path))
        assert ("port_down", "open") in kinds(found)
        down = [each for each in found if each["kind"] == "port_down"]
        assert down[-1]["state"] == "resolved"
        assert 30 < down[0]["t"] <= 60
        assert 120 <= down[-1]["t"] <= 135

    def test_a_healthy_node_is_silent(self, tmp_path: Path) -> None:
        """An hour in which nothing happens gives nothing."""
        assert play(trace(tmp_path, end=3600)) == []

    def test_the_same_answer_every_time(self, tmp_path: Path) -> None:
        """Nothing depends on the machine that replays."""
        path = outage(tmp_path)
        assert play(path) == play(path)

    def test_it_ends_with_the_last_record(self, tmp_path: Path) -> None:
        """What is still open then stays open."""
        replay = Replay(trace(tmp_path, (30, goes_down(FIRST)), end=100))
        last = list(replay.changes())[-1]
        assert replay.host.monotonic() == 100
        still_open = {each.id for each in replay.pipeline.snapshot.incidents}
        assert last.incident.id in still_open

    def test_time_is_the_trace_s(self, tmp_path: Path) -> None:
        """Wall times follow from the header, not from today."""
        assert play(outage(tmp_path))[0]["time"].startswith("2026-01-05T08:00:")

    def test_lines_that_cannot_be_used(self, tmp_path: Path) -> None:
        """They are named, and the story goes on around them."""
        lines = [beginning(), "nonsense", {"t": 30, **goes_down(FIRST)}, {"t": 90}]
        replay = Replay(traces.write(tmp_path, lines))
        found = documents(replay.changes())
        assert ("port_down", "open") in kinds(found)
        assert [problem.line for problem in replay.problems] == [3]


class TestHeader:
    def test_its_configuration(self, tmp_path: Path) -> None:
        """A recorder writes the one of the node."""
        path = outage(tmp_path, {"config": {"kinds": {"port_down": "off"}}})
        assert ("port_down", "open") not in kinds(play(path))

    def test_a_given_configuration_wins(self, tmp_path: Path) -> None:
        """Whoever replays may try another one."""
        path = outage(tmp_path, {"config": {"kinds": {"port_down": "off"}}})
        assert ("port_down", "open") in kinds(play(path, {}))

    def test_the_name_of_the_node(self, tmp_path: Path) -> None:
        """It is the header's, unless the configuration says otherwise."""
        path = outage(tmp_path)
        assert {each["subject"]["node"] for each in play(path)} == {"node01"}
        named = play(path, {"node": "n7"})
        assert {each["subject"]["node"] for each in named} == {"n7"}

    def test_a_wrong_configuration(self, tmp_path: Path) -> None:
        """It is an error of the trace's first line, with the key."""
        path = outage(tmp_path, {"config": {"perods": {}}})
        with pytest.raises(TraceError, match=r"jsonl:1: .*perods"):
            Replay(path)

    def test_shadow(self, tmp_path: Path) -> None:
        """A kind in shadow is told with its mark."""
        found = play(outage(tmp_path), {"kinds": {"port_down": "shadow"}})
        marks = {each["dry_run"] for each in found if each["kind"] == "port_down"}
        assert marks == {True}

    def test_topology(self, tmp_path: Path) -> None:
        """Leaf, rail and role of a port come from it."""
        place = {"leaf": "leaf3", "leaf_port": "7", "rail": "r0", "role": "storage"}
        path = outage(tmp_path, {"topology": {"ports": {"mlx5_0/1": place}}})
        replay = Replay(path)
        list(replay.changes())
        info = replay.pipeline.snapshot.ports[0].info
        assert (info.leaf, info.rail, info.role) == ("leaf3", "r0", Role.STORAGE)

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"ports": None},
            {"ports": []},
            {"rack": 7, "ports": {"mlx5_0/1": 5}},
            {"ports": {"mlx5_0/1": {"role": "king"}}},
            {"ports": {"mlx5_0/1": None}},
        ],
    )
    def test_a_topology_that_does_not_fit(self, document: Json) -> None:
        """It costs what it says wrong, not the replay."""
        assert topology(Header(node="n1", topology=document)).ports == ()


class TestRestart:
    def test_an_open_finding_is_not_told_again(self, tmp_path: Path) -> None:
        """The agent stops and starts; the same finding goes on, and is resolved."""
        path = trace(
            tmp_path,
            (30, goes_down(FIRST)),
            (70, {"gap": 20, "restart": True}),
            (150, comes_up(FIRST, 2)),
            end=300,
        )
        down = [each for each in play(path) if each["kind"] == "port_down"]
        states = [each["state"] for each in down]
        assert states.count("open") == states.count("resolved") == 1
        assert len({each["id"] for each in down}) == 1

    def test_a_flap_during_a_restart(self, tmp_path: Path) -> None:
        """Only a counter shows it, and the saved state knows what it was."""
        path = trace(
            tmp_path,
            (60, {"gap": 30, "restart": True}),
            (70, comes_up(FIRST, 2)),
            end=300,
        )
        assert kinds(play(path))[0] == ("port_flap", "open")

    def test_a_reboot(self, tmp_path: Path) -> None:
        """Counters begin anew, which is no flap and no reset by hand."""
        counter = file(FIRST, "counters/link_downed")
        booted = {
            "boot_id": "b2",
            "set": {counter: "1\n", "/proc/uptime": "20.00 20.00\n"},
        }
        path = trace(
            tmp_path,
            (20, {"set": {counter: "200\n"}}),
            (100, {"gap": 60}),
            (140, booted),
            end=400,
        )
        after = [each for each in play(path) if each["t"] > 100]
        assert "port_flap" not in {each["kind"] for each in after}


class TestManyNodes:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[Path]:
        """Return traces of two nodes that have different troubles."""
        first = outage(tmp_path / "a")
        second = trace(
            tmp_path / "b",
            (45, goes_down(SECOND)),
            (50, comes_up(SECOND, 3)),
            (70, goes_down(SECOND)),
            end=250,
            header={"node": "node02"},
        )
        return [first, second]

    def test_one_process_gives_what_two_give(self, paths: list[Path]) -> None:
        """Nothing of a node lives outside of its own pipeline."""
        together = documents(in_order([Replay(path) for path in paths]))
        for path, name in zip(paths, ("node01", "node02"), strict=True):
            command = [sys.executable, "-m", "fabricmon", "replay", str(path)]
            done = subprocess.run(
                [*command, "--findings", "-"], capture_output=True, check=True
            )
            alone = [json.loads(line) for line in done.stdout.splitlines()]
            mine = [each for each in together if each["subject"]["node"] == name]
            assert mine == alone
            assert alone

    def test_all_in_order_of_time(self, paths: list[Path]) -> None:
        """Whoever reads the one file reads one story of the fleet."""
        changes = list(in_order([Replay(path) for path in paths]))
        times = [change.t for change in changes]
        assert times == sorted(times)
        assert {change.incident.node for change in changes} == {"node01", "node02"}


def record(source: Path, target: Path) -> Iterator[Change]:
    """Play a trace with a recorder between the node and its agent."""
    host = ReplayHost(TraceReader(source))
    recorder = RecordingHost(host, target, host.header.node)
    loaded = build({}, (), ())
    reader = InlineReader(host, make_poll(recorder, loaded.config, SOURCES))
    pipeline = make_pipeline(recorder, reader, loaded, host.header.node)
    steps = host.moments(lambda: pipeline.next_due, reader.next_event)
    for incident in pipeline.step(moment(recorder)):
        yield Change(host.monotonic(), 0.0, incident)
    for _ in steps:
        pipeline.hasten("link_events")
        for incident in pipeline.step(moment(recorder)):
            yield Change(host.monotonic(), 0.0, incident)
    recorder.close()
    assert recorder.error is None
    assert recorder.unfaithful == 0


@pytest.mark.parametrize("name", ["node02.trace.jsonl", "node02.trace.jsonl.gz"])
def test_a_recording_gives_the_same_findings(tmp_path: Path, name: str) -> None:
    """What a recorder wrote of a node tells of it what the node itself did."""
    source = trace(
        tmp_path,
        (30, goes_down(FIRST)),
        (35, {"ramp": {file(SECOND, "counters/symbol_error"): [0, 300]}}),
        (90, {"err": {file(SECOND, "rate"): "EINVAL"}}),
        (120, comes_up(FIRST, 2)),
        (200, {"del": ["/sys/class/infiniband/mlx5_3"]}),
        end=400,
    )
    target = tmp_path / name
    told = documents(record(source, target))
    assert {"port_down", "link_errors", "device_missing"} <= {
        each["kind"] for each in told
    }
    assert documents(Replay(target).changes()) == told


def test_a_paused_source_whose_device_goes_is_not_polled_without_end(
    tmp_path: Path,
) -> None:
    """A pause that is over does not make a source due at once, again and again."""
    counted = file(FIRST, "counters/link_downed")
    path = trace(
        tmp_path / "trace",
        (5, {"err": {counted: "EINVAL"}}),
        (60, {"err": {counted: "ENODEV"}}),
        end=400,
    )
    replay = Replay(path)
    for number, _change in enumerate(replay.changes()):
        assert number < 100
    assert replay.pipeline.snapshot.steps < 2000
