"""The metrics beside the counters: the agent, the node, its devices and ports."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.config import Config
from fabricmon.model import (
    Action,
    IncidentState,
    MaintenanceWindow,
    ReadFailure,
    Snapshot,
    Subject,
)
from fabricmon.parse.words import LinkLayer, PortState
from fabricmon.sinks.exposition import Exposition
from fabricmon.sinks.families import NODE_FAMILIES, Family
from tests.sinks import nodes
from tests.sinks.scraping import Clock, exposition, scrape, value

IB = LinkLayer.INFINIBAND


KEPT = [family for family in NODE_FAMILIES if family.of is not None]


class _Only:
    """A snapshot that shows one part, and remembers which one was asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> object:
        """Return what the snapshot has."""
        self.asked.add(name)
        return getattr(self._snapshot, name)


@pytest.mark.parametrize("family", KEPT, ids=lambda family: family.name)
def test_what_is_kept_comes_of_one_part(family: Family[Any]) -> None:
    """Samples are made anew when that part changes, so they may depend on no other."""
    windows = (nodes.burst("mlx5_0"),)
    full = nodes.node(nodes.port(), incidents=(nodes.incident(),), bursts=windows)
    only = _Only(full)
    assert family.of is not None
    family.of(cast("Snapshot", only))
    part, only.asked = only.asked, set()
    tuple(family.samples(SimpleNamespace(snapshot=only)))
    assert len(part) == 1
    assert only.asked <= part


class TestFamilies:
    AT = '{device="mlx5_0",port="1"}'

    def test_state_and_rate_are_those_of_node_exporter(self) -> None:
        """Numbers of states, bytes per second."""
        found = scrape(exposition(nodes.node(nodes.port())))
        assert found[f"fabricmon_infiniband_state_id{self.AT}"] == "4"
        assert found[f"fabricmon_infiniband_physical_state_id{self.AT}"] == "5"
        rate = f"fabricmon_infiniband_rate_bytes_per_second{self.AT}"
        assert found[rate] == "50000000000"

    def test_state_that_is_not_known_has_no_sample(self) -> None:
        """It is neither down nor zero."""
        port = replace(nodes.port(), status=None)
        found = scrape(exposition(nodes.node(port)))
        assert not any("state_id" in series for series in found)
        assert f"fabricmon_infiniband_rate_bytes_per_second{self.AT}" not in found

    def test_identity_is_in_the_info_metrics_alone(self) -> None:
        """Numbers carry device and port; who they are is joined."""
        found = scrape(exposition(nodes.node(nodes.full_port("mlx5_0", IB))))
        carriers = {
            series.partition("{")[0] for series in found if "0000:1a:00.0" in series
        }
        assert carriers == {
            "fabricmon_infiniband_port_info",
            "fabricmon_infiniband_device_info",
        }

    def test_open_findings_are_counted_by_their_labels(self) -> None:
        """Two incidents with the same labels are one series of value 2."""
        snapshot = nodes.node(
            nodes.port(), incidents=(nodes.incident(), nodes.incident(id="2"))
        )
        series = (
            'finding_open{action="none",device="mlx5_0",kind="port_down",port="1",'
            'role="culprit",severity="critical"}'
        )
        assert value(snapshot, series) == "2"

    def test_advice_is_counted(self) -> None:
        """What fusion bounds is published: by action, nothing where none is given."""
        quiet = nodes.incident()
        finding = replace(quiet.finding, action=Action.INSPECT)
        loud = (quiet, replace(quiet, id="2", finding=finding))
        snapshot = nodes.node(nodes.port(), incidents=loud)
        assert value(snapshot, 'finding_actionable{action="inspect"}') == "1"
        found = scrape(exposition(nodes.node(nodes.port(), incidents=(quiet,))))
        assert not any("finding_actionable" in series for series in found)

    def test_resolved_findings_are_not_open(self) -> None:
        """They are history."""
        resolved = nodes.incident(state=IncidentState.RESOLVED)
        found = scrape(exposition(nodes.node(nodes.port(), incidents=(resolved,))))
        assert not any("finding" in series for series in found)

    def test_findings_in_shadow_are_apart(self) -> None:
        """An alert on open findings must not fire for what is on trial."""
        shadow = nodes.incident(dry_run=True)
        found = scrape(exposition(nodes.node(nodes.port(), incidents=(shadow,))))
        assert any("finding_shadow" in series for series in found)
        assert not any("finding_open" in series for series in found)

    def test_finding_about_the_node_has_empty_places(self) -> None:
        """The labels are the same for all kinds."""
        incident = nodes.incident("telemetry_stale")
        finding = replace(incident.finding, subject=Subject())
        incident = replace(incident, finding=finding)
        found = scrape(exposition(nodes.node(incidents=(incident,))))
        (series,) = (each for each in found if "finding_open" in each)
        assert 'device=""' in series
        assert 'port=""' in series

    def test_sources_are_as_bad_as_their_worst_unit(self) -> None:
        """One device whose reads fail or hang shows."""
        health = (
            nodes.health("errors", "mlx5_0", duration_seconds=0.5, lane="device"),
            nodes.health("errors", "mlx5_1", ok=False, last_success=nodes.NOW - 40),
            nodes.health("errors", "mlx5_2", in_flight_since=nodes.NOW - 7),
        )
        found = scrape(exposition(nodes.node(health=health)))
        assert found['fabricmon_source_success{source="errors"}'] == "0"
        assert found['fabricmon_lane_duration_seconds{lane="device"}'] == "0.5"
        assert found['fabricmon_source_age_seconds{source="errors"}'] == "40.0"
        assert found['fabricmon_source_in_flight_seconds{source="errors"}'] == "7.0"

    def test_source_that_never_found_anything_is_left_out(self) -> None:
        """A node without logs or jobs has no series that say so."""
        health = (nodes.health("inspector", found=False), nodes.health("errors"))
        found = scrape(exposition(nodes.node(health=health)))
        assert not any("inspector" in series for series in found)
        assert any("errors" in series for series in found)

    def test_source_that_fails_is_told_from_the_start(self) -> None:
        """It may have something to find."""
        health = (nodes.health("inspector", ok=False, found=False),)
        found = scrape(exposition(nodes.node(health=health)))
        assert found['fabricmon_source_success{source="inspector"}'] == "0"

    def test_source_that_never_succeeded_has_no_age(self) -> None:
        """Not an age of zero, which would be the best of all."""
        health = (nodes.health("pci", ok=False, last_success=None),)
        found = scrape(exposition(nodes.node(health=health)))
        assert not any("age_seconds{" in series for series in found)

    def test_failed_reads_are_counted_by_errno(self) -> None:
        """Texts in place of an errno are one value: labels are bounded."""
        health = (
            nodes.failing("errors", "mlx5_0", ("EINVAL", 2), ("N/A (no PMA)", 1)),
            nodes.failing("errors", "mlx5_1", ("EINVAL", 3), ("not supported", 1)),
        )
        found = scrape(exposition(nodes.node(health=health)))
        series = 'fabricmon_read_errors_total{errno="%s",source="errors"}'
        assert found[series % "EINVAL"] == "5"
        assert found[series % "other"] == "2"

    def test_what_cannot_be_read_at_all_is_told(self) -> None:
        """A device that fails is not a device that is healthy."""
        failure = ReadFailure("mlx5_3", None, "ports", "EIO", "cannot be listed")
        series = 'unreadable{device="mlx5_3",errno="EIO",port=""}'
        assert value(nodes.node(failures=(failure,)), series) == "1"

    def test_quarantine_says_why(self) -> None:
        """Restricted functions are read rarely, and it shows."""
        health = (nodes.health("errors", "mlx5_2", quarantined="EINVAL"),)
        series = 'device_quarantined{device="mlx5_2",reason="EINVAL",source="errors"}'
        assert value(nodes.node(health=health), series) == "1"

    def test_maintenance_of_ports_and_of_the_node(self) -> None:
        """A window without ports is about the node."""
        windows = (
            MaintenanceWindow(nodes.WALL + 60, ("mlx5_0/1",)),
            MaintenanceWindow(nodes.WALL + 60),
        )
        found = scrape(exposition(nodes.node(maintenance=windows)))
        assert found['fabricmon_maintenance{device="mlx5_0",port="1"}'] == "1"
        assert found['fabricmon_maintenance{device="",port=""}'] == "1"

    def test_history_of_a_port(self) -> None:
        """Flaps, downtime, resets, and the ceilings that were reached."""
        port = replace(
            nodes.port(),
            flaps=2,
            downtime_seconds=7.5,
            last_down=nodes.WALL,
            resets=1,
            saturated=("link_downed", "link_downed"),  # of two folders
        )
        found = scrape(exposition(nodes.node(port)))
        assert found[f"fabricmon_port_flaps_total{self.AT}"] == "2"
        assert found[f"fabricmon_port_downtime_seconds_total{self.AT}"] == "7.5"
        assert found[f"fabricmon_port_count_resets_total{self.AT}"] == "1"
        when = found[f"fabricmon_port_last_down_timestamp_seconds{self.AT}"]
        assert float(when) == nodes.WALL
        place = '{counter="link_downed",device="mlx5_0",port="1"}'
        saturated = f"fabricmon_port_count_saturated{place}"
        assert found[saturated] == "1"

    def test_onset_of_pause_that_a_port_sends(self) -> None:
        """The first to pause is found by comparing onsets; none is not a time."""
        name = f"fabricmon_port_pause_onset_timestamp_seconds{self.AT}"
        port = nodes.port()
        assert name not in scrape(exposition(nodes.node(port)))
        pausing = replace(port, pause_onset=nodes.WALL)
        assert float(scrape(exposition(nodes.node(pausing)))[name]) == nodes.WALL

    def test_network_devices_of_a_bond(self) -> None:
        """A port may have several; one alone is in the port's identity."""
        port = nodes.port()
        bond = replace(port, info=replace(port.info, netdevs=("bond0", "eth0")))
        found = scrape(exposition(nodes.node(bond)))
        netdevs = [series for series in found if "netdev_info" in series]
        assert len(netdevs) == 3
        alone = scrape(exposition(nodes.node(port)))
        assert not any("netdev_info" in series for series in alone)

    def test_port_that_was_never_down_has_no_such_time(self) -> None:
        """Not the year 1970."""
        found = scrape(exposition(nodes.node(nodes.port())))
        assert not any("last_down" in series for series in found)

    def test_both_ends_of_the_pcie_link(self) -> None:
        """A card in a narrow slot differs from a link that lost lanes."""
        port = nodes.port()
        assert port.pci is not None
        slot = replace(port.pci.slot, max_width=8, max_speed_gts=16.0)
        link = replace(port.pci.link, width=8, speed_gts=2.5)
        port = replace(port, pci=replace(port.pci, link=link, slot=slot))
        found = scrape(exposition(nodes.node(port)))
        width = 'fabricmon_pci_%s_link_width{device="mlx5_0",end="%s"}'
        speed = 'fabricmon_pci_%s_link_transfers_per_second{device="mlx5_0",end="%s"}'
        assert found[width % ("current", "device")] == "8"
        assert found[width % ("max", "device")] == "16"
        assert found[width % ("max", "slot")] == "8"
        assert found[speed % ("current", "device")] == "2500000000"
        assert found[speed % ("max", "slot")] == "16000000000"

    def test_age_of_the_snapshot_grows_without_the_loop(self) -> None:
        """An agent that hangs is seen in what it exports."""
        clock = Clock()
        made = Exposition(Config(), clock=clock)
        made.publish(nodes.node())
        clock.now += 12
        found = scrape(made)
        assert found["fabricmon_snapshot_age_seconds"] == "12.0"
        assert found['fabricmon_source_age_seconds{source="pci"}'] == "13.0"

    def test_node_without_the_rdma_class(self) -> None:
        """No devices is not the same as no news."""
        snapshot = nodes.node(class_error="ENOENT")
        assert value(snapshot, "infiniband_class_readable") == "0"

    def test_forged_names_are_harmless(self) -> None:
        """Quotes, lines, escapes, bytes that are no text, and 10 kB of it."""
        name = 'a"b\\c\nd\x1b\udcff' + "e" * 10_000
        made = exposition(nodes.node(nodes.full_port(name, IB)))
        text = made.render().body.decode()
        assert max(map(len, text.split("\n"))) < 1000
        families = list(text_string_to_metric_families(text))
        devices = {
            sample.labels["device"]
            for family in families
            for sample in family.samples
            if "device" in sample.labels
        }
        assert len(devices) == 1

    def test_every_state_has_a_number(self) -> None:
        """The kernel's numbers, in its order."""
        port = nodes.port()
        assert port.status is not None
        for number, state in enumerate(PortState):
            one = replace(port, status=replace(port.status, state=state))
            series = f"infiniband_state_id{self.AT}"
            assert value(nodes.node(one), series) == str(number)
