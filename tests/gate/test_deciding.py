"""When a finding is acted on."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from msgspec import structs

from fabricmon.gate.deciding import Gate
from fabricmon.gate.decision import UNSURE, Outcome, Reason, Sight, Verdict
from fabricmon.gate.messages import Presence, Standing
from fabricmon.gate.settings import Choice
from tests.gate.gates import (
    CONFIG,
    NOW,
    SEEING,
    gate,
    report,
    resolved,
    verdict,
)

LATER = NOW + 101
CLEAR = (Verdict.ACT, Reason.CLEAR)


def held(reason: Reason) -> tuple[Verdict, Reason]:
    """Return that it is held for this reason."""
    return Verdict.HOLD, reason


def act(judge: Gate, now: float, outcome: Outcome = Outcome.DONE) -> None:
    """Act on what is chosen."""
    (chosen,) = [d for d in judge.judge(now, SEEING) if d.verdict is Verdict.ACT]
    judge.begin(chosen.report, now)
    judge.end(chosen.report, outcome, now)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"role": "victim"}, Reason.ROLE),
            ({"role": "observer"}, Reason.ROLE),
            ({"role": ""}, Reason.ROLE),
            ({"action": "none"}, Reason.ACTION),
            ({"action": "inspect"}, Reason.ACTION),
            ({"action": "unknown"}, Reason.ACTION),
            ({"severity": "warning"}, Reason.SEVERITY),
            ({"severity": "info"}, Reason.SEVERITY),
            ({"kind": "congestion"}, Reason.KIND),
            ({"kind": "retries_exhausted"}, Reason.KIND),
            ({"kind": "nccl_error"}, Reason.KIND),
            ({"kind": "no_such_kind"}, Reason.KIND),
            ({"dry_run": True}, Reason.SHADOW),
            ({"noticed": False}, Reason.NOTICE),
            ({"origin": "fleet"}, Reason.ORIGIN),
        ],
    )
    def test_what_is_not_proven_here(
        self, changes: dict[str, Any], reason: Reason
    ) -> None:
        """Victims, unknowns, hearsay and what nobody is told of are never acted on."""
        judge = gate()
        judge.take(report(**changes), NOW)

        assert verdict(judge, LATER) == (Verdict.REFUSE, reason)

    @pytest.mark.parametrize(
        "node",
        ["", "-n1", "n1;reboot", "$(reboot)", "n 1", "n1\n", "../n1", "n1'", "ü", None],
    )
    def test_forged_names(self, node: str | None) -> None:
        """A name that could mean something else to a script reaches none."""
        judge = gate()
        judge.take(report(node, key="alert:n1"), NOW)

        assert verdict(judge, LATER) == (Verdict.REFUSE, Reason.NODE_NAME)

    def test_other_cluster(self) -> None:
        """A gate of one cluster acts on no other."""
        judge = gate(structs.replace(CONFIG, cluster="c2"))
        judge.take(report(), NOW)

        assert verdict(judge, LATER) == (Verdict.REFUSE, Reason.CLUSTER)

    def test_nodes_that_are_spared(self) -> None:
        """Only nodes of the patterns are acted on, and those named otherwise never."""
        choice = Choice(nodes=("n*",), never_nodes=("n9",))
        judge = gate(structs.replace(CONFIG, choice=choice))
        for node in ("n1", "n9", "login1"):
            judge.take(report(node, device=f"mlx5_{node[-1]}"), NOW)

        assert verdict(judge, LATER, "alert:n9") == (Verdict.REFUSE, Reason.NODE)
        assert verdict(judge, LATER, "alert:login1") == (Verdict.REFUSE, Reason.NODE)

    def test_warnings_where_the_site_says_so(self) -> None:
        """What is acted on is the site's choice, within what is proven."""
        choice = Choice(severities=("warning", "critical"))
        judge = gate(structs.replace(CONFIG, choice=choice))
        judge.take(report(severity="warning"), NOW)

        assert verdict(judge, LATER) == CLEAR


class TestWaits:
    def test_settles_first(self) -> None:
        """A finding must have been open for a while, and then is acted on."""
        judge = gate()
        judge.take(report(), NOW)

        assert verdict(judge, NOW + 99) == held(Reason.SETTLING)
        assert verdict(judge, NOW + 100) == CLEAR

    def test_settles_anew_after_a_start(self) -> None:
        """What was missed while the gate was away must be able to show."""
        judge = Gate(CONFIG, NOW)
        judge.take(report(), NOW - 1000)

        assert verdict(judge, NOW + 1) == held(Reason.SETTLING)

    def test_settles_anew_when_it_worsens(self) -> None:
        """Advice that has just become drastic is given time too."""
        judge = gate()
        judge.take(report(action="inspect"), NOW)
        judge.take(report(), NOW + 500)

        assert verdict(judge, NOW + 501) == held(Reason.SETTLING)

    def test_a_repeat_does_not_wait_again(self) -> None:
        """Alertmanager repeats itself; that is no news."""
        judge = gate()
        assert judge.take(report(), NOW)
        assert not judge.take(report(), NOW + 90)

        assert verdict(judge, LATER) == CLEAR

    def test_resolved_in_time(self) -> None:
        """What is over is not acted on."""
        judge = gate()
        judge.take(report(), NOW)
        judge.take(resolved(report()), NOW + 50)

        assert judge.judge(LATER, SEEING) == ()

    def test_overtaken_message(self) -> None:
        """A broker that sends an old message again opens nothing anew."""
        judge = gate()
        judge.take(report(seq=7), NOW)
        judge.take(resolved(report(seq=8)), NOW + 1)
        judge.take(report(seq=7), NOW + 2)

        assert judge.judge(LATER, SEEING) == ()

    def test_maintenance(self) -> None:
        """A node that somebody works on is left alone, also where that is unreadable."""
        judge = gate()
        judge.take(report(), NOW)

        for worked_on in (("n1",), ("n*",), None):
            sight = Sight(worked_on)
            assert verdict(judge, LATER, sight=sight) == held(Reason.MAINTENANCE)
        assert verdict(judge, LATER, sight=Sight(("n2",))) == CLEAR

    def test_lost_source(self) -> None:
        """What a source said before it went away is not acted on."""
        judge = gate()
        judge.take(report(source="mqtt"), NOW)

        lost = Sight(lost=frozenset({"mqtt"}))
        assert verdict(judge, LATER, sight=lost) == held(Reason.INPUT_LOST)
        assert verdict(judge, LATER) == CLEAR

    def test_agent_offline(self) -> None:
        """What an agent said before it went away is not acted on."""
        judge = gate()
        judge.take(report(source="mqtt"), NOW)
        judge.take_presence(Presence("c1", "n1", is_online=False))

        assert verdict(judge, LATER) == held(Reason.AGENT_OFFLINE)
        judge.take_presence(Presence("c1", "n1", is_online=True))
        assert verdict(judge, LATER) == CLEAR

    def test_standing_closes_what_was_missed(self) -> None:
        """A node's summary ends findings whose end was lost on the way."""
        judge = gate()
        judge.take(report(source="mqtt"), NOW)
        newer = "2027-01-15T09:00:00.000Z"

        still = Standing("c1", "n1", newer, frozenset({"port_down"}))
        assert judge.take_standing(still, NOW + 1) == []
        other = Standing("c1", "n2", newer, frozenset())
        assert judge.take_standing(other, NOW + 1) == []
        older = Standing("c1", "n1", "2027-01-15T07:00:00.000Z", frozenset())
        assert judge.take_standing(older, NOW + 1) == []
        over = Standing("c1", "n1", newer, frozenset())
        assert judge.take_standing(over, NOW + 1) == ["alert:n1"]
        assert judge.judge(LATER, SEEING) == ()

    def test_forgotten(self) -> None:
        """What nobody repeated for very long is not acted on."""
        judge = gate(forget_seconds=5000)
        judge.take(report(severity="warning"), NOW)

        assert judge.age(NOW + 5001) == ([], ["alert:n1"])


class TestCommonCause:
    def test_two_ports_of_a_leaf(self) -> None:
        """Two nodes that lose a port of one leaf together are held, both."""
        judge = gate()
        judge.take(report("n1", leaf="l1"), NOW)
        judge.take(report("n2", leaf="l1"), NOW + 200)

        for key in ("alert:n1", "alert:n2"):
            assert verdict(judge, NOW + 5000, key) == held(Reason.COMMON_CAUSE)

    def test_far_apart_in_time(self) -> None:
        """A second one much later is a fault of its own."""
        judge = gate()
        judge.take(report("n1", leaf="l1"), NOW)
        judge.take(report("n2", leaf="l1"), NOW + 1000)

        assert verdict(judge, NOW + 5000) == CLEAR

    def test_other_leafs(self) -> None:
        """Two ports of different leafs are two faults."""
        judge = gate()
        judge.take(report("n1", leaf="l1"), NOW)
        judge.take(report("n2", leaf="l2"), NOW)

        assert verdict(judge, LATER) == CLEAR

    @pytest.mark.parametrize("place", [{"rack": "r1"}, {"rail": 3}])
    def test_racks_and_rails(self, place: dict[str, Any]) -> None:
        """The same holds for a rack and for a rail."""
        judge = gate()
        judge.take(report("n1", **place), NOW)
        judge.take(report("n2", **place), NOW)

        assert verdict(judge, LATER) == held(Reason.COMMON_CAUSE)

    def test_ports_of_one_node(self) -> None:
        """Several ports of one node are that node's fault."""
        judge = gate()
        judge.take(report("n1", rack="r1"), NOW)
        judge.take(report("n1", rack="r1", device="mlx5_1", key="alert:b"), NOW)

        reasons = {each.reason for each in judge.judge(LATER, SEEING)}
        assert reasons == {Reason.CLEAR, Reason.BUSY}

    def test_three_nodes_anywhere(self) -> None:
        """Nodes without a place in common are held when there are enough of them."""
        judge = gate(budget_nodes=100)
        for number in (1, 2, 3):
            judge.take(report(f"n{number}"), NOW)

        assert verdict(judge, LATER) == held(Reason.COMMON_CAUSE)

    def test_victims_do_not_make_one(self) -> None:
        """Whoever only suffers says nothing about a cause here."""
        judge = gate()
        judge.take(report("n1", leaf="l1"), NOW)
        for node in ("n2", "n3", "n4"):
            other = report(node, leaf="l1", kind="transport_retries", role="victim")
            judge.take(other, NOW)

        assert verdict(judge, LATER) == CLEAR

    def test_what_is_left_when_the_leaf_is_back(self) -> None:
        """A port that stays down is acted on once the others have been up for long."""
        judge = gate()
        for node in ("n1", "n2", "n3"):
            judge.take(report(node, leaf="l1"), NOW)
        for node in ("n2", "n3"):
            judge.take(resolved(report(node, leaf="l1")), NOW + 600)

        assert verdict(judge, NOW + 700) == held(Reason.COMMON_CAUSE)
        assert verdict(judge, NOW + 901) == CLEAR

    def test_one_that_flickers_does_not_leave_its_company(self) -> None:
        """A member whose severity changes later is still one of them."""
        judge = gate()
        for node in ("n1", "n2", "n3"):
            judge.take(report(node, leaf="l1"), NOW)
        judge.take(report("n1", leaf="l1", severity="warning"), NOW + 1000)
        judge.take(report("n1", leaf="l1"), NOW + 1001)

        assert verdict(judge, NOW + 2000) == held(Reason.COMMON_CAUSE)

    @pytest.mark.parametrize(
        ("cause", "place", "holds"),
        [
            ({"kind": "common_cause", "leaf": "l1"}, {"leaf": "l1"}, True),
            ({"kind": "common_cause", "leaf": "l1"}, {"leaf": "l2"}, False),
            ({"kind": "common_cause", "leaf": "l1"}, {}, True),
            ({"kind": "fabric_suspect", "rail": 3}, {"rail": 3}, True),
            ({"kind": "fabric_suspect", "rail": 3}, {"rail": 4}, False),
            ({"kind": "fabric_control", "leaf": "l1"}, {"leaf": "l1"}, True),
            ({"kind": "common_cause", "rack": "r1"}, {"rack": "r2"}, False),
            ({"kind": "alert_budget"}, {"leaf": "l7"}, True),
            ({"kind": "agent_absent"}, {}, True),
            ({"kind": "alert_budget", "cluster": "c2"}, {}, False),
            ({"kind": "rail_slow", "rail": 3}, {"rail": 3}, False),
        ],
    )
    def test_told_by_the_fleet(
        self, *, cause: dict[str, Any], place: dict[str, Any], holds: bool
    ) -> None:
        """A cause that the fleet's rules tell holds what it may be about."""
        judge = gate()
        judge.take(report(**place), NOW)
        judge.take(report(None, key="cause", origin="fleet", device=None, **cause), NOW)

        expected = held(Reason.FLEET_CAUSE) if holds else CLEAR
        assert verdict(judge, LATER) == expected

    def test_after_the_cause(self) -> None:
        """When a cause is over, what remains is given time."""
        judge = gate()
        judge.take(report(), NOW)
        cause = report(None, key="cause", origin="fleet", kind="alert_budget")
        judge.take(cause, NOW)
        judge.take(resolved(cause), NOW + 200)

        assert verdict(judge, NOW + 299) == held(Reason.FLEET_CAUSE)
        assert verdict(judge, NOW + 300) == CLEAR

    def test_a_nodes_own_cause_is_about_that_node(self) -> None:
        """What one node says of its leaf does not hold the others."""
        judge = gate()
        judge.take(report("n1"), NOW)
        judge.take(report("n2", key="cause", kind="common_cause"), NOW)

        assert verdict(judge, LATER) == CLEAR

    def test_too_many_findings(self) -> None:
        """Whoever cannot see everything does nothing."""
        judge = gate(most_findings=100)
        for number in range(101):
            judge.take(report("n1", key=f"alert:{number}"), NOW)

        assert verdict(judge, LATER, "alert:0") == held(Reason.OVERFLOW)


class TestBudget:
    def test_one_at_a_time(self) -> None:
        """One decision acts; the next one waits for its end."""
        judge = gate()
        judge.take(report("n1"), NOW)
        judge.take(report("n2"), NOW)
        chosen = [d for d in judge.judge(LATER, SEEING) if d.verdict is Verdict.ACT]

        assert len(chosen) == 1
        judge.begin(chosen[0].report, LATER)
        assert verdict(judge, LATER, "alert:n2") == held(Reason.BUSY)

    def test_nodes_that_are_out(self) -> None:
        """No more nodes are out at a time than the budget says."""
        judge = gate(budget_window_seconds=1)
        for number in (1, 2, 3):
            at = NOW + 1000 * number
            judge.take(report(f"n{number}"), at)
            if number < 3:
                act(judge, at + 101)

        assert verdict(judge, NOW + 3101, "alert:n3") == held(Reason.BUDGET)
        assert judge.release("n1", NOW + 3102)
        assert verdict(judge, NOW + 3102, "alert:n3") == CLEAR

    def test_nodes_in_the_window(self) -> None:
        """Nodes that came back count on, until the window has passed."""
        judge = gate()
        for number in (1, 2, 3):
            at = NOW + 1000 * number
            judge.take(report(f"n{number}"), at)
            if number < 3:
                act(judge, at + 101)
                judge.release(f"n{number}", at + 102)

        assert verdict(judge, NOW + 3101, "alert:n3") == held(Reason.BUDGET_WINDOW)
        for node in ("n1", "n2"):
            judge.take(resolved(report(node)), NOW + 11_000)
        assert verdict(judge, NOW + 11_102, "alert:n3") == CLEAR

    @pytest.mark.parametrize(
        ("nodes", "budget"), [(0, 2), (399, 2), (600, 3), (10_000, 50)]
    )
    def test_share_of_the_cluster(self, nodes: int, budget: int) -> None:
        """The budget is a number, or a share of the nodes if that is more."""
        assert gate(cluster_nodes=nodes).budget == budget

    def test_cooldown_after_a_failure(self) -> None:
        """A script that failed is not called again at once."""
        judge = gate()
        judge.take(report(), NOW)
        act(judge, LATER, Outcome.FAILED)

        assert judge.out_nodes() == 0
        assert verdict(judge, LATER + 999) == held(Reason.COOLDOWN)
        assert verdict(judge, LATER + 1000) == CLEAR

    @pytest.mark.parametrize("outcome", [Outcome.DONE, *sorted(UNSURE)])
    def test_a_node_that_is_out_stays_out(self, outcome: Outcome) -> None:
        """It is not acted on again while anything is open, however long."""
        judge = gate()
        judge.take(report(), NOW)
        act(judge, LATER, outcome)
        for hours in range(1, 20):
            judge.take(report(), NOW + hours * 3600)

        assert verdict(judge, NOW + 70_000) == held(Reason.NODE_OUT)

    def test_back_once_it_is_well_for_long(self) -> None:
        """A node is back when its findings are resolved and the cool-down is over."""
        judge = gate()
        judge.take(report(), NOW)
        act(judge, LATER)
        judge.take(resolved(report()), NOW + 2000)

        assert judge.age(NOW + 2999)[0] == []
        assert judge.age(NOW + 3000)[0] == ["n1"]
        judge.take(report(), NOW + 3001)
        assert verdict(judge, NOW + 3200) == held(Reason.COOLDOWN)

    def test_not_back_with_a_new_finding(self) -> None:
        """A finding that comes meanwhile keeps it out."""
        judge = gate()
        judge.take(report(), NOW)
        act(judge, LATER)
        judge.take(resolved(report()), NOW + 2000)
        judge.take(report(key="alert:b"), NOW + 2500)

        assert judge.age(NOW + 9000)[0] == []

    def test_not_back_by_silence(self) -> None:
        """A finding that was only forgotten is no sign of health."""
        judge = gate(forget_seconds=5000)
        judge.take(report(), NOW)
        act(judge, LATER)

        assert judge.age(NOW + 1e7)[0] == []
        assert judge.out_nodes() == 1

    def test_release_cools_down(self) -> None:
        """Who gives a node back has time before the gate takes it again."""
        judge = gate()
        judge.take(report(), NOW)
        act(judge, LATER)
        judge.release("n1", LATER + 5)

        assert not judge.release("n1", LATER + 6)
        assert verdict(judge, LATER + 1000) == held(Reason.COOLDOWN)

    def test_rehearsal_is_forgotten(self) -> None:
        """Nodes that were out in dry-run only are in when the gate begins to act."""
        judge = gate(structs.replace(CONFIG, act=False))
        judge.take(report(), NOW)
        act(judge, LATER, Outcome.DRY_RUN)
        assert verdict(judge, LATER + 1) == held(Reason.NODE_OUT)
        judge.forget_rehearsal()

        assert verdict(judge, LATER + 2) == CLEAR

    def test_worst_first(self) -> None:
        """What cannot wait goes before what can."""
        judge = gate()
        judge.take(report("n1", action="drain_after_job"), NOW)
        judge.take(report("n2"), NOW + 1)

        assert verdict(judge, NOW + 200, "alert:n2") == CLEAR


@given(
    node=st.one_of(st.text(max_size=8), st.sampled_from(["n1", "a.b-c_d"])),
    changes=st.fixed_dictionaries(
        {
            "severity": st.sampled_from(["info", "warning", "critical", "x"]),
            "role": st.sampled_from(["culprit", "victim", "observer", ""]),
            "action": st.sampled_from(["none", "inspect", "drain_now", "drain_later"]),
            "origin": st.sampled_from(["node", "fleet"]),
            "dry_run": st.booleans(),
            "noticed": st.booleans(),
        }
    ),
)
def test_nothing_but_proven_advice(node: str, changes: dict[str, Any]) -> None:
    """Whatever comes in, only a culprit with advice to drain is ever acted on."""
    judge = gate()
    judge.take(report(node, key="k", **changes), NOW)
    proven = {
        "severity": "critical",
        "role": "culprit",
        "action": "drain_now",
        "origin": "node",
        "dry_run": False,
        "noticed": True,
    }
    is_node = node in {"n1", "a.b-c_d"} or (node.isascii() and node.isalnum())

    if verdict(judge, LATER, "k") == CLEAR:
        assert changes == proven
        assert node.isascii()
        assert not set(node) & set(" /;&|$`'\"\\\n<>(){}*?[]#!~=%")
        assert not node.startswith("-")
    else:
        assert changes != proven or not is_node


class AnyHistory(RuleBasedStateMachine):
    """A gate under whatever may happen, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.gate = gate(common_nodes=100)
        self.begun: list[tuple[str, float]] = []
        self.running: Any = None

    @rule(node=st.sampled_from("abcdefgh"), kind=st.sampled_from(["x", "y"]))
    def opens(self, node: str, kind: str) -> None:
        """A finding opens or is repeated."""
        self.gate.take(report(node, key=f"{node}{kind}"), self.now)

    @rule(node=st.sampled_from("abcdefgh"), kind=st.sampled_from(["x", "y"]))
    def resolves(self, node: str, kind: str) -> None:
        """A finding ends."""
        self.gate.take(resolved(report(node, key=f"{node}{kind}")), self.now)

    @rule(seconds=st.sampled_from([1, 50, 120, 1100, 12_000]))
    def passes(self, seconds: int) -> None:
        """Time passes."""
        self.now += seconds
        self.gate.age(self.now)

    @rule()
    def judges(self) -> None:
        """Decisions are made, and one is carried out at most."""
        found = self.gate.judge(self.now, SEEING)
        chosen = [each for each in found if each.verdict is Verdict.ACT]
        assert len(chosen) <= 1
        if chosen:
            assert self.running is None
            node = chosen[0].report.node or ""
            assert node not in self.gate.outs
            since = [at for who, at in self.begun if who == node]
            assert all(self.now - at >= 1000 for at in since)
            self.gate.begin(chosen[0].report, self.now)
            self.begun.append((node, self.now))
            self.running = chosen[0].report

    @precondition(lambda self: self.running is not None)
    @rule(outcome=st.sampled_from([o for o in Outcome if o is not Outcome.DRY_RUN]))
    def ends(self, outcome: Outcome) -> None:
        """What was begun ends somehow."""
        self.gate.end(self.running, outcome, self.now)
        self.running = None

    @rule(node=st.sampled_from("abcdefgh"))
    def releases(self, node: str) -> None:
        """Somebody gives a node back."""
        self.gate.release(node, self.now)

    @invariant()
    def is_within_budget(self) -> None:
        """No more nodes than the budget are out, nor were acted on in a window."""
        assert self.gate.out_nodes() <= self.gate.budget
        recent = {who for who, at in self.begun if self.now - at < 10_000}
        assert len(recent) <= self.gate.budget


TestAnyHistory = AnyHistory.TestCase


def test_a_storm_is_judged_in_time() -> None:
    """As many findings and causes as are remembered do not hold up the loop."""
    judge = gate(most_findings=10_000)
    for number in range(5000):
        node, key = f"n{number}", f"k{number}"
        judge.take(report(node, key=key, leaf=f"l{number % 9}"), NOW)
        judge.take(report(node, key=f"c{key}", kind="fabric_suspect", leaf="x"), NOW)
    begun = time.process_time()
    found = judge.judge(LATER, SEEING)

    assert len(found) == 5000
    assert {each.verdict for each in found} == {Verdict.HOLD}
    assert time.process_time() - begun < 2
