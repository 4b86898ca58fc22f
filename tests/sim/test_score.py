from __future__ import annotations

from typing import Any

import pytest

from fabricmon.sim.score import Outcome
from fabricmon.sim.score_stories import ToldEvidence
from fabricmon.sim.truth import Forbidden, Place, Truth
from tests.sim.scoring import DURATION, fault, run, suffering, told, truth

NEGATIVE = truth(negative=True)
VICTIM = Place(node="node01", device="mlx5_0", port=1)


def test_found() -> None:
    """An accepted kind on the right port within the deadline answers the fault."""
    answer = run(fault(), told(310)).answers[0]
    assert (answer.outcome, answer.seconds, answer.kind) == (
        Outcome.FOUND,
        10,
        "port_down",
    )


def test_at_the_deadline() -> None:
    """The last moment still counts."""
    assert run(fault(), told(315)).answers[0].outcome is Outcome.FOUND


def test_after_the_deadline() -> None:
    """The right answer too late is a miss, and called late."""
    answer = run(fault(), told(315.5)).answers[0]
    assert (answer.outcome, answer.seconds) == (Outcome.LATE, 15.5)


@pytest.mark.parametrize(
    "subject", [{"port": 2}, {"device": "mlx5_1"}, {"node": "node01"}, {"port": None}]
)
def test_wrong_place(subject: dict[str, object]) -> None:
    """The right kind elsewhere, or not as precise as its kind is, is no answer."""
    answer = run(fault(), told(310, subject=subject)).answers[0]
    assert answer.outcome is Outcome.MISSED


def test_wrong_kind() -> None:
    """A kind that is not accepted is no answer, but it is said of the place."""
    answer = run(fault(), told(310, kind="link_errors")).answers[0]
    assert (answer.outcome, answer.kind, answer.said) == (Outcome.MISSED, None, "link")


def test_nothing_said() -> None:
    """Silence is a miss."""
    answer = run(fault()).answers[0]
    assert (answer.outcome, answer.said) == (Outcome.MISSED, "nothing")


def test_early() -> None:
    """Between the cause and the whole signature an answer is early: 0 s."""
    answer = run(fault(begin=200), told(250)).answers[0]
    assert (answer.outcome, answer.seconds) == (Outcome.FOUND, 0)


def test_before_the_cause() -> None:
    """What was said before anything had happened is no answer, and a false one."""
    result = run(fault(begin=200), told(150))
    assert result.answers[0].outcome is Outcome.MISSED
    assert len(result.false) == 1


def test_open_since_an_earlier_fault() -> None:
    """A finding that stays open over a second fault of the place speaks of both."""
    both = truth(fault(end=310), fault(onset=600))
    outcomes = [each.outcome for each in run(both, told(305, id="a")).answers]
    assert outcomes == [Outcome.FOUND, Outcome.FOUND]


def test_resolved_before_a_second_fault() -> None:
    """One that was over by then does not."""
    both = truth(fault(end=310), fault(onset=600))
    records = told(305, id="a"), told(400, id="a", state="resolved")
    outcomes = [each.outcome for each in run(both, *records).answers]
    assert outcomes == [Outcome.FOUND, Outcome.MISSED]


def test_an_update_answers() -> None:
    """A finding that names the place only later answers then."""
    first = told(303, id="a", kind="config_mismatch", subject={"node": "node01"})
    then = told(309, id="a", kind="config_mismatch")
    answer = run(fault(accept=("config_mismatch",)), first, then).answers[0]
    assert answer.seconds == 9


def test_resolved_is_no_answer() -> None:
    """A record that only says that something is over tells nothing new."""
    result = run(fault(), told(310, state="resolved"))
    assert result.answers[0].outcome is Outcome.MISSED
    assert result.actionable == 0


def test_duplicates() -> None:
    """A document that was delivered twice counts once."""
    result = run(fault(), told(310, id="a"), told(310, id="a"))
    assert (result.actionable, result.loud_stories) == (1, 1)


def test_updates_are_one_finding() -> None:
    """Records of one id are one finding."""
    records = told(310, id="a", action="none"), told(340, id="a")
    result = run(fault(), *records)
    assert (result.actionable, result.loud_stories) == (1, 1)


def test_shadow() -> None:
    """A kind in shadow told nobody: neither an answer nor a false alarm."""
    result = run(fault(), told(310, dry_run=True), told(20, dry_run=True))
    assert result.answers[0].outcome is Outcome.MISSED
    assert result.false == ()


def test_with_shadow() -> None:
    """On demand it is scored as if it were on."""
    result = run(fault(), told(310, dry_run=True), with_shadow=True)
    assert result.answers[0].outcome is Outcome.FOUND


def test_hidden() -> None:
    """Where the mask hides the signature, saying nothing is right."""
    assert run(fault(visible=False)).answers[0].outcome is Outcome.ABSTAINED


def test_hidden_and_answered() -> None:
    """An answer all the same is a guess, not a find."""
    result = run(fault(visible=False), told(310))
    assert result.answers[0].outcome is Outcome.GUESSED


def test_evidence() -> None:
    """Evidence that the cause would leave is told from other evidence."""
    causes = fault(signals=("symbol_error", "port_rcv_errors"))
    assert run(causes, told(310, "symbol_error", "rate")).answers[0].evidence is True
    assert run(causes, told(310, "rate")).answers[0].evidence is False
    assert run(fault(signals=()), told(310)).answers[0].evidence is None


def test_evidence_of_a_log() -> None:
    """A line of a log counts as that log, whatever its rule is called."""
    line = ToldEvidence(signal="mlx5_link_down", source="kmsg")
    result = run(fault(signals=("kmsg",)), told(310, evidence=(line,)))
    assert result.answers[0].evidence is True


def test_precision() -> None:
    """Any kind on the culprit's place is no false action, elsewhere it is."""
    elsewhere = told(320, kind="link_errors", subject={"node": "node01"})
    result = run(fault(), told(310), told(311, kind="link_errors"), elsewhere)
    assert result.actionable == 3
    assert [each.place for each in result.false] == ["node01/mlx5_0/1"]


def test_no_action_is_no_false_action() -> None:
    """What asks nobody to do anything costs no precision."""
    note = told(320, action="none", subject={"node": "node01"})
    assert run(fault(), note).actionable == 0


def test_victim_blamed() -> None:
    """An actionable finding on one who only suffers is a blame."""
    result = run(suffering(VICTIM), told(320, subject={"node": "node01"}))
    assert result.has_victims
    assert [each.place for each in result.blames] == ["node01/mlx5_0/1"]


@pytest.mark.parametrize(
    "changes",
    [{"action": "none"}, {"subject": {"node": "node01", "device": "mlx5_5"}}],
)
def test_victim_not_blamed(changes: dict[str, object]) -> None:
    """Saying without asking, and another device, blame nobody."""
    both = {"subject": {"node": "node01"}} | changes
    assert run(suffering(VICTIM), told(320, **both)).blames == ()


def test_whole_node_suffers() -> None:
    """Any port of a victim is the victim."""
    result = run(
        suffering(Place(node="node01")),
        told(320, subject={"node": "node01", "device": "mlx5_7"}),
    )
    assert len(result.blames) == 1


def test_peer_blamed() -> None:
    """Naming a victim as the suspect peer blames it too."""
    suspect = told(
        320, kind="peer_suspect", subject={"node": "node00", "peer": "node01"}
    )
    assert len(run(suffering(Place(node="node01")), suspect).blames) == 1


def test_culprit_among_victims() -> None:
    """A culprit that is listed as a victim as well is not blamed."""
    assert run(suffering(Place(node="node00")), told(310)).blames == ()


def test_negative_silent() -> None:
    """Information without action leaves a negative silent."""
    result = run(NEGATIVE, told(100, severity="info", action="none"))
    assert result.passed
    assert result.loud == ()


@pytest.mark.parametrize(
    "changes", [{"severity": "warning", "action": "none"}, {"severity": "info"}]
)
def test_negative_not_silent(changes: dict[str, object]) -> None:
    """A warning, or information that asks for action, fails it."""
    result = run(NEGATIVE, told(100, **changes))
    assert not result.passed
    assert result.said_in_peace == ("flap/down",)


@pytest.mark.parametrize(
    ("rule", "is_broken"),
    [
        (Forbidden(), True),
        (Forbidden(node="node00", kind="port_down"), True),
        (Forbidden(node="node01"), False),
        (Forbidden(device="mlx5_1"), False),
        (Forbidden(actionable=True), True),
        (Forbidden(actionable=False), False),
        (Forbidden(severity="warning"), False),
        (Forbidden(role="victim"), False),
        (Forbidden(role="culprit", severity="critical"), True),
    ],
)
def test_forbidden(rule: Forbidden, *, is_broken: bool) -> None:
    """A rule forbids what has everything that it names."""
    result = run(truth(fault(), forbid=(rule,)), told(310))
    assert bool(result.breaches) is is_broken
    assert result.passed is not is_broken


def test_forbidden_once() -> None:
    """One finding breaks the rules once, however many records it has."""
    rules = Forbidden(node="node00"), Forbidden(kind="port_down")
    records = told(310, id="a"), told(320, id="a", severity="warning")
    assert len(run(truth(fault(), forbid=rules), *records).breaches) == 1


def test_false_page() -> None:
    """Critical, to be acted on and a job there: somebody is woken."""
    result = run(NEGATIVE, told(100))
    assert (result.false_pages, result.false_tickets) == (1, 0)


@pytest.mark.parametrize(
    "changes",
    [{"severity": "warning"}, {"subject": {"node": "node01"}}, {"t": 1200}],
)
def test_false_ticket(changes: dict[str, object]) -> None:
    """Less than critical, or no job there at the time: somebody reads it tomorrow."""
    at = changes.pop("t", 100)
    assert isinstance(at, int)
    result = run(NEGATIVE, told(at, **changes))
    assert (result.false_pages, result.false_tickets) == (0, 1)


def test_true_page_is_not_false() -> None:
    """A page about the culprit is no false one."""
    result = run(fault(), told(310))
    assert (result.false_pages, result.false_tickets) == (0, 0)


def test_economy() -> None:
    """Findings that are not silent are counted beside the incidents."""
    both = truth(fault(), fault(device="mlx5_1"), fault(fault="F05", onset=900))
    records = [told(310 + n, id=str(n)) for n in range(5)]
    records.append(told(400, severity="info", action="none", id="note"))
    result = run(both, *records)
    assert (result.loud_stories, result.incidents) == (5, 2)


def test_node_days() -> None:
    """Two nodes for half an hour."""
    assert run(fault()).node_days == 2 * DURATION / 86400


def windowed(**changes: Any) -> Truth:
    """Return a truth of a port that is in maintenance from 200 s to 600 s."""
    rule = Forbidden(
        node="node00", device="mlx5_0", actionable=True, begin=200, end=600
    )
    return truth(fault(onset=600, begin=300), forbid=(rule,), **changes)


def test_told_within_a_window() -> None:
    """What is told in maintenance is wrong, and answers nothing."""
    result = run(windowed(), told(310, id="a"))
    assert [each.what for each in result.breaches] == ["forbidden"]
    assert result.answers[0].outcome is Outcome.MISSED
    assert not result.passed


def test_told_after_a_window() -> None:
    """The same finding is right once the window is over."""
    result = run(windowed(), told(605, id="a"))
    assert result.breaches == ()
    assert result.answers[0].outcome is Outcome.FOUND
    assert result.answers[0].seconds == 5


def test_told_again_after_a_window() -> None:
    """A finding that asks for nothing within it may ask later."""
    quiet = told(310, id="a", action="none")
    loud = told(604, id="a", state="update")
    result = run(windowed(), quiet, loud)
    assert result.breaches == ()
    assert result.answers[0].outcome is Outcome.FOUND
