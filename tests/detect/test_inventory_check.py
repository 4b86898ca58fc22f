"""Missing devices: found at once, judged when a reload would be over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config
from fabricmon.detect.inventory_check import DevicePresence
from fabricmon.model import (
    Action,
    Incident,
    MissingDevice,
    Part,
    PortInfo,
    Role,
    Severity,
)
from tests.node import RAILS, Node
from tests.views import boot, port

POLL = 5.0


class Listing(Node):
    """A node whose device list is polled every five seconds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(DevicePresence, **options)
        self.run(10)

    def gone(
        self, seconds: float, ports: tuple[PortInfo, ...] = (RAILS[3],), **known: Any
    ) -> list[Incident]:
        """Let a device be missing for so long; return what changed."""
        before = len(self.changes)
        since = self.now + POLL
        for poll in range(1, round(seconds / POLL) + 1):
            name = ports[0].id.device
            self.missing = (MissingDevice(name, since, poll, ports, **known),)
            self.step_all(POLL)
        return self.changes[before:]


class TestMissing:
    def test_it_is_found_at_the_third_listing(self) -> None:
        """Fifteen seconds after it went away (F24)."""
        node = Listing()
        assert node.gone(10) == []
        node = Listing()
        (incident,) = node.gone(15)
        assert incident.finding.kind == "device_missing"
        assert incident.finding.subject.device == "mlx5_3"
        assert incident.finding.subject.rail == 3

    def test_it_is_information_while_a_reload_may_last(self) -> None:
        """A driver that is loaded again takes its device away for a minute (N03)."""
        node = Listing()
        node.gone(60)
        node.missing = ()
        node.run(60)
        severities = {i.finding.severity for i in node.changes}
        actions = {i.finding.action for i in node.changes}
        assert (severities, actions) == ({Severity.INFO}, {Action.NONE})
        assert [i.state for i in node.changes] == ["open", "resolved"]

    def test_it_is_critical_when_it_does_not_come_back(self) -> None:
        """After a minute and a half no reload explains it (F24)."""
        node = Listing()
        changes = node.gone(120)
        assert [i.state for i in changes] == ["open", "update"]
        finding = changes[-1].finding
        assert (finding.severity, finding.action) == (
            Severity.CRITICAL,
            Action.DRAIN_NOW,
        )
        evidence = {item.signal: item for item in finding.evidence}
        assert evidence["polls_without_device"].threshold == 3
        assert evidence["seconds_gone"].threshold == 90
        assert evidence["device_known"].value == "known before"

    def test_an_expected_device_was_never_there(self) -> None:
        """Configuration may miss what nobody has seen."""
        node = Listing()
        since = node.now + POLL
        for poll in range(1, 25):
            node.missing = (MissingDevice("mlx5_9", since, poll, expected=True),)
            node.step_all(POLL)
        finding = node.open_of("device_missing").finding
        assert finding.action is Action.DRAIN_NOW
        assert finding.evidence[2].value == "expected by configuration"

    def test_a_node_that_starts_loads_its_drivers(self) -> None:
        """In the first five minutes of a boot a card may be late."""
        node = Listing(uptime=30)
        node.gone(200)
        assert node.open_of("device_missing").finding.severity is Severity.INFO

    def test_virtual_functions_come_and_go(self) -> None:
        """Pods take them away; no card failed."""
        node = Listing()
        node.gone(300, (port("mlx5_12", is_vf=True),))
        assert node.open_of("device_missing").finding.action is Action.NONE

    def test_a_management_card_is_a_ticket(self) -> None:
        """It is not the fabric, so nobody is paged."""
        node = Listing()
        node.gone(300, (port("mlx5_8", role=Role.MANAGEMENT),))
        finding = node.open_of("device_missing").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)


class TestUnknown:
    def test_a_listing_that_fails_tells_nothing(self) -> None:
        """EIO on the folder is not a missing device (N15)."""
        node = Listing()
        node.class_error = "EIO"
        assert node.gone(60) == []
        (blind,) = node.detectors[0].blind(node.step())
        assert "EIO" in blind.reason

    def test_what_was_missing_stays_missing(self) -> None:
        """A listing that fails does not bring a card back."""
        node = Listing()
        node.gone(120)
        node.class_error, node.missing = "EIO", ()
        assert node.run(60) == []
        assert node.kinds == ["device_missing"]

    def test_without_the_class_every_device_is_gone(self) -> None:
        """ENOENT is an answer: no RDMA driver is loaded."""
        node = Listing()
        node.class_error = "ENOENT"
        node.gone(120)
        assert node.open_of("device_missing").finding.severity is Severity.CRITICAL


class TestRestart:
    def test_a_missing_device_is_still_missing(self) -> None:
        """A restart neither forgets it nor begins to count anew (N30)."""
        node = Listing()
        node.gone(120)
        told = node.open_of("device_missing")
        node.restart()
        node.missing = ()
        node.hcas = ()
        node.held = True
        node.run(5)
        node.held = False
        assert node.gone(30) == []
        assert node.open_of("device_missing").id == told.id

    def test_bytes_of_others_are_refused(self) -> None:
        """What cannot be read is an error, not a guess."""
        with pytest.raises(ValueError, match="SavedPresence"):
            DevicePresence(Config()).restore(b"\x93", 0.0)


def test_the_boot_of_a_node_is_known_by_its_uptime() -> None:
    """An hour after the boot a missing card is missing."""
    node = Listing()
    node.boot = replace(boot(node.now, 3600.0), boot_id="boot-2")
    node.gone(120)
    assert node.open_of("device_missing").finding.severity is Severity.CRITICAL


class TestNeverSeen:
    def test_what_never_was_is_not_gone(self) -> None:
        """An expected device that no listing had did not lose its driver."""
        node = Listing()
        node.missing = (
            MissingDevice("mlx5_9", node.now, 4, expected=True, never_seen=True),
        )
        node.run(POLL)
        finding = node.open_of("device_missing").finding
        assert finding.summary.startswith("mlx5_9 is expected and was never there")
        assert finding.part is Part.OBSERVER
        assert finding.severity is Severity.INFO
        node.run(120)
        assert node.open_of("device_missing").finding.severity is Severity.CRITICAL
