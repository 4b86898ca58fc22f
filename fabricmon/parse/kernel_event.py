"""What a line of the kernel's log says: the words that rules and detectors share."""

from __future__ import annotations

from enum import StrEnum

from fabricmon.parse.log_event import LogSeverity
from fabricmon.value import Value


class KernelKind(StrEnum):
    """What happened; the values are exported, so there are no others."""

    LINK_DOWN = "link_down"
    LINK_UP = "link_up"
    MODULE_PLUGGED = "module_plugged"
    MODULE_UNPLUGGED = "module_unplugged"
    MODULE_FAULT = "module_fault"
    MODULE_HOT = "module_hot"
    SENSOR_HOT = "sensor_hot"
    POWER_LOW = "power_low"
    POWER_ENOUGH = "power_enough"
    FIRMWARE_STUCK = "firmware_stuck"
    FIRMWARE_FATAL = "firmware_fatal"
    FIRMWARE_PAGES = "firmware_pages"
    RECOVERY_STARTED = "recovery_started"
    RECOVERED = "recovered"
    COMMAND_TIMEOUT = "command_timeout"
    COMMAND_FAILED = "command_failed"
    REGISTER_REFUSED = "register_refused"
    TRANSMIT_TIMEOUT = "transmit_timeout"
    QUEUE_FAULT = "queue_fault"
    PCIE_CORRECTED = "pcie_corrected"
    PCIE_NONFATAL = "pcie_nonfatal"
    PCIE_FATAL = "pcie_fatal"
    PCIE_MESSAGE = "pcie_message"
    PCIE_LIMITED = "pcie_limited"
    DEVICE_LOST = "device_lost"
    SLOT_DOWN = "slot_down"  # an error, or a card that is taken out or reset


class KernelEvent(Value, frozen=True):
    """One line that a rule knows, written at ``at`` (monotonic seconds).

    ``address`` is the PCI function and ``netdev`` the network device that the line is
    about, ``device`` the RDMA device, None where it does not say. ``watts`` and
    ``limited_by`` (the bridge) are of the kinds that have them. ``bits`` is the word of
    flags that the rule speaks of, without what is masked. ``text`` is the line without
    control characters, cut; it is hostile as any log text.
    """

    at: float
    rule: str
    kind: KernelKind
    severity: LogSeverity
    text: str
    address: str | None = None
    netdev: str | None = None
    device: str | None = None
    watts: int | None = None
    gbps: float | None = None
    capable_gbps: float | None = None
    limited_by: str | None = None
    bits: int | None = None
