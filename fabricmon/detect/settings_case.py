"""What settings of NCCL are judged by, and what the judgement of one looks like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from msgspec import field

from fabricmon.config import Settings
from fabricmon.model import (
    GidTable,
    HostPath,
    LibrarySetting,
    PortId,
    PortInfo,
    PriorityUse,
    Role,
)
from fabricmon.parse.device_list import DeviceList, parse_device_list
from fabricmon.parse.text import decimal, hexadecimal
from fabricmon.parse.words import LinkLayer, PortState
from fabricmon.value import Value

LAYERS = frozenset({LinkLayer.INFINIBAND, LinkLayer.ETHERNET})
"""Ports that NCCL's own InfiniBand transport can use; EFA has a plugin of its own."""

FOREIGN_DRIVERS = frozenset({"efa"})

SITE_FILE = "/etc/nccl.conf"

_ORDER = ("log", "command line", "environment", "job")
"""Who wins: a log tells what the library took, then ``initEnv`` of NCCL's
``misc/param.cc``: the environment, the user's file, the site's."""


UNSET = "not set"
SEVERAL = 2


class Fit(StrEnum):
    """Whether a setting fits the fabric."""

    OK = "ok"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


class SettingCheck(Value, frozen=True):
    """One setting against what the fabric shows.

    ``better`` is what it should be, as a value or
    in words. ``port`` is where the fault shows, None for the whole node. ``blind`` says,
    in words without values, why an unknown one cannot be judged here.
    """

    variable: str
    value: str
    origin: str
    shown: str
    fit: Fit
    better: str | None = None
    port: PortId | None = None
    blind: str = ""


class RdmaPort(Value, frozen=True):
    """A port as settings are held against it; ``was_active`` tells a fault from none."""

    info: PortInfo
    state: PortState | None
    was_active: bool = False

    @property
    def is_active(self) -> bool:
        """Tell whether NCCL would take the port."""
        return self.state is PortState.ACTIVE

    @property
    def is_roce(self) -> bool:
        """Tell whether addresses of the port are chosen by index."""
        return self.info.link_layer is LinkLayer.ETHERNET


class Ground(Value, frozen=True):
    """What a node shows of its fabric; ``missing`` devices were there before."""

    ports: tuple[RdmaPort, ...] = ()
    gids: tuple[GidTable, ...] = ()
    host_path: HostPath | None = None
    limits: Settings = field(default_factory=Settings)
    missing: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[RdmaPort, ...]:
        """Ports that NCCL's InfiniBand transport can use."""
        return tuple(
            port
            for port in self.ports
            if port.info.link_layer in LAYERS
            and port.info.driver not in FOREIGN_DRIVERS
        )

    @property
    def compute(self) -> tuple[RdmaPort, ...]:
        """Ports that carry the traffic of jobs."""
        return tuple(
            port
            for port in self.usable
            if port.info.role is Role.COMPUTE and not port.info.is_vf
        )

    def gid_table(self, port: PortId) -> GidTable | None:
        """Return the GIDs of a port, None where they cannot be read."""
        return next((table for table in self.gids if table.port == port), None)

    def priorities(self, info: PortInfo) -> PriorityUse | None:
        """Return the bridging of a port's network device, None where it is not known."""
        return None if self.host_path is None else self.host_path.use_of(info)


class Case(Value, frozen=True):
    """The settings of one process, or of one job, on this node.

    ``complete`` tells that what is not set has its default, ``in_pod`` that it runs in a
    container, perhaps with devices and a network of its own. ``processes`` counts those
    of its job here, ``nodes`` the nodes of the job; None is not known. ``others`` are
    the lists of devices that the ranks of the job have here.
    """

    ground: Ground
    settings: tuple[LibrarySetting, ...]
    version: tuple[int, int] | None = None
    complete: bool = False
    in_pod: bool = False
    processes: int | None = None
    nodes: int | None = None
    job: str | None = None
    others: tuple[DeviceList, ...] = ()

    def get(self, *names: str) -> LibrarySetting | None:
        """Return the setting of the first of these names that is set."""
        by_name = {setting.name: setting for setting in self.settings}
        return next((by_name[name] for name in names if name in by_name), None)

    def number(self, name: str) -> int | None:
        """Return the number that a variable is set to, None if none.

        Hexadecimal as well: ``misc/param.cc`` of NCCL reads it with ``strtoll``.
        """
        setting = self.get(name)
        if setting is None:
            return None
        text = setting.value.strip()
        read = hexadecimal if text[:2] in {"0x", "0X"} else decimal
        number = read(text.removeprefix("-"))
        return -number if number is not None and text.startswith("-") else number

    def devices(self) -> DeviceList:
        """Return which devices NCCL is told to use."""
        setting = self.get("NCCL_IB_HCA")
        return DeviceList() if setting is None else parse_device_list(setting.value)

    def chosen(self) -> tuple[RdmaPort, ...]:
        """Return the ports that this job uses: those named, or the compute ports."""
        devices = self.devices()
        ports = self.ground.usable
        if self.get("NCCL_IB_HCA") is None:
            ports = self.ground.compute or ports
        return tuple(
            port
            for port in ports
            if port.is_active
            and devices.chooses(port.info.id.device, port.info.id.port)
        )

    @property
    def speaks_verbs(self) -> bool:
        """Tell whether NCCL's own InfiniBand transport is used at all."""
        net = self.get("NCCL_NET")
        other = net is not None and not net.value.upper().startswith("IB")
        return not other and self.number("NCCL_IB_DISABLE") in {None, 0}


def fits(
    setting: LibrarySetting, shown: str, port: RdmaPort | None = None
) -> SettingCheck:
    """Return that a setting is right."""
    return _verdict(setting, shown, Fit.OK, None, port)


def wrong(
    setting: LibrarySetting,
    shown: str,
    better: str | None,
    port: RdmaPort | None = None,
) -> SettingCheck:
    """Return that a setting is not right, and what would be."""
    return _verdict(setting, shown, Fit.MISMATCH, better, port)


def judged(
    setting: LibrarySetting,
    shown: str,
    is_right: bool,  # noqa: FBT001 -- reads as the verdict that it is
    better: str | None,
    port: RdmaPort | None = None,
) -> SettingCheck:
    """Return one or the other."""
    if is_right:
        return fits(setting, shown, port)
    return wrong(setting, shown, better, port)


def unknown(setting: LibrarySetting, shown: str, blind: str) -> SettingCheck:
    """Return that a setting cannot be judged here; ``blind`` says why, without values."""
    check = _verdict(setting, shown, Fit.UNKNOWN, None, None)
    return replace(check, blind=blind)


def together(found: Sequence[SettingCheck]) -> tuple[SettingCheck, ...]:
    """Return one mismatch of the node where every port shows it: no port is at fault."""
    if len(found) < SEVERAL or any(check.fit is not Fit.MISMATCH for check in found):
        return tuple(found)
    first = found[0]
    shown = f"{first.shown}, and {len(found) - 1} ports alike"
    return (replace(first, shown=shown, port=None),)


def default(name: str, value: str | None) -> LibrarySetting:
    """Return a setting that nobody made, with the library's own value."""
    return LibrarySetting(name, value or UNSET, "default")


def _verdict(
    setting: LibrarySetting,
    shown: str,
    fit: Fit,
    better: str | None,
    port: RdmaPort | None,
) -> SettingCheck:
    where = None if port is None else port.info.id
    name, value, origin = setting.name, setting.value, setting.origin
    return SettingCheck(name, value, origin, shown, fit, better, where)


def effective(settings: Iterable[LibrarySetting]) -> tuple[LibrarySetting, ...]:
    """Return what the library goes by: of several of one name the one that wins."""
    best: dict[str, LibrarySetting] = {}
    for setting in settings:
        known = best.get(setting.name)
        if known is None or _place(setting.origin) < _place(known.origin):
            best[setting.name] = setting
    return tuple(best.values())


def version_of(text: str | None) -> tuple[int, int] | None:
    """Return major and minor of ``2.21.5``, None where it is not known."""
    major, _, rest = (text or "").partition(".")
    numbers = decimal(major), decimal(rest.partition(".")[0])
    if numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0], numbers[1]


def _place(origin: str) -> int:
    if origin in _ORDER:
        return _ORDER.index(origin)
    return len(_ORDER) + (origin == SITE_FILE)
