"""Ports that went down and came back: found by whatever tells, told once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config
from fabricmon.config import LinkState as Limits
from fabricmon.detect.flaps import Flaps
from fabricmon.detect.link_state import LinkState
from fabricmon.model import (
    Action,
    LinkEvent,
    MaintenanceWindow,
    MissingDevice,
    Role,
    Severity,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from tests.node import RAILS, Node, pid
from tests.views import boot, port

HOUR = 3600.0
ROCE = tuple(
    port(
        f"mlx5_{rail}",
        rail=rail,
        link_layer=LinkLayer.ETHERNET,
        netdev=f"eth{rail}",
        netdevs=(f"eth{rail}",),
    )
    for rail in range(8)
)


def node(**options: Any) -> Node:
    """Return a node that was healthy for a while."""
    made = Node(LinkState, Flaps, **options)
    made.run(10)
    return made


def flap(made: Node, rail: int = 0, down: float = 5, up: float = 5) -> None:
    """Let a port lose its link and find it again."""
    made.down(rail)
    made.run(down)
    made.up(rail)
    made.run(up)


def blink(made: Node, rail: int = 0, **counters: int) -> None:
    """Let a port flap between two polls, so that only counters tell."""
    counters = counters or {"link_downed": 1, "carrier_down_count": 1}
    made.grow(made.rail(rail), **counters)
    made.run(5)


def blink_wide(made: Node, rail: int) -> None:
    """Let a port flap while the agent stands still for 30 s."""
    made.grow(made.rail(rail), link_downed=1)
    made.run(30, each=30)


class TestOneFlap:
    def test_a_short_outage(self) -> None:
        """Down for some seconds, back: a warning within one poll (F05)."""
        made = node()
        flap(made, 3)
        assert made.opened == ["port_flap"]
        finding = made.open_of("port_flap").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)
        evidence = {item.signal: item for item in finding.evidence}
        assert evidence["flaps"].value == 1
        assert evidence["link_downed"].value == 1
        assert evidence["outage_seconds"].value == pytest.approx(5, abs=2.5)
        assert evidence["outage_seconds"].threshold is None

    def test_the_second_is_to_be_looked_at(self) -> None:
        """One may be the other end's restart; a link that does it again has a fault."""
        made = node()
        flap(made, 3)
        made.run(60)
        flap(made, 3)
        finding = made.open_of("port_flap").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_a_micro_flap_is_seen_by_counters_alone(self) -> None:
        """State never shows it; the counter finds it at its next poll (F08)."""
        made = node()
        blink(made, 3)
        finding = made.open_of("port_flap").finding
        assert finding.subject.device == "mlx5_3"
        assert "between polls" in finding.summary
        (counter,) = (i for i in finding.evidence if i.signal == "link_downed")
        assert (counter.value, counter.window_seconds) == (1, 5)
        assert counter.source == "infiniband/mlx5_3/ports/1/counters"

    def test_all_signs_are_one_flap(self) -> None:
        """State, counter, carrier and event of one outage are counted once."""
        made = node(infos=ROCE)
        made.down(3)
        made.events = (LinkEvent(made.now + 1, "eth3", up=False),)
        made.run(10)
        made.events = (LinkEvent(made.now + 1, "eth3", up=True),)
        made.up(3)
        made.run(30)
        assert made.past(3).flaps == 1
        assert made.opened == ["port_flap"]

    def test_counters_of_one_port_are_not_added_up(self) -> None:
        """Three downs by one counter and two by another are three."""
        made = node(infos=ROCE)
        blink(made, 3, link_downed=2, carrier_down_count=3)
        assert made.past(3).flaps == 3

    def test_a_long_outage_is_a_flap_when_it_ends(self) -> None:
        """`port_down` resolves and a `port_flap` opens, in this order."""
        made = node()
        flap(made, 3, down=60)
        told = [(i.finding.kind, i.state) for i in made.changes]
        assert told == [
            ("port_down", "open"),
            ("port_down", "resolved"),
            ("port_flap", "open"),
        ]

    def test_steps_of_a_counter_add_up(self) -> None:
        """A link that bounced twice while it was down shows the sum as evidence."""
        made = node()
        made.down(3)
        made.run(5)
        made.grow(pid(3), link_downed=1)
        made.run(5)
        made.up(3)
        made.run(5)
        evidence = made.open_of("port_flap").finding.evidence
        (counted,) = (item for item in evidence if item.signal == "link_downed")
        assert (counted.value, counted.window_seconds) == (2, 10)

    def test_all_flaps_of_the_hold_time_are_told(self) -> None:
        """A short flap does not make the long outage before it vanish."""
        made = node()
        flap(made, 3, down=40, up=500)
        first = made.open_of("port_flap").finding
        flap(made, 3, down=5)
        finding = made.open_of("port_flap").finding
        assert finding.onset == first.onset
        assert "down 2 times since" in finding.summary
        assert "at worst" in finding.summary
        evidence = {item.signal: item for item in finding.evidence}
        assert evidence["flaps"].value == 2
        assert evidence["link_downed"].value == 2
        worst, downtime = evidence["outage_seconds"], evidence["downtime_seconds"]
        assert worst.value == pytest.approx(40, abs=2.5)
        assert worst.threshold == 7
        assert downtime.value == pytest.approx(45, abs=5)

    def test_a_flap_after_the_hold_time_is_another_story(self) -> None:
        """It counts from one again, with its own onset."""
        made = node()
        flap(made, 3, down=40, up=700)
        flap(made, 3)
        finding = made.open_of("port_flap").finding
        assert "down once" in finding.summary
        assert finding.onset > made.wall - 20

    def test_a_harmless_flap_is_not_held_against_a_real_one(self) -> None:
        """What was switched off by hand is not in the count of what failed."""
        made = node()
        made.down(3, PhysState.DISABLED)
        made.run(5)
        made.up(3)
        made.run(30)
        flap(made, 3)
        assert "down once" in made.open_of("port_flap").finding.summary

    def test_both_findings_of_an_outage_have_one_onset(self) -> None:
        """`port_down` and the `port_flap` after it say the same second."""
        made = node(infos=ROCE)
        made.down(3)
        made.events = (LinkEvent(made.now + 1.5, "eth3", up=False),)
        made.run(60)
        made.up(3)
        made.run(5)
        onsets = {i.finding.kind: i.finding.onset for i in made.changes}
        assert onsets["port_down"] == pytest.approx(onsets["port_flap"])

    def test_onsets_agree_where_only_a_counter_tells_when(self) -> None:
        """A counter that is read between two looks at the state dates both."""
        made = node()
        flap(made, 3, down=60)
        onsets = {i.finding.kind: i.finding.onset for i in made.changes}
        assert onsets["port_down"] == pytest.approx(onsets["port_flap"])

    @pytest.mark.parametrize("file", ["link_downed", "carrier_down_count"])
    def test_more_flaps_than_can_be_are_none(self, file: str) -> None:
        """A counter that jumps by a million in a poll is garbage."""
        made = node(infos=ROCE)
        blink(made, 3, **{file: 1_000_000})
        made.run(30)
        assert made.past(3).flaps == 0
        assert made.opened == []

    def test_a_dead_port_is_no_flap(self) -> None:
        """What does not come back is down, however often it counted."""
        made = node()
        made.down(3)
        made.run(600)
        assert made.opened == ["port_down"]

    def test_it_resolves_after_its_hold_time(self) -> None:
        """An event is over ten minutes after it was last seen."""
        made = node()
        flap(made, 3)
        made.run(580)
        assert made.kinds == ["port_flap"]
        made.run(30)
        assert made.kinds == []

    def test_onset_is_when_it_went_down(self) -> None:
        """The onset is that of the outage, not of its end."""
        made = node(infos=ROCE)
        made.down(3)
        made.events = (LinkEvent(made.now + 1.5, "eth3", up=False),)
        at = made.wall + 1.5
        made.run(10)
        made.up(3)
        made.run(5)
        finding = made.open_of("port_flap").finding
        assert finding.onset == pytest.approx(at)


class TestWhatTells:
    def test_events_measure_what_no_sample_saw(self) -> None:
        """The kernel told of down and up between two polls, to the millisecond."""
        made = node(infos=ROCE)
        made.events = (
            LinkEvent(made.now + 1, "eth3", up=False),
            LinkEvent(made.now + 1.25, "eth3", up=True),
        )
        made.grow(made.rail(3), carrier_down_count=1)
        made.run(5)
        finding = made.open_of("port_flap").finding
        evidence = {item.signal: item.value for item in finding.evidence}
        assert evidence["outage_seconds"] == pytest.approx(0.25, abs=0.06)
        assert made.past(3).flaps == 1
        made.run(30)
        assert made.past(3).flaps == 1

    def test_events_measure_an_outage_that_samples_saw(self) -> None:
        """The sample after the event tells that it is over, the event since when."""
        made = node(infos=ROCE)
        made.events = (LinkEvent(made.now + 0.5, "eth3", up=False),)
        made.down(3)
        made.run(5)
        made.events = (LinkEvent(made.now + 0.5, "eth3", up=True),)
        made.up(3)
        made.run(5)
        assert made.past(3).flaps == 1
        assert "between polls" not in made.open_of("port_flap").finding.summary

    def test_saturated_counter_is_replaced_by_the_carrier(self) -> None:
        """`link_downed` stands at 255; the interface still counts (N05 and F06)."""
        made = Node(LinkState, Flaps, begin=False)
        made.put(pid(3), link_downed=255)
        made.run(600)
        assert made.changes == []
        blink(made, 3, carrier_down_count=1)
        assert made.opened == ["port_flap"]

    def test_saturated_counter_is_replaced_by_state(self) -> None:
        """Without any counter a sample still sees an outage of some seconds."""
        made = Node(LinkState, Flaps, files=("link_downed",), begin=False)
        made.put(pid(3), link_downed=255)
        made.run(60)
        made.link(PortState.DOWN, PhysState.POLLING, where=pid(3))
        made.run(5)
        made.up(3)
        made.run(5)
        assert made.opened == ["port_flap"]

    def test_the_step_to_the_ceiling_counts(self) -> None:
        """The last step that the counter can show is a flap (N06)."""
        made = Node(LinkState, Flaps, begin=False)
        made.put(pid(3), link_downed=254)
        made.run(10)
        blink(made, 3, link_downed=1)
        assert made.opened == ["port_flap"]

    def test_carrier_of_ipoib_alone_is_no_flap(self) -> None:
        """The port's own counter says that the link held: the interface was shut."""
        made = node()
        blink(made, 3, carrier_down_count=1)
        made.run(30)
        assert made.changes == []

    def test_carrier_of_ethernet_alone_is_a_flap(self) -> None:
        """On RoCE the management counters stand still for ever."""
        made = node(infos=ROCE)
        blink(made, 3, carrier_down_count=1)
        assert made.opened == ["port_flap"]

    def test_first_sight_of_a_counter_is_nothing(self) -> None:
        """A card with a long past did not flap now (N30, N39)."""
        made = Node(LinkState, Flaps, begin=False)
        made.put(pid(3), link_downed=None)
        made.run(30)
        made.put(pid(3), link_downed=17)
        made.run(30)
        assert made.changes == []

    def test_a_reset_is_no_flap(self) -> None:
        """Someone cleared the counters (N04)."""
        made = Node(LinkState, Flaps, begin=False)
        made.put(pid(3), link_downed=17)
        made.run(30)
        made.put(pid(3), link_downed=0)
        made.run(30)
        assert made.changes == []

    def test_a_port_that_first_comes_up_did_not_flap(self) -> None:
        """Down since before the first look, then up: a cable was plugged in."""
        made = Node(LinkState, Flaps, begin=False)
        made.of(pid(3)).ever_active = False
        made.link(PortState.DOWN, PhysState.POLLING, where=pid(3))
        made.run(5)
        made.up(3)
        made.run(60)
        assert "port_flap" not in made.opened

    def test_and_is_watched_from_then_on(self) -> None:
        """Its next outage counts like any other."""
        made = Node(LinkState, Flaps, files=(), begin=False)
        made.link(PortState.DOWN, PhysState.POLLING, where=pid(3))
        made.run(5)
        made.up(3)
        made.run(60)
        flap(made, 3)
        assert "port_flap" in made.opened

    def test_a_failover_of_the_subnet_manager_is_no_flap(self) -> None:
        """ACTIVE, INIT, ACTIVE: the link never went down (F42)."""
        made = node()
        made.link(PortState.INIT, where=pid(3))
        made.run(20)
        made.up(3)
        made.run(60)
        assert "port_flap" not in made.opened

    def test_virtual_functions_do_not_flap(self) -> None:
        """Their link is switched with their users."""
        made = node(infos=(port("mlx5_8", is_vf=True),))
        flap(made, 0)
        assert made.changes == []

    def test_management_port_is_not_the_fabric(self) -> None:
        """A bounce of a management port is information (N13)."""
        made = node(infos=(port("mlx5_8", role=Role.MANAGEMENT),))
        flap(made, 0)
        finding = made.open_of("port_flap").finding
        assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)


class TestQuiet:
    def test_flaps_after_a_boot_are_counted_not_alarmed(self) -> None:
        """In the first half hour the fabric settles (N01, N16, N17)."""
        made = node(uptime=600)
        for _ in range(5):
            flap(made, 3)
        assert {i.finding.severity for i in made.changes} == {Severity.INFO}
        assert made.past(3).flaps == 5

    def test_the_grace_ends(self) -> None:
        """Half an hour after the boot a flap is a flap."""
        made = node(uptime=1795)
        flap(made, 3)
        assert made.open_of("port_flap").finding.severity is Severity.WARNING

    def test_a_young_fabric_settles(self) -> None:
        """In the first two hours half of the ports flap: none of them fails (N17)."""
        made = node(uptime=600)
        for rail in range(4):
            flap(made, rail)
        made.run(HOUR, each=60)
        made.changes.clear()
        for rail in (0, 1, 2):
            flap(made, rail)
        assert {i.finding.severity for i in made.changes} <= {Severity.INFO}

    def test_one_bad_port_in_a_young_boot_is_told(self) -> None:
        """A single port that flaps after half an hour is no settling fabric."""
        made = node(uptime=600)
        made.run(HOUR, each=60)
        for _ in range(3):
            flap(made, 3, up=60)
        assert "port_flapping" in made.kinds

    def test_driver_reload_is_no_flap(self) -> None:
        """The device went away and came back: no link failed (N03)."""
        made = node()
        made.down(3)
        made.run(5)
        made.missing = (MissingDevice("mlx5_3", made.now, 1, (RAILS[3],)),)
        made.run(30)
        made.missing = ()
        made.up(3)
        made.run(60)
        assert made.changes == []

    def test_link_that_trains_after_a_reload_is_quiet(self) -> None:
        """What bounces right after a reload is counted, not alarmed."""
        made = node()
        made.missing = (MissingDevice("mlx5_3", made.now, 1, (RAILS[3],)),)
        made.run(30)
        made.missing = ()
        made.run(10)
        flap(made, 3)
        assert made.open_of("port_flap").finding.severity is Severity.INFO

    def test_reboot_is_no_flap(self) -> None:
        """Down before the boot and up after it is a boot."""
        made = node()
        made.down(3)
        made.run(5)
        made.boot = replace(boot(made.now, None), boot_id="boot-2")
        made.run(5)
        made.up(3)
        made.run(60)
        assert made.changes == []

    def test_switched_off_by_hand(self) -> None:
        """A port that was disabled and enabled again did not fail (N09)."""
        made = node()
        made.down(3, PhysState.DISABLED)
        made.run(5)
        made.up(3)
        made.run(30)
        assert made.open_of("port_flap").finding.severity is Severity.INFO

    def test_interface_taken_down_by_hand(self) -> None:
        """On Ethernet the refused carrier tells that it was taken down."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.interface(3, "down", carrier=None)
        made.run(10)
        made.up(3)
        made.interface(3, "up", carrier=True)
        made.run(30)
        assert made.open_of("port_flap").finding.severity is Severity.INFO

    def test_an_interface_that_left_took_the_link_with_it(self) -> None:
        """A port whose interface moves to a pod is down until the pod uses it (N49)."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.run(5)
        made.events = (LinkEvent(made.now + 1, "eth3", up=None, gone=True),)
        made.run(10)
        made.up(3)
        made.run(30)
        assert made.open_of("port_flap").finding.severity is Severity.INFO

    def test_flaps_under_maintenance_are_not_held_against_the_port(self) -> None:
        """What a leaf upgrade did does not make the port flapping later (N28)."""
        made = node()
        made.maintenance = (MaintenanceWindow(made.wall + 600),)
        for _ in range(4):
            flap(made, 3)
        made.maintenance = ()
        made.run(700)
        flap(made, 3)
        assert made.opened == ["port_flap"]


class TestGap:
    def test_flaps_while_nobody_looked_are_one_finding(self) -> None:
        """Twelve downs in an hour without a poll: one warning with the count."""
        made = node()
        made.grow(pid(3), link_downed=12)
        made.run(HOUR, each=HOUR)
        made.run(10)
        finding = made.open_of("port_flap").finding
        assert finding.severity is Severity.WARNING
        assert "12 times" in finding.summary
        assert made.opened == ["port_flap"]

    def test_one_flap_while_nobody_looked(self) -> None:
        """It may have been at any time of the gap."""
        made = node()
        blink_wide(made, 3)
        finding = made.open_of("port_flap").finding
        assert "went down once between " in finding.summary
        assert " at " not in finding.summary

    def test_they_count_as_one_towards_flapping(self) -> None:
        """Two more flaps make three in three hours."""
        made = node()
        made.grow(pid(3), link_downed=12)
        made.run(600, each=600)
        flap(made, 3, up=60)
        assert "port_flapping" not in made.opened
        flap(made, 3)
        assert "port_flapping" in made.opened


class TestFlapping:
    def test_the_third_flap_in_three_hours(self) -> None:
        """Critical at the third, at once; a job may end first (F06)."""
        made = node()
        flap(made, 3)
        made.run(HOUR, each=60)
        flap(made, 3)
        made.run(HOUR, each=60)
        assert "port_flapping" not in made.kinds
        made.down(3)
        made.run(5)
        finding = made.open_of("port_flapping").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB
        evidence = [i for i in finding.evidence if i.signal == "flaps"]
        assert [(i.value, i.threshold, i.window_seconds) for i in evidence] == [
            (3, 3, 10800),
            (3, 5, 86400),
        ]

    def test_the_fifth_flap_in_a_day(self) -> None:
        """Slow flappers are found by the long window."""
        made = node()
        for _ in range(4):
            flap(made, 3)
            made.run(4 * HOUR, each=300)
        assert "port_flapping" not in made.opened
        flap(made, 3)
        assert "port_flapping" in made.opened

    def test_two_flaps_at_once_are_not_an_episode(self) -> None:
        """A link that bounces once while it retrains is one event."""
        made = node()
        blink(made, 3, link_downed=2)
        assert made.opened == ["port_flap"]

    def test_outages_of_a_minute_in_an_hour(self) -> None:
        """Two flaps with a minute of outage are critical whatever their number."""
        made = node()
        flap(made, 3, down=40, up=60)
        assert "port_flapping" not in made.opened
        flap(made, 3, down=40)
        assert "port_flapping" in made.opened

    def test_one_long_outage_is_no_flapping(self) -> None:
        """A leaf that reboots for five minutes takes its ports down once."""
        made = node()
        flap(made, 3, down=300)
        assert made.opened == ["port_down", "port_flap"]

    def test_a_storm_is_one_story(self) -> None:
        """A flap every 35 s for half an hour: at most three findings (F07)."""
        made = node()
        for _ in range(50):
            flap(made, 3, down=15, up=20)
        made.run(60)
        assert len(made.opened) <= 3
        assert made.opened[-1] == "port_flapping"
        finding = made.open_of("port_flapping").finding
        assert "flapped 50 times" in finding.summary

    def test_a_storm_is_found_within_two_minutes(self) -> None:
        """The third flap comes after little more than a minute."""
        made = node()
        began = made.now
        while "port_flapping" not in made.kinds:
            flap(made, 3, down=15, up=20)
        assert made.now - began <= 120

    def test_the_episode_ends_after_three_quiet_hours(self) -> None:
        """The port is sound again when no flap is left in the short window."""
        made = node()
        for _ in range(3):
            flap(made, 3)
        made.run(2.9 * HOUR, each=60)
        assert "port_flapping" in made.kinds
        made.run(HOUR, each=60)
        assert made.kinds == []

    def test_the_penalty_must_decay_too(self) -> None:
        """However short the window, an episode lasts until its penalty is spent."""
        limits = Limits(flapping_window_short_seconds=60)
        made = node(config=Config(link_state=limits))
        for _ in range(3):
            flap(made, 3)
        made.run(1500, each=30)
        assert made.findings
        made.run(600, each=30)
        assert not made.findings

    def test_flaps_of_one_episode_are_one_finding(self) -> None:
        """A flap every forty minutes for six hours opens nothing new (F06)."""
        made = node()
        for _ in range(9):
            flap(made, 3, down=10)
            made.run(2400, each=60)
        assert made.opened.count("port_flapping") == 1
        assert len(made.opened) <= 3

    def test_a_flapping_port_that_dies_is_down(self) -> None:
        """After two minutes without a link it flaps no more."""
        made = node()
        for _ in range(3):
            flap(made, 3)
        made.down(3)
        made.run(100)
        assert "port_down" not in made.kinds
        made.run(30)
        assert made.open_of("port_down").finding.action is Action.DRAIN_NOW

    def test_management_port_that_flaps_is_a_ticket(self) -> None:
        """It is not the fabric, so nobody is paged."""
        made = node(infos=(port("mlx5_8", role=Role.MANAGEMENT),))
        for _ in range(3):
            flap(made, 0)
        finding = made.open_of("port_flapping").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)


class TestRestart:
    def test_history_survives(self) -> None:
        """A restart amid an episode does not lose the flaps before it (N30, F06)."""
        made = node()
        flap(made, 3)
        flap(made, 3)
        made.restart()
        flap(made, 3)
        assert "port_flapping" in made.kinds
        assert made.past(3).flaps == 3

    def test_episode_goes_on_under_its_id(self) -> None:
        """Nothing is told again after a restart."""
        made = node()
        for _ in range(3):
            flap(made, 3)
        told = made.open_of("port_flapping")
        made.restart()
        assert made.run(60) == []
        assert made.open_of("port_flapping").id == told.id

    def test_account_goes_on(self) -> None:
        """The finding counts on over a restart."""
        made = node()
        flap(made, 3, down=40)
        made.restart()
        flap(made, 3)
        assert "down 2 times" in made.open_of("port_flap").finding.summary

    def test_outage_over_a_restart_is_a_flap(self) -> None:
        """Down when the agent stopped, up when it came back."""
        made = node()
        made.down(3)
        made.run(5)
        made.restart()
        made.up(3)
        made.run(10)
        assert made.opened == ["port_flap"]

    def test_outage_over_a_reboot_is_none(self) -> None:
        """Down when the node was shut down, up after it booted: a boot."""
        made = node()
        made.down(3)
        made.run(5)
        made.restart()
        made.boot = replace(boot(made.now, 4000.0), boot_id="boot-2")
        made.up(3)
        made.run(10)
        assert made.changes == []

    def test_a_renamed_device_keeps_its_past(self) -> None:
        """The card at this PCI address flapped, whatever its name is now (N34)."""
        address = "0000:5e:00.0"
        made = node(infos=(port("mlx5_3", pci_address=address),))
        flap(made, 0)
        flap(made, 0)
        old = made.of()
        assert old.status is not None
        renamed = port("ibp94s0", pci_address=address)
        made._ports = {
            renamed.id: replace(
                old, info=renamed, status=replace(old.status, port=renamed.id)
            )
        }
        flap(made, 0)
        assert "port_flapping" in made.kinds
        assert made.past().flaps == 3

    def test_bytes_of_others_are_refused(self) -> None:
        """What cannot be read is an error, not a guess."""
        with pytest.raises(ValueError, match="SavedFlaps"):
            Flaps(Config()).restore(b"\xc1", 0.0)


class TestExport:
    def test_downtime_adds_up(self) -> None:
        """Seconds not ACTIVE are counted while they pass."""
        made = node()
        made.down(3)
        made.run(60)
        summary = made.past(3)
        assert summary.downtime_seconds == pytest.approx(60, abs=5)
        assert summary.last_down == pytest.approx(made.wall - 60, abs=5)

    def test_a_port_without_past(self) -> None:
        """Nothing is remembered of a port that never fell."""
        summary = node().past(3)
        assert (summary.flaps, summary.downtime_seconds) == (0, 0)
        assert summary.last_down is None


class TestBlindness:
    def test_nothing_remembers(self) -> None:
        """Where no counter tells of outages, flaps between polls are not seen."""
        made = node(files=("symbol_error",))
        assert [b.kind for b in made.detectors[1].blind(made.step())] == ["port_flap"]

    def test_one_counter_is_enough(self) -> None:
        """A counter that remembers covers the node."""
        made = node()
        assert list(made.detectors[1].blind(made.step())) == []
