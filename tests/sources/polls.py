"""Polling a node in tests: every source of the registry, by name."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from fabricmon.config import Config
from fabricmon.host.protocol import Host
from fabricmon.model import DeviceList, Hca, Record, Target
from fabricmon.registry import SOURCES
from fabricmon.sources import identity
from fabricmon.sources.protocol import Scope
from tests.fake_host import FakeHost

Kind = TypeVar("Kind")
BY_NAME = {source.name: source for source in SOURCES}


def poll(
    name: str,
    host: FakeHost,
    target: Target | None = None,
    config: Config | None = None,
) -> tuple[Record, ...]:
    """Poll one source of the registry."""
    return BY_NAME[name].poll(host, target or Target(), config or Config())


def hca_of(host: FakeHost, name: str, config: Config | None = None) -> Hca:
    """Return the identity of a device."""
    return only(Hca, identity.poll(host, Target(name), config or Config()))


def only(kind: type[Kind], records: Iterable[Record]) -> Kind:
    """Return the one record of this kind."""
    (found,) = every(kind, records)
    return found


def every(kind: type[Kind], records: Iterable[Record]) -> tuple[Kind, ...]:
    """Return the records of this kind, in order."""
    return tuple(record for record in records if isinstance(record, kind))


@dataclass
class Sweep:
    """All that one poll of every source of a node gives."""

    host: Host
    config: Config = field(default_factory=Config)

    def records(self) -> tuple[Record, ...]:
        """Poll every source once, in the order of the registry."""
        found: list[Record] = []
        names: tuple[str, ...] = ()
        hcas: list[Hca] = []
        for source in SOURCES:
            targets = [Target()]
            if source.scope is Scope.DEVICE:
                targets = [Target(name) for name in names]
            if source.scope is Scope.HCA:
                targets = [Target(hca.name, hca) for hca in hcas]
            for target in targets:
                records = source.poll(self.host, target, self.config)
                hcas += every(Hca, records)
                found += records
            if source.name == "devices":
                names = only(DeviceList, found).names
        return tuple(found)
