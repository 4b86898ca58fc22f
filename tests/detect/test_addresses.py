"""A port that got another address under a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.detect.addresses import AddressChange
from fabricmon.model import Action, Gid, GidTable, JobUse, JobView, Severity
from fabricmon.parse.words import LinkLayer
from tests.node import Node, pid
from tests.views import port

OLD, NEW, OTHER = "10.20.0.1", "10.99.0.7", "10.30.0.1"
V1, V2 = "IB/RoCE v1", "RoCE v2"
LOCAL = "fe80:0000:0000:0000:a088:c203:0000:1401"
ROCE = tuple(
    replace(port(f"mlx5_{rail}", rail=rail, link_layer=LinkLayer.ETHERNET),
            netdev=f"eth{rail}", netdevs=(f"eth{rail}",))
    for rail in range(4)
)  # fmt: skip
JOB = JobUse("train", "slurm")


def mapped(address: str) -> str:
    """Return the GID of an IPv4 address, as sysfs writes it."""
    parts = [int(part) for part in address.split(".")]
    digits = "".join(f"{part:02x}" for part in parts)
    return f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}"


class Addressed(Node):
    """A node whose RoCE ports have addresses, read at each step; a job runs."""

    def __init__(self, **options: Any) -> None:
        self.gids: dict[int, tuple[Gid, ...]] = {}
        self.jobs: tuple[JobUse, ...] = (JOB,)
        super().__init__(AddressChange, infos=ROCE, begin=False, **options)
        for rail in range(4):
            self.give(rail, f"10.{20 + rail}.0.1")
        self.run(60)

    def give(
        self, rail: int, *addresses: str, netdev: str | None = None, kind: str = V2
    ) -> None:
        """Let a port have these addresses, and the one of its link."""
        netdev = netdev or f"eth{rail}"
        known = [Gid(0, LOCAL, V1, f"eth{rail}")]
        known += [
            Gid(n, mapped(each), kind, netdev) for n, each in enumerate(addresses, 1)
        ]
        self.gids[rail] = tuple(known)

    def step_all(self, seconds: float = 5.0) -> None:
        """Read the tables anew."""
        tables = tuple(
            GidTable(pid(rail), self.now + seconds, gids)
            for rail, gids in self.gids.items()
        )
        self.job = JobView(jobs=self.jobs, gids=tables)
        super().step_all(seconds)


def test_another_address_under_a_job() -> None:
    """The port is told, which address became which, and that its link is well."""
    node = Addressed()
    node.give(0, NEW)
    node.run(30)
    finding = node.open_of("config_drift").finding
    assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
    assert finding.subject.device == "mlx5_0"
    assert f"address {OLD} became {NEW}" in finding.summary
    assert (finding.evidence[0].value, finding.evidence[0].threshold) == (NEW, OLD)


def test_without_a_job() -> None:
    """Nothing breaks: information."""
    node = Addressed()
    node.jobs = ()
    node.give(0, NEW)
    node.run(30)
    finding = node.open_of("config_drift").finding
    assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)


def test_is_over() -> None:
    """After ten minutes what was connected before has failed or was made anew."""
    node = Addressed()
    node.give(0, NEW)
    node.run(590)
    assert node.kinds == ["config_drift"]
    node.run(330)
    assert node.kinds == []


def test_taken_back() -> None:
    """With the old address things are as they were."""
    node = Addressed()
    node.give(0, NEW)
    node.run(30)
    node.give(0, OLD)
    node.run(330)
    assert node.kinds == []


@pytest.mark.parametrize("meanwhile", [(), (OLD, OTHER), (OLD, OTHER, NEW)])
def test_what_changes_nothing(meanwhile: tuple[str, ...]) -> None:
    """Addresses that come beside it, and one that went and came back with its link."""
    node = Addressed()
    node.give(0, *meanwhile)
    node.run(60)
    node.give(0, OLD)
    node.run(60)
    assert node.opened == []


def test_containers() -> None:
    """The addresses of their network devices come and go with them."""
    node = Addressed()
    node.gids[0] += (Gid(5, mapped(OTHER), V2, "eth0.macvlan"),)
    node.run(30)
    node.gids[0] = (*node.gids[0][:-1], Gid(5, mapped(NEW), V2, "eth0.macvlan"))
    node.run(30)
    assert node.opened == []


@pytest.mark.parametrize("changed_before", [False, True])
def test_restart(*, changed_before: bool) -> None:
    """A change is told on, and one that came while no agent ran is seen."""
    node = Addressed()
    if changed_before:
        node.give(0, NEW)
        node.run(30)
    node.restart()
    if not changed_before:
        node.give(0, NEW)
    node.run(30)
    assert node.opened == ["config_drift"]
    assert node.kinds == ["config_drift"]


def test_damaged_state() -> None:
    """It is said, and begun anew."""
    node = Addressed()
    with pytest.raises(ValueError, match="SavedTables"):
        node.detectors[0].restore(b"\x00", 0.0)
