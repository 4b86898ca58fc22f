"""A fleet folder: the same bytes for the same seed, however many processes wrote it."""

from pathlib import Path

import msgspec
import pytest

from fabricmon.host.trace_read import TraceReader
from fabricmon.sim.folder import write_fleet, write_node
from fabricmon.sim.scenario import Injection
from fabricmon.sim.staging import Stage
from fabricmon.sim.truth import FleetFile, Truth
from tests.sim import fleets

FLAP = Injection(what="F05", node=1, rail=3, onset=60)


def made(seed: int = 1) -> Stage:
    """Return a small noisy fleet in which a port flaps."""
    return fleets.stage(seed=seed, noise=1.0, duration=120.0, inject=(FLAP,), nodes=3)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the fleet with one process."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(made(), folder, show=False)
    return folder


def test_all_is_there(written: Path) -> None:
    """Who there is, what is true, and a complete trace of each node."""
    assert sorted(contents(written)) == [
        "fleet.json",
        *(f"node{number:03d}.trace.jsonl.gz" for number in range(3)),
        "truth.json",
    ]
    for path in written.glob("*.gz"):
        with TraceReader(path) as reader:
            records = list(reader)
        assert reader.problems == ()
        assert records[-1].t == 120.0
        assert reader.header.node == path.name.removesuffix(".trace.jsonl.gz")
        assert reader.header.peers["10.20.0.3"] == "node001"


def test_same_bytes_with_more_processes(written: Path, tmp_path: Path) -> None:
    """Four processes, more than there are nodes, write what one writes."""
    write_fleet(made(), tmp_path, jobs=4, show=False)
    assert contents(tmp_path) == contents(written)


def test_traces_of_a_larger_fleet_go(tmp_path: Path) -> None:
    """What it would not have written itself stays."""
    mine = ("notes.txt", "node7.trace.jsonl.gz", "node003.trace.jsonl", "gpu003.gz")
    for name in (*mine, "node003.trace.jsonl.gz", "node1234.trace.jsonl.gz"):
        (tmp_path / name).write_bytes(b"x")
    small = fleets.stage(duration=10.0, nodes=1)
    write_fleet(small, tmp_path, show=False)
    assert sorted(contents(tmp_path)) == sorted(
        [*mine, "fleet.json", "truth.json", "node000.trace.jsonl.gz"]
    )


def test_another_seed_is_another_fleet(written: Path, tmp_path: Path) -> None:
    """Every trace and the truth differ."""
    write_fleet(made(seed=2), tmp_path, show=False)
    other, first = contents(tmp_path), contents(written)
    same = [name for name, data in first.items() if other[name] == data]
    assert set(same) <= {"fleet.json"}


def test_truth_and_fleet_are_what_a_scorer_reads(written: Path) -> None:
    """They decode as the documents of the format, and name the injected port."""
    truth = msgspec.json.decode((written / "truth.json").read_bytes(), type=Truth)
    [fault] = truth.faults
    assert (fault.fault, fault.node, fault.device) == ("F05", "node001", "mlx5_4")
    assert truth.seed == 1
    fleet = msgspec.json.decode((written / "fleet.json").read_bytes(), type=FleetFile)
    assert fleet.nodes == ("node000", "node001", "node002")
    [job] = fleet.jobs
    assert (job.id, job.start, job.end) == ("train", 30.0, 120.0)
    assert len(fleet.leafs["leaf00-rail3"]) == 3


def test_a_node_does_not_depend_on_the_others(written: Path, tmp_path: Path) -> None:
    """Made alone, its trace has the same bytes."""
    path = write_node(made(), 2, tmp_path)
    assert path.read_bytes() == (written / path.name).read_bytes()


def test_traces_stay_small(tmp_path: Path) -> None:
    """Ten minutes of a noisy node are well below a third of a megabyte."""
    busy = fleets.stage(noise=1.0, duration=600.0, nodes=2)
    assert write_node(busy, 0, tmp_path).stat().st_size < 333_000
