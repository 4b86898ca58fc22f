"""The life of incidents: opened once, updated when it matters, resolved when over."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Config
from fabricmon.covers import COVERS
from fabricmon.incidents import SEQUENCE_GAP, Incidents, identity, incident_id
from fabricmon.kinds import BY_SLUG
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    MaintenanceWindow,
    Part,
    Severity,
    Subject,
)

WALL = 1_700_000_000.0
CLEAR = BY_SLUG["link_errors"].clear_seconds
PORT = Subject(device="mlx5_0", port=1)
OTHER = Subject(device="mlx5_1", port=1)
EVIDENCE = (Evidence("state", "DOWN", "", "infiniband/mlx5_0/ports/1"),)


def finding(kind: str = "link_errors", **known: Any) -> Finding:
    """Return a finding about a port that holds since the start."""
    made = Finding(
        kind=kind,
        subject=PORT,
        onset=WALL,
        evidence=EVIDENCE,
        summary=f"{kind} on mlx5_0/1",
        severity=Severity.CRITICAL,
        action=Action.DRAIN_AFTER_JOB,
    )
    return replace(made, **known)


class Story:
    """Incidents with a clock: `see` says what holds now and returns what changed."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.incidents = Incidents(self.config, "node-1")
        self.now = 0.0
        self.wall = WALL
        self.held = False
        self.windows: tuple[MaintenanceWindow, ...] = ()

    def see(self, *findings: Finding, seconds: float = 5.0) -> list[str]:
        """Let time pass and tell what holds; return states and kinds of changes."""
        return [f"{i.state} {i.finding.kind}" for i in self.tell(*findings, s=seconds)]

    def tell(self, *findings: Finding, s: float = 5.0) -> tuple[Incident, ...]:
        """Let time pass and tell what holds; return the changes."""
        self.now += s
        self.wall += s
        return self.incidents.update(
            self.now, self.wall, findings, lambda _subject: self.held, self.windows
        )

    def restart(self) -> None:
        """Go on in another process."""
        kept, seq = self.incidents.save(), self.incidents.seq
        self.incidents = Incidents(self.config, "node-1")
        self.now += 1000.0
        self.incidents.restore(kept, seq, self.now, self.wall)


class TestIdentity:
    @pytest.mark.parametrize(
        ("kind", "subject", "expected"),
        [
            ("port_down", PORT, "mlx5_0/1"),
            ("device_missing", Subject(device="mlx5_0"), "mlx5_0"),
            ("telemetry_stale", Subject(device="mlx5_0"), ""),
            ("port_down", replace(PORT, rail=3, netdev="ib0"), "mlx5_0/1"),
        ],
    )
    def test_it_is_made_of_what_the_kind_is_about(
        self, kind: str, subject: Subject, expected: str
    ) -> None:
        """Other fields of the subject may change without another incident."""
        assert identity(finding(kind, subject=subject)) == expected

    def test_id_is_the_hash_that_the_format_says(self) -> None:
        """First 16 digits of SHA-256 over node, kind, identity and onset in ms."""
        text = "node-1|port_down|mlx5_0/1|1700000000250"
        expected = hashlib.sha256(text.encode()).hexdigest()[:16]
        made = finding("port_down", onset=WALL + 0.25)
        assert incident_id("node-1", made) == expected

    def test_a_name_that_is_no_text_has_an_id(self) -> None:
        """Bytes that are not UTF-8 reach us as lone surrogates."""
        odd = finding(subject=Subject(device="mlx5_\udc80", port=1))
        assert len(incident_id("node-1", odd)) == 16


class TestOpening:
    def test_it_opens_once(self) -> None:
        """A condition that holds on is told once."""
        story = Story()
        assert story.see(finding()) == ["open link_errors"]
        assert story.see(finding()) == []
        assert len(story.incidents.open()) == 1

    def test_what_it_carries(self) -> None:
        """Node, runbook, times and number are the incident's own."""
        (incident,) = Story().tell(finding())
        assert incident.node == "node-1"
        assert incident.runbook == BY_SLUG["link_errors"].runbook
        assert (incident.time, incident.last_seen) == (WALL + 5, WALL + 5)
        assert (incident.seq, incident.dry_run) == (1, False)

    def test_numbers_count_up(self) -> None:
        """Every record of a node has a number of its own."""
        story = Story()
        story.see(finding(), finding(subject=OTHER))
        story.see()
        (resolved, *_rest) = story.tell(s=CLEAR)
        assert resolved.seq == 3

    def test_worst_of_equal_findings(self) -> None:
        """Two findings of one identity are one incident, as bad as the worse."""
        story = Story()
        (incident,) = story.tell(finding(severity=Severity.WARNING), finding())
        assert incident.finding.severity is Severity.CRITICAL

    def test_onset_stays(self) -> None:
        """A detector that dates the onset anew does not move the incident's."""
        story = Story()
        (opened,) = story.tell(finding())
        story.see(finding(onset=WALL + 100))
        (incident,) = story.incidents.open()
        assert (incident.id, incident.finding.onset) == (opened.id, WALL)

    def test_evidence_is_that_of_now(self) -> None:
        """What is shown moves on although nothing is told."""
        story = Story()
        story.see(finding())
        newer = (Evidence("state", "INIT", "", "x"),)
        assert story.see(finding(evidence=newer)) == []
        assert story.incidents.open()[0].finding.evidence == newer

    def test_mismatches_of_one_place_are_one_story(self) -> None:
        """Two detectors find something about one port: the worse, and all evidence."""
        setting = Evidence("NCCL_IB_TC", "0", "", "job", "106")
        mild = finding("config_mismatch", evidence=(setting,), action=Action.NONE)
        worse = finding("config_mismatch", action=Action.INSPECT)
        for found in ((mild, worse), (worse, mild)):
            (incident,) = Story().tell(*found)
            assert incident.finding.action is Action.INSPECT
            assert incident.finding.evidence == (*EVIDENCE, setting)


class TestModes:
    def test_off_is_off(self) -> None:
        """A kind that is switched off opens nothing."""
        story = Story(Config(kinds={"link_errors": "off"}))
        assert story.see(finding()) == []

    def test_shadow_is_a_dry_run(self) -> None:
        """Computed and exported, never alerted; the advice is the same."""
        (incident,) = Story(Config(kinds={"link_errors": "shadow"})).tell(finding())
        assert incident.dry_run
        assert incident.finding.action is Action.DRAIN_AFTER_JOB

    def test_a_kind_that_is_switched_off_ends(self) -> None:
        """Its open incidents resolve at once, also while their subject is unseen."""
        story = Story()
        story.see(finding())
        story.config = Config(kinds={"link_errors": "off"})
        story.restart()
        story.held = True
        assert story.see(finding()) == ["resolved link_errors"]
        assert story.incidents.open() == ()

    @pytest.mark.parametrize("found", [(), (finding("port_flap"),)])
    def test_a_kind_that_goes_to_shadow_alerts_no_more(
        self, found: tuple[Finding, ...]
    ) -> None:
        """It becomes a dry run with an update, and an alert again when it is on."""
        story = Story()
        story.see(finding("port_flap"))
        for mode, shadow in (("shadow", True), ("on", False)):
            story.config = Config(kinds={"port_flap": mode})  # type: ignore[dict-item]
            story.restart()
            story.now -= 1000.0
            (update,) = story.tell(*found)
            assert (update.state, update.dry_run) == ("update", shadow)
            assert story.see(*found) == []


class TestUpdating:
    @pytest.mark.parametrize(
        "change",
        [
            {"severity": Severity.CRITICAL, "action": Action.INSPECT},
            {"action": Action.DRAIN_NOW},
            {"part": Part.VICTIM},
        ],
    )
    def test_it_is_updated_when_it_matters(self, change: dict[str, Any]) -> None:
        """Worse, another advice, or another part in the fault."""
        story = Story()
        milder = finding(severity=Severity.WARNING, action=Action.INSPECT)
        (opened,) = story.tell(milder)
        (update,) = story.tell(replace(milder, **change))
        assert update.state == "update"
        assert (update.id, update.seq) == (opened.id, opened.seq + 1)

    def test_a_milder_judgement_must_hold_on(self) -> None:
        """A value at a threshold does not give an update at every poll."""
        story = Story()
        milder = finding(severity=Severity.WARNING)
        story.see(finding())
        for _ in range(50):
            assert story.see(milder) == []
            assert story.see(finding()) == []
        story.see(milder)
        assert story.see(milder, seconds=CLEAR) == ["update link_errors"]

    def test_each_relapse_begins_the_wait_anew(self) -> None:
        """Ten milder minutes before a relapse do not count after it."""
        story = Story()
        milder = finding(severity=Severity.WARNING)
        story.see(finding())
        story.see(milder)
        assert story.see(milder, seconds=0.8 * CLEAR) == []
        story.see(finding())
        story.see(milder)
        assert story.see(milder, seconds=0.8 * CLEAR) == []

    def test_a_kind_without_clear_time_changes_at_once(self) -> None:
        """A port that turns out to be switched off is no alarm any more."""
        story = Story()
        story.see(finding("port_down"))
        off = finding("port_down", severity=Severity.INFO, action=Action.NONE)
        assert story.see(off) == ["update port_down"]

    def test_an_event_is_as_bad_as_its_worst_moment(self) -> None:
        """A harmless flap after a real one changes nothing."""
        story = Story()
        story.see(finding("port_flap"))
        assert story.see(finding("port_flap", severity=Severity.INFO)) == []
        assert story.incidents.open()[0].finding.severity is Severity.CRITICAL

    def test_an_event_gets_worse(self) -> None:
        """A real flap after a harmless one is told."""
        story = Story()
        story.see(finding("port_flap", severity=Severity.INFO))
        assert story.see(finding("port_flap")) == ["update port_flap"]


class TestResolving:
    def test_after_the_clear_time(self) -> None:
        """A condition that pauses is the same incident; one that is gone ends."""
        story = Story()
        (opened,) = story.tell(finding())
        for _ in range(20):
            assert story.see(seconds=0.8 * CLEAR) == []
            assert story.see(finding()) == []
        assert story.see() == []
        (resolved,) = story.tell(s=CLEAR)
        assert (resolved.id, resolved.state) == (opened.id, "resolved")
        assert story.incidents.open() == ()

    def test_its_summary_is_of_the_past(self) -> None:
        """Nobody takes what is over for what holds."""
        story = Story()
        story.see(finding("port_down"), seconds=5)
        (resolved,) = story.tell(s=415)
        told = "resolved after 7 min: port_down on mlx5_0/1"
        assert resolved.finding.summary == told

    def test_a_clock_that_was_set_back_gives_no_length(self) -> None:
        """An outage does not last for minus thirty years."""
        story = Story()
        story.see(finding("port_down"))
        story.wall -= 1e9
        (resolved,) = story.tell()
        assert resolved.finding.summary == "resolved: port_down on mlx5_0/1"

    def test_without_clear_time_at_once(self) -> None:
        """A port that is up is not down."""
        story = Story()
        story.see(finding("port_down"))
        assert story.see() == ["resolved port_down"]

    def test_an_event_after_its_hold_time(self) -> None:
        """It is over already; it is shown for ten minutes."""
        story = Story()
        story.see(finding("port_flap"))
        assert story.see(seconds=590) == []
        assert story.see(seconds=10) == ["resolved port_flap"]

    def test_an_event_that_happens_again_is_held_on(self) -> None:
        """Flaps within the hold time are one incident."""
        story = Story()
        story.see(finding("port_flap"))
        assert story.see(finding("port_flap"), seconds=500) == []
        assert story.see(seconds=590) == []
        assert story.see(seconds=20) == ["resolved port_flap"]

    def test_what_cannot_be_seen_is_not_gone(self) -> None:
        """Old values neither open nor resolve (F25)."""
        story = Story()
        story.see(finding("port_down"))
        story.held = True
        assert story.see(seconds=10_000) == []
        story.held = False
        assert story.see() == ["resolved port_down"]

    def test_time_out_of_sight_does_not_count(self) -> None:
        """The clear time runs only while the subject is seen."""
        story = Story()
        story.see(finding())
        story.see(seconds=0.8 * CLEAR)
        story.held = True
        story.see(seconds=0.8 * CLEAR)
        story.held = False
        assert story.see(seconds=0.8 * CLEAR) == []
        assert story.see(seconds=CLEAR) == ["resolved link_errors"]

    def test_again_later_is_another_incident(self) -> None:
        """A port that dies again next week has a new id."""
        story = Story()
        (first,) = story.tell(finding("port_down"))
        story.see(seconds=1000)
        (second,) = story.tell(finding("port_down", onset=story.wall))
        assert first.id != second.id


class TestCovers:
    def test_a_port_that_is_down_has_no_bit_errors(self) -> None:
        """One finding per cause."""
        story = Story()
        assert story.see(finding("port_down"), finding()) == ["open port_down"]

    def test_other_ports_speak_for_themselves(self) -> None:
        """A cover reaches no farther than its port."""
        story = Story()
        told = story.see(finding("port_down"), finding(subject=OTHER))
        assert told == ["open port_down", "open link_errors"]

    def test_a_missing_device_covers_all_of_its_ports(self) -> None:
        """Whatever its ports seem to do."""
        story = Story()
        gone = finding("device_missing", subject=Subject(device="mlx5_0"))
        told = story.see(gone, finding(), finding("counter_reset"))
        assert told == ["open device_missing"]

    def test_an_open_event_covers(self) -> None:
        """A port that flapped a moment ago and is down again is the same story."""
        story = Story()
        story.see(finding("port_flap"))
        down = finding("port_down", onset=story.wall)
        assert story.see(down, seconds=20) == []
        assert story.see(down, seconds=20) == ["open port_down"]

    def test_within_an_episode_it_takes_longer(self) -> None:
        """A flapping port is down only after two minutes."""
        story = Story()
        episode = finding("port_flapping")
        down = finding("port_down", onset=story.wall)
        story.see(episode)
        assert story.see(episode, down, seconds=100) == []
        assert story.see(episode, down, seconds=20) == ["open port_down"]

    def test_what_was_open_stays_open_and_silent(self) -> None:
        """So it is not told again when the cover ends."""
        story = Story()
        slow = finding("rate_degraded")
        (opened,) = story.tell(slow)
        down = finding("port_down")
        worse = replace(slow, action=Action.DRAIN_NOW)
        assert story.see(down, worse) == ["open port_down"]
        assert story.see(slow) == ["resolved port_down"]
        assert [i.id for i in story.incidents.open()] == [opened.id]

    def test_a_kind_in_shadow_hides_no_alarm(self) -> None:
        """What nobody is alerted of cannot tell another's story."""
        story = Story(Config(kinds={"port_down": "shadow"}))
        told = story.see(finding("port_down"), finding())
        assert told == ["open port_down", "open link_errors"]

    def test_shadow_covers_shadow(self) -> None:
        """Among dry runs the order is as usual."""
        story = Story(Config(kinds={"port_down": "shadow", "link_errors": "shadow"}))
        assert story.see(finding("port_down"), finding()) == ["open port_down"]

    def test_the_table_names_kinds(self) -> None:
        """A row about a kind that does not exist would do nothing."""
        for row in COVERS:
            assert {row.kind, *row.covered} <= set(BY_SLUG)


class TestMaintenance:
    def test_nothing_opens(self) -> None:
        """What is worked on may fall (N28)."""
        story = Story()
        story.windows = (MaintenanceWindow(WALL + 100, ("mlx5_0/1",)),)
        told = story.see(finding("port_down"), finding("port_down", subject=OTHER))
        assert told == ["open port_down"]

    def test_what_does_not_return_is_told_at_its_end(self) -> None:
        """With the onset that it really had (N02)."""
        story = Story()
        story.windows = (MaintenanceWindow(WALL + 100),)
        assert story.see(finding("port_down"), seconds=90) == []
        (incident,) = story.tell(finding("port_down"), s=20)
        assert incident.finding.onset == WALL

    def test_what_was_open_is_silent(self) -> None:
        """It is not updated, and resolved when it is over."""
        story = Story()
        story.see(finding("port_down", action=Action.NONE))
        story.windows = (MaintenanceWindow(WALL + 1000),)
        assert story.see(finding("port_down")) == []
        assert story.see() == ["resolved port_down"]


class TestRestart:
    def test_an_open_incident_goes_on(self) -> None:
        """Same id, nothing told again."""
        story = Story()
        (opened,) = story.tell(finding())
        story.restart()
        assert story.see(finding()) == []
        (again,) = story.incidents.open()
        assert (again.id, again.finding.onset) == (opened.id, opened.finding.onset)

    def test_it_waits_until_its_subject_is_seen(self) -> None:
        """Before the first poll nothing is known, so nothing is over."""
        story = Story()
        story.see(finding("port_down"))
        story.restart()
        story.held = True
        assert story.see(seconds=60) == []
        story.held = False
        assert story.see() == ["resolved port_down"]

    def test_an_event_ends_at_its_time(self) -> None:
        """The hold time goes on over the restart."""
        story = Story()
        story.see(finding("port_flap"))
        story.see(seconds=500)
        story.restart()
        assert story.see(seconds=50) == []
        assert story.see(seconds=100) == ["resolved port_flap"]

    def test_numbers_are_not_given_twice(self) -> None:
        """What was numbered after the last save keeps its numbers to itself."""
        story = Story()
        story.see(finding())
        story.restart()
        (incident,) = story.tell(finding(subject=OTHER))
        assert incident.seq == 1 + SEQUENCE_GAP + 1

    def test_kinds_of_other_versions_are_dropped(self) -> None:
        """A kind that this version does not know cannot go on."""
        story = Story()
        (opened,) = story.tell(finding())
        odd = replace(opened, finding=replace(opened.finding, kind="of_tomorrow"))
        story.incidents.restore((odd,), 1, story.now, story.wall)
        assert [i.finding.kind for i in story.incidents.open()] == ["link_errors"]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 900)), max_size=60))
def test_open_and_resolved_alternate(course: list[tuple[bool, int]]) -> None:
    """However a condition toggles, each id opens once and resolves at most once."""
    story = Story()
    states: dict[str, list[str]] = {}
    for holds, seconds in course:
        found = (finding(onset=story.wall),) if holds else ()
        for incident in story.tell(*found, s=seconds):
            states.setdefault(incident.id, []).append(incident.state)
    assert all(each in (["open"], ["open", "resolved"]) for each in states.values())
    assert len(story.incidents.open()) <= 1
