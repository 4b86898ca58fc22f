"""InfiniBand devices that show the kernel's own files and break on command."""

import json
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from tests.vm.counter_names import COUNTERS
from tests.vm.outcome import Outcome, Sample

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(1800)]

DEVICES = tuple(f"mlx5_{number}" for number in range(10))
SOUND = ("mlx5_8", "mlx5_9")

# What mlx5_N began with, and its metric.
BEGAN = {
    "counters/port_xmit_data": "port_data_transmitted_bytes",
    "counters/port_rcv_packets": "port_packets_received",
    "hw_counters/out_of_sequence": "out_of_sequence_packets_received",
    "counters/symbol_error": "symbol_error",
    "counters/link_downed": "link_downed",
}


def _kinds(sample: Sample, device: str | None) -> set[str]:
    return {
        finding["kind"]
        for finding in sample.check["findings"]
        if finding["subject"].get("device") == device
    }


def _seen(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the ports without their verdict: one sample also judges lifetimes."""
    return [
        {key: port[key] for key in port if key not in {"verdict", "reasons"}}
        for port in document["ports"]
    ]


class TestStart:
    def test_sees_every_device(self, fakeib: Outcome) -> None:
        """Ten ports of one role, each a rail; one has its counter full from before."""
        sample = fakeib.sample("start")
        verdicts = {name: port["verdict"] for name, port in sample.ports.items()}

        assert tuple(sample.ports) == DEVICES
        assert verdicts.pop("mlx5_0") == "degraded"
        assert set(verdicts.values()) == {"healthy"}
        assert [port["rail"] for port in sample.ports.values()] == list(range(10))
        assert {port["role"] for port in sample.ports.values()} == {"compute"}

    @pytest.mark.parametrize("device", DEVICES)
    def test_identity(self, fakeib: Outcome, device: str) -> None:
        """A device's identity, state and rate are those of the kernel's files."""
        sample = fakeib.sample("start")
        port, kernel = sample.ports[device], sample.kernel(device)

        assert port["node_guid"] == "0x" + kernel["node_guid"].replace(":", "")
        assert port["fw"] == kernel["fw_ver"] == "28.39.1002"
        assert port["hca_type"] == kernel["hca_type"] == "MT4129"
        assert port["link_layer"] == kernel["link_layer"] == "InfiniBand"
        assert f"4: {port['state']}" == kernel["state"]
        assert f"5: {port['phys_state']}" == kernel["phys_state"]
        assert kernel["rate"] == "400 Gb/sec (4X NDR)"
        assert (port["rate_gbps"], port["width"], port["speed"]) == (400, 4, "NDR")
        assert port["lid"] == int(kernel["lid"], 16)
        assert port["sm_lid"] == 1
        assert sample.value("infiniband_state_id", device) == 4
        assert sample.value("infiniband_rate_bytes_per_second", device) == 50e9

    @pytest.mark.parametrize("device", DEVICES)
    def test_counters(self, fakeib: Outcome, device: str) -> None:
        """All 49 counters of a port are what the kernel says."""
        sample = fakeib.sample("start")
        port, kernel = sample.ports[device], sample.kernel(device)
        shown = {
            f"{folder}/{name}": str(value)
            for folder in ("counters", "hw_counters")
            for name, value in port[folder].items()
        }
        expected = {path: text for path, text in kernel.items() if "counters/" in path}
        expected.pop("hw_counters/lifespan")

        assert shown == expected
        assert len(shown) == 49

    @pytest.mark.parametrize("device", DEVICES)
    def test_exported_counters(self, fakeib: Outcome, device: str) -> None:
        """The metrics have the kernel's numbers, in base units."""
        sample = fakeib.sample("start")
        kernel = sample.kernel(device)

        for path, stem in BEGAN.items():
            factor = 4 if stem.endswith("_bytes") else 1
            exported = sample.value(f"infiniband_{stem}_total", device)
            assert exported == int(kernel[path]) * factor, path

    def test_sample(self, fakeib: Outcome) -> None:
        """Without the agent `check` sees the same ports, to the last counter."""
        sample = fakeib.sample("start")

        assert sample.check["source"] == "agent"
        assert sample.check_alone["source"] == "sample"
        assert _seen(sample.check_alone) == _seen(sample.check)


class TestSaturated:
    def test_told(self, fakeib: Outcome) -> None:
        """Counters at their ceiling are told once, as what they are."""
        assert fakeib.findings("mlx5_0", until="gone") == ["counter_saturated info"]
        for name in ("start", "broken", "healed"):
            sample = fakeib.sample(name)
            port = sample.ports["mlx5_0"]
            assert port["saturated"] == ["link_downed", "symbol_error"]
            assert port["counters"]["link_downed"] == 255
            assert sample.value("port_count_saturated", "mlx5_0", counter="link_downed")

    def test_flap_is_found_all_the_same(self, fakeib: Outcome) -> None:
        """A flap that the full counter cannot show is seen in the state, once."""
        assert (
            fakeib.after("saturated flap", "finding_open", "port_flap", "mlx5_0") < 10
        )
        found = fakeib.findings("mlx5_0", "saturated flap")
        assert found == ["port_flap warning"]
        assert fakeib.sample("broken").value("port_flaps_total", "mlx5_0") == 1


class TestLink:
    def test_hidden_flap(self, fakeib: Outcome) -> None:
        """A flap between two reads of the state, which only link_downed remembers."""
        assert fakeib.after("hidden flap", "finding_open", "port_flap", "mlx5_7") < 10
        found = fakeib.findings("mlx5_7", until="counted")
        assert found == ["port_flap warning"]
        assert fakeib.sample("broken").ports["mlx5_7"]["state"] == "ACTIVE"

    def test_slower(self, fakeib: Outcome) -> None:
        """A link that comes back at half of its rate is told after two looks at it."""
        seconds = fakeib.after("slower", "finding_open", "rate_degraded", "mlx5_3")
        sample = fakeib.sample("broken")

        assert seconds < 70  # the rate is read each minute
        assert sample.ports["mlx5_3"]["rate_gbps"] == 200
        assert sample.ports["mlx5_3"]["speed"] == "HDR"
        assert sample.value("infiniband_rate_bytes_per_second", "mlx5_3") == 25e9
        assert _kinds(sample, "mlx5_3") == {"port_flap", "rate_degraded"}

    def test_full_rate(self, fakeib: Outcome) -> None:
        """Back at its full rate, nothing is degraded any more."""
        seconds = fakeib.after(
            "full rate", "finding_resolved", "rate_degraded", "mlx5_3"
        )

        assert seconds < 15
        assert fakeib.sample("healed").ports["mlx5_3"]["rate_gbps"] == 400

    def test_init(self, fakeib: Outcome) -> None:
        """A trained port that nobody activates is told after half a minute."""
        seconds = fakeib.after("init", "finding_open", "port_not_active", "mlx5_4")

        assert 29 < seconds < 45
        assert fakeib.findings("mlx5_4") == ["port_not_active warning"]
        assert fakeib.sample("broken").ports["mlx5_4"]["state"] == "INIT"
        assert fakeib.after("active", "finding_resolved", "port_not_active") < 10

    def test_bit_errors(self, fakeib: Outcome) -> None:
        """Bit errors far above the bound of the line rate are told within 2 minutes."""
        seconds = fakeib.after("bit errors", "finding_open", "link_errors", "mlx5_5")
        sample = fakeib.sample("broken")

        assert seconds < 60
        found = fakeib.findings("mlx5_5", until="unplugged")
        assert found == ["link_errors critical"]
        errors = sample.value("infiniband_symbol_error_total", "mlx5_5")
        assert errors is not None
        assert errors > 50 * 60


class TestReads:
    def test_failing(self, fakeib: Outcome) -> None:
        """Counters that cannot be read are unavailable with their errno, never 0."""
        sample = fakeib.sample("broken")
        port = sample.ports["mlx5_2"]

        assert port["state"] == "ACTIVE"
        assert port["counters"] == port["hw_counters"] == {}
        assert port["unavailable"]["symbol_error"] == "EINVAL"
        assert port["unavailable"]["out_of_sequence"] == "EIO"
        assert sample.value("infiniband_symbol_error_total", "mlx5_2") is None
        assert sample.value("read_errors_total", source="errors", errno="EINVAL")
        assert sample.value("read_errors_total", source="hardware", errno="EIO")

    def test_quarantine(self, fakeib: Outcome) -> None:
        """What fails on and on is read rarely, and the metrics say so."""
        sample = fakeib.sample("broken")

        for source, errno in (("errors", "EINVAL"), ("hardware", "EIO")):
            labels = {"source": source, "reason": errno}
            assert sample.value("device_quarantined", "mlx5_2", **labels) == 1

    def test_slow(self, fakeib: Outcome) -> None:
        """A device whose reads take seconds is unknown, and the agent says why."""
        sample = fakeib.sample("broken")

        assert fakeib.after("slow", "finding_open", "telemetry_stale") < 30
        assert sample.ports["mlx5_1"]["verdict"] == "unknown"
        assert "mlx5_1" in {error["device"] for error in sample.check["errors"]}
        in_flight = sample.value("source_in_flight_seconds", source="errors")
        assert in_flight is not None
        assert in_flight > 0

    @pytest.mark.parametrize("device", SOUND)
    def test_others_go_on(self, fakeib: Outcome, device: str) -> None:
        """Ports beside all that are healthy, fresh and complete; nothing accuses them."""
        port = fakeib.sample("broken").ports[device]

        assert port["verdict"] == "healthy"
        assert len(port["counters"]) + len(port["hw_counters"]) == 49
        assert fakeib.findings(device, until="armed") == []

    def test_agent_is_well(self, fakeib: Outcome) -> None:
        """The agent's own health is not that of the devices."""
        for name in ("start", "broken", "healed", "changed"):
            assert fakeib.sample(name).healthz == 200

    def test_readable_again(self, fakeib: Outcome) -> None:
        """Once reads are fast, the device is healthy again."""
        sample = fakeib.sample("healed")

        assert sample.ports["mlx5_1"]["verdict"] == "healthy"
        assert fakeib.after("fast", "finding_resolved", "telemetry_stale") < inf

    def test_stop(self, fakeib: Outcome) -> None:
        """SIGTERM ends the agent as soon as the kernel lets go of its read."""
        notes = fakeib.step("stopped").notes

        assert fakeib.after("stop", "agent_stopped") < 4
        assert notes["took"] < 12  # the read that is held takes 5 s
        assert notes["status"] == 0


@dataclass(frozen=True, slots=True)
class State:
    """A state that a device was put into, and what is found, after how long.

    When a state began is estimated, so that a finding may come half a poll early.
    """

    device: str
    step: str
    state: str
    phys_state: str
    kind: str
    severity: str
    least_seconds: float


STATES = (
    State("mlx5_2", "armed", "ARMED", "LinkUp", "port_not_active", "warning", 26),
    State("mlx5_8", "polling", "DOWN", "Polling", "port_down", "critical", 7),
    State("mlx5_9", "disabled", "DOWN", "Disabled", "port_down", "info", 7),
)
IDS = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
PHYS_IDS = {"Polling": 2, "Disabled": 3, "LinkUp": 5}


class TestStates:
    @pytest.mark.parametrize("row", STATES, ids=lambda row: row.step)
    def test_told(self, fakeib: Outcome, row: State) -> None:
        """Each state is shown, exported and told as what it is, when it has lasted."""
        sample, device = fakeib.sample("changed"), row.device
        port = sample.ports[device]
        took = fakeib.after(row.step, "finding_open", row.kind, device)
        found = fakeib.findings(device, row.step, until="all up")

        assert (port["state"], port["phys_state"]) == (row.state, row.phys_state)
        assert sample.value("infiniband_state_id", device) == IDS[row.state]
        exported = sample.value("infiniband_physical_state_id", device)
        assert exported == PHYS_IDS[row.phys_state]
        assert found == [f"{row.kind} {row.severity}"]
        assert row.least_seconds < took < row.least_seconds + 20
        assert fakeib.after("all up", "finding_resolved", row.kind, device) < 10

    def test_verdicts(self, fakeib: Outcome) -> None:
        """A port that was switched off is said to be; the others are down."""
        ports = fakeib.sample("changed").ports

        assert ports["mlx5_2"]["verdict"] == ports["mlx5_8"]["verdict"] == "down"
        assert ports["mlx5_9"]["verdict"] == "unknown"
        assert "switched off by hand" in ports["mlx5_9"]["reasons"][0]


class TestCounted:
    @pytest.mark.parametrize("file", COUNTERS)
    def test_exported(self, fakeib: Outcome, file: str) -> None:
        """A counter grows in the metrics by what it grew in the kernel, in its unit."""
        metric = f"infiniband_{COUNTERS[file]}_total"
        # Traffic that a device never had is not exported.
        before = fakeib.sample("healed").value(metric, "mlx5_7") or 0
        after = fakeib.sample("changed").value(metric, "mlx5_7")
        factor = 4 if metric.endswith("_bytes_total") else 1

        assert after is not None
        assert after - before == fakeib.step("counted").notes[file] * factor

    def test_told(self, fakeib: Outcome) -> None:
        """Flaps and refused partitions are told; a few bit errors are within bounds."""
        found = fakeib.findings("mlx5_7", "counted", until="unload")

        assert found == ["port_flapping critical", "config_mismatch warning"]

    def test_shown(self, fakeib: Outcome) -> None:
        """`check` has all 49, unscaled, as the kernel's files say them."""
        sample = fakeib.sample("changed")
        port, kernel = sample.ports["mlx5_7"], sample.kernel("mlx5_7")

        assert len(fakeib.step("counted").notes) == 49
        for folder in ("counters", "hw_counters"):
            for name, value in port[folder].items():
                assert str(value) == kernel[f"{folder}/{name}"], name


class TestDevice:
    def test_unplugged_while_it_is_read(self, fakeib: Outcome) -> None:
        """A device that goes away under a read is gone; it comes back as it was."""
        opened = fakeib.findings("mlx5_5", "unplugged", until="unload")

        assert "mlx5_5" not in fakeib.sample("changed").ports
        assert fakeib.after("unplugged", "finding_open", "device_missing") < 30
        assert (
            fakeib.after("plugged", "finding_resolved", "device_missing", "mlx5_5") < 15
        )
        assert opened == ["device_missing info"]
        assert fakeib.sample("reloaded").ports["mlx5_5"]["state"] == "ACTIVE"

    def test_missing(self, fakeib: Outcome) -> None:
        """A device that is gone is noted at once, an alarm once no reload explains it."""
        noted = fakeib.after("gone", "finding_open", "device_missing", "mlx5_6")
        alarm = fakeib.after("gone", "finding_update", "device_missing", "mlx5_6")
        sample = fakeib.sample("broken")

        assert noted < 20
        assert 89 < alarm < 105
        assert "mlx5_6" not in sample.ports
        assert sample.check["verdict"] == "down"
        assert sample.value("infiniband_state_id", "mlx5_6") is None

    def test_back(self, fakeib: Outcome) -> None:
        """It comes back: resolved, counted from 0, and no flap of what it had before."""
        sample = fakeib.sample("healed")

        assert fakeib.after("back", "finding_resolved", "device_missing", "mlx5_6") < 10
        assert fakeib.findings("mlx5_6", "back") == []
        assert sample.ports["mlx5_6"]["verdict"] == "healthy"
        for stem in BEGAN.values():
            assert sample.value(f"infiniband_{stem}_total", "mlx5_6") == 0, stem
        assert sample.value("port_flaps_total", "mlx5_6") == 0

    def test_driver_reload(self, fakeib: Outcome) -> None:
        """All devices go and come back with new counters: nothing to tell."""
        sample = fakeib.sample("reloaded")
        unloaded = fakeib.step("unloaded").notes

        assert unloaded == {"left": [], "healthz": 200}
        assert tuple(sample.ports) == DEVICES
        for device in DEVICES:
            # A read that is under way when the driver goes hangs until it is gone.
            told = fakeib.findings(device, "unload")
            assert [f for f in told if not f.startswith("telemetry_stale ")] == []
            kernel = sample.kernel(device)["counters/port_xmit_data"]
            assert kernel == str(sample.ports[device]["counters"]["port_xmit_data"])
            assert kernel == "0"

    def test_others_gone(self, fakeib: Outcome) -> None:
        """No device was ever missing but those that were taken away."""
        missing = {e.device for e in fakeib.events if e.kind == "device_missing"}

        assert missing == {"mlx5_6", "mlx5_5"}


def test_never_crashed(fakeib: Outcome) -> None:
    """Nothing in all this was an error of the program."""
    names = {event.name for event in fakeib.events}
    log = json.dumps([event.fields for event in fakeib.events])

    assert not names & {"source_crashed", "sink_failed", "state_unsaved"}
    assert "Traceback" not in log
