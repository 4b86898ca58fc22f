"""Names of the InfiniBand management counters: sysfs, new and old tools; limits.

These counters stop at the limit of their field and stay there until somebody clears
them. Widths: PortCounters and PortCountersExtended of the InfiniBand specification,
as in libibmad's fields.c. Tools print what the device holds, which may be wider.
"""

from __future__ import annotations

from fabricmon.value import Value

_FULL_32 = (1 << 32) - 1
_FULL_64 = (1 << 64) - 1


class CounterName(Value, frozen=True):
    """One counter: file in sysfs, name in tools now and before, bits of its field."""

    file: str
    tool: str
    old: str | None
    bits: int


NAMES = (
    CounterName("symbol_error", "SymbolErrorCounter", "SymbolErrors", 16),
    CounterName("link_error_recovery", "LinkErrorRecoveryCounter", "LinkRecovers", 8),
    CounterName("link_downed", "LinkDownedCounter", "LinkDowned", 8),
    CounterName("port_rcv_errors", "PortRcvErrors", "RcvErrors", 16),
    CounterName(
        "port_rcv_remote_physical_errors",
        "PortRcvRemotePhysicalErrors",
        "RcvRemotePhysErrors",
        16,
    ),
    CounterName(
        "port_rcv_switch_relay_errors",
        "PortRcvSwitchRelayErrors",
        "RcvSwRelayErrors",
        16,
    ),
    CounterName("port_xmit_discards", "PortXmitDiscards", "XmtDiscards", 16),
    CounterName(
        "port_xmit_constraint_errors",
        "PortXmitConstraintErrors",
        "XmtConstraintErrors",
        8,
    ),
    CounterName(
        "port_rcv_constraint_errors",
        "PortRcvConstraintErrors",
        "RcvConstraintErrors",
        8,
    ),
    CounterName(
        "local_link_integrity_errors",
        "LocalLinkIntegrityErrors",
        "LinkIntegrityErrors",
        4,
    ),
    CounterName(
        "excessive_buffer_overrun_errors",
        "ExcessiveBufferOverrunErrors",
        "ExcBufOverrunErrors",
        4,
    ),
    CounterName("VL15_dropped", "VL15Dropped", None, 16),
    CounterName("port_xmit_wait", "PortXmitWait", "XmtWait", 32),
    CounterName("port_xmit_data", "PortXmitData", "XmtData", 32),
    CounterName("port_rcv_data", "PortRcvData", "RcvData", 32),
    CounterName("port_xmit_packets", "PortXmitPkts", "XmtPkts", 32),
    CounterName("port_rcv_packets", "PortRcvPkts", "RcvPkts", 32),
    CounterName("unicast_xmit_packets", "PortUnicastXmitPkts", None, 64),
    CounterName("unicast_rcv_packets", "PortUnicastRcvPkts", None, 64),
    CounterName("multicast_xmit_packets", "PortMulticastXmitPkts", None, 64),
    CounterName("multicast_rcv_packets", "PortMulticastRcvPkts", None, 64),
)
_BY_ANY_NAME = {
    name: row for row in NAMES for name in (row.file, row.tool, row.old) if name
}


def file_name(name: str) -> str:
    """Return the sysfs file of a tool's counter; a name not in the table as it is."""
    row = _BY_ANY_NAME.get(name)
    return name if row is None else row.file


def is_saturated(name: str, value: int) -> bool:
    """Tell whether a management counter, by any of its names, stands at a limit.

    Beside the limit of the specification's field it may be that of a wider one: the
    width depends on device, kernel and tool.
    """
    row = _BY_ANY_NAME.get(name)
    if row is None:
        return False
    return value in {(1 << row.bits) - 1, _FULL_32, _FULL_64}
