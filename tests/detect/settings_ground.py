"""A RoCE node of eight rails, as settings are held against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.config import Settings
from fabricmon.detect.settings_case import (
    Case,
    Fit,
    Ground,
    RdmaPort,
    SettingCheck,
    effective,
)
from fabricmon.detect.settings_rules import judge_all
from fabricmon.model import (
    Gid,
    GidTable,
    HostPath,
    LibrarySetting,
    PortId,
    PortInfo,
    PriorityUse,
    Role,
)
from fabricmon.parse.words import LinkLayer, PortState
from tests.views import port

RAILS = 8
ROCE = tuple(
    port(
        f"mlx5_{rail}",
        link_layer=LinkLayer.ETHERNET,
        rail=rail,
        netdev=f"eth{rail}",
        netdevs=(f"eth{rail}",),
    )
    for rail in range(RAILS)
)
STORAGE = replace(ROCE[0], id=PortId("mlx5_10", 1), role=Role.STORAGE, rail=None)
LOCAL = "fe80:0000:0000:0000:9ab4:48ff:fef4:56b0"
DSCP_26_TO_3 = tuple(3 if dscp == 26 else 0 for dscp in range(64))


def table(info: PortInfo) -> GidTable:
    """Return the usual table: link-local in both versions, then the IPv4 address."""
    mapped = f"0000:0000:0000:0000:0000:ffff:0a14:1e{info.rail or 0:02x}"
    rows = [(LOCAL, "IB/RoCE v1"), (LOCAL, "RoCE v2")]
    rows += [(mapped, "IB/RoCE v1"), (mapped, "RoCE v2")]
    gids = tuple(Gid(n, gid, kind) for n, (gid, kind) in enumerate(rows))
    return GidTable(info.id, 0.0, gids)


def bridging(info: PortInfo, **parts: Any) -> PriorityUse:
    """Return a port with PFC and ECN for priority 3, and DSCP 26 in it."""
    use = PriorityUse(info.netdev or "", (3,), (3,), DSCP_26_TO_3)
    return replace(use, **parts)


def host_path(**parts: Any) -> HostPath:
    """Return a node on which nothing is wrong."""
    path = HostPath(
        at=0.0,
        peer_memory=True,
        dma_buf=False,
        iommu_translates=False,
        acs_redirects=False,
        near_gpus=tuple(info.id.device for info in ROCE),
        interfaces=("bond0", "docker0", "eno2", "lo", *(f"eth{n}" for n in range(8))),
        interfaces_up=("bond0", "lo", *(f"eth{n}" for n in range(8))),
        priorities=tuple(bridging(info) for info in ROCE),
    )
    return replace(path, **parts)


def ground(
    infos: tuple[PortInfo, ...] = ROCE,
    down: tuple[str, ...] = (),
    limits: Settings | None = None,
    **parts: Any,
) -> Ground:
    """Return what the node shows; ports of devices in ``down`` never had a link."""
    ports = tuple(
        RdmaPort(info, PortState.DOWN, was_active=False)
        if info.id.device in down
        else RdmaPort(info, PortState.ACTIVE, was_active=True)
        for info in infos
    )
    gids = tuple(table(i) for i in infos if i.link_layer is LinkLayer.ETHERNET)
    found = Ground(ports, gids, host_path(), limits or Settings())
    return replace(found, **parts)


def case(where: Ground | None = None, /, **settings: str) -> Case:
    """Return the case of a process whose environment is known."""
    told = (LibrarySetting(n, v, "environment") for n, v in settings.items())
    return Case(where or ground(), effective(told), (2, 27), complete=True)


def checks(*cases: Case) -> tuple[SettingCheck, ...]:
    """Return every verdict."""
    return judge_all(cases)


def wrong(*cases: Case) -> tuple[SettingCheck, ...]:
    """Return the verdicts that are mismatches."""
    return tuple(check for check in checks(*cases) if check.fit is Fit.MISMATCH)


def fits(name: str, *cases: Case) -> set[Fit]:
    """Return the verdicts on one variable."""
    return {check.fit for check in checks(*cases) if check.variable == name}
