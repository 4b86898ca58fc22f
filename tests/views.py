"""Views built by hand, and a `Feed` that steps time over a real window.

For detector tests: a test sets counters and link states in plain words, steps the
clock, and gets the view that the pipeline would build.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fabricmon.catalogue import (
    CounterSpec,
    Directory,
    FaultClass,
    Group,
    Overflow,
    Signal,
)
from fabricmon.config import Config
from fabricmon.model import (
    Absence,
    BootInfo,
    Counters,
    Hca,
    Health,
    LinkEvent,
    LinkStatus,
    MissingDevice,
    Move,
    NetdevStatus,
    PciStatus,
    PortId,
    PortInfo,
    PortView,
    ReadFailure,
    Reading,
    Role,
    ToolReport,
    View,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate
from fabricmon.window import Window

NDR = Rate(400.0, 4, "NDR")
START = 100_000.0  # monotonic seconds at which a feed begins
WALL = 1_700_000_000.0  # Unix seconds at the same moment


def spec(
    file: str,
    signal: Signal | None = None,
    *,
    width: int = 64,
    overflow: Overflow | None = None,
    group: Group = Group.ERRORS,
    fault_class: FaultClass = FaultClass.LINK,
    directory: Directory = Directory.COUNTERS,
    factor: float = 1,
) -> CounterSpec:
    """Return a spec; a field narrower than 64 bits saturates unless told otherwise."""
    if overflow is None:
        overflow = Overflow.NEVER if width == 64 else Overflow.SATURATES
    return CounterSpec(
        file=file,
        directory=directory,
        stem=file,
        help=file,
        fault_class=fault_class,
        group=group,
        factor=factor,
        width=width,
        overflow=overflow,
        signal=signal,
    )


_NETDEV = {"directory": Directory.NETDEV, "group": Group.NETDEV}
_TRAFFIC = {"group": Group.TRAFFIC, "fault_class": FaultClass.TRAFFIC, "factor": 4}

SPECS: dict[str, CounterSpec] = {
    each.file: each
    for each in (
        spec("symbol_error", Signal.SYMBOL_ERROR, width=16),
        spec("link_error_recovery", Signal.LINK_RECOVERY, width=8),
        spec("link_downed", Signal.LINK_DOWN, width=8),
        spec("port_rcv_errors", Signal.RECEIVE_ERROR, width=16),
        spec("port_rcv_remote_physical_errors", Signal.REMOTE_PHYSICAL, width=16),
        spec("local_link_integrity_errors", Signal.INTEGRITY, width=4),
        spec("excessive_buffer_overrun_errors", Signal.INTEGRITY, width=4),
        spec(
            "port_xmit_wait",
            Signal.TRANSMIT_WAIT,
            width=32,
            fault_class=FaultClass.CONGESTION,
        ),
        spec("port_rcv_data", Signal.BYTES_RECEIVED, **_TRAFFIC),  # type: ignore[arg-type]
        spec("port_xmit_data", Signal.BYTES_TRANSMITTED, **_TRAFFIC),  # type: ignore[arg-type]
        spec(
            "packet_seq_err",
            Signal.SEQUENCE_ERROR,
            width=32,
            overflow=Overflow.WRAPS,
            directory=Directory.HW_COUNTERS,
            group=Group.HARDWARE,
            fault_class=FaultClass.RETRY,
        ),
        spec(
            "rx_icrc_encapsulated",
            Signal.CORRUPTION,
            directory=Directory.HW_COUNTERS,
            group=Group.HARDWARE,
        ),
        spec("carrier_down_count", Signal.CARRIER_DOWN, **_NETDEV),  # type: ignore[arg-type]
        spec(
            "rx_pcs_symbol_err_phy",
            Signal.SYMBOL_ERROR,
            directory=Directory.ETHTOOL,
            group=Group.DRIVER,
        ),
    )
}


def port(device: str = "mlx5_0", number: int = 1, **known: object) -> PortInfo:
    """Return the identity of a compute port on InfiniBand; ``known`` replaces parts."""
    info = PortInfo(
        PortId(device, number),
        link_layer=LinkLayer.INFINIBAND,
        driver="mlx5_core",
        board_id="MT_0000000838",
        role=Role.COMPUTE,
    )
    return replace(info, **known)  # type: ignore[arg-type]


def status(
    info: PortInfo,
    at: float,
    state: PortState | None = PortState.ACTIVE,
    phys_state: PhysState | None = PhysState.LINK_UP,
    rate: Rate = NDR,
) -> LinkStatus:
    """Return a link status of the port as it was read at ``at``."""
    return LinkStatus(info.id, at, state, phys_state, rate, lid=7, sm_lid=1)


def port_view(info: PortInfo | None = None, **parts: object) -> PortView:
    """Return a fresh port that is ACTIVE at 400 Gb/s; ``parts`` replaces fields."""
    info = info or port()
    view = PortView(
        info,
        status(info, START),
        netdev=None,
        pci=None,
        ever_active=True,
        fresh=True,
    )
    return replace(view, **parts)  # type: ignore[arg-type]


def boot(now: float = START, uptime: float | None = 1e6) -> BootInfo:
    """Return a boot that is ``uptime`` seconds old at ``now``."""
    return BootInfo(now, "boot-1", uptime)


def make_view(now: float = START, **parts: object) -> View:
    """Return a view of an empty node at ``now``; ``parts`` replaces fields."""
    view = View(
        now=now,
        wall=WALL + now - START,
        node="node-1",
        boot=boot(now),
        ports=(),
        hcas=(),
        missing=(),
        statuses=(),
        netdevs=(),
        events=(),
        moves=(),
        health=(),
        failures=(),
        reports=(),
        counters=Window(Config()),
    )
    return replace(view, **parts)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Port:
    """What a port of the feed would answer now."""

    info: PortInfo
    values: dict[str, int | None]
    status: LinkStatus | None
    netdev: NetdevStatus | None = None
    pci: PciStatus | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    ever_active: bool = True
    fresh: bool = True


class Feed:
    """A node that a test drives: change it in words, `step`, judge the view.

    Ports begin ACTIVE at 400 Gb/s with the counters of ``files`` at zero. The first
    `step` gives first sights. Everything public may be changed between steps.
    """

    def __init__(
        self,
        *infos: PortInfo,
        config: Config | None = None,
        files: Iterable[str] = tuple(SPECS),
        uptime: float | None = 1e6,
        period: float = 5.0,
    ) -> None:
        self.config = config or Config()
        self.window = Window(self.config)
        self.now = START
        self.wall = WALL
        self.period = period
        self.boot: BootInfo | None = boot(START, uptime)
        self.specs = dict(SPECS)
        self.hcas: tuple[Hca, ...] = ()
        self.health: tuple[Health, ...] = ()
        self.missing: tuple[MissingDevice, ...] = ()
        self.class_error: str | None = None
        files = tuple(files)
        self._ports = {
            info.id: _Port(info, dict.fromkeys(files, 0), status(info, START))
            for info in (infos or (port(),))
        }

    @property
    def ids(self) -> tuple[PortId, ...]:
        """Every port of the node."""
        return tuple(self._ports)

    def of(self, where: PortId | None = None) -> _Port:
        """Return the port, the first one if none is named, to look at or change."""
        return self._ports[where or next(iter(self._ports))]

    def put(self, where: PortId | None = None, **values: int | None) -> None:
        """Set counters by file name; None makes a file absent."""
        self.of(where).values.update(values)

    def grow(self, where: PortId | None = None, **increases: int) -> None:
        """Let counters rise by so much."""
        values = self.of(where).values
        for file, increase in increases.items():
            values[file] = (values.get(file) or 0) + increase

    def fail(self, file: str, reason: str, where: PortId | None = None) -> None:
        """Let a file fail with an errno name from now on."""
        self.put(where, **{file: None})
        self.of(where).reasons[file] = reason

    def link(
        self,
        state: PortState | None,
        phys_state: PhysState | None = PhysState.LINK_UP,
        rate: Rate | None = None,
        where: PortId | None = None,
    ) -> None:
        """Change the state of a port; the rate stays unless given."""
        each = self.of(where)
        old = each.status.rate if each.status else NDR
        each.status = status(each.info, self.now, state, phys_state, rate or old)

    def step(self, seconds: float | None = None, **parts: object) -> View:
        """Let time pass, read everything once and return the view of that moment."""
        passed = self.period if seconds is None else seconds
        self.now += passed
        self.wall += passed
        moves: list[Move] = []
        statuses: list[LinkStatus] = []
        for each in self._ports.values():
            for reading in self._readings(each):
                moves += self.window.add(reading, self.period)
            if each.status is not None:
                each.status = replace(each.status, at=self.now)
                each.ever_active |= each.status.state is PortState.ACTIVE
                statuses.append(each.status)
        return self._view(tuple(moves), tuple(statuses), parts)

    def steps(self, count: int, seconds: float | None = None) -> View:
        """Step ``count`` times and return the last view."""
        for _ in range(count - 1):
            self.step(seconds)
        return self.step(seconds)

    def _readings(self, each: _Port) -> Iterable[Reading]:
        by_group: dict[Group, list[CounterSpec]] = {}
        for file in each.values:
            by_group.setdefault(self.specs[file].group, []).append(self.specs[file])
        for specs in by_group.values():
            values = tuple(each.values[one.file] for one in specs)
            absent = tuple(
                Absence(one.file, each.reasons.get(one.file, "ENOENT"))
                for one in specs
                if each.values[one.file] is None
            )
            yield Reading(each.info.id, self.now, tuple(specs), values, absent)

    def _view(
        self,
        moves: tuple[Move, ...],
        statuses: tuple[LinkStatus, ...],
        parts: dict[str, object],
    ) -> View:
        counters: Counters = self.window
        events: tuple[LinkEvent, ...] = ()
        failures: tuple[ReadFailure, ...] = ()
        reports: tuple[ToolReport, ...] = ()
        view = View(
            now=self.now,
            wall=self.wall,
            node="node-1",
            boot=self.boot,
            ports=tuple(self._port_view(each) for each in self._ports.values()),
            hcas=self.hcas,
            missing=self.missing,
            statuses=statuses,
            netdevs=tuple(
                each.netdev for each in self._ports.values() if each.netdev is not None
            ),
            events=events,
            moves=moves,
            health=self.health,
            failures=failures,
            reports=reports,
            counters=counters,
            class_error=self.class_error,
        )
        return replace(view, **parts)  # type: ignore[arg-type]

    @staticmethod
    def _port_view(each: _Port) -> PortView:
        return PortView(
            each.info,
            each.status,
            each.netdev,
            each.pci,
            ever_active=each.ever_active,
            fresh=each.fresh,
        )
