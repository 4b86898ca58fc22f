"""How NCCL reads ``NCCL_IB_HCA`` and ``NCCL_SOCKET_IFNAME``: lists that choose names.

``^`` first excludes what follows, ``=`` then asks for whole names; else a name is
chosen that begins with an entry. An entry may end with ``:PORT``. An empty list chooses
all (``parseStringList`` and ``matchIfList`` of NCCL's ``misc/utils.cc``).
"""

from __future__ import annotations

from fabricmon.parse.text import decimal
from fabricmon.value import Value

MAX_ENTRIES = 32
"""NCCL reads no more devices (MAX_IB_DEVS); what comes after is not looked at."""


class Entry(Value, frozen=True):
    """One entry; ``port`` is None where every port of the device is meant."""

    name: str
    port: int | None = None

    def __str__(self) -> str:
        """Write it as NCCL does."""
        return self.name if self.port is None else f"{self.name}:{self.port}"


class DeviceList(Value, frozen=True):
    """A list as NCCL understands it."""

    entries: tuple[Entry, ...] = ()
    exact: bool = False
    excludes: bool = False

    def names(self, entry: Entry, device: str, port: int | None = None) -> bool:
        """Tell whether an entry means this device and, where it says one, port."""
        if entry.port is not None and port is not None and entry.port != port:
            return False
        return device == entry.name if self.exact else device.startswith(entry.name)

    def chooses(self, device: str, port: int | None = None) -> bool:
        """Tell whether NCCL uses this device with this list."""
        listed = not self.entries or any(
            self.names(entry, device, port) for entry in self.entries
        )
        return listed != self.excludes


def parse_device_list(text: str) -> DeviceList:
    """Read a list; empty entries are passed over, as NCCL does."""
    excludes = text.startswith("^")
    text = text.removeprefix("^")
    exact = text.startswith("=")
    found = (_entry(part) for part in text.removeprefix("=").split(","))
    entries = tuple(entry for entry in found if entry.name)
    return DeviceList(entries[:MAX_ENTRIES], exact=exact, excludes=excludes)


def _entry(part: str) -> Entry:
    """Split ``NAME:PORT``; what follows the port (rail, plane of 2.30) is passed over.

    What is no number counts as port 0, which no device has.
    """
    name, colon, rest = part.partition(":")
    return Entry(name, decimal(rest.partition(":")[0]) or 0 if colon else None)
