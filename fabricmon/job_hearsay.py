"""What the logs tell of the jobs on the node: devices, nodes, transport. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from fabricmon.model import JobTransport, JobUse, LogEvent, PortInfo
from fabricmon.value import Value

MOST_JOBS = 64
"""Jobs remembered; the one that was heard of longest ago goes first."""

MOST_DEVICES = 64
"""Devices remembered of one job."""

SILENT_SECONDS = 3600.0
"""A job that is not listed and was not heard of for so long is over."""

UNNAMED = "unknown"
"""Stands for the job of logs that nobody can attribute."""

_NETWORKS = (
    ("ib", ("ib", "roce", "gib", "ainic")),
    ("socket", ("socket", "fastsocket", "fastrak", "gpudirecttcpx")),
    ("ofi", ("ofi", "aws libfabric", "libfabric", "efa")),
)
_CHANNELS = frozenset({"channel_via_net", "channel_via_socket"})
_CHOICES = frozenset({"net_name", "net_fallback_socket"})


class _Told(Value, frozen=True):
    """What was told of one job; ``proven`` is a transport that a channel goes by."""

    at: float
    devices: tuple[str, ...] = ()
    nodes: int | None = None
    transport: str | None = None
    proven: bool = False


class Hearsay:
    """Takes in log events; says what they add to the jobs that are known otherwise."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._jobs: dict[str, _Told] = {}

    def take(self, event: LogEvent, at: float) -> None:
        """Take in one event, heard of at ``at`` (monotonic seconds)."""
        job = event.job or UNNAMED
        before = self._jobs.pop(job, None)
        after = _learn(before or _Told(at), event)
        if before is None and after == _Told(at):
            return
        self._jobs[job] = replace(after, at=at)
        while len(self._jobs) > MOST_JOBS:
            del self._jobs[next(iter(self._jobs))]

    def forget(self, listed: Iterable[JobUse], now: float) -> None:
        """Forget jobs that are over."""
        known = {use.job for use in listed}
        self._jobs = {
            job: told
            for job, told in self._jobs.items()
            if job in known or now - told.at < SILENT_SECONDS
        }

    def transports(self) -> tuple[JobTransport, ...]:
        """Return the transport of each job that told one."""
        return tuple(
            JobTransport(job, told.transport)
            for job, told in self._jobs.items()
            if told.transport is not None
        )

    def add_to(self, uses: Sequence[JobUse]) -> tuple[JobUse, ...]:
        """Return the jobs with the devices and the number of nodes that were told."""
        return tuple(self._added(use) for use in uses)

    def _added(self, use: JobUse) -> JobUse:
        told = self._jobs.get(use.job)
        if told is None:
            return use
        devices = tuple(dict.fromkeys((*use.devices, *told.devices)))
        return replace(use, devices=devices, nodes=use.nodes or told.nodes)


def transport_of(network: str) -> str:
    """Return the kind of a network by NCCL's name for it (``IB``, ``IBext_v8``...)."""
    name = network.strip().lower()
    for kind, names in _NETWORKS:
        if name.startswith(names):
            return kind
    return "other"


def with_rails(uses: Iterable[JobUse], ports: Iterable[PortInfo]) -> tuple[JobUse, ...]:
    """Return the jobs with the rails of their devices; none known stays none."""
    places = [port for port in ports if port.rail is not None]
    return tuple(replace(use, rails=_rails(use, places)) for use in uses)


def ports_of(use: JobUse, ports: Iterable[PortInfo]) -> tuple[PortInfo, ...]:
    """Return the ports that a job was given or uses; none where they are not known."""
    return tuple(port for port in ports if any(_is(port, name) for name in use.devices))


def _rails(use: JobUse, places: Sequence[PortInfo]) -> tuple[int | str, ...]:
    found = dict.fromkeys(
        port.rail for port in ports_of(use, places) if port.rail is not None
    )
    return tuple(sorted(found, key=lambda rail: (isinstance(rail, str), rail)))


def _is(port: PortInfo, name: str) -> bool:
    """Tell whether a port is meant: by PCI address, device or device and port.

    A virtual function stands for the port of its physical one.
    """
    if name in {port.pci_address, port.pf}:
        return True
    whole = f"{port.id.device}/{port.id.port}"
    return fnmatchcase(whole if "/" in name else port.id.device, name)


def _learn(told: _Told, event: LogEvent) -> _Told:
    if event.kind == "net_selected":
        return _device(told, event)
    if event.kind == "comm_shape":
        nodes = event.field("nodes")
        if isinstance(nodes, str) and nodes.isdecimal():
            nodes = int(nodes)
        largest = max(told.nodes or 0, nodes) if isinstance(nodes, int) else None
        return replace(told, nodes=largest or told.nodes)
    if event.kind in _CHANNELS or event.kind in _CHOICES:
        return _transport(told, event)
    return told


def _device(told: _Told, event: LogEvent) -> _Told:
    if event.device is None or len(told.devices) == MOST_DEVICES:
        return told
    port = "" if event.port is None else f"/{event.port}"
    devices = dict.fromkeys((*told.devices, f"{event.device}{port}"))
    return replace(told, devices=tuple(devices))


def _transport(told: _Told, event: LogEvent) -> _Told:
    """Take the newest channel; what a process merely chose counts until there is one.

    A job that spans no nodes chooses a network and never uses it.
    """
    is_channel = event.kind in _CHANNELS
    name = event.status
    if event.kind == "channel_via_socket":
        name = name or "Socket"
    if name is None or (told.proven and not is_channel):
        return told
    return replace(told, transport=transport_of(str(name)), proven=is_channel)
