"""What can be seen of a fault: by masks, by what machines count, by who uses a place."""

from __future__ import annotations

import pytest

from fabricmon.sim.effects import Counting
from fabricmon.sim.scenario import EVERYTHING, Injection, JobPlan, Scenario, Sight
from fabricmon.sim.settling import settle
from fabricmon.sim.staging import Stage
from fabricmon.sim.staging import injected as all_injected
from fabricmon.sim.truth import FaultTruth
from tests.sim.injected import IB, PFC, ROCE, fleet, injected, of

EFA = "EFA"
BY_TRAFFIC = (
    "F02", "F23", "F27", "F28", "F30", "F31", "F32", "F33", "F38", "F50", "F51", "F53",
    "F54", "F55", "F56", "F57",
)  # fmt: skip
"""Classes that an idle place shows nothing of."""

WITHOUT_PCIE: tuple[Sight, ...] = ("sysfs", "ethtool", "nccl_log", "peers")


def truth(
    what: str,
    profile: str = IB,
    *jobs: JobPlan,
    sights: tuple[Sight, ...] = EVERYTHING,
    end: float | None = None,
    evidence: str | None = None,
) -> FaultTruth:
    """Return the first fault of a class on a fleet that runs these jobs."""
    plan = fleet(profile, jobs=jobs, duration=1800, sights=sights)
    if evidence is None:
        return injected(what, plan, end=end).faults[0]
    return injected(what, plan, end=end, evidence=evidence).faults[0]


@pytest.mark.parametrize("what", BY_TRAFFIC)
def test_an_idle_place_shows_nothing_of_traffic(what: str) -> None:
    """Without a job, after the last one, and before the first one: to abstain."""
    over, later = JobPlan(end=250), JobPlan(start=1000)
    assert not truth(what).visible
    assert not truth(what, IB, over).visible
    assert not truth(what, IB, later, end=900).visible
    assert truth(what, IB, JobPlan()).visible


@pytest.mark.parametrize("what", sorted({*BY_TRAFFIC} - {"F50", "F51"}))
def test_signature_is_complete_with_the_first_traffic(what: str) -> None:
    """A job that comes later shows it; the deadline counts from then."""
    found = truth(what, IB, JobPlan(start=700, init=50))
    assert (found.visible, found.begin, found.onset) == (True, 300, 750)


def test_a_job_on_other_rails_does_not_help() -> None:
    """What counts is who uses the place."""
    assert not truth("F54", IB, JobPlan(rails=(0, 1))).visible
    assert truth("F54", IB, JobPlan(rails=(2,))).visible


@pytest.mark.parametrize("what", ["F20", "F21"])
def test_stalls_need_work_and_widths_do_not(what: str) -> None:
    """An idle device does not wait, but its link tells."""
    assert truth(what).visible
    assert not truth(what, sights=WITHOUT_PCIE).visible
    assert truth(what, IB, JobPlan(), sights=WITHOUT_PCIE).visible


def test_evidence_at_the_hop_needs_no_traffic() -> None:
    """A rate that is too low can be read at any time; PCIe only where it is shown."""
    assert truth("F54", evidence="rate").visible
    assert truth("F54", evidence="pcie").visible
    assert not truth("F54", sights=WITHOUT_PCIE, evidence="pcie").visible


def test_hung_firmware_is_told_by_the_log_or_under_load() -> None:
    """Counters of an idle device stand still anyhow."""
    assert truth("F25").visible
    assert not truth("F25", sights=("sysfs", "ethtool")).visible
    assert truth("F25", IB, JobPlan(), sights=("sysfs", "ethtool")).visible


def test_wrong_partition_refuses_nobody_who_does_not_try() -> None:
    """Without a job nothing is counted."""
    assert not of(injected("F57", fleet(jobs=())), Counting)


def test_a_job_that_another_injection_ends_is_over() -> None:
    """The truth knows what happens to jobs, whatever their plan says."""
    scenario = Scenario(
        name="test", summary="", duration=900,
        inject=(
            Injection(what="N19", onset=200),
            Injection(what="F54", node=1, rail=2, onset=300),
        ),
    )  # fmt: skip
    assert [fault.visible for fault in Stage(scenario).truth.faults] == [False]
    alone = Scenario(name="test", summary="", inject=scenario.inject[1:])
    plan, made = all_injected(alone, 1)
    names = [plan.node_name(node) for node in range(plan.nodes)]
    assert [fault.visible for fault in settle(made, names).faults] == [True]


@pytest.mark.parametrize(
    "what",
    [
        "F01", "F03", "F04", "F05", "F08", "F09", "F10", "F11", "F12", "F13", "F26",
        "F27", "F28", "F30", "F31", "F34", "F35", "F36", "F37", "F40",
    ],
)  # fmt: skip
def test_efa_counts_little(what: str) -> None:
    """It has no such meter, no transceiver, and its state says ACTIVE for ever."""
    assert not truth(what, EFA, JobPlan()).visible


@pytest.mark.parametrize(
    "what", ["F02", "F20", "F24", "F29", "F33", "F39", "F50", "F54", "F56"]
)
def test_efa_shows_what_it_counts(what: str) -> None:
    """Octets, packets that were sent again, files of PCIe, and the job's log."""
    assert truth(what, EFA, JobPlan()).visible


@pytest.mark.parametrize(
    ("what", "profile", "sights", "visible"),
    [
        ("F30", PFC, ("sysfs",), False),
        ("F30", PFC, ("sysfs", "ethtool"), True),
        ("F30", ROCE, ("sysfs",), True),
        ("F30", IB, ("sysfs",), True),
        ("F37", PFC, ("sysfs", "ethtool", "peers"), False),
        ("F08", ROCE, ("sysfs",), True),
        ("F09", ROCE, ("sysfs",), False),
        ("F09", ROCE, ("ethtool",), True),
        ("F36", ROCE, ("sysfs", "dcb"), True),
        ("F36", ROCE, ("sysfs",), False),
    ],
)
def test_a_meter_has_to_be_in_sight(
    what: str, profile: str, sights: tuple[Sight, ...], *, visible: bool
) -> None:
    """Notifications only with DCQCN; pause in driver statistics alone."""
    assert truth(what, profile, JobPlan(), sights=sights).visible is visible


@pytest.mark.parametrize(
    ("what", "word", "visible"),
    [
        ("F29", "device", True), ("F29", "node", False),
        ("F14", "port", True), ("F14", "leaf", False),
    ],
)  # fmt: skip
def test_only_a_vote_needs_the_others(what: str, word: str, *, visible: bool) -> None:
    """A node alone can tell of its own port, not of a leaf or of the fleet."""
    alone: tuple[Sight, ...] = ("sysfs",)
    made = injected(what, fleet(sights=alone), scope=word)
    assert [fault.visible for fault in made.faults] == [visible]
