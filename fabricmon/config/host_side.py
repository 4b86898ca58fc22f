"""Thresholds of the detectors of PCIe, transceivers and firmware."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fabricmon.config.words import Count, Pause, Ratio, Seconds, Section


class Pcie(Section, frozen=True):
    """Width, speed and errors of the PCIe link between a device and its slot."""

    samples: Count = 2
    """Samples of a low width or speed that must agree: a link may be training."""
    load_ratio: Ratio = 0.02
    """Share of the line rate from which a device is at work: idle links save power."""
    payload_ratio: Ratio = 0.85
    """Share of the raw rate that is left for data: the protocol takes 8 to 15 %."""
    storm_window_seconds: Seconds = 120
    """Window of a storm of corrected errors."""
    storm_errors: Count = 10
    """Corrected errors in that window, without the largest burst; a sound link has up
    to two a day."""
    storm_samples: Count = 2
    """Bursts of errors within it: a link that trains has one, which is left out."""
    storm_burst_seconds: Seconds = 5
    """Errors so close to the first of a burst belong to it: the log has a line each."""
    rising_window_seconds: Seconds = 900
    """Corrected errors in every third of it are no accident either."""
    rising_errors: Count = 6
    """So many in that window at least: three strays meet once in 1,000 node-days."""
    hold_seconds: Pause = 900
    """Without errors for so long, they are over."""
    stall_window_seconds: Seconds = 60
    """Window in which stalls are counted, where the link itself cannot be read."""
    stall_ratio: Ratio = 0.15
    """Share of it in which the host held a device up, and none of its peers: a job
    keeps a rail busy for a fifth of the time or more."""


class Modules(Section, frozen=True):
    """Temperature and light of transceivers."""

    warning_celsius: Annotated[float, Meta(gt=0)] = 70
    """Temperature that warns; the vendor's own alarm is critical, at any temperature."""
    samples: Count = 2
    """Samples that must agree."""
    common_modules: Annotated[int, Meta(ge=2)] = 3
    """Transceivers of a node from which on they are compared with each other."""
    common_celsius: Pause = 5
    """One no hotter than this above the median of the others shares their room."""
    receive_warning_dbm: float = -7
    """Received power of a lane that warns: a dirty connector."""
    receive_critical_dbm: float = -11
    """Received power that no link bears for long."""
    receive_drop_db: Annotated[float, Meta(gt=0)] = 4
    """A lane that lost so much against its best warns earlier: light is steady to 1 dB."""
    receive_drop_dbm: float = -5
    """Received power above which a loss of light does not matter."""
    dark_dbm: float = -30
    """A lane at or below this has no light at all: unused, or the far end is off."""
    hold_seconds: Pause = 600
    """An alarm of the kernel or of a counter counts for so long: it is said once."""


class DeviceHealth(Section, frozen=True):
    """Devices that do not answer, and what they run."""

    frozen_seconds: Seconds = 60
    """Traffic counters that stand still for so long while those of the peers move."""
    moving_ratio: Ratio = 0.02
    """Share of the line rate from which a port counts as at work."""
    slow_read_seconds: Seconds = 1
    """A read of the device that takes longer: firmware answers in milliseconds."""
    persist_seconds: Seconds = 60
    """Slow reads and unanswered commands go on for so long before they count: the end
    of a job keeps a device busy for seconds."""
    together_seconds: Seconds = 90
    """Signs of one hang begin within so long of the stop: a driver waits 60 s for a
    command (mlx5) and is read every few seconds."""
    moving_seconds: Seconds = 60
    """Traffic that is seen to flow so long after a complaint: the device works. It is
    counted every 15 s, and reads of a device that hangs take up to 30 s."""
    recovery_seconds: Seconds = 120
    """A recovery that the driver began takes a minute; after so long it has failed."""
    hold_seconds: Pause = 600
    """What the kernel says of a device's firmware counts for so long."""
    firmware_settle_seconds: Pause = 300
    """Devices of one model may differ for so long: an update goes from one to the next."""
