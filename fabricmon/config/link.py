"""Thresholds of the detectors of links: state, flaps, errors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fabricmon.config.words import Count, Pause, Ratio, Seconds, Section


class LinkState(Section, frozen=True):
    """Thresholds of the link state detector."""

    down_seconds: Pause = 10
    """A port is down when it was not up for so long: short ones are flaps."""
    down_samples: Count = 2
    """Samples that must agree before a port is called down."""
    not_active_seconds: Pause = 30
    """INIT or ARMED for so long: a subnet manager takes up to 5 s after training."""
    rate_samples: Count = 2
    """Samples of a low rate that must agree: rates are odd while a link trains."""
    missing_polls: Count = 3
    """Polls without a device before it is missing: reloads take a moment."""
    reload_seconds: Pause = 90
    """A device that is gone for less may be a driver reload (5 to 60 s): no alarm yet."""
    boot_down_seconds: Pause = 300
    """Links may train for so long after a boot or driver load before they are down."""
    switched_on_seconds: Pause = 60
    """A link that somebody switched on may train for so long: optical ones need most."""
    not_active_critical_seconds: Pause = 120
    """INIT or ARMED for so long is an outage: a subnet manager fails over within 60 s."""
    common_cause_ports: Count = 4
    """So many ports, and half of the node's, that fall together have one cause."""
    common_cause_window_seconds: Pause = 2
    """Ports that went down within so long of each other fell together."""
    common_cause_seconds: Pause = 600
    """No advice to drain for so long where ports fell together: a switch reboots."""
    management_down_seconds: Pause = 120
    """A management port is no part of the fabric: shorter outages are only noted."""
    boot_grace_seconds: Pause = 1800
    """Flaps in the first half hour of a boot are the fabric settling."""
    driver_grace_seconds: Pause = 300
    """The same after the driver was loaded again."""
    settling_seconds: Pause = 7200
    """A young boot in which three ports flap: the fabric settles, no port fails."""
    flap_merge_seconds: Seconds = 10
    """Signs of a flap in state, events and counters that belong to the same one."""
    flap_least_seconds: Annotated[float, Meta(ge=0)] = 0.05
    """A link needs so long to train again: a counter with more downs is garbage."""
    flap_penalty: Count = 1000
    """Penalty of one flap, as in RFC 2439."""
    flap_half_life_seconds: Seconds = 900
    """Time in which the penalty halves."""
    flapping_penalty: Count = 2000
    """Penalty at which a port is flapping: the third flap in about 20 minutes."""
    flapping_reuse_penalty: Count = 750
    """Penalty below which the episode is over."""
    flapping_count_short: Count = 3
    """Flaps within the short window that make a port flapping."""
    flapping_window_short_seconds: Seconds = 10800
    """Short window: vendors replace cables at three in three hours."""
    flapping_count_long: Count = 5
    """Flaps within the long window that make a port flapping."""
    flapping_window_long_seconds: Seconds = 86400
    """Long window."""
    flapping_down_seconds: Pause = 120
    """A flapping port that stays down for so long is down: it flaps no more."""
    outage_warning_seconds: Seconds = 7
    """An outage that kills jobs with NCCL's shorter timeout (18, retry 7)."""
    outage_critical_seconds: Seconds = 30
    """An outage that kills jobs with NCCL's default timeout (20, retry 7)."""
    downtime_critical_seconds_per_hour: Seconds = 60
    """Sum of outages in an hour that makes a port critical whatever their number."""


class LinkErrors(Section, frozen=True):
    """Thresholds of the bit error detector: Poisson bounds scaled by line rate."""

    warning_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-14
    """Post-FEC error ratio of a sound link is far below this."""
    warning_window_seconds: Seconds = 720
    """Window of the warning bound."""
    slow_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-15
    """A slow drift shows only over a long window."""
    slow_window_seconds: Seconds = 7500
    """Window of the slow bound."""
    critical_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-12
    """The InfiniBand limit for a link in use."""
    critical_window_seconds: Seconds = 60
    """Window of the critical bound."""
    false_alarm_probability: Annotated[float, Meta(gt=0, lt=1)] = 1e-6
    """Chance that a link exactly at the bound alarms in one window."""
    windows: Count = 2
    """Windows that must agree before a warning."""
    recovery_warning_per_hour: Count = 3
    """Recoveries in an hour: each stalls traffic for hundreds of milliseconds."""
    recovery_critical_per_hour: Count = 10
    """Recoveries in an hour that no job bears."""
    independence_windows: Count = 20
    """Windows needed to say whether errors follow the load."""
    independence_correlation: Ratio = 0.3
    """Rank correlation below which errors are corruption, not load."""
    congestion_correlation: Ratio = 0.6
    """Rank correlation above which errors follow the load."""
    packet_errors_per_second: Annotated[float, Meta(gt=0)] = 0.1
    """Damaged packets per second for ten minutes that warn on their own."""
    packet_window_seconds: Seconds = 600
    """Window of the packet errors."""
    sustained_polls: Count = 3
    """Polls with errors within the critical window: one burst is no error ratio."""
    settle_seconds: Pause = 10
    """Errors wait so long before they count: the outage they belong to may show later."""
    retrain_seconds: Pause = 30
    """Errors so soon after an outage are the link that trains."""
    boot_grace_seconds: Pause = 900
    """Links train in the first ten minutes of a boot, with thousands of errors."""
    driver_grace_seconds: Pause = 300
    """The same after the driver was loaded again or the device came back."""
