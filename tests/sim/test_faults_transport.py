"""Connections and pace: crashes, stale connections, stragglers."""

import pytest

from fabricmon.sim.effects import (
    Capacity,
    Counting,
    JobEnds,
    LogLines,
    NodeFile,
    Outage,
    PcieLink,
    PortText,
    Silence,
    Stall,
    Step,
)
from fabricmon.sim.meters import Meter
from fabricmon.sim.scenario import JobPlan, Sight
from tests.sim.injected import IB, ROCE, counted, fleet, injected, of, rate


def test_crash_silences_the_node_and_is_seen_by_its_peers() -> None:
    """The signature is whole when the retries are used up."""
    plan = fleet()
    made = injected("F50", plan)
    (end,) = of(made, JobEnds)
    assert (end.at, end.crash_node) == (300, 1)
    assert of(made, Silence)[0].end == plan.duration
    (truth,) = made.faults
    assert truth.peer == "node001"
    assert truth.onset == pytest.approx(330, abs=0.2)
    assert {place.node for place in made.victims} == {"node000", "node002"}


@pytest.mark.parametrize(
    ("timeout", "retries", "seconds"), [(20, 7, 30.06), (18, 7, 7.52), (22, 3, 51.54)]
)
def test_peers_give_up_as_the_job_is_set(
    timeout: int, retries: int, seconds: float
) -> None:
    """4.096 us times two to the timeout, so often as it tries."""
    plan = fleet(jobs=(JobPlan(timeout=timeout, retries=retries),))
    (crash,) = injected("F50", plan).faults
    assert crash.onset - 300 == pytest.approx(seconds, abs=0.01)
    hole = injected("F39", plan, peer=2)
    steps = [e.at for e in of(hole, Step) if e.meter is Meter.ACK_TIMEOUTS]
    assert len(steps) == retries
    assert steps[-1] - 300 == pytest.approx(seconds, abs=0.01)
    assert of(hole, JobEnds)[0].at == hole.faults[0].onset == steps[-1]


@pytest.mark.parametrize("what", ["F39", "F50"])
def test_who_never_gives_up_tells_nothing(what: str) -> None:
    """Retries that outlast the scenario name no peer."""
    plan = fleet(jobs=(JobPlan(timeout=30),), duration=900)
    (truth,) = injected(what, plan).faults
    assert not truth.visible


LOW = JobPlan(id="low", rails=(0, 1))
HIGH = JobPlan(id="high", rails=(2, 3))


@pytest.mark.parametrize(("what", "profile"), [("F51", IB), ("F57", IB)])
def test_job_on_other_rails_goes_on(what: str, profile: str) -> None:
    """Only who uses the port stands still."""
    made = injected(what, fleet(profile, jobs=(LOW, HIGH)))
    assert {stall.job for stall in of(made, Stall)} == {"high"}


@pytest.mark.parametrize(("what", "profile"), [("F39", IB), ("F52", ROCE)])
def test_job_on_other_rails_lives_on(what: str, profile: str) -> None:
    """Only who uses the port ends, and only its log tells."""
    made = injected(what, fleet(profile, jobs=(LOW, HIGH)))
    assert {end.job for end in of(made, JobEnds)} == {"high"}
    assert {lines.job for lines in of(made, LogLines)} == {"high"}


def test_who_shares_another_job_does_not_suffer() -> None:
    """A slow hop is felt by the job that uses it, not by all on its nodes."""
    near = JobPlan(id="near", rails=(2,), nodes=(1, 3))
    made = injected("F54", fleet(jobs=(LOW, near)))
    assert {place.node for place in made.victims} == {"node003"}


def test_an_address_nobody_reads_is_told_by_a_job_alone() -> None:
    """Without sysfs an idle port shows nothing of it."""
    logs: tuple[Sight, ...] = ("nccl_log",)
    for jobs, visible in (((), False), ((JobPlan(),), True)):
        made = injected("F52", fleet(ROCE, jobs=jobs, sights=logs))
        assert made.faults[0].visible is visible


@pytest.mark.parametrize("what", ["F23", "F57"])
def test_the_job_that_runs_shows_it(what: str) -> None:
    """One that starts later does not make it later."""
    jobs = (JobPlan(id="now", end=600), JobPlan(id="later", start=700))
    made = injected(what, fleet(jobs=jobs))
    assert made.faults[0].onset == 300
    assert {lines.job for lines in of(made, LogLines)} == {"now"}


def test_stale_connections_carry_little_while_the_job_lives() -> None:
    """A short flap, then a fraction of the rate with pauses."""
    made = injected("F51", fleet(ROCE), down=5, length=600, capacity=0.2)
    (outage,) = of(made, Outage)
    assert outage.end == 305
    (cap,) = of(made, Capacity)
    assert (cap.begin, cap.end, cap.factor) == (305, 900, 0.2)
    assert all(stall.end - stall.begin <= 20 for stall in of(made, Stall))
    assert not of(made, JobEnds)


def test_address_change_moves_the_gid() -> None:
    """The table's entry is another one, and NCCL says so."""
    made = injected("F52", fleet(ROCE))
    (file,) = of(made, NodeFile)
    assert file.path.endswith("/ports/1/gids/1")
    assert "GID table changed" in of(made, LogLines)[0].text


def test_slow_compute_touches_nothing_of_the_network() -> None:
    """Only the computing of its jobs takes longer."""
    made = injected("F53", longer=0.5)
    (stall,) = made.effects
    assert isinstance(stall, Stall)
    assert stall.stretch == 1.5
    assert made.victims == ()


@pytest.mark.parametrize(
    ("evidence", "kind", "shown"),
    [
        ("rate", "rate_degraded", PortText),
        ("pcie", "pcie_degraded", PcieLink),
        ("errors", "link_errors", Counting),
    ],
)
def test_straggler_with_evidence_names_the_port(
    evidence: str, kind: str, shown: type
) -> None:
    """Local evidence turns a slow rail into a slow link."""
    made = injected("F54", evidence=evidence)
    (truth,) = made.faults
    assert {"rail_slow", "straggler_link", kind} == set(truth.accept)
    assert of(made, shown)


def test_straggler_without_evidence_names_the_rail_only() -> None:
    """Nobody may be asked to do anything about a node."""
    plan = fleet()
    made = injected("F54", plan, capacity=0.5)
    assert [e.port for e in of(made, Capacity)] == [plan.rail(1, 2)]
    assert len(made.effects) == 1
    assert made.faults[0].accept == ("rail_slow",)
    assert any(rule.actionable and rule.node is None for rule in made.forbid)


def test_jitter_hits_a_share_of_the_time() -> None:
    """A tenth, in moments."""
    made = injected("F55", share=0.1, length=5)
    hit = sum(cap.end - cap.begin for cap in of(made, Capacity))
    assert hit / 3300 == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize("profile", [IB, ROCE])
def test_retransmits_are_no_fault_of_the_port(profile: str) -> None:
    """It resends what the network loses."""
    plan = fleet(profile)
    port = plan.rail(1, 2)
    made = injected("F56", plan, retransmits=600)
    assert rate(made, port, Meter.ADAPTIVE_RETRANSMITS) == pytest.approx(10)
    assert Meter.SYMBOL_ERRORS not in counted(made, port)
    assert any(rule.device == port.device for rule in made.forbid)


def test_wrong_partition_stops_the_job_from_the_start() -> None:
    """Nothing is carried; every attempt is refused."""
    plan = fleet()
    made = injected("F57", plan, onset=1, attempts=6)
    assert of(made, Stall)[0].begin == 1
    assert len(of(made, LogLines)) == 6
    assert made.faults[0].onset == plan.job_start("train")
