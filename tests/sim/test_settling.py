"""Several injections in one scenario do not contradict each other."""

from msgspec.structs import replace

from fabricmon.sim.effects import Made
from fabricmon.sim.settling import settle
from fabricmon.sim.truth import FaultTruth, Forbidden, Place

NODES = ("a", "b", "c")


def fault(node: str, device: str = "d0", *, accept: str = "port_down") -> FaultTruth:
    """Return a fault at the first port of a device."""
    return FaultTruth(
        fault="F10", onset=1, end=None, accept=(accept,), deadline=1, node=node,
        device=device, port=1, begin=1,
    )  # fmt: skip


def test_culprit_of_one_is_no_victim_of_another() -> None:
    """A dead port that also suffers from a storm is at fault all the same."""
    storm = Made(victims=tuple(Place(node=n, device="d0", port=1) for n in NODES))
    settled = settle([storm, Made(faults=(fault("b"),))], NODES)
    assert [place.node for place in settled.victims] == ["a", "c"]


def test_rule_for_all_holds_for_the_others() -> None:
    """Congestion asks that nobody be blamed, but for the one who is at fault."""
    nobody = Made(forbid=(Forbidden(actionable=True),))
    settled = settle([nobody, Made(faults=(fault("b"),))], NODES)
    assert [rule.node for rule in settled.forbid] == ["a", "c"]


def test_rule_about_another_device_stays() -> None:
    """A fault elsewhere on the node does not free the device."""
    spared = Made(forbid=(Forbidden(node="b", device="d1", actionable=True),))
    settled = settle([spared, Made(faults=(fault("b"),))], NODES)
    assert settled.forbid == spared.forbid


def test_rule_about_another_kind_stays() -> None:
    """What no answer would break is no contradiction."""
    never = Made(forbid=(Forbidden(kind="peer_suspect"),))
    settled = settle([never, Made(faults=(fault("b"),))], NODES)
    assert settled.forbid == never.forbid


def test_rule_that_would_forbid_the_answer_goes() -> None:
    """The answer to a fault is never forbidden."""
    quiet = Made(forbid=(Forbidden(node="b", device="d0", actionable=True),))
    assert settle([quiet, Made(faults=(fault("b"),))], NODES).forbid == ()


def test_own_rules_of_a_fault_stay() -> None:
    """A class may forbid what would be wrong at its own place."""
    rule = Forbidden(node="b", device="d0", actionable=True)
    only = Made(faults=(fault("b"),), forbid=(rule,))
    assert settle([only], NODES).forbid == (rule,)


def window(end: float | None) -> Made:
    """Return maintenance of a device from the start."""
    rule = Forbidden(node="b", device="d0", actionable=True, begin=0, end=end)
    return Made(forbid=(rule,))


def test_fault_in_a_window_is_told_after_it() -> None:
    """The rule stands, and the answer is due once it no longer holds."""
    settled = settle([window(100), window(300), Made(faults=(fault("b"),))], NODES)
    assert [rule.end for rule in settled.forbid] == [100, 300]
    (truth,) = settled.faults
    assert (truth.visible, truth.onset, truth.begin) == (True, 300, 1)


def test_fault_in_a_window_without_end_is_not_told() -> None:
    """Nor one that is over when the window is."""
    brief = replace(fault("b"), end=90)
    for end, truth in ((None, fault("b")), (100, brief)):
        settled = settle([window(end), Made(faults=(truth,))], NODES)
        assert [each.visible for each in settled.faults] == [False]


def test_window_of_another_device_changes_nothing() -> None:
    """Elsewhere a fault is told at once."""
    settled = settle([window(100), Made(faults=(fault("a"),))], NODES)
    assert settled.faults == (fault("a"),)


def test_same_rule_stands_once() -> None:
    """Two parts that ask the same ask it once."""
    rule = Forbidden(node="a", actionable=True)
    settled = settle([Made(forbid=(rule,)), Made(forbid=(rule,))], NODES)
    assert settled.forbid == (rule,)
