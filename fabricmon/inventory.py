"""Which RDMA devices this node has: known, present, missing; roles, rails, names.

A device is the card, not its name: one that comes back under another name is the same
if its GUID or its PCI address is. Known devices and the rates that they once had
survive a restart, so that a dead card is missed and a slow rail stays a rail.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from fabricmon.config import Config
from fabricmon.expectations import Expectations, is_watched
from fabricmon.known_device import KnownDevice, SavedDevice, real_guid, restored
from fabricmon.model import (
    Accelerators,
    BootInfo,
    DeviceList,
    Hca,
    LinkStatus,
    MissingDevice,
    PortInfo,
    Role,
    Topology,
)
from fabricmon.parse.words import PortState
from fabricmon.port_roles import describe_ports
from fabricmon.saved import writable
from fabricmon.value import Value

SAVED_VERSION = 1


class Changes(Value, frozen=True):
    """What a record changed: devices that came, went, or got a new driver instance."""

    appeared: tuple[str, ...] = ()
    disappeared: tuple[str, ...] = ()
    reloaded: bool = False


_NOTHING = Changes()


class _Saved(msgspec.Struct, frozen=True):
    """The state that survives a restart."""

    version: int
    devices: tuple[SavedDevice, ...]
    gpu_paths: tuple[str, ...] = ()


@dataclass(slots=True)
class _NeverSeen:
    """A device that configuration names and no listing had."""

    since: float
    polls: int = 0


class Inventory:
    """Takes what the sources find out; answers which ports there are."""

    def __init__(self, config: Config) -> None:
        """Start without any device."""
        self._config = config
        self._expectations = Expectations(config)
        self._cards: list[KnownDevice] = []  # physical ones, also those that are gone
        self._present: dict[str, KnownDevice] = {}  # by name, virtual ones too
        self._listed: tuple[str, ...] | None = None
        self._never_seen: dict[str, _NeverSeen] = {}
        self._gpu_paths: tuple[str, ...] = ()
        self._stale = True
        self._infos: dict[KnownDevice, tuple[PortInfo, ...]] = {}
        self._ports: tuple[PortInfo, ...] = ()
        self._layout = 0

    # What is known

    @property
    def layout(self) -> int:
        """A number that changes when and only when the identity of a port does."""
        self._refresh()
        return self._layout

    @property
    def role_note(self) -> str | None:
        """Why no port has a role, None where some have one."""
        self._refresh()
        if not self._ports or any(p.role is not Role.UNKNOWN for p in self._ports):
            return None
        return (
            f"roles are not known: of {len(self._ports)} ports no two are equal; "
            "name them under `expect` in the configuration"
        )

    @property
    def compute_shortfall(self) -> int:
        """How many compute devices the hardware profile has more than are known."""
        self._refresh()
        profile = self._expectations.profile
        if profile is None or profile.devices is None:
            return 0
        known = sum(
            any(info.role is Role.COMPUTE for info in self._infos.get(card, ()))
            for card in self._cards
        )
        return max(0, profile.devices - known)

    def ports(self) -> tuple[PortInfo, ...]:
        """Return every port of the devices that are there; the same until it changes."""
        self._refresh()
        return self._ports

    def hcas(self) -> tuple[Hca, ...]:
        """Return the devices that are there and whose identity is known, as listed."""
        names = self._present if self._listed is None else self._listed
        devices = (self._present.get(name) for name in names)
        return tuple(each.hca for each in devices if each is not None and each.hca)

    def missing(self, _now: float) -> tuple[MissingDevice, ...]:
        """Return the devices that the newest listings did not have."""
        self._refresh()
        gone = [
            MissingDevice(
                name=self._name_of_missing(card),
                since=card.missing_since,
                polls=card.polls,
                ports=self._infos.get(card, ()),
                expected=not self._expected.isdisjoint(card.names),
            )
            for card in self._cards
            if card.missing_since is not None
        ]
        gone += [
            MissingDevice(name, each.since, each.polls, expected=True, never_seen=True)
            for name, each in self._never_seen.items()
        ]
        return tuple(gone)

    # What is found out

    def set_topology(self, topology: Topology) -> None:
        """Take leaf, rail and role of ports from a topology."""
        self._expectations.take_topology(topology)
        self._stale = True

    def update(
        self, record: LinkStatus | DeviceList | Hca | Accelerators | BootInfo
    ) -> Changes:
        """Take a record; return the devices that came and went with it."""
        match record:
            case LinkStatus():
                self._take_status(record)
            case DeviceList():
                return self._take_list(record)
            case Hca():
                return self._take_hca(record)
            case Accelerators():
                self._take_accelerators(record)
            case BootInfo():
                self._stale |= self._expectations.take_product(record.product)
        return _NOTHING

    def _take_status(self, status: LinkStatus) -> None:
        if not status.complete or status.state is not PortState.ACTIVE:
            return
        device = self._present.get(status.port.device)
        port = device.ports.get(status.port.port) if device else None
        if port is not None and port.take_rate(status.rate):
            self._stale = True

    def _take_list(self, found: DeviceList) -> Changes:
        if found.error not in {None, "ENOENT"}:
            return _NOTHING  # the class cannot be read: nothing is known to be gone
        before = self._listed or ()
        self._listed = found.names
        now = set(found.names)
        for name in before:
            if name not in now:
                self._present.pop(name, None)
        for card in self._cards:
            if self._is_listed(card, now):
                card.see()
            else:
                card.miss(found.at)
        self._look_for_expected(found.at)
        appeared = tuple(name for name in found.names if name not in before)
        disappeared = tuple(name for name in before if name not in now)
        self._stale |= bool(appeared or disappeared)
        return Changes(appeared, disappeared)

    def _is_listed(self, card: KnownDevice, names: set[str]) -> bool:
        """Tell whether the name of a card is listed and not that of another one now."""
        return card.name in names and self._present.get(card.name, card) is card

    def _look_for_expected(self, at: float) -> None:
        seen = {name for card in self._cards for name in card.names}
        seen.update(self._listed or ())
        for name in self._expected:
            if name in seen:
                self._never_seen.pop(name, None)
            else:
                self._never_seen.setdefault(name, _NeverSeen(at)).polls += 1

    def _take_hca(self, hca: Hca) -> Changes:
        if self._listed is not None and hca.name not in self._listed:
            return _NOTHING  # it went away while it was read
        device = self._present.get(hca.name)
        if device is not None and device.hca == hca:
            return _NOTHING
        device = self._find(hca)
        if device.is_replaced_by(hca):
            self._refresh()  # a card in the slot of another one inherits its role
        if self._present.get(device.name) is device:
            del self._present[device.name]
        roles = {info.id.port: info.role for info in self._infos.get(device, ())}
        reloaded = device.take(hca, roles)
        device.see()
        self._present[hca.name] = device
        self._stale = True
        return Changes(reloaded=reloaded)

    def _find(self, hca: Hca) -> KnownDevice:
        """Return the known device that this one is, a new one if it is none of them."""
        there = self._present.get(hca.name)
        if hca.is_vf:
            known = there is not None and there.is_virtual
            return there if there and known else KnownDevice(hca.name, is_virtual=True)
        card = self._same_guid(hca) or self._same_slot(hca) or self._same_name(hca)
        if card is None:
            card = KnownDevice(hca.name)
            self._cards.append(card)
        return card

    def _same_guid(self, hca: Hca) -> KnownDevice | None:
        guid = real_guid(hca.node_guid)
        cards = (card for card in self._cards if guid is not None)
        return next(
            (
                card
                for card in cards
                if card.guid == guid
                and (card.pci_address == hca.pci_address or self._is_free(card, hca))
            ),
            None,
        )

    def _same_slot(self, hca: Hca) -> KnownDevice | None:
        """Return the card whose PCI address this one has: it was replaced."""
        cards = (card for card in self._cards if hca.pci_address is not None)
        return next(
            (
                card
                for card in cards
                if card.pci_address == hca.pci_address and self._is_free(card, hca)
            ),
            None,
        )

    def _same_name(self, hca: Hca) -> KnownDevice | None:
        """Return the device of software of that name: it has nothing else."""
        for card in self._cards:
            same = card.name == hca.name
            if same and card.pci_address is None and hca.pci_address is None:
                return card
        return None

    def _is_free(self, card: KnownDevice, hca: Hca) -> bool:
        """Tell whether no other present device claims to be this card."""
        return card.name == hca.name or self._present.get(card.name) is not card

    def _take_accelerators(self, found: Accelerators) -> None:
        """Take the GPUs; one that fell off the bus does not move its neighbours."""
        paths = found.paths
        if len(paths) < len(self._gpu_paths):
            paths = tuple(dict.fromkeys((*self._gpu_paths, *paths)))
        self._stale |= paths != self._gpu_paths
        self._gpu_paths = paths

    # What follows from it

    @property
    def _expected(self) -> set[str]:
        devices = self._config.devices
        names = self._config.expected_devices
        return {name for name in names if is_watched(name, devices)}

    def _name_of_missing(self, card: KnownDevice) -> str:
        """Return its name, or its address where another device has that name now."""
        taken = self._present.get(card.name, card) is not card
        return card.pci_address or card.name if taken else card.name

    def _refresh(self) -> None:
        """Work out roles and rails anew if anything they follow from has changed."""
        if not self._stale:
            return
        self._stale = False
        virtual = [each for each in self._present.values() if each.is_virtual]
        self._infos = describe_ports(
            self._cards, virtual, self._gpu_paths, self._expectations, self._config
        )
        order = self._present if self._listed is None else self._listed
        ports = tuple(
            info
            for name in order
            if name in self._present
            for info in self._infos.get(self._present[name], ())
        )
        if ports != self._ports:
            self._ports = ports
            self._layout += 1

    # What survives a restart

    def save(self) -> bytes:
        """Return what must survive a restart, without names that are not text."""
        cards = writable(card.saved() for card in self._cards)
        paths = writable(self._gpu_paths)
        return msgspec.json.encode(_Saved(SAVED_VERSION, cards, paths))

    def restore(self, saved: bytes) -> None:
        """Take back what `save` returned, except what is no longer watched.

        Raises ValueError for what it cannot read.
        """
        try:
            state = msgspec.json.decode(saved, type=_Saved)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"saved inventory: {error}") from error
        if state.version != SAVED_VERSION:
            raise ValueError(f"saved inventory: version {state.version} is not known")
        self._gpu_paths = state.gpu_paths
        self._cards = [
            restored(each)
            for each in state.devices
            if is_watched(each.name, self._config.devices)
        ]
        self._stale = True
