"""Soft-RoCE devices of a real kernel, watched by the shipped systemd service."""

import re
from math import inf

import pytest

from tests.vm.outcome import Outcome

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(1800)]

DEVICES = ("rxe0", "rxe1", "rxe2", "rxe3")
METRICS = {
    "sent_pkts": "transmitted_packets",
    "rcvd_pkts": "received_packets",
    "duplicate_request": "duplicate_requests_packets",
    "out_of_seq_request": "out_of_sequence_packets_received",
    "rcvd_seq_err": "packet_sequence_errors",
    "completer_retry_err": "completer_retries",
    "link_downed": "link_downed",
    "rdma_sends": "send_requests",
}


class TestStart:
    def test_sees_every_device(self, rxe: Outcome) -> None:
        """In its sandbox the service sees what the kernel shows, and all is well."""
        sample = rxe.sample("start")

        assert tuple(sample.ports) == DEVICES
        assert sample.check["verdict"] == "healthy"
        assert sample.check["source"] == "agent"
        assert sample.check_exit == 0
        assert sample.healthz == 200

    @pytest.mark.parametrize("device", DEVICES)
    def test_identity(self, rxe: Outcome, device: str) -> None:
        """A device's identity, state and rate are those of the kernel's files."""
        sample = rxe.sample("start")
        port, kernel = sample.ports[device], sample.kernel(device)

        assert port["netdev"] == device.replace("rxe", "v")
        assert port["driver"] == "rxe"
        assert port["node_guid"] == "0x" + kernel["node_guid"].replace(":", "")
        assert port["link_layer"] == kernel["link_layer"] == "Ethernet"
        assert f"4: {port['state']}" == kernel["state"]
        assert f"5: {port['phys_state']}" == kernel["phys_state"]
        assert kernel["rate"] == "10 Gb/sec (1X FDR10)"
        assert (port["rate_gbps"], port["width"], port["speed"]) == (10, 1, "FDR10")
        assert sample.value("infiniband_rate_bytes_per_second", device) == 10e9 / 8
        assert port["fw"] is None
        assert port["hca_type"] is None

    def test_setting_is_no_counter(self, rxe: Outcome) -> None:
        """The file lifespan lies among the counters and counts nothing."""
        sample = rxe.sample("start")

        assert "hw_counters/lifespan" in sample.kernel("rxe0")
        assert "lifespan" not in sample.ports["rxe0"]["hw_counters"]
        assert "lifespan" not in sample.content["metrics"]["body"]


class TestLoss:
    @pytest.mark.parametrize("device", ["rxe0", "rxe1"])
    def test_counters(self, rxe: Outcome, device: str) -> None:
        """After traffic with losses every counter is what the kernel says."""
        sample = rxe.sample("lossy")
        kernel = sample.kernel(device)
        counters = sample.ports[device]["hw_counters"]

        assert len(counters) == 15
        for name, value in counters.items():
            assert str(value) == kernel[f"hw_counters/{name}"], name
        for name, stem in METRICS.items():
            exported = sample.value(f"infiniband_{stem}_total", device)
            assert exported == counters[name], name

    def test_there_was_loss(self, rxe: Outcome) -> None:
        """The counters compared above had moved, also those of retries."""
        ports = rxe.sample("lossy").ports

        assert "exit 0" in rxe.step("no loss").notes["traffic"]
        assert ports["rxe0"]["hw_counters"]["sent_pkts"] > 5000
        assert ports["rxe0"]["hw_counters"]["completer_retry_err"] > 0
        assert ports["rxe1"]["hw_counters"]["out_of_seq_request"] > 0

    def test_no_culprit(self, rxe: Outcome) -> None:
        """Retries alone accuse no port: they are noted as what was lost elsewhere."""
        for device in DEVICES:
            told = rxe.findings(device, "loss", until="down")
            assert {*told} <= {"transport_retries info"}
        assert rxe.sample("lossy").check["verdict"] == "healthy"


class TestLinkDown:
    def test_port_down(self, rxe: Outcome) -> None:
        """The end that lost its link is told within 15 s, with the advice to drain."""
        assert rxe.after("down", "finding_open", "port_down", "rxe1") < 15
        assert "port_down critical" in rxe.findings("rxe1", "down")
        assert rxe.sample("down").check["verdict"] == "down"
        assert rxe.sample("down").check_exit == 2

    def test_switched_off(self, rxe: Outcome) -> None:
        """The end that was switched off is told apart: nobody needs to act."""
        assert rxe.after("down", "finding_open", "port_down", "rxe0") < 15
        assert "port_down info" in rxe.findings("rxe0", "down")
        assert rxe.sample("down").ports["rxe0"]["phys_state"] == "Disabled"

    def test_comes_back(self, rxe: Outcome) -> None:
        """Once the link is back the finding is resolved, and told as a flap."""
        assert rxe.after("up", "finding_resolved", "port_down", "rxe0") < 5
        assert rxe.after("up", "finding_open", "port_flap", "rxe0") < 10

    def test_resolved_under_another_name(self, rxe: Outcome) -> None:
        """A device that was renamed meanwhile leaves no finding behind."""
        assert rxe.after("rename down", "finding_resolved", "port_down", "rxe1") < inf
        kinds = {
            (finding["kind"], finding["subject"].get("device"))
            for finding in rxe.sample("renamed").check["findings"]
        }
        assert ("port_down", "rxe1") not in kinds

    @pytest.mark.parametrize("device", ["rxe2", "rxe3"])
    def test_blink(self, rxe: Outcome, device: str) -> None:
        """A link that was down for 100 ms is told once, by events from the kernel."""
        told = [e for e in rxe.events if (e.kind, e.device) == ("port_flap", device)]

        assert rxe.after("blink", "finding_open", "port_flap", device) < 10
        assert len(told) == 1
        assert "carrier=0" in told[0].fields["evidence"]

    def test_blink_is_told_apart(self, rxe: Outcome) -> None:
        """Only the end that lost its carrier asks for somebody; the other was told to."""
        assert rxe.findings("rxe3", "blink", until="rename") == ["port_flap warning"]
        assert rxe.sample("down").ports["rxe3"]["verdict"] == "degraded"


class TestDevicesChange:
    def test_renamed(self, rxe: Outcome) -> None:
        """A device under a new name is the same device, and none is missing."""
        sample = rxe.sample("renamed")

        assert set(sample.ports) == {"mlx5_7", "roce1", "rxe0", "rxe3"}
        assert sample.ports["mlx5_7"]["netdev"] == "v2"
        assert sample.value("infiniband_link_downed_total", "mlx5_7") == 1
        for name in ("rxe1", "rxe2", "mlx5_7", "roce1"):
            assert "device_missing" not in " ".join(rxe.findings(name))

    def test_gone_for_a_moment(self, rxe: Outcome) -> None:
        """A device that is gone for less than a driver reload takes alarms nobody."""
        assert rxe.findings("rxe3", "delete") == ["device_missing info"]
        assert rxe.after("add", "finding_resolved", "device_missing", "rxe3") < 10

    def test_counters_start_again(self, rxe: Outcome) -> None:
        """The new device's counters are exported from 0, which is no flap."""
        sample = rxe.sample("renamed")

        assert sample.value("infiniband_link_downed_total", "rxe3") == 0
        assert sample.value("port_flaps_total", "rxe3") == 1


class TestService:
    def test_starts_ready(self, rxe: Outcome) -> None:
        """The unit starts, says READY, and tells systemd what it sees."""
        said = rxe.step("started").notes["said"]

        assert "active (running)" in said
        assert re.search(r'Status: "\d ports, ', said)

    @pytest.mark.parametrize("step", ["refused", "taken", "restarted"])
    def test_is_well(self, rxe: Outcome, step: str) -> None:
        """After a reload or a restart the service is up and answers."""
        notes = rxe.step(step).notes

        assert notes["state"] == "active"
        assert notes["healthz"] == 200

    def test_wrong_configuration(self, rxe: Outcome) -> None:
        """A reload with a wrong file is refused, with the key; the process goes on."""
        (refused,) = (e for e in rxe.events if e.name == "configuration_refused")

        assert "down_secnds" in refused.fields["err"]
        assert rxe.step("refused").notes["pid"] == rxe.step("hang").notes["pid"]
        assert rxe.after("right reload", "configuration_loaded") < 10

    def test_watchdog(self, rxe: Outcome) -> None:
        """A process that hangs is ended by systemd's watchdog and started again."""
        notes = rxe.step("restarted").notes

        assert notes["restarts"] == "1"
        assert notes["pid"] != rxe.step("hang").notes["pid"]
        assert "Watchdog timeout" in rxe.step("end").notes["journal"]

    def test_restart_tells_nothing_again(self, rxe: Outcome) -> None:
        """What was open before the restart still is, under the same id; nothing new."""
        before, after = rxe.sample("renamed"), rxe.sample("restarted")
        ids = {finding["id"] for finding in before.check["findings"]}

        assert ids
        assert ids == {finding["id"] for finding in after.check["findings"]}
        for device in after.ports:
            assert rxe.findings(device, "hang") == []

    def test_stops(self, rxe: Outcome) -> None:
        """The service stops within 2 s and calls that a success."""
        notes = rxe.step("stopped").notes
        began = rxe.after("stop", "agent_stopping")

        assert rxe.after("stop", "agent_stopped") - began < 2
        assert notes["took"] < 8  # with systemd's part, all of it emulated
        assert notes["result"] == "success"

    def test_never_crashed(self, rxe: Outcome) -> None:
        """Nothing in all this was an error of the program."""
        names = {event.name for event in rxe.events}

        assert not names & {"source_crashed", "sink_failed", "state_unsaved"}
        assert "Traceback" not in rxe.step("end").notes["journal"]
