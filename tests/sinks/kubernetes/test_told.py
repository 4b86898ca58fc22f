"""What the API server is told, over real HTTP and TLS.

Every test runs against the faked server, and against a real one where the machine has
it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from fabricmon.model import Action, Verdict
from fabricmon.sinks.kubernetes_api import seconds_text
from tests.sinks import nodes
from tests.support.kube_agent import SOON, Agent, fault, over
from tests.support.servers import wait_until

Json = dict[str, Any]


class TestCondition:
    def test_health_is_told(self, agent: Agent) -> None:
        """With reason, message, and the times that a condition has."""
        agent.start()
        before = int(time.time())
        agent.publish()
        condition = agent.wait_for(status="True")
        assert condition["reason"] == "FabricIsHealthy"
        assert condition["message"] == "1 ports, nothing that advises to act"
        for key in ("lastHeartbeatTime", "lastTransitionTime"):
            at = datetime.fromisoformat(condition[key]).timestamp()
            assert before <= at <= time.time()

    def test_fault_and_its_end(self, agent: Agent) -> None:
        """False with the kind as reason and the evidence, then True again."""
        agent.start()
        agent.publish()
        agent.wait_for(status="True")
        found = fault()
        agent.publish(found, incidents=(found,), verdict=Verdict.DEGRADED)
        condition = agent.wait_for(status="False")
        assert condition["reason"] == "PortFlapping"
        assert condition["message"] == (
            "drain_after_job: mlx5_0/1 flapped 3 times [state=DOWN]"
        )
        agent.publish(over(found))
        agent.wait_for(status="True", reason="FabricIsHealthy")

    def test_conditions_of_others_stay(self, agent: Agent) -> None:
        """Those of the kubelet and of node-problem-detector are theirs."""
        ours = {"type": "KernelDeadlock", "status": "False", "reason": "R"}
        agent.server.set_condition(agent.node, ours)
        before = agent.server.node_conditions(agent.node)
        agent.start()
        agent.publish()
        agent.wait_for(status="True")
        after = agent.server.node_conditions(agent.node)
        del after["FabricHealthy"]
        assert after == before

    def test_transition_outlives_the_agent(self, agent: Agent) -> None:
        """A rolling update changes no time at which the fabric would have changed."""
        then = seconds_text(time.time() - 7200)
        agent.server.set_condition(
            agent.node,
            {
                "type": "FabricHealthy",
                "status": "True",
                "reason": "FabricIsHealthy",
                "lastTransitionTime": then,
                "lastHeartbeatTime": then,
            },
        )
        agent.start()
        agent.publish()
        agent.wait_for(message="1 ports, nothing that advises to act")
        assert agent.wait_for(status="True")["lastTransitionTime"] == then

    def test_transition_is_of_the_status(self, agent: Agent) -> None:
        """Another reason for the same status is no transition."""
        agent.start()
        found = fault()
        agent.publish(incidents=(found,))
        first = agent.wait_for(reason="PortFlapping")
        worse = fault("port_down", finding={"action": Action.DRAIN_NOW})
        agent.publish(incidents=(found, worse), verdict=Verdict.DOWN)
        second = agent.wait_for(reason="PortDown")
        assert second["lastTransitionTime"] == first["lastTransitionTime"]

    def test_heartbeat(self, agent: Agent) -> None:
        """A condition that does not change is told all the same, with its message."""
        agent.start(heartbeat_seconds=0.1)
        agent.publish()
        agent.wait_for(status="True")
        agent.publish(ports=(nodes.port(), nodes.port("mlx5_1")))
        agent.wait_for(message="2 ports, nothing that advises to act")

    def test_is_removed_when_turned_off(self, agent: Agent) -> None:
        """A condition that nobody keeps would be believed for ever."""
        sink = agent.start()
        agent.publish()
        agent.wait_for(status="True")
        sink.reload(agent.config(enabled=False))
        wait_until(lambda: agent.condition() is None, SOON, "it is removed")
        assert sink.delivery is None

    def test_is_removed_by_who_starts_without_it(self, agent: Agent) -> None:
        """Configuration of a pod changes with a new pod."""
        agent.server.set_condition(
            agent.node, {"type": "FabricHealthy", "status": "False", "reason": "R"}
        )
        agent.start(condition=False)
        agent.publish()
        wait_until(lambda: agent.condition() is None, SOON, "it is removed")
        wait_until(lambda: bool(agent.lines("condition_removed")), SOON, "it is said")

    def test_stays_when_the_agent_stops(self, agent: Agent) -> None:
        """An update of the agent is no change of the fabric."""
        sink = agent.start()
        agent.publish()
        before = agent.wait_for(status="True")
        sink.close()
        assert agent.condition() == before


class TestEvents:
    def test_finding_is_an_event(self, agent: Agent) -> None:
        """About the node, with summary, evidence, advice and runbook."""
        agent.start()
        agent.publish(fault())
        (event,) = agent.wait_for_events(1)
        assert event["reason"] == "PortFlapping"
        assert event["type"] == "Warning"
        assert event["action"] == "DrainAfterJob"
        assert event["note"] == ("mlx5_0/1 flapped 3 times [state=DOWN]; runbook: docs")
        assert event["reportingController"] == "fabricmon.io/agent"
        assert event["reportingInstance"] == agent.node
        assert event["regarding"]["kind"] == "Node"
        assert event["regarding"]["uid"] == agent.node
        assert event.get("series") is None

    def test_end_is_a_normal_event(self, agent: Agent) -> None:
        """By a reason of its own, so that it can be told apart."""
        agent.start()
        agent.publish(fault(), over(fault()))
        _, event = agent.wait_for_events(2)
        assert (event["reason"], event["type"]) == ("PortFlappingResolved", "Normal")

    def test_repeats_are_counted(self, agent: Agent) -> None:
        """Not written again and again."""
        agent.start()
        for _ in range(3):
            agent.publish(fault())
        agent.delivered(3)
        (event,) = agent.wait_for_events(1)
        assert event["series"]["count"] == 3

    def test_series_that_the_server_forgot(self, agent: Agent) -> None:
        """It keeps events for an hour; then a new one begins."""
        agent.start()
        agent.publish(fault())
        agent.wait_for_events(1)
        agent.delivered(1)
        agent.server.delete_events()
        agent.publish(fault())
        (event,) = agent.wait_for_events(1)
        assert event.get("series") is None

    def test_longest_note_fits(self, agent: Agent) -> None:
        """The server refuses notes of more than a kilobyte."""
        agent.start()
        long = replace(fault(), runbook="ä" * 5000)
        agent.publish(long)
        (event,) = agent.wait_for_events(1)
        assert len(event["note"].encode()) <= 1024
        assert event["note"].endswith("…")
