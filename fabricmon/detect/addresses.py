"""A RoCE port that got another address: ``config_drift`` (F52).

Connections are made between addresses: those made before do not go on, whatever the
link does. An address that came beside others, or went and came back, changes nothing;
nor do those of containers, whose network devices are not the port's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    GidTable,
    PortId,
    PortInfo,
    Severity,
    View,
)
from fabricmon.parse.address import is_routable, plain_peer
from fabricmon.port_key import port_key
from fabricmon.summaries import one_line
from fabricmon.value import State

Addresses = tuple[str, ...]
"""Each with the type of its GID after a blank: RoCE v1 and v2 have tables of their own."""


class SavedAddresses(Struct, frozen=True):
    """Addresses of one port, and what they were before a change; times are Unix."""

    key: str
    now: Addresses
    before: Addresses = ()
    since: float | None = None


class SavedTables(Struct, frozen=True):
    """What a restarted agent compares with."""

    ports: tuple[SavedAddresses, ...] = ()


class _Port(State):
    """The addresses of a port; ``before`` what they were until ``since``."""

    now: Addresses
    before: Addresses = ()
    since: float | None = None
    seen_at: float = 0.0

    def take(self, addresses: Addresses, at: float) -> None:
        """Take what a table says; none at all is a link that is down, or a reload."""
        if not addresses or set(addresses) == set(self.now):
            return
        lost = set(self.now) - set(addresses)
        if self.since is not None and set(self.before) <= set(addresses):
            self.since = None  # it is as it was
        elif lost and set(addresses) - set(self.now):
            self.before, self.since = self.now, at
        self.now = addresses


class AddressChange:
    """Follows the addresses of each RoCE port."""

    name = "addresses"
    kinds: tuple[str, ...] = ("config_drift",)

    def __init__(self, config: Config) -> None:
        """Take for how long a change is told."""
        self._told_seconds = config.settings.address_told_seconds
        self._ports: dict[PortId, _Port] = {}
        self._restored: dict[str, SavedAddresses] = {}
        self._keys: dict[PortId, str] = {}
        self._tables: tuple[GidTable, ...] = ()
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the ports whose address changed lately."""
        self._offset = view.onset_offset
        infos = {port.info.id: port.info for port in view.ports}
        if view.job.gids is not self._tables:
            self._tables = view.job.gids
            self._ports = {p: kept for p, kept in self._ports.items() if p in infos}
            for table in self._tables:
                if table.port in infos:
                    self._take(table, infos[table.port])
        for port, kept in self._ports.items():
            if kept.since is None or port not in infos:
                continue
            if view.now - kept.since >= self._told_seconds:
                kept.since = None
            else:
                yield _finding(infos[port], kept, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Yield nothing: a port without a table has no addresses to change."""
        del view
        yield from ()

    def save(self) -> bytes:
        """Return the addresses as they are, and changes that are told."""
        ports = (
            SavedAddresses(
                self._keys[port],
                kept.now,
                kept.before,
                None if kept.since is None else kept.since + self._offset,
            )
            for port, kept in self._ports.items()
            if port in self._keys
        )
        return pack(SavedTables((*ports, *self._restored.values())))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        self._offset = view_offset
        self._restored = {each.key: each for each in unpack(saved, SavedTables).ports}

    def _take(self, table: GidTable, info: PortInfo) -> None:
        addresses = tuple(dict.fromkeys(_own(table, info)))
        kept = self._ports.get(table.port)
        if kept is None:
            if not addresses:
                return
            kept = self._ports[table.port] = self._known(info) or _Port(addresses)
        if table.at > kept.seen_at:
            kept.seen_at = table.at
            kept.take(addresses, table.at)

    def _known(self, info: PortInfo) -> _Port | None:
        """Return what an earlier agent knew of a port."""
        key = self._keys[info.id] = port_key(info)
        saved = self._restored.pop(key, None)
        if saved is None:
            return None
        since = None if saved.since is None else saved.since - self._offset
        return _Port(saved.now, saved.before, since)


def _own(table: GidTable, info: PortInfo) -> Iterator[str]:
    devices = {info.netdev, *info.netdevs, None}
    for gid in table.gids:
        address = plain_peer(gid.gid)
        if gid.netdev in devices and is_routable(address):
            yield f"{address} {gid.type}"


def _plain(addresses: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(each.partition(" ")[0] for each in addresses))


def _finding(info: PortInfo, kept: _Port, view: View) -> Finding:
    since = view.now if kept.since is None else kept.since
    source = f"infiniband/{info.id.device}/ports/{info.id.port}/gids"
    lost = _plain(each for each in kept.before if each not in kept.now)
    new = _plain(each for each in kept.now if each not in kept.before)
    has_job = bool(view.job.jobs or view.job.processes or view.job.logs)
    broken = "connections made before do not go on" if has_job else "no job is here"
    return Finding(
        kind="config_drift",
        subject=subject_of(info),
        onset=since + view.onset_offset,
        evidence=(Evidence("gid", ", ".join(new), "", source, ", ".join(lost)),),
        summary=one_line(
            f"{info.id}: address {', '.join(lost)} became {', '.join(new)}: "
            f"{broken}; no fault of the link"
        ),
        severity=Severity.WARNING if has_job else Severity.INFO,
        action=Action.INSPECT if has_job else Action.NONE,
    )
