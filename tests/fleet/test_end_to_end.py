"""From a file of sysfs to a person: real agents, rules, Prometheus and Alertmanager.

Each test has ports of its own and leaves them as they were, so that all share a fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.fleet.loopback import CLUSTER, NODES, Fleet
from tests.fleet.loopback import fleet as started
from tests.support.agent import Json
from tests.support.servers import wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]

RUNBOOKS = "https://git.example/fabricmon/docs/runbooks"
DASHBOARDS = "https://grafana.example/d"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return four nodes that are watched and well."""
    with started(tmp_path_factory.mktemp("fleet")) as running:
        yield running


def port_down(node: str, device: str, rail: int, rack: str) -> dict[str, str]:
    """Return the labels of the alert for a port, without who hears of it."""
    return {
        "alertname": "FabricPortDown",
        "kind": "port_down",
        "severity": "critical",
        "role": "culprit",
        "action": "drain_now",
        "origin": "node",
        "cluster": CLUSTER,
        "node": node,
        "device": device,
        "port": "1",
        "rail": str(rail),
        "leaf": f"leaf-{rail}",
        "rack": rack,
    }


def the_finding(fleet: Fleet, node: str, device: str) -> Json:
    """Return what the agent itself says of a port that is down."""
    findings = fleet.agents[node].findings("port_down")
    (finding,) = [f for f in findings if f["subject"]["device"] == device]
    return finding


def test_a_port_with_a_job_pages_and_its_repair_resolves(fleet: Fleet) -> None:
    """The page has the labels, the words and the links that a person needs."""
    fleet.run_job("gpu-01", "4711")
    fleet.down("gpu-01", "mlx5_4")
    labels = port_down("gpu-01", "mlx5_4", 2, "r0")

    told = fleet.hook.wait_for_alert("firing", labels)
    assert told.path == "/page"
    assert told.labels == labels | {"notice": "page"}
    onset = datetime.fromisoformat(the_finding(fleet, "gpu-01", "mlx5_4")["onset"])
    assert told.annotations["summary"] == (
        f"gpu-01 mlx5_4/1: port down, fault at this end, since {onset:%H:%M:%S} UTC"
    )
    assert told.annotations["runbook_url"] == f"{RUNBOOKS}/port_down.md"
    assert told.annotations["dashboard_url"] == (
        f"{DASHBOARDS}/fabricmon-node"
        f"?var-cluster={CLUSTER}&var-node=gpu-01&var-device=mlx5_4"
    )

    fleet.up("gpu-01", "mlx5_4")
    repaired = fleet.hook.wait_for_alert("resolved", labels)
    assert (repaired.path, repaired.labels) == (told.path, told.labels)


def test_a_port_without_a_job_is_a_ticket(fleet: Fleet) -> None:
    """Nobody is woken up for it; its repair closes the ticket."""
    fleet.down("gpu-02", "mlx5_1")
    labels = port_down("gpu-02", "mlx5_1", 1, "r0")

    told = fleet.hook.wait_for_alert("firing", labels)
    assert told.path == "/ticket"
    assert told.labels == labels | {"notice": "ticket"}

    fleet.up("gpu-02", "mlx5_1")
    repaired = fleet.hook.wait_for_alert("resolved", labels)
    assert (repaired.path, repaired.labels) == (told.path, told.labels)


def test_a_leaf_that_falls_is_told_once(fleet: Fleet) -> None:
    """Its ports are inhibited, the one with a job too; when all are up it is over."""
    device = "mlx5_0"
    for node in NODES:
        fleet.down(node, device)

    leaf = {"alertname": "FabricCommonCause", "leaf": "leaf-0"}
    told = fleet.hook.wait_for_alert("firing", leaf)
    assert told.path == "/ticket"
    assert told.labels == leaf | {
        "kind": "common_cause",
        "severity": "warning",
        "role": "observer",
        "action": "none",
        "notice": "ticket",
        "origin": "fleet",
        "cluster": CLUSTER,
        "rail": "0",
    }
    assert told.annotations["summary"] == (
        "leaf leaf-0: 4 ports went down within seconds: one cause"
    )
    assert told.annotations["runbook_url"] == f"{RUNBOOKS}/common_cause.md"

    member = {"alertname": "FabricPortDown", "device": device}
    (cause,) = fleet.alerts(**leaf)
    wait_until(
        lambda: len(inhibited(fleet, cause, **member)) == len(NODES),
        20,
        "Alertmanager holds every port of the leaf back",
    )
    for node in NODES:
        fleet.up(node, device)
    fleet.hook.wait_for_alert("resolved", leaf)
    told_of_leaf = fleet.hook.deliveries(leaf="leaf-0")
    heard = [
        (e.labels["alertname"], e.status, e.labels.get("node")) for e in told_of_leaf
    ]
    assert {name for name, _, _ in heard} == {"FabricCommonCause"}, heard


def inhibited(fleet: Fleet, cause: Json, **labels: str) -> list[Json]:
    """Return the alerts that Alertmanager does not tell because of another."""
    by = cause["fingerprint"]
    return [
        each for each in fleet.alerts(**labels) if by in each["status"]["inhibitedBy"]
    ]


def test_an_agent_that_ends_is_missed(fleet: Fleet) -> None:
    """That is all that is told of the node, until the agent is back."""
    agent = fleet.agents["gpu-04"]
    before = len(fleet.hook.deliveries(node="gpu-04"))
    absent = {"alertname": "FabricAgentAbsent", "node": "gpu-04"}
    # Who lived shorter than the steps in which the rule looks back was never there.
    seen = 'count_over_time(fabricmon_build_info{node="gpu-04"}[1m]) >= 5'
    wait_until(lambda: fleet.count(seen) == 1, 20, "the agent has been there a while")
    agent.kill()
    try:
        told = fleet.hook.wait_for_alert("firing", absent)
    finally:
        agent.start()
    assert told.path == "/ticket"
    assert told.labels == absent | {
        "kind": "agent_absent",
        "severity": "warning",
        "role": "observer",
        "action": "none",
        "notice": "ticket",
        "origin": "fleet",
        "cluster": CLUSTER,
        "rack": "r1",
    }
    assert told.annotations["summary"] == (
        "gpu-04: the agent has not been scraped for 2s or longer"
    )

    fleet.hook.wait_for_alert("resolved", absent)
    since = fleet.hook.deliveries(node="gpu-04")[before:]
    assert [each.labels["alertname"] for each in since] == ["FabricAgentAbsent"] * 2
