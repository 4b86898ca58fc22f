"""What a single sample can hold against a configuration, and against the netdevs.

Growth and flaps need an agent; this is what one look can prove.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    PortSnapshot,
    Severity,
    Snapshot,
    Subject,
)
from fabricmon.parse.words import LinkLayer, PortState

_SYSFS = "/sys/class/infiniband"


def sample_findings(snapshot: Snapshot, config: Config) -> tuple[Finding, ...]:
    """Return what is proven by one look, in the order of devices."""
    found = list(_missing(snapshot, config))
    for port in snapshot.ports:
        found += _slow(port, snapshot.wall)
        found += _netdev_down(port, snapshot.wall)
    return tuple(found)


def _missing(snapshot: Snapshot, config: Config) -> Iterator[Finding]:
    there = {hca.name for hca in snapshot.hcas}
    for name in config.expected_devices:
        if name not in there:
            yield Finding(
                kind="device_missing",
                subject=Subject(device=name),
                onset=snapshot.wall,
                evidence=(
                    Evidence(
                        signal="expected_devices",
                        value="absent",
                        unit="",
                        source=_SYSFS,
                        threshold=name,
                    ),
                ),
                summary=f"{name} is expected and not there",
                severity=Severity.CRITICAL,
                action=Action.INSPECT,
            )


def _slow(port: PortSnapshot, wall: float) -> Iterator[Finding]:
    status, wanted = port.status, port.info.expected_rate_gbps
    if status is None or status.state is not PortState.ACTIVE or wanted is None:
        return
    actual = status.rate.gbps
    if actual is None or actual >= wanted:
        return
    name = port.info.id
    yield Finding(
        kind="rate_degraded",
        subject=Subject(device=name.device, port=name.port),
        onset=wall,
        evidence=(
            Evidence(
                signal="rate",
                value=actual,
                unit="Gb/s",
                source=f"{_SYSFS}/{name.device}/ports/{name.port}/rate",
                threshold=wanted,
            ),
        ),
        summary=f"{name} runs at {actual:g} of {wanted:g} Gb/s, the link is up",
        severity=Severity.CRITICAL,
        action=Action.DRAIN_AFTER_JOB,
    )


def _netdev_down(port: PortSnapshot, wall: float) -> Iterator[Finding]:
    """Notice an ACTIVE InfiniBand port whose IPoIB interface lost its carrier.

    Ethernet is left alone: there RDMA port and interface fall together. So is an
    interface that never lost a carrier: nobody uses it.
    """
    status, netdev = port.status, port.netdev
    if status is None or netdev is None or netdev.operstate != "down":
        return
    layer = port.info.link_layer
    if status.state is not PortState.ACTIVE or layer is not LinkLayer.INFINIBAND:
        return
    losses = _carrier_losses(port)
    if not losses:
        return
    name = port.info.id
    yield Finding(
        kind="config_mismatch",
        subject=Subject(device=name.device, port=name.port, netdev=netdev.netdev),
        onset=wall,
        evidence=(
            Evidence(
                signal="carrier_down_count",
                value=losses,
                unit="events",
                source=f"/sys/class/net/{netdev.netdev}",
            ),
        ),
        summary=f"{name} is ACTIVE, its {netdev.netdev} is down after {losses} losses",
        severity=Severity.WARNING,
        action=Action.INSPECT,
    )


def _carrier_losses(port: PortSnapshot) -> int:
    for reading in port.readings:
        for spec, value in zip(reading.specs, reading.values, strict=True):
            if spec.signal is Signal.CARRIER_DOWN and value is not None:
                return value
    return 0
