"""What configuration and topology say of a port; the first pattern that fits wins."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from fabricmon.config import Config, Devices, Expectation, Profile
from fabricmon.model import PortId, PortPlace, Role, Topology
from fabricmon.value import Value


class Expected(Value, frozen=True):
    """What is expected of one port; None where nothing says so."""

    rate_gbps: float | None = None
    role: Role | None = None
    rail: int | str | None = None
    up: bool | None = None
    leaf: str | None = None


class Expectations:
    """Answers what is expected: the node's own list, then its profile, then topology."""

    def __init__(self, config: Config) -> None:
        """Take the lists from ``config``; the product is not known yet."""
        self._config = config
        self._profile = find_profile(config, None)
        self._places: dict[str, PortPlace] = {}
        self._rails: tuple[tuple[str, ...], ...] = ()

    @property
    def profile(self) -> Profile | None:
        """The hardware profile in force."""
        return self._profile

    def take_product(self, product: str | None) -> bool:
        """Choose the profile by what the machine calls itself; tell if it is new."""
        old = self._profile
        self._profile = find_profile(self._config, product)
        return self._profile is not old

    def take_topology(self, topology: Topology) -> None:
        """Take the places of the ports."""
        self._places = {place.port: place for place in topology.ports}
        self._rails = topology.rails

    def of(self, port: PortId, pci_address: str | None) -> Expected:
        """Return what is expected of a port."""
        profile = self._profile
        own = _first(self._config.expect, port, pci_address)
        usual = _first(profile.ports if profile else (), port, pci_address)
        place = self._places.get(str(port)) or PortPlace(str(port))
        role = own.role or usual.role
        rail = usual.rail if own.rail is None else own.rail
        known = self._rail_of(port) if place.rail is None else place.rail
        return Expected(
            rate_gbps=own.rate_gbps or usual.rate_gbps,
            role=Role(role) if role else place.role,
            rail=known if rail is None else rail,
            up=usual.up if own.up is None else own.up,
            leaf=place.leaf,
        )

    def _rail_of(self, port: PortId) -> int | None:
        """Return the rail whose patterns fit a port or its device."""
        names = (str(port), port.device)
        for rail, patterns in enumerate(self._rails):
            if any(fnmatchcase(name, each) for each in patterns for name in names):
                return rail
        return None


def is_watched(name: str, devices: Devices) -> bool:
    """Tell whether the patterns of the configuration let this device through."""
    return any(fnmatchcase(name, pattern) for pattern in devices.include) and not any(
        fnmatchcase(name, pattern) for pattern in devices.exclude
    )


def find_profile(config: Config, product: str | None) -> Profile | None:
    """Return the first profile for the product; a configured product wins."""
    name = config.profile or product
    if name is None:
        return None
    fitting = (each for each in config.profiles if fnmatchcase(name, each.product))
    return next(fitting, None)


def _first(
    expectations: Iterable[Expectation], port: PortId, pci_address: str | None
) -> Expectation:
    """Return the first that fits, an empty one if none does."""
    names = [str(port), pci_address or ""]
    for each in expectations:
        if any(fnmatchcase(name, pattern) for pattern in each.ports for name in names):
            return each
    return Expectation(ports=())
