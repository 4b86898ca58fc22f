"""PCIe link of a device and of the slot above it, and its AER error counts.

Virtual functions are left out: their link is that of the physical function.
"""

from __future__ import annotations

from fabricmon.catalogue import Group
from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import (
    Absence,
    PciLink,
    PciStatus,
    Reading,
    ReadPlan,
    Record,
    Target,
)
from fabricmon.parse.pci_path import pci_order
from fabricmon.parse.sysfs import parse_aer, parse_pci_speed, parse_pci_width

_FILES = (
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
)


def poll(host: Host, target: Target, _config: Config) -> tuple[Record, ...]:
    """Read both ends of the link, then the error tables."""
    hca = target.hca
    if hca is None or hca.is_vf or hca.pci_path is None or hca.pci_address is None:
        return ()
    absent: list[Absence] = []
    link = _link(host, hca.pci_path, "", absent)
    above, _, _ = hca.pci_path.rpartition("/")
    # A function right below the host bridge has no slot above it.
    has_slot = pci_order(above.rpartition("/")[2]) is not None
    slot = _link(host, above, "slot ", absent) if has_slot else PciLink()
    status = PciStatus(
        hca.name, host.monotonic(), hca.pci_address, link, slot, tuple(absent)
    )
    plans = (each.plan for each in hca.plans if each.group is Group.PCI)
    return status, *(_read_tables(host, plan) for plan in plans)


def _link(host: Host, folder: str, prefix: str, absent: list[Absence]) -> PciLink:
    raws = host.read_many([f"{folder}/{file}" for file in _FILES])
    texts = []
    for file, raw in zip(_FILES, raws, strict=True):
        if isinstance(raw, ReadError):
            absent.append(Absence(prefix + file, raw.errno))
        texts.append(b"" if isinstance(raw, ReadError) else raw)
    speed, width, max_speed, max_width = texts
    return PciLink(
        speed_gts=parse_pci_speed(speed),
        width=parse_pci_width(width),
        max_speed_gts=parse_pci_speed(max_speed),
        max_width=parse_pci_width(max_width),
    )


def _read_tables(host: Host, plan: ReadPlan) -> Reading:
    """Read AER tables: the total of each, or the sum where it names none."""
    raws = host.read_many(plan.paths, plan.firmware_reads)
    at = host.monotonic()
    values: list[int | None] = []
    absent: list[Absence] = []
    for spec, raw in zip(plan.specs, raws, strict=True):
        value = raw.errno if isinstance(raw, ReadError) else _total(raw)
        if isinstance(value, str):
            absent.append(Absence(spec.file, value))
        values.append(None if isinstance(value, str) else value)
    return Reading(plan.port, at, plan.specs, tuple(values), tuple(absent))


def _total(raw: bytes) -> int | str:
    table = parse_aer(raw)
    if table.total is not None:
        return table.total
    if not table.counts:
        return "no table"
    return sum(each.value for each in table.counts)
