"""The machines that can be simulated: which devices, in PCI order, and what they count.

After "Healthy baseline" of the fault catalogue. A rail is one data port: a device with
several planes has several rails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fabricmon.sim.meters import Meter


class Use(StrEnum):
    """What a port is for."""

    COMPUTE = "compute"
    STORAGE = "storage"
    MANAGEMENT = "management"
    UNUSED = "unused"


class Family(StrEnum):
    """Which counters a device has."""

    MLX5 = "mlx5"
    EFA = "efa"


@dataclass(frozen=True, slots=True)
class Card:
    """What all devices of one product have in common; ``gbps`` is per port."""

    type: str
    board: str
    firmware: str
    gbps: int
    speed: str
    lanes: int = 4
    ethernet: bool = False
    family: Family = Family.MLX5
    ports: int = 1
    pci_speed: str = "32.0 GT/s PCIe"
    pci_width: int = 16

    @property
    def layer(self) -> str:
        """What ``link_layer`` says."""
        if self.family is Family.EFA:
            return "Unknown"
        return "Ethernet" if self.ethernet else "InfiniBand"

    @property
    def lane_gbps(self) -> float:
        """Line rate of one lane."""
        return self.gbps / self.lanes


@dataclass(frozen=True, slots=True)
class Slot:
    """One device of a node. ``used`` are its ports that a cable was ever in."""

    device: str
    card: Card
    use: Use
    used: tuple[int, ...] = (1,)
    gpu: bool = False
    bond: bool = False
    virtual: int = 0  # virtual functions beside it


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine. Slots are in PCI order.

    ``widths`` replace what the IBTA says of counters, in bits. ``wraps`` is firmware
    whose 32-bit queue counters start again at 2^32. ``lifespan`` is in milliseconds.
    """

    name: str
    product: str
    slots: tuple[Slot, ...]
    has_cnp: bool = False
    has_pause: bool = False
    wraps: bool = False
    lifespan: int = 10
    widths: dict[Meter, int] = field(default_factory=dict)

    @property
    def compute(self) -> tuple[Slot, ...]:
        """The devices that carry rails."""
        return tuple(slot for slot in self.slots if slot.use is Use.COMPUTE)


_CX7 = Card("MT4129", "MT_0000000838", "28.41.1000", 400, "NDR")
_CX7_ETHERNET = Card("MT4129", "MT_0000000834", "28.41.1000", 400, "NDR", ethernet=True)
_CX6 = Card("MT4123", "MT_0000000223", "20.35.1012", 200, "HDR",
            pci_speed="16.0 GT/s PCIe")  # fmt: skip
_CX8 = Card("MT4131", "MT_0000001222", "40.45.1200", 200, "XDR", lanes=1, ports=12,
            pci_speed="64.0 GT/s PCIe")  # fmt: skip
_DISK = Card("MT41692", "MT_0000000884", "32.41.1000", 200, "NDR", lanes=2,
             ethernet=True)  # fmt: skip
_OLD_DISK = Card("MT4125", "MT_0000000359", "22.35.1012", 200, "HDR", ethernet=True,
                 pci_speed="16.0 GT/s PCIe")  # fmt: skip
_SERVICE = Card("MT4127", "MT_0000000531", "26.36.1010", 25, "EDR", lanes=1,
                ethernet=True, pci_speed="8.0 GT/s PCIe", pci_width=8)  # fmt: skip
_PAIR = Card("MT4125", "MT_0000000436", "22.36.1010", 200, "HDR", ethernet=True,
             pci_speed="16.0 GT/s PCIe")  # fmt: skip
_EFA = Card("EFA", "", "0.0.0.0", 200, "HDR", family=Family.EFA)  # noqa: S104 - a version

_PLANES = (3, 6, 9, 12)


def _usual(
    rail: Card,
    disk: Card,
    service: Slot,
    *,
    used: tuple[int, ...] = (1,),
    spare: bool = False,
    virtual: int = 0,
) -> tuple[Slot, ...]:
    """Return eight rails with two storage devices among them, then one for service."""
    slots: list[Slot] = []
    for rail_number in range(8):
        slots.append(_slot(slots, rail, Use.COMPUTE, used=used, gpu=True))
        if rail_number in {2, 5}:
            slots.append(_slot(slots, disk, Use.STORAGE, virtual=virtual))
            virtual = 0
    if spare:
        slots.append(_slot(slots, _PAIR, Use.UNUSED, used=()))
    slots.append(service)
    return tuple(slots)


def _slot(
    before: list[Slot],
    card: Card,
    use: Use,
    *,
    used: tuple[int, ...] = (1,),
    gpu: bool = False,
    virtual: int = 0,
) -> Slot:
    return Slot(f"mlx5_{len(before)}", card, use, used=used, gpu=gpu, virtual=virtual)


def _service(number: int) -> Slot:
    return Slot(f"mlx5_{number}", _SERVICE, Use.MANAGEMENT)


_WIDE = {Meter.SYMBOL_ERRORS: 32, Meter.RECEIVE_ERRORS: 32}

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "H100-IB-NDR-8x400",
            "Example H100 8-rail NDR",
            _usual(_CX7, _DISK, _service(11), spare=True),
        ),
        Profile(
            "H100-RoCE-8x400-DCQCN",
            "Example H100 8-rail RoCE",
            _usual(
                _CX7_ETHERNET,
                _DISK,
                Slot("mlx5_bond_0", _PAIR, Use.MANAGEMENT, bond=True),
            ),
            has_cnp=True,
            has_pause=True,
            lifespan=12,
        ),
        Profile(
            "RoCE-8x400-PFC-only",
            "Example 8-rail RoCE without DCQCN",
            _usual(_CX7_ETHERNET, _DISK, _service(10), virtual=2),
            has_pause=True,
        ),
        Profile(
            "A100-HDR-8x200",
            "Example A100 8-rail HDR",
            _usual(_CX6, _OLD_DISK, _service(10)),
            wraps=True,
        ),
        Profile(
            "B300-multiplane",
            "Example B300 8-rail with four planes",
            _usual(_CX8, _DISK, _service(10), used=_PLANES),
            widths=_WIDE,
        ),
        Profile(
            "EFA",
            "Example cloud node with 16 EFA",
            tuple(
                Slot(f"rdmap{15 * number + 10}s0", _EFA, Use.COMPUTE, gpu=True)
                for number in range(16)
            ),
            lifespan=12,
        ),
    )
}
"""By name."""
