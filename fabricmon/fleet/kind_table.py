"""What the alert for each kind of finding is called, and what it says.

One row a kind, in the order of `kinds.KINDS`. ``is_not`` is taken from the kind's
runbook: what looks alike and is another story.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.fleet.wording import Measure


@dataclass(frozen=True, slots=True)
class KindAlert:
    """The alert for a kind of finding, and when it is told although it is only info.

    ``quiet`` kinds are so at once; ``lasting`` ones if it goes on, for moments of it
    are of any day; ``young`` ones only while it is new, for soon it is more or nothing.
    """

    kind: str
    name: str
    is_not: str
    measure: Measure | None = None
    quiet: bool = False
    lasting: bool = False
    young: bool = False
    dashboard: str = "fabricmon-node"


_DURATION = "humanizeDuration"
_SHARE = "humanizePercentage"
_ROCE = "fabricmon-roce"
_JOBS = "fabricmon-jobs"
_STRAGGLERS = "fabricmon-stragglers"
_AGENTS = "fabricmon-agents"

_DOWN = Measure(
    "sum(increase(<fabricmon_port_downtime_seconds_total>[1h]))",
    "It was down for %s of the last hour.",
    _DURATION,
)
_FLAPS = Measure(
    "round(sum(increase(<fabricmon_port_flaps_total>[3h])))",
    "Flaps in the last 3 h: %s.",
)
_DAMAGED = Measure(
    "round(sum(increase(<fabricmon_infiniband_symbol_error_total>[12m]))"
    " + (sum(increase(<fabricmon_infiniband_port_errors_received_total>[12m]))"
    " or vector(0)))",
    "Damaged symbols and packets in the last 12 min: %s.",
)
_SENT_AGAIN = Measure(
    "round(sum(increase(<fabricmon_infiniband_packet_sequence_errors_total>[5m]))"
    " + (sum(increase(<fabricmon_infiniband_local_ack_timeout_errors_total>[5m]))"
    " or vector(0)))",
    "Sequence errors and time-outs in the last 5 min: %s.",
)

KIND_ALERTS: tuple[KindAlert, ...] = (
    KindAlert(
        "port_down",
        "FabricPortDown",
        "a port that was never used, or one that is trained and not configured "
        "(port_not_active)",
        _DOWN,
    ),
    KindAlert(
        "port_not_active",
        "FabricPortNotActive",
        "a bad cable: the link is trained; many ports at once are the subnet manager",
        Measure("max(<fabricmon_infiniband_state_id>)", "State: %s (2 INIT, 3 ARMED)."),
    ),
    KindAlert(
        "port_flap",
        "FabricPortFlap",
        "a port that is still down, or one that flaps again and again",
        _FLAPS,
    ),
    KindAlert(
        "port_flapping",
        "FabricPortFlapping",
        "a reboot of the node or its leaf, nor a port that was switched by hand",
        _FLAPS,
    ),
    KindAlert(
        "link_errors",
        "FabricLinkBER",
        "congestion, nor damage from before this link (fabric_suspect)",
        _DAMAGED,
    ),
    KindAlert(
        "link_unstable",
        "FabricLinkUnstable",
        "a flap: the link did not go down",
        Measure(
            "round(sum(increase(<fabricmon_infiniband_link_error_recovery_total>[1h])))",
            "Retrained in the last hour: %s times.",
        ),
    ),
    KindAlert(
        "rate_degraded",
        "FabricRateDegraded",
        "a slow job: the rate of the link itself is below what is expected",
        Measure(
            "max(<fabricmon_infiniband_rate_bytes_per_second>)"
            " / max(<fabricmon_infiniband_expected_rate_bytes_per_second>)",
            "Rate: %s of what is expected.",
            _SHARE,
        ),
    ),
    KindAlert(
        "counter_saturated",
        "FabricCounterSaturated",
        "an error now: the counter is full of old ones, and shows no new ones",
        Measure(
            "count(<fabricmon_port_count_saturated>)", "Counters that are full: %s."
        ),
        quiet=True,
    ),
    KindAlert(
        "counter_reset",
        "FabricCounterReset",
        "an error: somebody cleared counters, or a driver was loaded",
    ),
    KindAlert(
        "device_missing",
        "FabricDeviceMissing",
        "a port that is down: the whole device is gone from the node",
        young=True,
    ),
    KindAlert(
        "device_stuck",
        "FabricDeviceStuck",
        "an idle job: other devices of the node move, or the firmware is silent",
    ),
    KindAlert(
        "nic_power",
        "FabricNicPower",
        "a fault of the card: the slot or the power supply gives too little",
    ),
    KindAlert(
        "pcie_degraded",
        "FabricPcieDegraded",
        "a slot that is smaller by design, nor power saving of an idle link",
        Measure("min(<fabricmon_pci_current_link_width>)", "Lanes in use: %s."),
    ),
    KindAlert(
        "pcie_errors",
        "FabricPcieErrors",
        "an error of the network link: it is between the card and its slot",
        Measure(
            "round(sum(increase(<fabricmon_pci_aer_correctable_errors_total>[15m])))",
            "Corrected errors in the last 15 min: %s.",
        ),
    ),
    KindAlert(
        "module_hot",
        "FabricModuleHot",
        "a fault of the link yet: most modules hot at once are the air, not a module",
    ),
    KindAlert(
        "optics_weak",
        "FabricOpticsWeak",
        "a dark lane of an unused port, nor a cable of copper",
    ),
    KindAlert(
        "config_mismatch",
        "FabricConfigMismatch",
        "a broken link: two settings contradict each other",
    ),
    KindAlert(
        "config_drift",
        "FabricConfigDrift",
        "a broken device: the node differs from what is configured for it",
    ),
    KindAlert(
        "nccl_error",
        "FabricNcclError",
        "proof against this node: the port or peer it names needs evidence of its own",
        Measure(
            "round(sum(increase(<fabricmon_log_events_total>[5m])))",
            "Events in logs in the last 5 min: %s.",
        ),
        dashboard=_JOBS,
    ),
    KindAlert(
        "nccl_fallback",
        "FabricNcclFallback",
        "a fault of the fabric: ports are ACTIVE, the job does not use them",
        dashboard=_JOBS,
    ),
    KindAlert(
        "peer_suspect",
        "FabricPeerSuspectSeen",
        "proof against the peer: one node alone sees it; FabricPeerSuspect is the vote",
        Measure("max(<fabricmon_peer_votes>)", "Votes here against one peer: %s."),
        dashboard=_JOBS,
    ),
    KindAlert(
        "transport_retries",
        "FabricTransportRetries",
        "a fault of this node by itself: who counts retries is mostly the victim",
        _SENT_AGAIN,
        lasting=True,
    ),
    KindAlert(
        "retries_exhausted",
        "FabricRetriesExhausted",
        "proof of where: the peer or the path may have failed",
        Measure(
            "round(sum(increase("
            "<fabricmon_infiniband_req_transport_retries_exceeded_total>[5m])))",
            "Queue pairs that gave up in the last 5 min: %s.",
        ),
    ),
    KindAlert(
        "receiver_stall",
        "FabricReceiverStall",
        "the link: what comes over it is not taken here in time",
    ),
    KindAlert(
        "post_flap_degraded",
        "FabricPostFlapDegraded",
        "a link that is down: it is back, its connections are slow",
        _FLAPS,
    ),
    KindAlert(
        "congestion",
        "FabricCongestion",
        "a fault: nobody is unhealthy, and no node is to be drained for it",
        Measure("max(<fabricmon_port_busy_ratio>)", "Busy: %s of the time.", _SHARE),
        quiet=True,
        dashboard=_ROCE,
    ),
    KindAlert(
        "pause_origin",
        "FabricPauseOrigin",
        "congestion in the network: this host does not take what is sent to it",
        Measure(
            "max(rate(<fabricmon_pause_transmitted_seconds_total>[5m]))",
            "It paused the network for %s of the last 5 min.",
            _SHARE,
        ),
        dashboard=_ROCE,
    ),
    KindAlert(
        "pause_victim",
        "FabricPauseVictim",
        "a fault here: the network holds this port up; look for the origin",
        Measure(
            "max(rate(<fabricmon_pause_received_seconds_total>[5m]))",
            "It was paused for %s of the last 5 min.",
            _SHARE,
        ),
        dashboard=_ROCE,
    ),
    KindAlert(
        "fabric_suspect",
        "FabricSuspect",
        "this port's own cable: what arrives was damaged before it",
        dashboard="fabricmon-fleet",
    ),
    KindAlert(
        "common_cause",
        "FabricCommonCauseSeen",
        "so many bad cables: the ports of this node fell at once",
        dashboard="fabricmon-fleet",
    ),
    KindAlert(
        "fabric_control",
        "FabricControl",
        "cables: the links are trained, the subnet manager does not configure them",
        dashboard="fabricmon-fleet",
    ),
    KindAlert(
        "rail_slow",
        "FabricRailSlowSeen",
        "proof against this node: all nodes of the job see the same; FabricRailSlow "
        "compares them",
        dashboard=_STRAGGLERS,
    ),
    KindAlert(
        "straggler_link",
        "FabricStragglerLink",
        "a slow rail without a place: this port shows a fault of its own",
        Measure("max(<fabricmon_port_busy_ratio>)", "Busy: %s of the time.", _SHARE),
        dashboard=_STRAGGLERS,
    ),
    KindAlert(
        "host_path_slow",
        "FabricHostPathSlow",
        "one bad link: all rails of the node are slow since the job began",
        lasting=True,
        dashboard=_STRAGGLERS,
    ),
    KindAlert(
        "not_network",
        "FabricNotNetwork",
        "the fabric: it idles and is clean while steps got longer",
        quiet=True,
        dashboard=_STRAGGLERS,
    ),
    KindAlert(
        "telemetry_stale",
        "FabricTelemetryStale",
        "proof of a fault: the monitor sees old values",
        Measure("max(<fabricmon_source_age_seconds>)", "Oldest source: %s.", _DURATION),
        dashboard=_AGENTS,
    ),
    KindAlert(
        "source_failed",
        "FabricSourceFailed",
        "a fault of the node: the monitor cannot read something there",
        Measure("count(<fabricmon_source_success> == 0)", "Sources that fail: %s."),
        dashboard=_AGENTS,
    ),
)
