"""When the sink is on, and what it may say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from fabricmon.config import Config, Kubernetes, Log
from fabricmon.errors import HostError
from fabricmon.model import Severity
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks import kubernetes as module
from fabricmon.sinks import kubernetes_api
from tests.support.kube_agent import Agent, delivery_of, faked_of, fault

Json = dict[str, Any]


class TestSwitch:
    def test_is_off_by_default(self, lone: Agent) -> None:
        """No thread, no library, no request."""
        log = make_logger(Log(format="json"), lone.stream)
        sink = module.make(Config(), Heartbeat(), log)
        lone.sinks.append(sink)
        sink.open()
        lone.publish(fault())
        assert sink.delivery is None
        assert faked_of(lone).requests == []

    def test_reload_turns_it_on(self, lone: Agent) -> None:
        """It tells what was published last."""
        log = make_logger(Log(format="json"), lone.stream)
        sink = module.make(Config(), Heartbeat(), log)
        lone.sinks.append(sink)
        sink.open()
        lone.publish()
        sink.reload(lone.config())
        lone.wait_for(status="True")

    def test_reload_of_other_keys_disturbs_nothing(self, lone: Agent) -> None:
        """The same thread goes on."""
        sink = lone.start()
        courier = sink._courier
        sink.reload(structs.replace(lone.config(), cluster="c"))
        assert sink._courier is courier

    def test_counts_go_on_over_a_reload(self, lone: Agent) -> None:
        """A counter that falls would look like a restart."""
        sink = lone.start()
        lone.publish(fault())
        lone.delivered(1)
        sink.reload(lone.config(event_severity="critical"))
        assert delivery_of(sink).delivered == 1

    def test_missing_library_is_said(
        self, lone: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With what to do."""
        monkeypatch.setattr(kubernetes_api, "is_installed", lambda: False)
        with pytest.raises(HostError, match=r"fabricmon\[kubernetes\]"):
            lone.start()

    def test_unusable_key_of_pseudonyms(self, lone: Agent) -> None:
        """A configuration that would tell names is refused at the start."""
        redact = structs.replace(Kubernetes().redact, key_file="/nowhere")
        with pytest.raises(HostError, match=r"kubernetes\.redact\.key_file"):
            lone.start(redact=redact)

    def test_names_are_taken_out(self, lone: Agent) -> None:
        """As for every other sink that leaves the node."""
        redact = structs.replace(Kubernetes().redact, jobs="remove")
        lone.start(redact=redact)
        found = fault(finding={"summary": "job secret-llm lost mlx5_0/1"})
        subject = replace(found.finding.subject, job="secret-llm")
        found = replace(found, finding=replace(found.finding, subject=subject))
        lone.publish(found, incidents=(found,))
        (event,) = lone.wait_for_events(1)
        condition = lone.wait_for(status="False")
        assert "secret-llm" not in json.dumps([event, condition])

    def test_severity_of_events(self, lone: Agent) -> None:
        """What is milder is no event, in shadow nothing is."""
        lone.start(event_severity="critical")
        mild = {"severity": Severity.WARNING}
        lone.publish(fault(finding=mild), fault(dry_run=True), fault("port_down"))
        (event,) = lone.wait_for_events(1)
        assert event["reason"] == "PortDown"
