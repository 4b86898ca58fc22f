"""A sink that tells an API server what a test publishes."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fabricmon.config import Config, Kubernetes, Log
from fabricmon.model import Action, Delivery, Incident, IncidentState
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks import kubernetes as module
from fabricmon.sinks.kubernetes import KubernetesSink
from tests.sinks import nodes
from tests.support.kube_faked import FakedApi
from tests.support.kube_real import RealApi
from tests.support.programs import MISSING
from tests.support.servers import wait_until

Json = dict[str, Any]
Server = FakedApi | RealApi

SOON = 5.0
"""Seconds within which what is told must have arrived."""

_NUMBERS = itertools.count()


@dataclass
class Agent:
    """A sink that is told what to publish, and its log."""

    server: Server
    state: Path
    node: str
    stream: io.BytesIO = field(default_factory=io.BytesIO)
    sinks: list[KubernetesSink] = field(default_factory=list)

    def config(self, **settings: Any) -> Config:
        """Return a quick configuration that talks to the server."""
        quick: dict[str, Any] = {
            "enabled": True,
            "kubeconfig": str(self.server.kubeconfig),
            "settle_seconds": 0,
            "unknown_seconds": 0,
            "retry_seconds": 0.05,
            "retry_cap_seconds": 0.1,
        }
        told = Kubernetes(**(quick | settings))
        return Config(kubernetes=told, state_folder=str(self.state))

    def start(self, **settings: Any) -> KubernetesSink:
        """Open a sink."""
        log = make_logger(Log(format="json"), self.stream)
        sink = module.make(self.config(**settings), Heartbeat(), log)
        self.sinks.append(sink)
        sink.open()
        return sink

    def publish(self, *changes: Incident, **snapshot: Any) -> None:
        """Publish a snapshot of a node with one port through the newest sink."""
        ports = snapshot.pop("ports", (nodes.port(),))
        told = nodes.node(*ports, node=self.node, **snapshot)
        self.sinks[-1].publish(told, changes)

    def condition(self) -> Json | None:
        """Return the condition as the server has it."""
        return self.server.node_conditions(self.node).get("FabricHealthy")

    def wait_for(self, **wanted: str) -> Json:
        """Return the condition once it says so."""

        def says() -> bool:
            found = self.condition() or {}
            return all(found.get(key) == value for key, value in wanted.items())

        wait_until(says, SOON, f"the condition says {wanted}")
        found = self.condition()
        assert found is not None
        return found

    def wait_for_events(self, number: int) -> list[Json]:
        """Return the node's events once there are so many."""
        events = self.server.events
        wait_until(
            lambda: len(events(self.node)) >= number,
            SOON,
            self.stream.getvalue().decode(),
        )
        found = events(self.node)
        assert len(found) == number, self.stream.getvalue()
        return found

    def lines(self, event: str) -> list[Json]:
        """Return the log lines of one event."""
        found = map(json.loads, self.stream.getvalue().splitlines())
        return [line for line in found if line["event"] == event]

    def delivered(self, number: int) -> None:
        """Wait until so many events were delivered."""

        def so_many() -> bool:
            delivery = self.sinks[-1].delivery
            return delivery is not None and delivery.delivered >= number

        wait_until(so_many, SOON, f"{number} events delivered")


def agents(server: Server, folder: Path) -> Iterator[Agent]:
    """Yield an agent on a node that the server knows; end its sinks."""
    pytest.importorskip("lightkube", reason=f"{MISSING}lightkube (group chart)")
    made = Agent(server, folder, f"gpu-{next(_NUMBERS)}")
    server.add_node(made.node)
    yield made
    for sink in made.sinks:
        sink.close()


def fault(kind: str = "port_flapping", **changes: Any) -> Incident:
    """Return a finding that advises to drain."""
    made = nodes.incident(kind)
    advice = {"action": Action.DRAIN_AFTER_JOB, "summary": "mlx5_0/1 flapped 3 times"}
    finding = replace(made.finding, **(advice | changes.pop("finding", {})))
    return replace(made, finding=finding, **changes)


def over(incident: Incident) -> Incident:
    """Return the end of it."""
    return replace(incident, state=IncidentState.RESOLVED)


def faked_of(agent: Agent) -> FakedApi:
    """Return the agent's server, which must be the faked one."""
    assert isinstance(agent.server, FakedApi)
    return agent.server


def delivery_of(sink: KubernetesSink) -> Delivery:
    """Return how a sink fares, which must be on."""
    assert sink.delivery is not None
    return sink.delivery
