"""The example configuration in a real Alertmanager: routes, groups, inhibitions."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricmon.fleet.alertmanager import NOBODY, PAGER, TICKETS, alertmanager_file
from fabricmon.fleet.inhibitions import INHIBITIONS
from fabricmon.fleet.options import FleetOptions
from tests.fleet.webhook import Webhook, webhook
from tests.support.programs import require
from tests.support.servers import Server, wait_until

Labels = Mapping[str, str]


def alert(name: str, **labels: str) -> dict[str, str]:
    """Return the labels of an alert of a node, a page unless they say otherwise."""
    usual = {"alertname": name, "cluster": "c1", "origin": "node"}
    return usual | {"notice": "page", "severity": "critical"} | labels


def fleet(name: str, **labels: str) -> dict[str, str]:
    """Return the labels of an alert that compares nodes."""
    return alert(name, **{"origin": "fleet", **labels})


def on_port(name: str, kind: str, **labels: str) -> dict[str, str]:
    """Return the labels of an alert about a port."""
    place = {"node": "n1", "device": "mlx5_3", "port": "1", "rail": "3", "leaf": "l3"}
    return alert(name, kind=kind, **{**place, **labels})


def post(server: Server, alerts: list[dict[str, str]]) -> None:
    """Send alerts as Prometheus does."""
    body = json.dumps([{"labels": labels} for labels in alerts]).encode()
    request = urllib.request.Request(
        f"{server.url}/api/v2/alerts", body, {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=10).close()


def config(hook: Webhook | None = None) -> str:
    """Return the example with the test's receivers, and without long waits."""
    text = alertmanager_file(FleetOptions())
    if hook is None:
        return text
    document: Any = yaml.safe_load(text)
    document["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    for receiver, path in zip(
        document["receivers"][1:], ("/page", "/ticket"), strict=True
    ):
        receiver["webhook_configs"] = [{"url": hook.url(path)}]
    return yaml.safe_dump(document)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The example as a file."""
    path = tmp_path / "alertmanager.yml"
    path.write_text(config())
    return path


def amtool(*words: object) -> str:
    """Run amtool and return what it prints; fail if it fails."""
    command = [require("amtool"), *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


def test_amtool_takes_it(file: Path) -> None:
    """It is right as it stands."""
    assert f"{len(INHIBITIONS)} inhibit rules" in amtool("check-config", file)


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"notice": "page", "origin": "node"}, PAGER),
        ({"notice": "page", "origin": "fleet"}, PAGER),
        ({"notice": "ticket", "origin": "node"}, TICKETS),
        ({"notice": "ticket", "origin": "fleet"}, TICKETS),
        ({"notice": "info", "origin": "node"}, NOBODY),
        ({"alertname": "SomethingElse"}, NOBODY),
    ],
)
def test_routes(labels: Labels, receiver: str, file: Path) -> None:
    """A page goes to the pager, a ticket to the tickets, information nowhere."""
    words = [f"{name}={value}" for name, value in labels.items()]
    command = ("config", "routes", "test", f"--config.file={file}", *words)
    assert amtool(*command) == receiver


@pytest.mark.server
def test_one_incident_is_one_notification(
    start_alertmanager: Callable[..., Server],
) -> None:
    """What a device of a node tells comes together; a leaf's fall comes alone."""
    with webhook() as hook:
        server = start_alertmanager(config(hook))
        post(
            server,
            [
                on_port("FabricPortDown", "port_down", leaf="l1"),
                on_port("FabricPcieErrors", "pcie_errors", leaf="l1"),
                on_port("FabricPortDown", "port_down", node="n2", leaf="l3"),
                on_port("FabricPortDown", "port_down", node="n3", leaf="l3"),
                fleet("FabricCommonCause", kind="common_cause", leaf="l3"),
                on_port("FabricNicPower", "nic_power", notice="ticket", node="n4"),
                on_port("FabricCongestion", "congestion", notice="info", node="n5"),
            ],
        )
        hook.wait_for(3)
        assert hook.alerts("/page") == [
            ["FabricCommonCause"],
            ["FabricPcieErrors", "FabricPortDown"],
        ]
        assert hook.alerts("/ticket") == [["FabricNicPower"]]


@dataclass(frozen=True)
class Pair:
    """A source, what it silences, and what is like that and is not silenced."""

    reason: str
    source: Labels
    target: Labels
    spared: Labels


_RAIL = {"rail": "3", "training": "t1"}
PAIRS = (
    Pair(
        "a node that is down explains all that is told of it",
        {"alertname": "KubeNodeNotReady", "node": "n1"},
        on_port("FabricPortDown", "port_down"),
        fleet("FabricCommonCause", kind="common_cause", leaf="l9"),
    ),
    Pair(
        "what falls with a leaf is told with the leaf",
        fleet("FabricCommonCause", kind="common_cause", leaf="l3"),
        on_port("FabricPortDown", "port_down", leaf="l3"),
        on_port("FabricModuleHot", "module_hot", leaf="l3"),
    ),
    Pair(
        "what falls with a rail is told with the rail",
        fleet("FabricCommonCause", kind="common_cause", rail="3"),
        on_port("FabricPortDown", "port_down", rail="3"),
        on_port("FabricPortDown", "port_down", rail="4"),
    ),
    Pair(
        "what falls with a rack is told with the rack",
        fleet("FabricCommonCause", kind="common_cause", rack="r1"),
        on_port("FabricDeviceMissing", "device_missing", rack="r1"),
        on_port("FabricDeviceMissing", "device_missing", rack="r2", node="n2"),
    ),
    Pair(
        "a link that fails loses packets: the link is the story",
        on_port("FabricLinkBER", "link_errors", notice="ticket"),
        on_port("FabricTransportRetries", "transport_retries", notice="info"),
        on_port("FabricTransportRetries", "transport_retries", device="mlx5_4"),
    ),
    Pair(
        "a port that is down or flaps has every other sign of a bad link",
        on_port("FabricPortFlapping", "port_flapping"),
        on_port("FabricLinkBER", "link_errors", notice="ticket"),
        on_port("FabricOpticsWeak", "optics_weak", notice="ticket"),
    ),
    Pair(
        "a port that stayed down when its leaf came back is told as that",
        on_port("FabricPortLeftDown", "port_down", origin="fleet"),
        on_port("FabricPortDown", "port_down"),
        on_port("FabricPortDown", "port_down", device="mlx5_4"),
    ),
    Pair(
        "a device that is gone or stuck takes its ports along",
        alert("FabricDeviceMissing", kind="device_missing", node="n1", device="mlx5_3"),
        on_port("FabricPortDown", "port_down"),
        on_port("FabricPortDown", "port_down", device="mlx5_4"),
    ),
    Pair(
        "who waits for a link that failed is told with the link",
        on_port("FabricPortDown", "port_down", leaf="l3"),
        on_port(
            "FabricRetriesExhausted",
            "retries_exhausted",
            node="n2",
            leaf="l3",
            role="victim",
            notice="info",
        ),
        on_port(
            "FabricTransportRetries",
            "transport_retries",
            node="n3",
            leaf="l3",
            role="culprit",
            notice="ticket",
        ),
    ),
    Pair(
        "the port that paces a rail explains the slow rail",
        on_port("FabricStragglerLink", "straggler_link", **_RAIL),
        fleet("FabricRailSlow", kind="rail_slow", **_RAIL),
        fleet("FabricRailSlow", kind="rail_slow", rail="3", training="t2"),
    ),
    Pair(
        "the port that paces a job explains what the job's nodes see of slow rails",
        on_port("FabricStragglerLink", "straggler_link", **_RAIL),
        alert("FabricRailSlowSeen", kind="rail_slow", node="n2", training="t1"),
        alert("FabricRailSlowSeen", kind="rail_slow", node="n2", training="t2"),
    ),
    Pair(
        "who floods a leaf with pause explains who waits on it",
        on_port("FabricPauseOrigin", "pause_origin", rail="1"),
        on_port("FabricPauseVictim", "pause_victim", node="n2", rail="2"),
        on_port("FabricPauseVictim", "pause_victim", node="n2", rail="2", leaf="l4"),
    ),
    Pair(
        "who floods a rail with pause explains who waits on it",
        on_port("FabricPauseOrigin", "pause_origin", leaf="l1"),
        on_port("FabricPauseVictim", "pause_victim", node="n2", leaf="l2"),
        on_port("FabricPortDown", "port_down", node="n2", leaf="l2"),
    ),
    Pair(
        "what a leaf does without its subnet manager is told with the leaf",
        fleet("FabricLeafNotConfigured", kind="fabric_control", leaf="l3"),
        on_port("FabricPortNotActive", "port_not_active", leaf="l3"),
        on_port("FabricPortNotActive", "port_not_active", leaf="l4"),
    ),
    Pair(
        "who suffers from the fabric is told with the fabric",
        fleet("FabricCorruption", kind="fabric_suspect", rail="2"),
        on_port("FabricTransportRetries", "transport_retries", rail="2"),
        on_port("FabricTransportRetries", "transport_retries", rail="3"),
    ),
    Pair(
        "a rail that the fabric holds up is slow for it",
        fleet("FabricPauseTree", kind="fabric_suspect", rail="3"),
        fleet("FabricRailSlow", kind="rail_slow", **_RAIL),
        fleet("FabricRailSlow", kind="rail_slow", rail="2", training="t2"),
    ),
    Pair(
        "damage from before a link is told with the fabric",
        fleet("FabricCorruption", kind="fabric_suspect", rail="2"),
        on_port("FabricLinkBER", "link_errors", rail="2", role="observer"),
        on_port("FabricLinkBER", "link_errors", rail="2", role="culprit"),
    ),
    Pair(
        "a slow rail that all nodes of its job see is told once",
        fleet("FabricRailSlow", kind="rail_slow", **_RAIL),
        alert("FabricRailSlowSeen", kind="rail_slow", node="n1"),
        fleet("FabricNodeRailSlow", kind="rail_slow", node="n2", rail="3"),
    ),
    Pair(
        "who pauses later than another of its rail only answers that one",
        fleet(
            "FabricPauseFollower",
            kind="pause_victim",
            node="n1",
            device="mlx5_3",
            port="1",
        ),
        on_port("FabricPauseOrigin", "pause_origin"),
        on_port("FabricPauseOrigin", "pause_origin", node="n2"),
    ),
    Pair(
        "the vote of several nodes stands for what each of them sees",
        fleet("FabricPeerSuspect", kind="peer_suspect", peer="n7"),
        alert("FabricPeerSuspectSeen", kind="peer_suspect", node="n1"),
        alert("FabricNcclError", kind="nccl_error", node="n1"),
    ),
    Pair(
        "a node whose agent is gone is likely down: its peers tell that too",
        fleet("FabricAgentAbsent", kind="agent_absent", node="n7"),
        fleet("FabricPeerSuspect", kind="peer_suspect", node="n7"),
        fleet("FabricPeerSuspect", kind="peer_suspect", node="n8"),
    ),
    Pair(
        "so many absent agents have one cause",
        fleet("FabricAgentsAbsent", kind="agent_absent"),
        fleet("FabricAgentAbsent", kind="agent_absent", node="n7"),
        fleet("FabricSnapshotOld", kind="snapshot_old", node="n8"),
    ),
    Pair(
        "an agent that stands still judges nothing: what it says is old",
        fleet("FabricSnapshotOld", kind="snapshot_old", node="n1"),
        alert("FabricTelemetryStale", kind="telemetry_stale", node="n1"),
        alert("FabricTelemetryStale", kind="telemetry_stale", node="n2"),
    ),
    Pair(
        "the graver finding of a kind at a place stands for the milder",
        on_port("FabricNcclError", "nccl_error"),
        on_port("FabricNcclError", "nccl_error", severity="warning", notice="ticket"),
        on_port("FabricOpticsWeak", "optics_weak", severity="warning"),
    ),
)


def test_every_inhibition_has_a_pair() -> None:
    """Whoever adds one shows what it silences, and what not."""
    assert {pair.reason for pair in PAIRS} == {row.reason for row in INHIBITIONS}


@pytest.mark.server
def test_a_cause_silences_what_it_explains(
    start_alertmanager: Callable[..., Server],
) -> None:
    """And nothing else: each pair is a cluster of its own."""
    server = start_alertmanager(config())
    clusters = {f"c{number}": pair for number, pair in enumerate(PAIRS)}
    post(
        server,
        [
            {**labels, "cluster": cluster, "is": word}
            for cluster, pair in clusters.items()
            for word, labels in (
                ("source", pair.source),
                ("target", pair.target),
                ("spared", pair.spared),
            )
        ],
    )
    found: list[tuple[str, str]] = []

    def is_right() -> bool:
        """Alertmanager takes alerts in one after the other."""
        states = _states(server)
        found[:] = [
            (clusters[cluster].reason, word)
            for (cluster, word), state in states.items()
            if (state == "suppressed") is not (word == "target")
        ]
        return len(states) == 3 * len(PAIRS) and not found

    with suppress(AssertionError):
        wait_until(is_right, 30, "each cause silences")
    assert found == []
    assert len(_states(server)) == 3 * len(PAIRS)


def _states(server: Server) -> dict[tuple[str, str], str]:
    with urllib.request.urlopen(f"{server.url}/api/v2/alerts", timeout=10) as reply:
        alerts = json.load(reply)
    return {
        (each["labels"]["cluster"], each["labels"]["is"]): each["status"]["state"]
        for each in alerts
    }
