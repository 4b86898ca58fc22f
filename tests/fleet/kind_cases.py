"""One case for each kind of finding: what the agent exports, what people are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fabricmon.fleet.kind_table import KIND_ALERTS
from fabricmon.kinds import BY_SLUG, About
from tests.fleet.promtool import Case, Told, series

_ENDS = {
    "culprit": "fault at this end",
    "victim": "this end only suffers",
    "observer": "place not known",
}


@dataclass(frozen=True)
class Found:
    """A finding as it is exported, and the sentence that says how much."""

    severity: str
    role: str
    action: str
    title: str
    much: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


def _port(metric: str, values: str, **labels: object) -> Mapping[str, str]:
    return {series(metric, device="mlx5_3", port=1, **labels): values}


_OF_JOB = {"straggler_link", "rail_slow"}
_FLAPS = _port("fabricmon_port_flaps_total", "0x19 3x60")
_THREE_FLAPS = "Flaps in the last 3 h: 3."

FOUND: Mapping[str, Found] = {
    "port_down": Found(
        "critical",
        "culprit",
        "drain_now",
        "port down",
        "It was down for 1m 0s of the last hour.",
        _port("fabricmon_port_downtime_seconds_total", "0x19 60x60"),
    ),
    "port_not_active": Found(
        "critical",
        "culprit",
        "inspect",
        "port not active",
        "State: 2 (2 INIT, 3 ARMED).",
        _port("fabricmon_infiniband_state_id", "4x19 2x60"),
    ),
    "port_flap": Found(
        "warning", "culprit", "inspect", "port flapped", _THREE_FLAPS, _FLAPS
    ),
    "port_flapping": Found(
        "critical",
        "culprit",
        "drain_after_job",
        "port flaps repeatedly",
        _THREE_FLAPS,
        _FLAPS,
    ),
    "link_errors": Found(
        "critical",
        "culprit",
        "drain_after_job",
        "bit errors on the link",
        "Damaged symbols and packets in the last 12 min: 90.",
        {
            **_port("fabricmon_infiniband_symbol_error_total", "0x19 60x60"),
            **_port("fabricmon_infiniband_port_errors_received_total", "0x19 30x60"),
        },
    ),
    "link_unstable": Found(
        "warning",
        "culprit",
        "inspect",
        "link retrains",
        "Retrained in the last hour: 6 times.",
        _port("fabricmon_infiniband_link_error_recovery_total", "0x19 6x60"),
    ),
    "rate_degraded": Found(
        "critical",
        "culprit",
        "drain_after_job",
        "link rate below expectation",
        "Rate: 25% of what is expected.",
        {
            **_port("fabricmon_infiniband_rate_bytes_per_second", "12.5e9x80"),
            **_port("fabricmon_infiniband_expected_rate_bytes_per_second", "50e9x80"),
        },
    ),
    "counter_saturated": Found(
        "info",
        "observer",
        "none",
        "counter at its ceiling",
        "Counters that are full: 1.",
        _port("fabricmon_port_count_saturated", "1x80", counter="symbol_error"),
    ),
    "counter_reset": Found("warning", "observer", "none", "counter reset"),
    "device_missing": Found("critical", "culprit", "drain_now", "RDMA device missing"),
    "device_stuck": Found("critical", "culprit", "drain_now", "device stuck"),
    "nic_power": Found("warning", "culprit", "inspect", "NIC lacks power"),
    "pcie_degraded": Found(
        "critical",
        "culprit",
        "drain_after_job",
        "PCIe link below its slot",
        "Lanes in use: 8.",
        {
            series(
                "fabricmon_pci_current_link_width", device="mlx5_3", end="device"
            ): "8x80"
        },
    ),
    "pcie_errors": Found(
        "warning",
        "culprit",
        "inspect",
        "PCIe errors",
        "Corrected errors in the last 15 min: 30.",
        {
            series(
                "fabricmon_pci_aer_correctable_errors_total", device="mlx5_3"
            ): "0x19 30x60"
        },
    ),
    "module_hot": Found("warning", "culprit", "inspect", "transceiver too hot"),
    "optics_weak": Found("warning", "culprit", "inspect", "weak light received"),
    "config_mismatch": Found("warning", "observer", "none", "configuration mismatch"),
    "config_drift": Found("warning", "culprit", "inspect", "configuration drift"),
    "nccl_error": Found(
        "warning",
        "observer",
        "none",
        "NCCL error",
        "Events in logs in the last 5 min: 4.",
        {
            series(
                "fabricmon_log_events_total", kind="ibv_wc_error", severity="error"
            ): "0x19 4x60"
        },
    ),
    "nccl_fallback": Found("warning", "observer", "none", "NCCL uses TCP"),
    "peer_suspect": Found(
        "warning",
        "observer",
        "none",
        "peer suspected",
        "Votes here against one peer: 4.",
        {series("fabricmon_peer_votes", peer="n7"): "4x80"},
    ),
    "transport_retries": Found(
        "warning",
        "victim",
        "none",
        "retries of the transport",
        "Sequence errors and time-outs in the last 5 min: 12.",
        {
            **_port("fabricmon_infiniband_packet_sequence_errors_total", "0x19 8x60"),
            **_port("fabricmon_infiniband_local_ack_timeout_errors_total", "0x19 4x60"),
        },
    ),
    "retries_exhausted": Found(
        "critical",
        "culprit",
        "inspect",
        "queue pairs gave up",
        "Queue pairs that gave up in the last 5 min: 2.",
        _port("fabricmon_infiniband_req_transport_retries_exceeded_total", "0x19 2x60"),
    ),
    "receiver_stall": Found("warning", "culprit", "none", "receiver does not keep up"),
    "post_flap_degraded": Found(
        "warning", "culprit", "inspect", "slow since it came back", _THREE_FLAPS, _FLAPS
    ),
    "congestion": Found(
        "info",
        "victim",
        "none",
        "congestion",
        "Busy: 40% of the time.",
        _port("fabricmon_port_busy_ratio", "0.4x80", direction="transmit"),
    ),
    "pause_origin": Found(
        "critical",
        "culprit",
        "inspect",
        "origin of pause",
        "It paused the network for 20% of the last 5 min.",
        _port("fabricmon_pause_transmitted_seconds_total", "0+3x80", priority=3),
    ),
    "pause_victim": Found(
        "warning",
        "victim",
        "none",
        "victim of pause",
        "It was paused for 40% of the last 5 min.",
        _port("fabricmon_pause_received_seconds_total", "0+6x80", priority=3),
    ),
    "fabric_suspect": Found("warning", "observer", "none", "fabric suspected"),
    "common_cause": Found("warning", "observer", "none", "common cause"),
    "fabric_control": Found("warning", "observer", "none", "fabric control"),
    "rail_slow": Found(
        "warning",
        "observer",
        "none",
        "rail slow",
        more={
            series(
                "fabricmon_rail_finding_open",
                kind="rail_slow",
                severity="warning",
                role="observer",
                rail=3,
                job="train-1",
            ): "_x20 1x60"
        },
    ),
    "straggler_link": Found(
        "critical",
        "culprit",
        "drain_after_job",
        "straggler",
        "Busy: 90% of the time.",
        _port("fabricmon_port_busy_ratio", "0.9x80", direction="transmit"),
    ),
    "host_path_slow": Found("warning", "culprit", "inspect", "host path slow"),
    "not_network": Found("info", "observer", "none", "not the network"),
    "telemetry_stale": Found(
        "critical",
        "observer",
        "inspect",
        "telemetry stale",
        "Oldest source: 11m 0s.",
        {series("fabricmon_source_age_seconds", source="errors"): "660x80"},
    ),
    "source_failed": Found(
        "warning",
        "observer",
        "none",
        "source failed",
        "Sources that fail: 1.",
        {series("fabricmon_source_success", source="errors"): "0x80"},
    ),
}
"""A finding of each kind as it usually is."""


def cases() -> Iterator[Case]:
    """Yield one case for each kind: silent for five minutes, then a finding."""
    for row in KIND_ALERTS:
        yield _case(row.kind, row.name, row.is_not, row.dashboard, FOUND[row.kind])


def place_of(kind: str) -> dict[str, str]:
    """Return the labels of the place that a kind is about."""
    about = BY_SLUG[kind].about
    if about is About.PORT:
        return {"device": "mlx5_3", "port": "1"}
    return {"device": "mlx5_3"} if about is About.DEVICE else {}


def surroundings(kind: str) -> dict[str, str]:
    """Return the labels that identity metrics add at that place."""
    about = BY_SLUG[kind].about
    port = {"leaf": "l3", "rail": "3", "netdev": "ib3"} if about is About.PORT else {}
    job = {"training": "train-1"} if kind in _OF_JOB else {}
    return {**port, "rack": "r1", **job}


def identities() -> dict[str, str]:
    """Return the series that say who a port and a node are, and what runs there."""
    port = {"device": "mlx5_3", "port": 1}
    return {
        series("fabricmon_build_info", version="1", python="3.11"): "1x80",
        series(
            "fabricmon_infiniband_port_info",
            **port,
            rail=3,
            leaf="l3",
            netdev="ib3",
            role="compute",
        ): "1x80",
        series("fabricmon_node_info", rack="r1"): "1x80",
        series("fabricmon_port_job_info", **port, job="train-1"): "1x80",
        series("fabricmon_job_info", job="train-1", rails="3"): "1x80",
    }


def finding(kind: str, found: Found) -> dict[str, str]:
    """Return the series of an open finding that begins after five minutes."""
    place = place_of(kind)
    return {
        series(
            "fabricmon_finding_open",
            kind=kind,
            severity=found.severity,
            role=found.role,
            action=found.action,
            **place,
        ): "_x20 1x60",
        series(
            "fabricmon_finding_onset_timestamp_seconds", kind=kind, **place
        ): "_x20 290x60",
    }


def notice(found: Found) -> str:
    """Return who hears of a finding on a port with a job."""
    if found.action == "none":
        return "info"
    return "page" if found.severity == "critical" else "ticket"


def _case(kind: str, name: str, is_not: str, dashboard: str, found: Found) -> Case:
    place, around = place_of(kind), surroundings(kind)
    labels = {
        "alertname": name,
        "cluster": "c1",
        "node": "n1",
        "kind": kind,
        "severity": found.severity,
        "role": found.role,
        "action": found.action,
        "notice": notice(found),
        "origin": "node",
        **place,
        **around,
    }
    where = f"n1 {place['device']}" if place else "n1"
    where += f"/{place['port']}" if "port" in place else ""
    words = {"netdev": "interface", "training": "job"}
    order = ("device", "port", "netdev", "rail", "leaf", "rack", "training")
    known = place | around
    shown = "".join(f", {words.get(k, k)} {known[k]}" for k in order if k in known)
    much = f"{found.much} " if found.much else ""
    device = f"&var-device={place['device']}" if place else ""
    told = Told(
        labels,
        f"{where}: {found.title}, {_ENDS[found.role]}, since 00:04:50 UTC",
        f"{BY_SLUG[kind].meaning} It began at 1970-01-01 00:04:50 UTC. {much}"
        f"Place: node n1{shown}. Severity {found.severity}, advice {found.action}. "
        f"What it is not: {is_not}.",
        f"/d/{dashboard}?var-cluster=c1&var-node=n1{device}",
    )
    shown_series = {**identities(), **finding(kind, found), **found.more}
    return Case(name, shown_series, "4m45s", "6m", [told])
