"""Healthy lives: the same one in full and thinned to its events."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from fabricmon.sim.effects import Step
from fabricmon.sim.life import (
    AFTER,
    BEFORE,
    Life,
)
from fabricmon.sim.life_events import EVENTS, PROFILES_IN_USE
from fabricmon.sim.meters import Meter
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.singles import APART, CLUSTER, clusters
from fabricmon.sim.staging import Stage

SEEDS = range(8)


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    """Return some lives."""
    return [Life(seed, nodes=2, days=10) for seed in SEEDS]


def test_a_life_is_the_same_each_time() -> None:
    """A seed decides everything."""
    one, other = Life(3), Life(3)
    assert (one.profile, one.occasions, one.jobs, one.singles) == (
        other.profile, other.occasions, other.jobs, other.singles,
    )  # fmt: skip
    assert Life(4).jobs != one.jobs


def test_thinned_it_is_the_same_life(lives: list[Life]) -> None:
    """Everything that happens in full happens thinned, in a fraction of the time."""
    for life in lives:
        full, thinned = life.full(), life.thinned()
        count = [Counter(each.what for each in way.moments) for way in (full, thinned)]
        assert count[0] == count[1]
        assert thinned.scenario.duration < full.scenario.duration / 20


def test_flaps_of_days_do_not_meet_within_hours() -> None:
    """Thinned, a node has two bounces at most: three in hours would be another story."""
    life = Life(2, nodes=2, days=10, busy=20)
    full, thinned = (
        sum(each.what == "management bounce" for each in way.moments)
        for way in (life.full(), life.thinned())
    )
    assert full > 4
    assert thinned == 4


def test_what_takes_time_keeps_its_time(lives: list[Life]) -> None:
    """A reboot lasts as long thinned as in full, and is whole."""
    names = {each.name for each in EVENTS if each.takes_time}
    for life in lives:
        lengths = [
            Counter(
                (each.what, round(each.end - each.begin, 3))
                for each in way.moments
                if each.what in names and each.end <= way.scenario.duration
            )
            for way in (life.full(), life.thinned())
        ]
        assert lengths[0] == lengths[1]


def test_events_that_take_time_do_not_overlap(lives: list[Life]) -> None:
    """One follows the other, with the quiet before and after them kept."""
    for life in lives:
        lasting = [each for each in life.occasions if each.kind.takes_time]
        for one, other in pairwise(lasting):
            assert other.at - one.until >= one.kind.after + BEFORE - 1e-6


def test_no_job_starts_on_a_node_that_boots(lives: list[Life]) -> None:
    """Nor does any go on while a node boots or has no driver."""
    for life in lives:
        for each in life.occasions:
            if each.kind.ends_jobs:
                span = (each.at + 1, each.until + each.kind.after)
                assert not [j for j in life.jobs if span[0] < j.begin < span[1]]
                assert not [j for j in life.jobs if j.begin < each.at < j.end - 1]


def test_thinned_jobs_start_and_end_in_order(lives: list[Life]) -> None:
    """A job of a thinned life still runs before it ends, and before the next one."""
    for life in lives:
        jobs = life.thinned().scenario.jobs
        for one, other in pairwise(jobs):
            assert one.end is not None
            assert one.start + BEFORE <= one.end
            assert other.start - one.end >= min(AFTER, 30) - 1e-6


def test_clusters_are_what_lies_together() -> None:
    """Three within the window of each other are one, two are nothing."""
    near = (0.0, APART - 1, 2 * APART - 2)
    assert len(near) == CLUSTER
    assert list(clusters([*near, 9000.0, 9001.0])) == [near]
    assert list(clusters(near[:2])) == []


def test_loners_stay_alone_and_clusters_together() -> None:
    """Thinning makes no cluster that life did not have, and keeps those it had."""
    life = Life(5, nodes=2, days=40)
    steps = [each for each in life.thinned().more if isinstance(each, Step)]
    for single in life.singles:
        if single.meter is not Meter.AER_CORRECTABLE or single.clusters:
            continue
        times = sorted(
            each.at
            for each in steps
            if (each.port, each.meter) == (single.port, single.meter)
        )
        assert all(b - a >= APART - 1e-6 for a, b in pairwise(times))
    found = [each for each in life.singles if each.clusters]
    assert found
    for single in found:
        times = [
            e.at for e in steps if (e.port, e.meter) == (single.port, single.meter)
        ]
        gaps = {round(b - a, 3) for a, b in pairwise(single.clusters[0])}
        assert gaps <= {round(b - a, 3) for a in times for b in times}


def test_busy_lives_have_more_events_and_as_many_jobs() -> None:
    """What multiplies events leaves jobs about as they are."""
    usual, busy = Life(2, days=5), Life(2, days=5, busy=10)
    assert len(busy.occasions) > 4 * len(usual.occasions)


def test_profiles_in_proportion() -> None:
    """Each profile that can be simulated is there, about as often as it says."""
    assert set(PROFILES_IN_USE) == set(PROFILES)
    count = Counter(Life(seed, days=0.05).profile for seed in range(400))
    for name, share in PROFILES_IN_USE.items():
        assert count[name] / 400 == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_life_can_be_played(seed: int) -> None:
    """The catalogue takes what a life asks of it, on every profile."""
    staged = Life(seed, days=20).thinned()
    stage = Stage(staged.scenario, seed, staged.more)
    assert stage.truth.faults == ()
    assert stage.truth.negative
