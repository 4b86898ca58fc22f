"""A small cluster with a job, as its agents export it, and alerts of it."""

from __future__ import annotations

from collections.abc import Mapping

from fabricmon.kinds import BY_SLUG
from tests.fleet.promtool import Labels, Told, series

JOB = "train"
NODES = tuple(f"n{number}" for number in range(1, 6))


def cluster(
    nodes: tuple[str, ...] = NODES,
    rails: tuple[int, ...] = (0, 1, 2, 3),
    link_layer: str = "InfiniBand",
    leaf: str = "leaf{rail}",
    values: str = "1x200",
) -> dict[str, str]:
    """Return the identity of nodes with a port on each rail, all used by one job."""
    found = {}
    for node in nodes:
        found[series("fabricmon_build_info", node=node, version="1")] = values
        for rail in rails:
            where = {"node": node, "device": f"mlx5_{rail}", "port": 1}
            behind = leaf.format(rail=rail, node=node)
            found[
                series(
                    "fabricmon_infiniband_port_info",
                    **where,
                    role="compute",
                    is_vf="false",
                    link_layer=link_layer,
                    rail=rail,
                    leaf=behind,
                )
            ] = values
            found[series("fabricmon_port_job_info", **where, job=JOB)] = values
    return found


def ports(
    metric: str,
    values: Mapping[str, str],
    rails: tuple[int, ...] = (1,),
    **labels: object,
) -> dict[str, str]:
    """Return a metric of the same rails on several nodes, by node."""
    return {
        series(metric, node=node, device=f"mlx5_{rail}", port=1, **labels): text
        for node, text in values.items()
        for rail in rails
    }


def every(values: str, nodes: tuple[str, ...] = NODES) -> dict[str, str]:
    """Return the same values for all nodes."""
    return dict.fromkeys(nodes, values)


def told(
    alert: str,
    kind: str,
    labels: Labels,
    summary: str,
    description: str,
    *,
    severity: str = "warning",
    role: str = "observer",
    notice: str = "info",
    dashboard: str = "fabricmon-fleet",
    shown: str = "",
) -> Told:
    """Return an alert of a fleet: nothing is advised."""
    assert kind in BY_SLUG
    own = {
        "alertname": alert,
        "cluster": "c1",
        "kind": kind,
        "severity": severity,
        "role": role,
        "action": "none",
        "origin": "fleet",
        "notice": notice,
    }
    return Told(
        labels={**own, **labels},
        summary=summary,
        description=description,
        dashboard=f"/d/{dashboard}?var-cluster=c1{shown}",
    )
