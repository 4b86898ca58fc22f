"""What a fabric tool's text says, in records that all its parsers share.

A value is None where the text does not hold it; it is never 0 or empty instead.
"""

from __future__ import annotations

from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate
from fabricmon.value import Value

_NO_RATE = Rate()


class CounterValue(Value, frozen=True):
    """One counter under the name that the text gives it, unscaled."""

    name: str
    value: int


class Unavailable(Value, frozen=True):
    """Something named that gave no value: an errno name, or the text instead."""

    name: str
    reason: str


class PortReport(Value, frozen=True):
    """One port. ``saturated`` names the counters that stand at their ceiling.

    ``lid`` is None for the LID that means none; ``guid`` and ``node_guid`` are 0x
    and 16 digits. Counters keep the names of the tool.
    """

    device: str
    port: int
    state: PortState | None = None
    phys_state: PhysState | None = None
    link_layer: LinkLayer | None = None
    rate: Rate = _NO_RATE
    lid: int | None = None
    sm_lid: int | None = None
    guid: str | None = None
    node_guid: str | None = None
    fw: str | None = None
    hca_type: str | None = None
    netdev: str | None = None
    pci_address: str | None = None
    driver: str | None = None
    rail: int | str | None = None
    role: str | None = None
    counters: tuple[CounterValue, ...] = ()
    hw_counters: tuple[CounterValue, ...] = ()
    saturated: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()


class ToolFailure(Value, frozen=True):
    """Something that could not be read; ``errno`` is a name such as EINVAL.

    ``file`` is given where no tool stood between fabricmon and the file.
    """

    tool: str | None
    message: str
    device: str | None = None
    port: int | None = None
    errno: str | None = None
    file: str | None = None


class CounterGroup(Value, frozen=True):
    """Counters of something that is no port: a network device, all ports of a node."""

    key: str
    counters: tuple[CounterValue, ...]


class SweepSummary(Value, frozen=True):
    """What a tool that walks the fabric says at its end."""

    nodes_checked: int | None = None
    bad_nodes: int | None = None
    ports_checked: int | None = None
    bad_ports: int | None = None


class FabricPort(Value, frozen=True):
    """One end of a cable as the subnet tools print it; ``type`` is CA, SW or RT."""

    type: str | None
    lid: int | None
    port: int | None
    guid: str | None
    name: str | None


class FabricLink(Value, frozen=True):
    """A cable between two ports; ``a`` is the end that was printed first.

    ``width`` and ``speed`` are as printed; ``could_be`` is what the tool says that
    both ends could do and do not.
    """

    a: FabricPort
    b: FabricPort
    width: str | None = None
    speed: str | None = None
    could_be: str | None = None


class OpenPort(Value, frozen=True):
    """A port without a partner; its speed is a default, not a measurement."""

    port: FabricPort
    speed: str | None = None


class LinkDetail(Value, frozen=True):
    """Operational information of one link (mlxlink); Gb/s, number of lanes.

    ``status_opcode`` is the firmware's reason why the link is not well: 0 is none.
    """

    state: PortState | None = None
    state_text: str | None = None
    phys_state: str | None = None
    speed_gbps: float | None = None
    speed_text: str | None = None
    width: int | None = None
    fec: str | None = None
    loopback: bool | None = None
    autoneg: bool | None = None
    status_opcode: int | None = None
    recommendation: str | None = None


class BitErrors(Value, frozen=True):
    """Bit error counters of one link (mlxlink); raw ones are before correction."""

    effective_physical_errors: int | None = None
    effective_ber: float | None = None
    symbol_errors: int | None = None
    symbol_ber: float | None = None
    raw_ber: float | None = None
    raw_ber_per_lane: tuple[float | None, ...] | None = None
    raw_errors_per_lane: tuple[int | None, ...] | None = None
    link_down: int | None = None
    link_error_recovery: int | None = None
    time_since_clear_min: float | None = None


class ModuleDetail(Value, frozen=True):
    """Transceiver diagnostics; a range is the module's own (low, high) alarm limit."""

    identifier: str | None = None
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None
    temperature_c: float | None = None
    temperature_range: tuple[float, float] | None = None
    voltage_mv: float | None = None
    voltage_range: tuple[float, float] | None = None
    bias_ma: tuple[float | None, ...] | None = None
    bias_range: tuple[float, float] | None = None
    rx_dbm: tuple[float | None, ...] | None = None
    rx_range: tuple[float, float] | None = None
    tx_dbm: tuple[float | None, ...] | None = None
    tx_range: tuple[float, float] | None = None
    wavelength_nm: float | None = None
    los_alarm: str | None = None


class Report(Value, frozen=True):
    """What one text says. A section is None where the tool does not have it.

    ``tells_state`` is False for tools that print counters only: there a port without
    a state is nothing unusual.
    """

    tool: str
    ports: tuple[PortReport, ...] = ()
    errors: tuple[ToolFailure, ...] = ()
    tells_state: bool = True
    groups: tuple[CounterGroup, ...] | None = None
    all_ports: tuple[CounterGroup, ...] | None = None
    summary: SweepSummary | None = None
    links: tuple[FabricLink, ...] | None = None
    unconnected: tuple[OpenPort, ...] | None = None
    link: LinkDetail | None = None
    bit_errors: BitErrors | None = None
    module: ModuleDetail | None = None
    fw: str | None = None
