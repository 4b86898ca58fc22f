"""One row per kind of finding: what it is about, how it lives, what to do."""

from __future__ import annotations

from enum import StrEnum

from fabricmon.value import Value


class About(StrEnum):
    """What a kind's subject is; its identity is made of these fields."""

    PORT = "port"
    DEVICE = "device"
    NODE = "node"
    RAIL = "rail"
    PEER = "peer"
    LEAF = "leaf"
    FABRIC = "leaf, rail or fabric"
    ERROR = "node, with port or peer"

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the subject that make a finding's identity."""
        return _IDENTITY[self]


_IDENTITY = {
    About.PORT: ("device", "port"),
    About.DEVICE: ("device",),
    About.NODE: (),
    About.RAIL: ("rail",),
    About.PEER: ("peer",),
    About.LEAF: ("leaf",),
    About.FABRIC: ("leaf", "rail"),
    About.ERROR: ("device", "port", "peer"),
}


class Proof(StrEnum):
    """What a kind of finding proves, by the evidence that it is made of."""

    LINK = "link"
    PCIE = "pcie"
    STATE = "state"
    VOTE = "vote"
    LOG = "log"
    TRANSPORT = "transport"
    CONGESTION = "congestion"
    FABRIC = "fabric"
    OTHER = "other"


class Kind(Value, frozen=True):
    """A kind of finding.

    An ``event`` happened and is over: it resolves ``hold_seconds`` after it was last
    seen. Any other kind resolves once it was gone for ``clear_seconds``; ``holds`` says
    until when its detector finds it, where that is not plain. ``keys`` are
    the configuration keys that decide it (a section, or single keys). ``proof`` is what
    it proves of where a fault is.
    """

    slug: str
    about: About
    title: str
    meaning: str
    usual: str
    faults: tuple[str, ...] = ()
    event: bool = False
    hold_seconds: float = 0
    clear_seconds: float = 30
    holds: str = ""
    keys: tuple[str, ...] = ()
    proof: Proof = Proof.OTHER

    @property
    def runbook(self) -> str:
        """Path of the runbook, relative to the documentation."""
        return f"docs/runbooks/{self.slug}.md"


_P, _D, _N = About.PORT, About.DEVICE, About.NODE
_HOUR = 3600.0

KINDS: tuple[Kind, ...] = (
    Kind(
        "port_down",
        _P,
        "Port down",
        "A port that is expected up is not.",
        "critical",
        ("F10",),
        clear_seconds=0,
        keys=(
            "link_state.down_seconds",
            "link_state.down_samples",
            "link_state.boot_down_seconds",
            "link_state.switched_on_seconds",
            "link_state.outage_critical_seconds",
            "link_state.flapping_down_seconds",
            "link_state.common_cause_ports",
            "link_state.common_cause_window_seconds",
            "link_state.common_cause_seconds",
            "link_state.management_down_seconds",
            "expect",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "port_not_active",
        _P,
        "Port not active",
        "The link is trained, the port is stuck in INIT or ARMED: nobody "
        "configured it.",
        "warning, critical",
        ("F14",),
        clear_seconds=0,
        keys=(
            "link_state.not_active_seconds",
            "link_state.not_active_critical_seconds",
            "link_state.boot_down_seconds",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "port_flap",
        _P,
        "Port flapped",
        "The port went down and came back, also when only a counter shows it.",
        "warning",
        ("F05", "F08"),
        event=True,
        hold_seconds=600,
        keys=(
            "link_state.boot_grace_seconds",
            "link_state.driver_grace_seconds",
            "link_state.settling_seconds",
            "link_state.flap_merge_seconds",
            "link_state.flap_least_seconds",
            "link_state.outage_warning_seconds",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "port_flapping",
        _P,
        "Port flaps repeatedly",
        "The port goes down again and again; one finding per episode.",
        "critical",
        ("F06", "F07"),
        clear_seconds=1260,  # 2000 decays to 750 in 21 min at a half-life of 15 min
        holds="until no flap is in the short window and the penalty is below reuse",
        keys=(
            "link_state.flap_penalty",
            "link_state.flap_half_life_seconds",
            "link_state.flapping_penalty",
            "link_state.flapping_reuse_penalty",
            "link_state.flapping_count_short",
            "link_state.flapping_window_short_seconds",
            "link_state.flapping_count_long",
            "link_state.flapping_window_long_seconds",
            "link_state.downtime_critical_seconds_per_hour",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "link_errors",
        _P,
        "Bit errors on the link",
        "More damaged symbols or packets than the line rate allows.",
        "warning, critical",
        ("F01", "F03", "F04"),
        clear_seconds=30,
        holds="until a warning window passed, or twice the longest pause so far, at "
        "most a slow window, without errors above a bound",
        keys=(
            "link_errors.warning_bit_error_ratio",
            "link_errors.warning_window_seconds",
            "link_errors.slow_bit_error_ratio",
            "link_errors.slow_window_seconds",
            "link_errors.critical_bit_error_ratio",
            "link_errors.critical_window_seconds",
            "link_errors.false_alarm_probability",
            "link_errors.windows",
            "link_errors.sustained_polls",
            "link_errors.packet_errors_per_second",
            "link_errors.boot_grace_seconds",
            "link_errors.driver_grace_seconds",
        ),
        proof=Proof.LINK,
    ),
    Kind(
        "link_unstable",
        _P,
        "Link retrains",
        "The link recovers from errors without going down.",
        "warning, critical",
        ("F09",),
        clear_seconds=_HOUR,
        holds="until fewer than the warning limit are in the last hour",
        keys=(
            "link_errors.recovery_warning_per_hour",
            "link_errors.recovery_critical_per_hour",
        ),
        proof=Proof.LINK,
    ),
    Kind(
        "rate_degraded",
        _P,
        "Link rate below expectation",
        "Width or speed of the link is below what is expected of it.",
        "critical",
        ("F11",),
        clear_seconds=0,
        keys=(
            "link_state.rate_samples",
            "expected_rate_gbps",
            "expect",
            "profiles",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "counter_saturated",
        _P,
        "Counter at its ceiling",
        "An error counter stands at its ceiling and can show nothing any more.",
        "info",
        clear_seconds=0,
    ),
    Kind(
        "counter_reset",
        _P,
        "Counter reset",
        "A counter fell, or rose by more than can be: cleared, driver loaded, garbage.",
        "info",
        event=True,
        hold_seconds=300,
        keys=(
            "telemetry.reset_settle_seconds",
            "telemetry.reset_ports",
            "telemetry.reset_repeat_seconds",
            "link_state.flap_least_seconds",
        ),
    ),
    Kind(
        "device_missing",
        _D,
        "RDMA device missing",
        "A device that was there, or is expected, is gone.",
        "critical",
        ("F24",),
        clear_seconds=0,
        keys=(
            "link_state.missing_polls",
            "link_state.reload_seconds",
            "link_state.boot_down_seconds",
            "expected_devices",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "device_stuck",
        _D,
        "Device stuck",
        "The firmware of a device does not answer although its state says ACTIVE.",
        "critical",
        ("F25",),
        clear_seconds=60,
        keys=(
            "device_health.frozen_seconds",
            "device_health.moving_ratio",
            "device_health.slow_read_seconds",
            "device_health.persist_seconds",
            "device_health.together_seconds",
            "device_health.moving_seconds",
            "device_health.recovery_seconds",
            "device_health.hold_seconds",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "nic_power",
        _D,
        "NIC lacks power",
        "The slot gives a device less power than it asks for.",
        "warning",
        ("F26",),
        clear_seconds=0,
        holds="until the kernel says that the power is enough, or the node boots",
        keys=("periods.kmsg_seconds",),
        proof=Proof.PCIE,
    ),
    Kind(
        "pcie_degraded",
        _D,
        "PCIe link below its slot",
        "Width or speed of a device's PCIe link is below what card and slot can do.",
        "critical, warning",
        ("F20", "F21"),
        clear_seconds=0,
        keys=(
            "pcie.samples",
            "pcie.load_ratio",
            "pcie.payload_ratio",
            "pcie.stall_window_seconds",
            "pcie.stall_ratio",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "pcie_errors",
        _D,
        "PCIe errors",
        "A device's PCIe link repairs errors all the time, or loses packets.",
        "warning, critical",
        ("F22",),
        clear_seconds=60,
        holds="until no error was counted for the hold time",
        keys=(
            "pcie.storm_window_seconds",
            "pcie.storm_errors",
            "pcie.storm_samples",
            "pcie.storm_burst_seconds",
            "pcie.rising_errors",
            "pcie.rising_window_seconds",
            "pcie.hold_seconds",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "module_hot",
        _P,
        "Transceiver too hot",
        "The transceiver of a port is over a limit of temperature.",
        "warning, critical",
        ("F12",),
        clear_seconds=300,
        keys=(
            "modules.warning_celsius",
            "modules.samples",
            "modules.common_modules",
            "modules.common_celsius",
            "modules.hold_seconds",
        ),
        proof=Proof.LINK,
    ),
    Kind(
        "optics_weak",
        _P,
        "Weak light received",
        "A lane of a port's transceiver gets too little light.",
        "warning, critical",
        ("F13",),
        clear_seconds=300,
        keys=(
            "modules.receive_warning_dbm",
            "modules.receive_critical_dbm",
            "modules.receive_drop_db",
            "modules.receive_drop_dbm",
            "modules.dark_dbm",
            "modules.samples",
        ),
        proof=Proof.LINK,
    ),
    Kind(
        "config_mismatch",
        _P,
        "Configuration mismatch",
        "Two settings that must agree do not.",
        "warning",
        ("F36", "F37", "F57"),
        keys=(
            "settings.retrain_seconds",
            "settings.rail_only",
            "settings.adaptive_routing",
            "settings.queue_pairs",
            "settings.settle_seconds",
            "settings.remember_seconds",
            "congestion.discards_per_second",
            "congestion.unmarked_pause_ratio",
            "congestion.unmarked_seconds",
            "congestion.unheeded_per_second",
            "congestion.unheeded_seconds",
            "transport.constraint_errors",
            "transport.slow_window_seconds",
            "link_state.down_samples",
            "link_state.not_active_seconds",
        ),
    ),
    Kind(
        "config_drift",
        _N,
        "Configuration drift",
        "The node differs from what is configured for it, or changed.",
        "warning",
        ("F29", "F52", "F15"),
        keys=(
            "link_state.missing_polls",
            "periods.identity_seconds",
            "device_health.firmware_settle_seconds",
            "settings.address_told_seconds",
            "profiles",
        ),
    ),
    Kind(
        "nccl_error",
        About.ERROR,
        "NCCL error",
        "A job's NCCL, RCCL or libfabric failed; this is the first error, not what "
        "followed from it.",
        "warning, critical",
        ("F50", "F52"),
        clear_seconds=0,
        holds="until nothing of it was logged for the closing time",
        keys=(
            "logs.closing_seconds",
            "logs.joining_seconds",
            "logs.paths",
            "logs.rules",
        ),
        proof=Proof.LOG,
    ),
    Kind(
        "nccl_fallback",
        _N,
        "NCCL uses TCP",
        "A job over several nodes sends over TCP although RDMA ports are ACTIVE.",
        "warning",
        clear_seconds=0,
        holds="until the job ends, or nothing was logged of it for the closing time",
        keys=("logs.closing_seconds", "logs.paths"),
    ),
    Kind(
        "peer_suspect",
        About.PEER,
        "Peer suspected",
        "Several processes here, or several errors, name the same peer.",
        "warning",
        ("F39", "F50"),
        clear_seconds=0,
        holds="until nothing of it was logged for the closing time",
        keys=("logs.peer_votes", "logs.closing_seconds"),
        proof=Proof.VOTE,
    ),
    Kind(
        "transport_retries",
        _P,
        "Retries of the transport",
        "Packets of this port are lost, or not answered in time; its path or its peer "
        "hurts.",
        "info, warning",
        ("F02", "F56"),
        clear_seconds=60,
        keys=(
            "transport.window_seconds",
            "transport.ack_timeouts",
            "transport.sequence_errors",
            "transport.sequence_error_ratio",
            "transport.warning_loss_ratio",
            "transport.slow_window_seconds",
            "transport.slow_sequence_errors",
            "transport.slow_sequence_error_ratio",
            "transport.srd_retransmits_per_second",
            "transport.impaired_per_second",
            "transport.not_ready_per_second",
            "transport.failed_requests_per_second",
            "transport.sustained_seconds",
            "transport.common_ports",
            "local_evidence.window_seconds",
            "local_evidence.pci_stall_seconds",
            "local_evidence.corrected_pci_errors",
        ),
        proof=Proof.TRANSPORT,
    ),
    Kind(
        "retries_exhausted",
        _P,
        "Queue pairs gave up",
        "Queue pairs of this port died after their last retry; jobs end of it.",
        "warning, critical",
        ("F50",),
        clear_seconds=300,
        keys=(
            "transport.window_seconds",
            "transport.common_ports",
            "local_evidence.window_seconds",
        ),
        proof=Proof.TRANSPORT,
    ),
    Kind(
        "receiver_stall",
        _P,
        "Receiver does not keep up",
        "A process here posts no receives in time: packets to it are refused. Or a "
        "device of EFA drops what arrives.",
        "warning",
        ("F27",),
        clear_seconds=120,  # it comes in bursts, with up to a minute between them
        keys=(
            "transport.window_seconds",
            "transport.receiver_drops_per_second",
            "transport.receiver_drop_ratio",
            "transport.srd_drops_per_second",
            "local_evidence.window_seconds",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "post_flap_degraded",
        _P,
        "Slow since it came back",
        "The link is back, the traffic of its connections is not.",
        "warning",
        ("F51",),
        clear_seconds=60,
        keys=(
            "transport.post_flap_seconds",
            "transport.post_flap_ratio",
            "transport.post_flap_windows",
            "bursts.busy_ratio",
        ),
        proof=Proof.TRANSPORT,
    ),
    Kind(
        "congestion",
        _P,
        "Congestion",
        "This port's traffic, or that of most rails, waits in the network more than "
        "that of the others and than usual; nobody here is unhealthy.",
        "info, warning",
        ("F30", "F31", "F32"),
        clear_seconds=60,
        keys=(
            "congestion.window_seconds",
            "congestion.windows",
            "congestion.notifications_per_second",
            "congestion.pause_ratio",
            "congestion.wait_ratio",
            "congestion.wait_tick_bits",
            "congestion.busy_ratio",
            "congestion.settle_seconds",
            "congestion.unlike_factor",
            "congestion.usual_factor",
            "congestion.usual_half_life_seconds",
            "congestion.usual_windows",
            "congestion.alike_ports",
            "congestion.alike_factor",
            "congestion.alike_seconds",
            "congestion.full_ratio",
            "congestion.outbound_discards_per_second",
            "congestion.outbound_discard_seconds",
            "congestion.outbound_discard_reads",
        ),
        proof=Proof.CONGESTION,
    ),
    Kind(
        "pause_origin",
        _P,
        "Origin of pause",
        "This host cannot absorb what it receives and holds the network up.",
        "warning, critical",
        ("F34",),
        clear_seconds=60,
        keys=(
            "congestion.storm_window_seconds",
            "congestion.pause_warning_ratio",
            "congestion.pause_critical_ratio",
            "congestion.storm_ratio",
            "congestion.alike_ports",
            "congestion.pause_excess",
            "congestion.stall_ratio",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "pause_victim",
        _P,
        "Victim of pause",
        "The network holds this port up; it sends hardly any itself.",
        "info",
        ("F34", "F35"),
        clear_seconds=60,
        keys=(
            "congestion.window_seconds",
            "congestion.victim_ratio",
            "congestion.pause_excess",
            "congestion.usual_factor",
        ),
        proof=Proof.CONGESTION,
    ),
    Kind(
        "fabric_suspect",
        About.FABRIC,
        "Fabric suspected",
        "What arrives here was damaged before this port's own link.",
        "warning",
        ("F33", "F35", "F38", "F41"),
        clear_seconds=60,
        keys=(
            "transport.slow_window_seconds",
            "transport.upstream_errors",
            "transport.slow_sequence_error_ratio",
            "local_evidence.window_seconds",
        ),
        proof=Proof.FABRIC,
    ),
    Kind(
        "common_cause",
        About.FABRIC,
        "Common cause",
        "Several ports of the node fell at once: one event in the fabric.",
        "warning, info",
        ("F40",),
        clear_seconds=0,
        holds="until fewer than two of the ports are down, or the time for advice again",
        keys=(
            "link_state.common_cause_ports",
            "link_state.common_cause_window_seconds",
            "link_state.common_cause_seconds",
            "link_state.down_samples",
        ),
        proof=Proof.FABRIC,
    ),
    Kind(
        "fabric_control",
        About.FABRIC,
        "Fabric control",
        "Several trained ports lost their configuration at once: the subnet manager.",
        "info, warning",
        ("F14", "F42"),
        clear_seconds=0,
        holds="until fewer than two of the ports wait, or the time for advice again",
        keys=(
            "link_state.common_cause_ports",
            "link_state.common_cause_window_seconds",
            "link_state.common_cause_seconds",
            "link_state.not_active_critical_seconds",
        ),
        proof=Proof.FABRIC,
    ),
    Kind(
        "rail_slow",
        About.RAIL,
        "Rail slow",
        "One rail of a job is busy longer, at a lower rate, than the others; where on "
        "the rail is not known.",
        "warning, info",
        ("F33", "F54", "F55"),
        clear_seconds=300,  # windows tell it again so soon after a restart
        holds="until no more than a few of the newest windows agree",
        keys=(
            "bursts.enabled",
            "stragglers.least_rails",
            "stragglers.active_share",
            "stragglers.active_samples",
            "stragglers.score",
            "stragglers.spread_floor",
            "stragglers.busy_ratio",
            "stragglers.rate_ratio",
            "stragglers.windows",
            "stragglers.least_windows",
            "stragglers.least_seconds",
            "stragglers.clear_windows",
            "stragglers.pacing_ratio",
            "stragglers.more_traffic_ratio",
            "stragglers.keeping_share",
            "stragglers.split_share",
            "stragglers.jitter_episodes",
            "stragglers.jitter_apart_seconds",
            "stragglers.jitter_window_seconds",
            "stragglers.idle_seconds",
            "stragglers.drift_ratio",
            "stragglers.drift_weight",
            "stragglers.drift_limit",
            "stragglers.drift_windows",
        ),
        proof=Proof.FABRIC,
    ),
    Kind(
        "straggler_link",
        _P,
        "Straggler",
        "A port paces a rail of the job, and shows a fault of its own.",
        "critical",
        ("F54", "F01", "F11", "F20"),
        clear_seconds=300,  # windows tell it again so soon after a restart
        holds="as `rail_slow`, while the port shows a fault of its own",
        keys=(
            "stragglers.critical_busy_ratio",
            "local_evidence.window_seconds",
        ),
        proof=Proof.STATE,
    ),
    Kind(
        "host_path_slow",
        _N,
        "Host path slow",
        "All rails of the node are slow since the job began: data goes through the host.",
        "warning",
        ("F23",),
        clear_seconds=300,  # windows tell it again so soon after a restart
        keys=(
            "stragglers.host_path_ratio",
            "stragglers.host_path_windows",
            "stragglers.host_path_devices",
        ),
        proof=Proof.PCIE,
    ),
    Kind(
        "not_network",
        _N,
        "Not the network",
        "Steps of the job got longer while the network idles and is clean.",
        "info",
        ("F53",),
        clear_seconds=60,
        keys=(
            "stragglers.compute_ratio",
            "stragglers.compute_minutes",
            "stragglers.compute_past_minutes",
            "stragglers.compute_rate_ratio",
            "stragglers.pause_ratio",
        ),
        proof=Proof.FABRIC,
    ),
    Kind(
        "telemetry_stale",
        _N,
        "Telemetry stale",
        "Values of this node are old: a read hangs or the agent is starved.",
        "warning, critical",
        clear_seconds=60,  # a device that is steadily slow is one story
        keys=(
            "telemetry.stale_polls",
            "telemetry.stale_critical_seconds",
        ),
    ),
    Kind(
        "source_failed",
        _N,
        "Source failed",
        "A source of the monitor fails as a whole: it cannot see.",
        "warning",
        clear_seconds=0,
        keys=(
            "deadlines.read_seconds",
            "deadlines.command_seconds",
        ),
    ),
)

BY_SLUG = {kind.slug: kind for kind in KINDS}
