"""Ports that are down or not configured: when that is told, and how it is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config, Expectation
from fabricmon.detect.link_state import LinkState
from fabricmon.model import (
    Action,
    Hca,
    LinkEvent,
    LinkStatus,
    MissingDevice,
    Part,
    Role,
    Severity,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from tests.node import RAILS, Node, pid
from tests.views import WALL, boot, port

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
    made = Node(LinkState, **options)
    made.run(10)
    return made


def never_up(made: Node, rail: int, phys: PhysState = PhysState.DISABLED) -> None:
    """Let a port be down since before anyone looked."""
    made.link(PortState.DOWN, phys, where=made.rail(rail))
    made.of(made.rail(rail)).ever_active = False


class TestPortDown:
    def test_a_dead_link_is_told_within_fifteen_seconds(self) -> None:
        """A link that dies for good is critical and drained at once (F10)."""
        made = node()
        made.down(3)
        assert made.run(10) == []
        (incident,) = made.run(5)
        finding = incident.finding
        assert (finding.kind, finding.subject.device) == ("port_down", "mlx5_3")
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_NOW
        assert finding.part is Part.CULPRIT

    def test_one_sample_is_not_enough(self) -> None:
        """However long ago it was taken, a single sample may be a misreading."""
        made = node()
        made.down(3)
        made.step_all(60)
        assert made.kinds == []

    def test_it_resolves_as_soon_as_the_port_is_back(self) -> None:
        """A port that carries traffic again is not down."""
        made = node()
        made.down(3)
        made.run(60)
        made.up(3)
        (change,) = made.run(5)
        assert change.state == "resolved"

    def test_onset_is_when_the_event_told(self) -> None:
        """The kernel's event says to the second what polls only bracket."""
        made = node(infos=ROCE)
        made.down(2)
        made.events = (LinkEvent(made.now + 1.25, "eth2", up=False),)
        at = made.wall + 1.25
        made.run(30)
        assert made.open_of("port_down").finding.onset == pytest.approx(at)

    def test_onset_is_estimated_between_samples(self) -> None:
        """Without an event the port went down half way between two samples."""
        made = node(files=())
        made.link(PortState.DOWN, PhysState.POLLING)
        at = made.wall + 2.5
        made.run(30)
        assert made.open_of("port_down").finding.onset == pytest.approx(at)

    def test_evidence_says_what_was_measured(self) -> None:
        """State, physical state, seconds and the reason to expect the port up."""
        made = node()
        made.down(3)
        made.run(20)
        finding = made.open_of("port_down").finding
        evidence = {item.signal: item for item in finding.evidence}
        assert evidence["state"].value == "DOWN"
        assert evidence["state"].threshold == "ACTIVE"
        assert evidence["state"].source == "infiniband/mlx5_3/ports/1"
        assert evidence["phys_state"].value == "Polling"
        assert evidence["seconds_not_active"].threshold == 10
        assert evidence["expected_up"].value == "was ACTIVE before"
        assert finding.summary.startswith("mlx5_3/1 down since ")
        assert len(finding.summary) <= 120

    def test_unreadable_state_is_not_down(self) -> None:
        """A read that fails says nothing about the link (N15)."""
        made = node()
        made.link(None, None, where=pid(3))
        made.run(60)
        assert made.kinds == []

    def test_unreadable_state_does_not_end_an_outage(self) -> None:
        """A failed read between two samples of a dead port changes nothing."""
        made = node()
        made.down(3)
        made.run(30)
        made.link(None, None, where=pid(3))
        assert made.run(10) == []
        assert made.kinds == ["port_down"]

    def test_old_values_open_nothing(self) -> None:
        """What a hung read left behind is no knowledge."""
        made = node()
        made.down(3)
        made.of(pid(3)).fresh = False
        made.run(60)
        assert made.kinds == []

    def test_a_device_that_is_gone_has_no_port_down(self) -> None:
        """The missing device is the story, not its ports."""
        made = node()
        made.down(3)
        made.missing = (MissingDevice("mlx5_3", made.now, 1, (RAILS[3],)),)
        made.run(60)
        assert made.kinds == []


class TestExpectation:
    def test_unused_port_is_nobodys_business(self) -> None:
        """Down since boot, never up, no peer of its kind up: unused by design (N08)."""
        made = Node(LinkState, infos=(RAILS[0], port("mlx5_9", role=Role.STORAGE)))
        never_up(made, 1)
        made.run(600)
        assert made.changes == []

    def test_rail_that_is_dead_since_boot_is_missed(self) -> None:
        """Seven of eight equal rails are up: the eighth should be (F10 at boot)."""
        made = Node(LinkState)
        never_up(made, 5, PhysState.POLLING)
        made.run(30)
        finding = made.open_of("port_down").finding
        assert finding.subject.device == "mlx5_5"
        assert finding.evidence[3].value == "most of its peers are up"
        assert finding.confidence < 1

    def test_spare_ports_of_many_port_devices_are_not_counted(self) -> None:
        """Of twelve ports nine carry data: the others are compared with each other."""
        infos = tuple(
            port(f"mlx5_{card}", number) for card in range(4) for number in range(1, 13)
        )
        made = Node(LinkState, infos=infos)
        for place, info in enumerate(infos):
            if info.id.port % 4 == 0:
                never_up(made, place, PhysState.POLLING)
        made.run(600)
        assert made.changes == []

    def test_spare_halves_of_cards_are_not_counted(self) -> None:
        """The second functions of dual-port cards are compared with each other."""
        infos = tuple(
            port(f"mlx5_{card}_{half}", pci_address=f"0000:{card:02x}:00.{half}")
            for card in range(8)
            for half in range(2)
        )
        made = Node(LinkState, infos=infos)
        for place in range(1, 15, 2):
            never_up(made, place, PhysState.POLLING)
        made.run(600)
        assert made.changes == []

    def test_carrier_history_is_weak_evidence(self) -> None:
        """A port that lost a carrier before was cabled once: a ticket, no page."""
        made = Node(LinkState, infos=(port("mlx5_9", role=Role.STORAGE),))
        never_up(made, 0, PhysState.POLLING)
        made.put(carrier_down_count=2)
        made.run(30)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_the_loss_that_a_driver_counts_at_start_is_no_history(self) -> None:
        """One carrier loss is that of the driver's start."""
        made = Node(LinkState, infos=(port("mlx5_9", role=Role.STORAGE),))
        never_up(made, 0, PhysState.POLLING)
        made.put(carrier_down_count=1)
        made.run(30)
        assert made.changes == []

    def test_configuration_expects_a_port_up(self) -> None:
        """`up: true` alarms for a port that was never seen up."""
        row = Expectation(ports=("mlx5_9/*",), up=True)
        made = Node(
            LinkState,
            infos=(port("mlx5_9", role=Role.MANAGEMENT),),
            config=Config(expect=(row,)),
        )
        never_up(made, 0, PhysState.POLLING)
        made.run(30)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (
            Severity.CRITICAL,
            Action.DRAIN_NOW,
        )

    def test_configuration_silences_a_port(self) -> None:
        """`up: false` never alarms, whatever the port did before."""
        row = Expectation(ports=("mlx5_3/1",), up=False)
        made = node(config=Config(expect=(row,)))
        made.down(3)
        made.run(60)
        assert made.changes == []

    def test_virtual_functions_come_and_go(self) -> None:
        """A virtual function that is down has no user; its card is watched."""
        made = node(infos=(port("mlx5_8", is_vf=True),))
        made.down(0)
        made.run(60)
        assert made.changes == []


class TestSwitchedOff:
    def test_disabled_on_infiniband_is_information(self) -> None:
        """Someone disabled the port: told once, nobody is paged (N09)."""
        made = node()
        made.down(3, PhysState.DISABLED)
        made.run(60)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)
        assert "no fault" in finding.summary
        assert len(made.changes) == 1

    @pytest.mark.parametrize("restarts", [False, True])
    def test_switched_on_again_it_may_train(self, *, restarts: bool) -> None:
        """After weeks off it is not lost at once; a minute later it is."""
        made = node()
        made.down(3, PhysState.DISABLED)
        made.run(600)
        made.link(PortState.DOWN, PhysState.POLLING, where=made.rail(3))
        made.run(30)
        if restarts:
            made.restart()
        made.run(15)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)
        made.run(45)
        assert made.open_of("port_down").finding.action is Action.DRAIN_NOW

    def test_switched_on_again_and_trained(self) -> None:
        """It waits for its subnet manager, as any port does."""
        made = node()
        made.down(3, PhysState.DISABLED)
        made.run(600)
        made.link(PortState.INIT, None, where=made.rail(3))
        made.run(10)
        assert made.open_of("port_down").finding.severity is Severity.INFO
        made.up(3)
        made.run(10)
        severities = {change.finding.severity for change in made.changes}
        assert severities == {Severity.INFO}

    def test_disabled_on_ethernet_is_what_mlx5_says_of_any_lost_link(self) -> None:
        """With a readable carrier the interface is up, so the link was lost."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.run(5)
        made.interface(3, "down", carrier=False)
        made.run(20)
        assert made.open_of("port_down").finding.action is Action.DRAIN_NOW

    def test_interface_taken_down_is_information(self) -> None:
        """The kernel refuses to name a carrier: the interface is down by hand."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.run(5)
        made.interface(3, "down", carrier=None)
        made.run(20)
        assert made.open_of("port_down").finding.severity is Severity.INFO

    def test_interface_out_of_sight_leaves_it_open(self) -> None:
        """In another namespace nobody can tell: a warning, not a page (N49)."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.run(20)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_an_interface_read_before_the_outage_tells_nothing(self) -> None:
        """It had a carrier then; where it is now nobody knows."""
        made = node(infos=ROCE)
        made.interface(3, "up", carrier=True)
        made.run(10)
        made.down(3, PhysState.DISABLED)
        made.run(20)
        assert made.open_of("port_down").finding.severity is Severity.WARNING

    def test_management_port_is_not_the_fabric(self) -> None:
        """A bounce is noted, a long outage is a ticket, never a page (N13)."""
        made = node(infos=(port("mlx5_8", role=Role.MANAGEMENT),))
        made.down(0)
        made.run(30)
        assert made.open_of("port_down").finding.severity is Severity.INFO
        made.run(120)
        finding = made.open_of("port_down").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)


class TestCommonCause:
    def test_ports_that_fall_at_once_have_one_cause(self) -> None:
        """Four of eight ports within two seconds: no single port is blamed (A10)."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(20)
        found = [i.finding for i in made.incidents.open()]
        findings = [each for each in found if each.kind == "port_down"]
        assert len(findings) == 4
        assert {f.action for f in found} == {Action.NONE}
        assert {f.part for f in findings} == {Part.VICTIM}
        assert "4 ports fell at once" in findings[0].summary

    def test_the_one_that_stays_down_is_to_blame_for_itself(self) -> None:
        """When the others are back, the port that is left is a fault of its own."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(60)
        for rail in range(3):
            made.up(rail)
        made.run(5)
        finding = made.open_of("port_down").finding
        assert (finding.subject.device, finding.action) == ("mlx5_3", Action.DRAIN_NOW)

    def test_ten_minutes_are_too_long_for_a_switch(self) -> None:
        """A node whose ports stay down is drained, whatever the cause."""
        made = node()
        for rail in range(8):
            made.down(rail)
        made.run(620)
        assert {i.finding.action for i in made.incidents.open()} == {Action.DRAIN_NOW}

    def test_three_ports_are_three_faults(self) -> None:
        """Fewer than four ports prove no common cause."""
        made = node()
        for rail in range(3):
            made.down(rail)
        made.run(20)
        assert {i.finding.action for i in made.incidents.open()} == {Action.DRAIN_NOW}


class TestGrace:
    def test_links_train_after_a_boot(self) -> None:
        """Right after a boot ports are down until they are trained (N01)."""
        made = Node(LinkState, uptime=20)
        for rail in range(8):
            made.link(PortState.DOWN, PhysState.POLLING, where=made.rail(rail))
        made.run(120)
        for rail in range(8):
            made.up(rail)
        made.run(60)
        assert made.changes == []

    def test_a_boot_without_uptime(self) -> None:
        """Where the node does not say how long it is up, the new boot id does."""
        made = Node(LinkState, uptime=None)
        made.down(3)
        made.run(20)
        assert made.kinds == ["port_down"]
        made.up(3)
        made.run(10)
        made.boot = replace(boot(made.now, None), boot_id="boot-2")
        made.down(3)
        made.run(200)
        assert made.kinds == []
        made.run(120)
        assert made.kinds == ["port_down"]

    def test_a_port_that_never_returns_is_found(self) -> None:
        """After five minutes a link that did not train is down (N02 with an F10)."""
        made = Node(LinkState, uptime=20)
        made.link(PortState.DOWN, PhysState.POLLING, where=pid(2))
        made.run(270)
        assert made.kinds == []
        made.run(30)
        assert made.open_of("port_down").finding.action is Action.DRAIN_NOW

    def test_links_train_after_the_driver_was_loaded(self) -> None:
        """Another driver instance starts the ports anew (N03)."""
        made = node()
        made.hcas = (hca("mlx5_3", "one"),)
        made.run(10)
        made.hcas = (hca("mlx5_3", "two"),)
        made.down(3)
        made.run(60)
        assert made.changes == []

    def test_a_device_that_came_back_trains(self) -> None:
        """A device that was missing for a while has a new driver, too."""
        made = node()
        made.missing = (MissingDevice("mlx5_3", made.now, 1, (RAILS[3],)),)
        made.run(30)
        made.missing = ()
        made.down(3)
        made.run(60)
        assert made.changes == []

    def test_interface_that_left_the_host(self) -> None:
        """A port whose interface moves to a pod is down until the pod uses it (N49)."""
        made = node(infos=ROCE)
        made.down(3, PhysState.DISABLED)
        made.events = (LinkEvent(made.now, "eth3", up=None, gone=True),)
        made.run(120)
        assert made.changes == []


class TestNotActive:
    def test_one_port_in_init(self) -> None:
        """The link is trained, the subnet manager passed it over (F14)."""
        made = node()
        made.link(PortState.INIT, where=pid(6))
        made.run(25)
        assert made.kinds == []
        made.run(10)
        finding = made.open_of("port_not_active").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)
        made.run(100)
        finding = made.open_of("port_not_active").finding
        assert (finding.severity, finding.action) == (Severity.CRITICAL, Action.NONE)
        assert finding.part is Part.OBSERVER

    def test_several_ports_in_init_point_at_the_subnet_manager(self) -> None:
        """No cable is blamed for what hits several ports at once."""
        made = node()
        made.link(PortState.INIT, where=pid(6))
        made.link(PortState.ARMED, where=pid(7))
        made.run(200)
        findings = [i.finding for i in made.incidents.open()]
        assert [f.kind for f in findings] == ["port_not_active"] * 2
        assert {f.action for f in findings} == {Action.NONE}
        assert {f.part for f in findings} == {Part.VICTIM}
        assert "subnet manager" in findings[0].summary

    def test_a_failover_of_the_subnet_manager_is_no_outage(self) -> None:
        """INIT for a minute stays below critical and asks for nothing (F42)."""
        made = node()
        made.link(PortState.INIT, where=pid(6))
        made.run(60)
        made.up(6)
        made.run(60)
        assert {i.finding.severity for i in made.changes} == {Severity.WARNING}
        assert {i.finding.action for i in made.changes} == {Action.NONE}

    def test_retraining_through_init_is_normal(self) -> None:
        """After an outage a port is in INIT for some seconds."""
        made = node()
        made.down(3)
        made.run(5)
        made.link(PortState.INIT, where=pid(3))
        made.run(20, each=1)
        made.up(3)
        made.run(30)
        assert made.changes == []

    def test_a_trained_port_that_was_never_active_is_told(self) -> None:
        """Nobody trains a link that nobody cabled: INIT is evidence by itself."""
        made = Node(LinkState, infos=(port("mlx5_9", role=Role.STORAGE),))
        made.link(PortState.INIT)
        made.of().ever_active = False
        made.run(40)
        assert made.kinds == ["port_not_active"]

    def test_an_iwarp_port_waits_for_an_address(self) -> None:
        """INIT on Ethernet has nothing to do with a subnet manager."""
        made = node(infos=ROCE)
        made.link(PortState.INIT, where=pid(6))
        made.run(200)
        finding = made.open_of("port_not_active").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_a_management_port_in_init(self) -> None:
        """It is noted, and a ticket when it lasts."""
        made = node(infos=(port("mlx5_8", role=Role.MANAGEMENT),))
        made.link(PortState.INIT)
        made.run(40)
        assert made.open_of("port_not_active").finding.severity is Severity.INFO
        made.run(120)
        assert made.open_of("port_not_active").finding.action is Action.INSPECT

    def test_a_dead_port_that_trains_changes_its_story(self) -> None:
        """A port that was down and hangs in INIT is down until that is certain."""
        made = node()
        made.down(3)
        made.run(30)
        made.link(PortState.INIT, where=pid(3))
        assert made.run(25) == []
        changes = made.run(10)
        assert [(i.finding.kind, i.state) for i in changes] == [
            ("port_down", "resolved"),
            ("port_not_active", "open"),
        ]


class TestRestart:
    def test_an_open_outage_goes_on(self) -> None:
        """A restart neither forgets a dead port nor tells of it again (N30)."""
        made = node()
        made.down(3)
        made.run(30)
        told = made.open_of("port_down")
        made.restart()
        assert made.run(30) == []
        again = made.open_of("port_down")
        assert (again.id, again.finding.onset) == (told.id, told.finding.onset)

    def test_what_ended_meanwhile_is_resolved(self) -> None:
        """A port that came back while nobody looked is told to be back."""
        made = node()
        made.down(3)
        made.run(30)
        made.up(3)
        made.restart()
        (change,) = made.run(5)
        assert change.state == "resolved"

    def test_a_reboot_does_not_open_it_again(self) -> None:
        """A dead port that stays dead over a reboot is the same incident."""
        made = node()
        made.down(3)
        made.run(30)
        made.boot = boot(made.now, 20.0)
        made.restart()
        assert made.run(60) == []
        assert made.kinds == ["port_down"]

    def test_bytes_of_others_are_refused(self) -> None:
        """What cannot be read is an error, not a guess."""
        with pytest.raises(ValueError, match="SavedLinkState"):
            LinkState(Config()).restore(b"\x00garbage", 0.0)


class TestBlindness:
    def test_unreadable_state_is_admitted(self) -> None:
        """Where no state can be read the node says so."""
        made = node()
        for rail in range(8):
            made.link(None, None, where=pid(rail))
        blind = list(made.detectors[0].blind(made.step()))
        assert [item.kind for item in blind] == list(LinkState.kinds)

    def test_one_readable_port_is_enough(self) -> None:
        """One bad file costs only itself."""
        made = node()
        made.link(None, None, where=pid(0))
        assert list(made.detectors[0].blind(made.step())) == []


def hca(name: str, instance: str) -> Hca:
    """Return a device of this driver instance."""
    return Hca(
        name=name,
        node_guid=None,
        sys_image_guid=None,
        hca_type=None,
        board_id=None,
        firmware=None,
        node_type=None,
        pci_address=None,
        driver=None,
        numa_node=None,
        is_vf=False,
        pf_address=None,
        ports=(),
        plans=(),
        driver_instance=instance,
    )


def test_partial_samples_keep_what_is_known() -> None:
    """A sample of state alone does not forget the physical state read before."""
    made = node()
    made.down(3)
    made.run(5)
    each = made.of(pid(3))
    each.status = LinkStatus(pid(3), made.now, PortState.DOWN, complete=False)
    made.run(20)
    assert "Polling" in made.open_of("port_down").finding.summary


def test_times_are_wall_times() -> None:
    """Onsets are Unix seconds although everything runs on the monotonic clock."""
    made = node()
    made.down(3)
    made.run(30)
    assert made.open_of("port_down").finding.onset == pytest.approx(WALL, abs=60)
