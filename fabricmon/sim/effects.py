"""What a fault does to the fleet: the words in which faults speak to the model.

A fault turns an `Injection` into effects and truth and knows nothing of how the model
runs; the model knows effects and nothing of faults. Times are seconds from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.truth import FaultTruth, Forbidden, Place


@dataclass(frozen=True, slots=True, order=True)
class SimPort:
    """A port of the fleet; ``node`` counts from 0."""

    node: int
    device: str
    port: int = 1


@dataclass(frozen=True, slots=True)
class Counting:
    """A counter moves at a mean ``rate``, as a Poisson process or ``even``."""

    port: SimPort
    meter: Meter
    begin: float
    end: float
    rate: float
    per: Per = Per.SECOND
    even: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A counter jumps once."""

    port: SimPort
    meter: Meter
    at: float
    amount: int


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge stands at a value, also one of driver statistics; None: as before."""

    port: SimPort
    meter: Meter
    begin: float
    end: float
    value: int
    only_busy: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """A counter already stands at a value when the trace begins; at most its ceiling.

    ``value`` None means the ceiling of its width.
    """

    port: SimPort
    meter: Meter
    value: int | None


@dataclass(frozen=True, slots=True)
class Reset:
    """Counters fall: to 0, or to ``to``. No meters: all of the ``area``."""

    port: SimPort
    at: float
    area: str = "all"  # pma, hw, netdev, all
    meters: tuple[Meter, ...] = ()
    to: int = 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """The port, or what feeds it, can do only ``factor`` of its line rate."""

    port: SimPort
    begin: float
    end: float
    factor: float
    receive: bool = True
    transmit: bool = True


@dataclass(frozen=True, slots=True)
class Outage:
    """The link is down from ``begin`` to ``end``; then INIT for ``init`` seconds.

    Jobs over it stall, time out and die by the model's own rules. ``counts`` False is
    an outage that no counter and no log remembers. ``phys`` is the physical state
    meanwhile.
    """

    port: SimPort
    begin: float
    end: float
    init: float = 2.0
    phys: str = "Polling"
    counts: bool = True
    kernel_lines: bool = True


@dataclass(frozen=True, slots=True)
class PortText:
    """What state files say for a time, beyond outages; None leaves a file as it is.

    ``rate`` is the whole text, such as ``200 Gb/sec (2X NDR)``.
    """

    port: SimPort
    begin: float
    end: float
    state: str | None = None
    phys: str | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file of a node gets a text (None: it goes), or fails with an errno."""

    node: int
    at: float
    path: str
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """A device is not there; it may come back as a new driver instance."""

    node: int
    device: str
    begin: float
    end: float
    new_name: str | None = None
    keeps_pma: bool = True


@dataclass(frozen=True, slots=True)
class Frozen:
    """All counters of a device stand still; reads take ``read_seconds``."""

    node: int
    device: str
    begin: float
    end: float
    read_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """A job makes no progress (None: every job of the node), or its steps stretch.

    ``stretch`` multiplies the compute part of its steps; infinite: it stands still.
    """

    begin: float
    end: float
    job: str | None = None
    node: int | None = None
    stretch: float = float("inf")


@dataclass(frozen=True, slots=True)
class JobEnds:
    """A job ends: killed, crashed or done; ``crash_node`` is the node that died."""

    at: float
    job: str
    crash_node: int | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Reboot:
    """A node boots: silent for ``seconds``, everything counts from 0 or its presets."""

    node: int
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Silence:
    """The agent of a node does not run for a time; then it goes on, or starts anew."""

    node: int
    begin: float
    end: float
    restart: bool = False


@dataclass(frozen=True, slots=True)
class WallStep:
    """The wall clock of a node jumps."""

    node: int
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class KernelLines:
    """Lines of the kernel log."""

    node: int
    at: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of a job's log on a node, as a process prints them, newlines included.

    ``job`` None is the node's first one.
    """

    node: int
    at: float
    text: str
    job: str | None = None


@dataclass(frozen=True, slots=True)
class ModuleReading:
    """What the transceiver says from ``at`` on; None leaves a value as it is."""

    port: SimPort
    at: float
    temperature_c: float | None = None
    receive_power_dbm: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Bridged:
    """Data centre bridging of a port's network device from ``at`` on."""

    port: SimPort
    at: float
    pfc_enabled: tuple[int, ...]
    ecn_enabled: bool = True


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """What the driver's health reporter says of a device from ``at`` on."""

    node: int
    device: str
    at: float
    reporter: str
    state: str


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance window of a node is announced."""

    node: int
    at: float
    until: float
    ports: tuple[SimPort, ...] = ()


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The PCIe link of a device trains anew at ``at``: lanes and GT/s of each lane.

    ``slot_width`` and ``slot_speed`` are what the slot can (the maximum of the bridge
    above); None leaves it at what the card can. It limits nothing by itself: a
    `Capacity` does.
    """

    port: SimPort
    at: float
    width: int
    speed: float
    slot_width: int | None = None
    slot_speed: float | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Reading a file of a node fails for a time; then it goes on as if nothing was."""

    node: int
    begin: float
    end: float
    path: str
    error: str


@dataclass(frozen=True, slots=True)
class NetdevGone:
    """The network device of a port leaves the host's view, its driver statistics too.

    The RDMA device and its traffic stay; the link to the network device goes.
    """

    port: SimPort
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class OnPriority:
    """The port's data goes by ``priority``, not by the profile's lossless one."""

    port: SimPort
    begin: float
    end: float
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Mute:
    """A counter stands still although what it counts happens.

    Also what the model itself would count; other effects on it are dropped.
    """

    port: SimPort
    meter: Meter
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Inflow:
    """A port receives besides what jobs carry: a share of its line rate, evenly."""

    port: SimPort
    begin: float
    end: float
    share: float


Effect: TypeAlias = (
    Counting | Step | Level | Preset | Reset | Capacity | Outage | PortText | NodeFile
    | Gone | Frozen | Stall | JobEnds | Reboot | Silence | WallStep | KernelLines
    | LogLines | ModuleReading | Bridged | DeviceHealth | Maintenance
    | PcieLink | Unreadable | NetdevGone | OnPriority | Mute
    | Inflow
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """What became of an injection."""

    effects: tuple[Effect, ...] = ()
    faults: tuple[FaultTruth, ...] = ()
    victims: tuple[Place, ...] = ()
    forbid: tuple[Forbidden, ...] = ()
