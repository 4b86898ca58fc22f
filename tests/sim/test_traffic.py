"""What a job does over time, apart from the counters that tell of it."""

from itertools import pairwise
from typing import Literal

import pytest

from fabricmon.sim.effects import Capacity, JobEnds, Outage, SimPort, Stall
from fabricmon.sim.happenings import (
    AckTimeouts,
    Activity,
    Ended,
    Flow,
    Happening,
    RetriesExceeded,
    Started,
)
from fabricmon.sim.scenario import JobPlan
from fabricmon.sim.staging import Stage
from tests.sim import fleets
from tests.sim.fleets import steady_job

FOREVER = float("inf")


def played(made: Stage, job: str = "train") -> list[Happening]:
    """Return all that happens to a job."""
    return list(made.play(job))


def flows(made: Stage, job: str = "train") -> list[Flow]:
    """Return the flows alone."""
    return [each for each in played(made, job) if isinstance(each, Flow)]


def spans(made: Stage, activity: Activity) -> list[tuple[float, float]]:
    """Return when a job did something: begin and length."""
    found: list[tuple[float, float]] = []
    for flow, after in pairwise(flows(made)):
        if flow.activity is activity:
            found.append((flow.t, after.t - flow.t))
    return found


@pytest.mark.parametrize("pattern", ["ring", "all_to_all"])
def test_happenings_come_in_order_of_time(
    pattern: Literal["ring", "all_to_all"],
) -> None:
    """Also where rails stall, ports come back and the job starts anew."""
    effects = [Outage(SimPort(k, "mlx5_0"), 50.0 + 60 * k, 90.0 + 60 * k)
               for k in range(3)]  # fmt: skip
    made = fleets.stage(
        *effects, jobs=(JobPlan(pattern=pattern),), noise=1.0, duration=900.0
    )
    times = [each.t for each in played(made)]
    assert times == sorted(times)
    assert any(isinstance(each, RetriesExceeded) for each in played(made))


def test_a_job_connects_then_computes_and_communicates() -> None:
    """Little traffic at first; then steps as long as the plan says."""
    made = fleets.stage(jobs=(steady_job(),))
    begun, connecting, first, *_ = played(made)
    assert isinstance(begun, Started)
    assert isinstance(connecting, Flow)
    assert 0 < connecting.shares[0] < 0.01
    assert isinstance(first, Flow)
    assert (first.t, first.activity) == (5.0, Activity.COMPUTE)
    assert made.plan.job_start("train") == 5.0
    computing = spans(made, Activity.COMPUTE)
    assert {round(length, 3) for _, length in computing} == {2.0}


def test_checkpoints_and_evaluations_pause_the_rails() -> None:
    """Nothing is sent for as long as they take."""
    job = steady_job(checkpoint_every=60, checkpoint=20, pauses_every=90, pause=10)
    made = fleets.stage(jobs=(job,))
    saved = spans(made, Activity.CHECKPOINT)
    assert [round(length, 3) for _, length in saved] == [20.0] * len(saved)
    assert len(saved) == 3
    assert len(spans(made, Activity.PAUSE)) == 2
    quiet = [flow for flow in flows(made) if flow.activity is Activity.CHECKPOINT]
    assert all(not any(flow.shares) for flow in quiet)


def test_checkpoints_may_go_over_the_rails() -> None:
    """Then these carry them, at less than a collective's rate."""
    job = steady_job(checkpoint_every=60, checkpoint=20, checkpoint_on_rails=True)
    made = fleets.stage(jobs=(job,))
    saving = [flow for flow in flows(made) if flow.activity is Activity.CHECKPOINT]
    assert saving
    assert all(0 < flow.shares[0] < 0.5 for flow in saving)


def test_all_to_all_comes_in_bursts() -> None:
    """A phase of communication has pauses within."""
    made = fleets.stage(jobs=(steady_job(pattern="all_to_all"),))
    bursts = spans(made, Activity.COMMUNICATE)
    steps = len(spans(made, Activity.COMPUTE))
    assert len(bursts) >= 6 * steps - 12


def test_magnitudes_are_drawn_from_the_seed() -> None:
    """Another seed is another job; the same one is the same."""
    first, again, other = (
        flows(fleets.stage(jobs=(JobPlan(),), seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_stretched_job_computes_longer() -> None:
    """A slow GPU lengthens the step, not the communication."""
    made = fleets.stage(Stall(100.0, 200.0, node=2, stretch=3.0), jobs=(steady_job(),))
    lengths = dict(spans(made, Activity.COMPUTE))
    assert {round(x, 2) for t, x in lengths.items() if 102 < t < 190} == {6.0}
    talking = [length for t, length in spans(made, Activity.COMMUNICATE)]
    assert max(talking) < 1.01


def test_a_stalled_job_stands_still() -> None:
    """Until the stall is over nothing is sent, and nobody asks again."""
    made = fleets.stage(Stall(100.0, 200.0), jobs=(steady_job(),))
    sent = [flow for flow in flows(made) if 101 < flow.t < 200 and any(flow.shares)]
    assert sent == []
    assert not any(isinstance(each, AckTimeouts) for each in played(made))


def test_a_slow_sender_limits_its_rail_too() -> None:
    """The pace is that of the slowest port, whichever way it is slow."""
    port = SimPort(1, "mlx5_0")
    made = fleets.stage(
        Capacity(port, 0.0, FOREVER, 0.3, receive=False), jobs=(steady_job(),)
    )
    talking = [f for f in flows(made) if f.activity is Activity.COMMUNICATE]
    assert talking[0].shares[0] == pytest.approx(0.3, rel=0.01)
    assert talking[0].shares[1] == pytest.approx(0.99, rel=0.01)
    limit = talking[0].limits[0]
    assert limit is not None
    assert (limit.port, limit.receives, limit.sends) == (port, False, True)


def test_a_job_that_is_told_to_end_ends() -> None:
    """At once, without failure; restarted only if asked for."""
    made = fleets.stage(JobEnds(100.0, "train"), jobs=(steady_job(),))
    *_, ended = played(made)
    assert isinstance(ended, Ended)
    assert (ended.t, ended.failed) == (100.0, False)
    again = fleets.stage(JobEnds(100.0, "train", restart=True), jobs=(steady_job(),))
    assert len(again.runs) == 2


def test_a_job_ends_by_itself() -> None:
    """When its time is over; one without an end outlives the scenario."""
    made = fleets.stage(jobs=(steady_job(end=150.0),))
    assert [run.end for run in made.runs] == [150.0]
    endless = fleets.stage(jobs=(steady_job(),))
    assert not any(isinstance(each, Ended) for each in played(endless))
    assert [run.end for run in endless.runs] == [300.0]


def test_jobs_may_share_nodes_by_rails() -> None:
    """Each uses its own rails, and a stall of one is none of the other."""
    jobs = (
        steady_job(id="a", rails=(0, 1, 2, 3)),
        steady_job(id="b", rails=(4, 5, 6, 7)),
    )
    made = fleets.stage(Outage(SimPort(0, "mlx5_0"), 100.0, 120.0), jobs=jobs)
    assert any(isinstance(each, AckTimeouts) for each in played(made, "a"))
    assert not any(isinstance(each, AckTimeouts) for each in played(made, "b"))


def test_shorter_timeouts_kill_sooner() -> None:
    """Timeout 18 is a quarter of 20: the job is dead after 7.5 s."""
    outage = Outage(SimPort(0, "mlx5_0"), 100.0, FOREVER)
    made = fleets.stage(outage, jobs=(steady_job(timeout=18, restarts=False),))
    [run] = made.runs
    assert 107 < run.end < 112


def test_other_planes_carry_what_one_cannot() -> None:
    """A device stripes over its planes: one that is down costs rate, not the job."""
    profile = "B300-multiplane"
    job = steady_job(end=400.0)
    sound = fleets.stage(profile=profile, nodes=2, jobs=(job,), duration=500.0)
    outages = [Outage(SimPort(node, "mlx5_0", 6), 150.0, FOREVER) for node in range(2)]
    made = fleets.stage(*outages, profile=profile, nodes=2, jobs=(job,), duration=500.0)
    assert not any(isinstance(each, RetriesExceeded) for each in played(made))
    [run] = made.runs
    assert run.end == 400.0
    talking = [f for f in flows(made) if f.activity is Activity.COMMUNICATE]
    late = [flow.shares for flow in talking if flow.t > 200.0]
    assert all(shares[1] == 0.0 for shares in late)
    assert {len(shares) for shares in late} == {32}
    steps = [len(spans(each, Activity.COMPUTE)) for each in (made, sound)]
    assert steps[0] < steps[1]
