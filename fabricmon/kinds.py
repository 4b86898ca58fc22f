"""One row per kind of finding: what it is about, how it lives, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class About(StrEnum):
    """What a kind's subject is; its identity is made of these fields."""

    PORT = "port"
    DEVICE = "device"
    NODE = "node"
    RAIL = "rail"
    PEER = "peer"
    LEAF = "leaf"

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
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding.

    An ``event`` happened and is over: it resolves ``hold_seconds`` after it was last
    seen. Any other kind resolves once it was gone for ``clear_seconds``; ``holds`` says
    until when its detector finds it, where that is not plain. ``keys`` are
    the configuration keys that decide it (a section, or single keys).
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
            "link_state.outage_critical_seconds",
            "link_state.flapping_down_seconds",
            "link_state.common_cause_ports",
            "link_state.common_cause_window_seconds",
            "link_state.common_cause_seconds",
            "link_state.management_down_seconds",
            "expect",
        ),
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
    ),
    Kind(
        "config_mismatch",
        _P,
        "Configuration mismatch",
        "Two settings that must agree do not.",
        "warning",
        ("F36", "F37", "F57"),
        keys=(
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
            "profiles",
        ),
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
