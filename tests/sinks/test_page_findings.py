"""The cards of open findings on the status page."""

from dataclasses import replace

from fabricmon.model import Action, Evidence, Incident, Part, Severity, Subject
from fabricmon.sinks.page_document import fragment
from tests.sinks import nodes, pages
from tests.sinks.pages import incident, words


def card(made: Incident) -> str:
    """Return what the card of one finding says."""
    return words(pages.section(nodes.node(incidents=(made,)), "findings"))


def kinds(*incidents: Incident) -> list[str]:
    """Return the findings in the order of their cards."""
    found = pages.section(nodes.node(incidents=incidents), "findings")
    return [each.attrib["data-kind"] for each in found.findall("article")]


def test_nothing_open() -> None:
    """An empty list says that it is empty."""
    assert words(pages.section(nodes.node(), "findings")) == "Findings Nothing is open."


def test_worst_first() -> None:
    """Severity decides, then the advice, then age; what is tried out comes last."""
    older = incident("rate_degraded", action=Action.DRAIN_AFTER_JOB)
    older = replace(older, finding=replace(older.finding, onset=nodes.WALL - 900))
    assert kinds(
        incident("port_flap", Severity.WARNING),
        incident("link_unstable", dry_run=True),
        incident("counter_reset", Severity.INFO),
        incident("link_errors", action=Action.DRAIN_AFTER_JOB),
        older,
        incident("port_down", action=Action.DRAIN_NOW),
    ) == [
        "port_down",
        "rate_degraded",
        "link_errors",
        "port_flap",
        "counter_reset",
        "link_unstable",
    ]


def test_card_says_what_to_do() -> None:
    """A card has severity, place, age, summary, meaning, advice and runbook."""
    shown = card(incident(action=Action.DRAIN_AFTER_JOB))
    for part in (
        "critical mlx5_0/1",
        "for 5 min, since 07:55:00Z",
        "port_down of mlx5_0",
        "Port down",
        "Advice: drain after the job",
        "fabricmon explain port_down",
        "docs",
    ):
        assert part in shown


def test_no_advice() -> None:
    """Where there is nothing to do, nothing is advised."""
    assert "Advice" not in card(incident())


def test_evidence() -> None:
    """Value, unit, window, threshold and source stand in one line."""
    evidence = (
        Evidence("symbol_error", 1204, "errors", "infiniband/x/counters", 52, 60.0),
        Evidence("link_downed", 1, "events", "infiniband/x/counters"),
        Evidence("state", "DOWN", "", "infiniband/x", "ACTIVE"),
        Evidence("delay", 1, "s", "clock"),
        Evidence("width", None, "lanes", "infiniband/x"),
    )
    found = pages.section(
        nodes.node(incidents=(incident(evidence=evidence),)), "findings"
    )
    assert [words(each) for each in found.findall(".//li")] == [
        "symbol_error 1,204 errors in 60 s, threshold 52 infiniband/x/counters",
        "link_downed 1 event infiniband/x/counters",
        "state DOWN expected ACTIVE infiniband/x",
        "delay 1 s clock",
        "width \u2013 lanes infiniband/x",
    ]


def test_shadow_does_not_scream() -> None:
    """A kind that is tried out looks so, and counts nowhere."""
    found = nodes.node(incidents=(incident(dry_run=True),))
    assert "nobody is alerted" in words(pages.section(found, "findings"))
    article = pages.section(found, "findings").find("article")
    assert article is not None
    assert article.attrib["class"] == "card critical shadow"
    assert "nothing is open" in words(pages.tree(found).find("header"))


def test_victim_is_not_blamed() -> None:
    """Part and doubt are told where the fault may be elsewhere."""
    made = incident()
    finding = replace(made.finding, part=Part.VICTIM, confidence=0.5)
    shown = card(replace(made, finding=finding))
    assert "this place is the victim" in shown
    assert "confidence 50%" in shown


def test_who_only_sees_is_not_blamed() -> None:
    """What a place shows of itself without a fault of its own reads so."""
    made = incident("counter_saturated", Severity.INFO)
    shown = card(replace(made, finding=replace(made.finding, part=Part.OBSERVER)))
    assert "seen here, not blamed on this place" in shown
    assert "observer" not in shown


def test_long_signals_break_between_words() -> None:
    """The last letter of a name has no line of its own."""
    evidence = (Evidence("req_transport_retries_exceeded", 3, "events", "x"),)
    shown = fragment(nodes.node(incidents=(incident(evidence=evidence),)), 0)
    assert "req_<wbr>transport_<wbr>retries_<wbr>exceeded</span>" in shown


def test_subjects() -> None:
    """Whatever a finding is about is named."""
    made = incident(device=None)
    assert "the node" in card(made)
    subject = Subject(
        device="mlx5_0", rail=3, netdev="ib0", peer="n2", leaf="l1", job="77", comm="c"
    )
    shown = card(replace(made, finding=replace(made.finding, subject=subject)))
    assert "mlx5_0 netdev ib0 rail 3 leaf l1 peer n2 job 77 communicator c" in shown


def test_unknown_kind() -> None:
    """A finding of a kind that a newer agent saved is shown by its slug."""
    assert "optics_strange of mlx5_0 optics_strange" in card(incident("optics_strange"))
