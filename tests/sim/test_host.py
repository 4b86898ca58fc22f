"""A simulated node as a live host: no file between, and it plays in time lapse."""

import asyncio
from pathlib import Path

import pytest

from fabricmon.errors import ConfigError
from fabricmon.host.trace_read import TraceReader
from fabricmon.replaying import Replay
from fabricmon.sim.folder import write_node
from fabricmon.sim.host import SimulatedRecords, node_to_watch, simulated_host, stage_of
from fabricmon.sim.node import NodePlay
from fabricmon.sim.scenario import Injection
from fabricmon.sim.staging import Stage
from fabricmon.timelapse import TimelapseDrive
from tests.sim import fleets
from tests.support.loop import run_fast

FLAP = Injection(what="F05", node=1, rail=3, onset=60, parameters={"down": 5})


def made() -> Stage:
    """Return a fleet in which a port flaps."""
    return fleets.stage(duration=150.0, inject=(FLAP,))


def test_records_are_those_of_the_file(tmp_path: Path) -> None:
    """What the host is given is what the trace holds."""
    with TraceReader(write_node(made(), 1, tmp_path)) as reader:
        written = list(reader)
    records = SimulatedRecords(made(), 1)
    assert records.header == reader.header
    assert list(records) == written


def test_the_agent_finds_what_was_injected() -> None:
    """A flap on the injected port, and nothing on another node's."""
    found = [
        (change.incident.finding.kind, change.incident.finding.subject.device)
        for change in Replay(simulated_host(made(), 1)).changes()
    ]
    assert ("port_flap", "mlx5_4") in found
    quiet = [
        change.incident.finding.kind
        for change in Replay(simulated_host(made(), 3)).changes()
        if change.incident.finding.action.value != "none"
    ]
    assert quiet == []


def test_it_plays_in_time_lapse() -> None:
    """The drive of the demo moves its time."""

    async def play() -> None:
        drive = TimelapseDrive(simulated_host(made(), 1), 100.0)
        await drive.open(lambda: None)
        while drive.host.monotonic() < 30.0:
            await drive.wait(30.0)
        begun = asyncio.get_running_loop().time()
        while drive.host.monotonic() < 80.0:
            await drive.wait(80.0)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(0.5, abs=0.1)
        assert (
            fleets.text(
                drive.host, "/sys/class/infiniband/mlx5_4/ports/1/counters/link_downed"
            )
            == "1"
        )
        assert drive.close(1.0) == ()

    run_fast(play())


def test_the_end_of_the_scenario_is_the_end_of_the_host() -> None:
    """After it nothing comes, and a closed one gives nothing more."""
    host = simulated_host(made(), 0)
    host.advance(1000.0)
    assert host.end == 150.0
    records = SimulatedRecords(made(), 0)
    records.close()
    assert list(records) == []


def test_problems_are_kept_like_a_reader_keeps_them() -> None:
    """They name the node, and more than enough are only counted."""
    records = SimulatedRecords(made(), 2)
    next(records)
    for _ in range(1500):
        records.complain("no")
    assert records.problem_count == 1500
    assert len(records.problems) == 1000
    assert str(records.problems[0]) == "node002:2: no"


def test_nodes_are_those_of_the_scenario(tmp_path: Path) -> None:
    """Another number is refused with the range."""
    path = tmp_path / "own.yaml"
    path.write_text("{name: own, summary: Own., nodes: 2, duration: 60}")
    stage = stage_of(str(path), 1)
    assert node_to_watch(stage, 1) == 1
    with pytest.raises(ConfigError, match="write 0 to 1"):
        node_to_watch(stage, 2)


@pytest.mark.parametrize(
    ("inject", "node"),
    [
        ("[{what: F05, node: 1, onset: 40}, {what: F05, node: 2, onset: 20}]", 2),
        ("[{what: F05, node: 0, onset: 40}]", 0),
        ("[]", 0),
    ],
)
def test_the_node_to_watch_is_where_the_first_fault_is(
    tmp_path: Path, inject: str, node: int
) -> None:
    """Nobody has to know where it happens; where nothing does, any node will do."""
    path = tmp_path / "own.yaml"
    head = "name: own, summary: Own., nodes: 3, duration: 60"
    path.write_text(f"{{{head}, inject: {inject}}}")
    assert node_to_watch(stage_of(str(path), 1), None) == node


def test_the_node_to_watch_is_one_that_suffers() -> None:
    """A fault that is on no node shows on its victims."""
    stage = stage_of("f40-leaf-reboot", 1)
    assert {fault.node for fault in stage.truth.faults} == {None}
    watched = stage.plan.node_name(node_to_watch(stage, None))
    assert watched == stage.truth.victims[0].node


@pytest.mark.parametrize("profile", ["H100-RoCE-8x400-DCQCN", "A100-HDR-8x200"])
def test_what_waits_does_not_grow(profile: str) -> None:
    """However long a node plays, only what comes next is kept."""
    play = NodePlay(fleets.stage(profile=profile, noise=1.0, duration=1e6), 0)
    records = play.records()
    lengths = []
    for number, _ in enumerate(records):
        lengths.append(len(play._queue))
        if number == 4000:
            break
    assert max(lengths[2000:]) < max(lengths[:500]) + 20
