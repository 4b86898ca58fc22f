"""Snapshots for the tests of sinks: nodes with as many mlx5 ports as one likes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fabricmon.catalogue import ROWS, CounterKind, CounterSpec, Directory, lookup
from fabricmon.model import (
    Absence,
    Blindness,
    Burst,
    ErrnoCount,
    Evidence,
    Finding,
    Hca,
    Health,
    Incident,
    IncidentState,
    LinkStatus,
    NetdevStatus,
    PciLink,
    PciStatus,
    PortId,
    PortInfo,
    PortSnapshot,
    Reading,
    Role,
    Severity,
    Snapshot,
    Subject,
    Verdict,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate

NOW = 5000.0
WALL = 1_767_600_000.0
SOURCES = (
    "devices", "boot", "accelerators", "maintenance", "link_events", "identity",
    "state", "link_detail", "errors", "traffic", "hardware", "netdev", "pci", "driver",
    "ibstat",
)  # fmt: skip
NO_MAINLINE = "port_rcv_discards"  # in the table, but in no mainline kernel
_BUSY = {"port_rcv_data": 1 << 60, "port_xmit_data": 9, "symbol_error": 7}
PCI5 = PciLink(32.0, 16, 32.0, 16)


def find(directory: Directory, file: str, driver: str | None = None) -> CounterSpec:
    """Return a row that must be there."""
    spec = lookup(directory, file, driver)
    assert spec is not None, file
    return spec


def files(directory: Directory, driver: str = "mlx5") -> tuple[CounterSpec, ...]:
    """Return what one reading of a folder holds on a recent kernel."""
    return tuple(
        spec
        for spec in ROWS
        if spec.directory is directory
        and (not spec.drivers or driver in spec.drivers)
        and spec.kind is not CounterKind.KNOB
        and spec.file != NO_MAINLINE
    )


def reading(
    port: PortId,
    specs: Iterable[CounterSpec],
    values: Mapping[str, int | None] | None = None,
    *,
    other: int = 0,
) -> Reading:
    """Return a reading; files that are not named have the value ``other``."""
    specs, known = tuple(specs), values or {}
    found = tuple(known.get(spec.file, other) for spec in specs)
    missing = tuple(
        Absence(spec.file, "EINVAL")
        for spec, value in zip(specs, found, strict=True)
        if value is None
    )
    return Reading(port, NOW, specs, found, missing)


def port(
    device: str = "mlx5_0",
    number: int = 1,
    layer: LinkLayer | None = LinkLayer.INFINIBAND,
    readings: tuple[Reading, ...] = (),
) -> PortSnapshot:
    """Return a healthy port of 400 Gb/s."""
    identity = PortId(device, number)
    info = PortInfo(
        identity,
        link_layer=layer,
        netdev=f"net_{device}",
        pci_address="0000:1a:00.0",
        driver="mlx5_core",
        guid="0x0011223344556677",
        node_guid="0x0011223344556677",
        rail=0,
        role=Role.COMPUTE,
        expected_rate_gbps=400,
    )
    return PortSnapshot(
        info=info,
        status=LinkStatus(
            identity, NOW, PortState.ACTIVE, PhysState.LINK_UP, Rate(400.0, 4, "NDR")
        ),
        netdev=NetdevStatus(identity, f"net_{device}", NOW, "up", carrier=True),
        pci=PciStatus(device, NOW, "0000:1a:00.0", PCI5, PCI5),
        readings=readings,
        verdict=Verdict.HEALTHY,
        reasons=(),
        saturated=(),
        resets=0,
        flaps=0,
        downtime_seconds=0.0,
        last_down=None,
        errors_per_hour=None,
    )


def full_port(
    device: str, layer: LinkLayer, driver_values: Mapping[str, int] | None = None
) -> PortSnapshot:
    """Return a port of mlx5 with every file that a recent kernel has."""
    identity = PortId(device, 1)
    readings = [
        reading(identity, files(Directory.COUNTERS), _BUSY),
        reading(identity, files(Directory.HW_COUNTERS), other=0),
        reading(identity, files(Directory.NETDEV), other=3),
        reading(identity, files(Directory.NETDEV_STATISTICS)),
        reading(PortId(device, 0), files(Directory.PCI)),
    ]
    if driver_values is not None:
        specs = files(Directory.ETHTOOL)
        readings.append(reading(identity, specs, driver_values))
    return port(device, 1, layer, tuple(readings))


def hca(name: str = "mlx5_0") -> Hca:
    """Return the identity of a ConnectX-7."""
    return Hca(
        name=name,
        node_guid="0x0011223344556677",
        sys_image_guid="0x0011223344556677",
        hca_type="MT4129",
        board_id="MT_0000000838",
        firmware="28.41.1000",
        node_type="1: CA",
        pci_address="0000:1a:00.0",
        driver="mlx5_core",
        numa_node=0,
        is_vf=False,
        pf_address=None,
        ports=(),
        plans=(),
    )


def health(source: str, unit: str = "", **changes: object) -> Health:
    """Return a source that was polled a second ago."""
    sound = Health(source, unit, True, NOW - 1, 0.01, 5.0, None)
    return replace(sound, **changes)  # type: ignore[arg-type]


def incident(kind: str = "port_down", **changes: object) -> Incident:
    """Return an open incident about mlx5_0/1."""
    finding = Finding(
        kind=kind,
        subject=Subject(device="mlx5_0", port=1),
        onset=WALL,
        evidence=(Evidence("state", "DOWN", "", "sysfs"),),
        summary="down",
        severity=Severity.CRITICAL,
    )
    sound = Incident(
        "0123456789abcdef", 1, IncidentState.OPEN, WALL, finding, "n1", "docs"
    )
    return replace(sound, **changes)  # type: ignore[arg-type]


def burst(device: str, direction: str = "received", **changes: Any) -> Burst:
    """Return a window of three seconds, half busy at full rate."""
    values = {"busy": 0.5, "p99": 4.9e10, "mean": 2.4e10, "idle_gaps": 3} | changes
    return Burst(PortId(device, 1), direction, NOW - 20, NOW - 17, 16, **values)


def node(*ports: PortSnapshot, **changes: object) -> Snapshot:
    """Return a snapshot of these ports, one healthy device each."""
    names = dict.fromkeys(each.info.id.device for each in ports)
    sound = Snapshot(
        node="n1",
        now=NOW,
        wall=WALL,
        boot=None,
        layout=1,
        ports=ports,
        hcas=tuple(map(hca, names)),
        incidents=(),
        blind=(Blindness("module_hot", "no transceiver diagnostics"),),
        health=tuple(health(source) for source in SOURCES),
        verdict=Verdict.HEALTHY,
        class_error=None,
        failures=(),
        maintenance=(),
        firmware_reads=12,
        config_hash="c0ffee",
        steps=3,
        started=WALL - 60,
    )
    return replace(sound, **changes)  # type: ignore[arg-type]


def eight(layer: LinkLayer, driver_values: Mapping[str, int] | None = None) -> Snapshot:
    """Return a node with eight full ports."""
    names = [f"mlx5_{number}" for number in range(8)]
    return node(
        *(full_port(name, layer, driver_values) for name in names),
        bursts=tuple(
            burst(name, direction)
            for name in names
            for direction in ("received", "transmitted")
        ),
    )


def failing(source: str, unit: str, *errors: tuple[str, int]) -> Health:
    """Return a source with failed reads."""
    counts = tuple(ErrnoCount(name, count) for name, count in errors)
    return health(source, unit, ok=False, errors=counts)
