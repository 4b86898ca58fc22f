"""A server that is away, fails, hangs or lies costs nothing and nobody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.kube_agent import SOON, Agent, delivery_of, faked_of, fault
from tests.support.kube_faked import TOKEN, Trouble
from tests.support.servers import wait_until

Json = dict[str, Any]


class TestTrouble:
    def test_server_away_at_start(self, lone: Agent) -> None:
        """What is published then is told when it comes, in order."""
        server = faked_of(lone)
        server.stop()
        lone.start()
        lone.publish(fault(), fault("port_down"), incidents=(fault(),))
        wait_until(lambda: bool(lone.lines("server_unreachable")), SOON, "it is said")
        server.start()
        lone.wait_for(status="False")
        events = lone.wait_for_events(2)
        assert [event["reason"] for event in events] == ["PortFlapping", "PortDown"]
        wait_until(lambda: bool(lone.lines("server_reached")), SOON, "it is said")

    @pytest.mark.parametrize("status", [401, 429, 500, 503])
    def test_server_that_fails_is_asked_again(self, lone: Agent, status: int) -> None:
        """Nothing is lost, and failures are counted."""
        faked_of(lone).trouble = Trouble(status, times=3)
        sink = lone.start()
        lone.publish(fault())
        lone.wait_for(status="True")
        lone.wait_for_events(1)
        lone.delivered(1)
        wait_until(lambda: delivery_of(sink).connected, SOON, "it is connected")
        assert delivery_of(sink).failures >= 1
        assert delivery_of(sink).dropped == 0

    def test_pause_that_the_server_asks_for(self, lone: Agent) -> None:
        """A server that is overloaded says when to come back."""
        faked_of(lone).trouble = Trouble(429, retry_after=1, times=1)
        lone.start()
        lone.publish()
        lone.wait_for(status="True")
        first, second, *_ = (at for at, *_ in faked_of(lone).requests)
        assert second - first >= 1

    def test_refused_event_holds_up_no_other(
        self, lone: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would be refused for ever."""
        lone.start(condition=False)
        lone.publish()
        wait_until(lambda: bool(lone.lines("condition_removed")), SOON, "it runs")
        faked_of(lone).trouble = Trouble(422, times=1)
        lone.publish(fault(), fault("port_down"))
        (event,) = lone.wait_for_events(1)
        assert event["reason"] == "PortDown"
        assert delivery_of(lone.sinks[-1]).dropped == 1
        assert len(lone.lines("event_refused")) == 1

    def test_server_that_hangs_holds_up_nobody(self, lone: Agent) -> None:
        """Neither what publishes nor what stops the agent."""
        faked_of(lone).trouble = Trouble(seconds=3, status=500)
        sink = lone.start()
        lone.publish()
        wait_until(lambda: bool(faked_of(lone).requests), SOON, "it is asked")
        start = time.monotonic()
        for _ in range(1000):
            lone.publish(fault())
        assert time.monotonic() - start < 2
        start = time.monotonic()
        sink.close()
        assert time.monotonic() - start < 1

    def test_waiting_events_are_bounded(self, lone: Agent) -> None:
        """The oldest is dropped first, and counted."""
        faked_of(lone).stop()
        sink = lone.start(waiting_events=3)
        kinds = ("port_down", "port_flap", "link_errors", "pcie_errors", "module_hot")
        lone.publish(*map(fault, kinds))
        assert (delivery_of(sink).waiting, delivery_of(sink).dropped) == (3, 2)
        faked_of(lone).start()
        events = lone.wait_for_events(3)
        told = [event["reason"] for event in events]
        assert told == ["LinkErrors", "PcieErrors", "ModuleHot"]

    def test_burst_is_bounded(self, lone: Agent) -> None:
        """A node that goes mad does not flood the cluster's store."""
        sink = lone.start(event_burst=2, event_refill_seconds=3600)
        lone.publish(*map(fault, ("port_down", "port_flap", "link_errors")))
        lone.wait_for(status="True")
        lone.wait_for_events(2)
        wait_until(lambda: delivery_of(sink).dropped == 1, SOON, "one is dropped")

    def test_token_is_read_again(self, lone: Agent) -> None:
        """The kubelet renews it every hour; the old one expires."""
        server = faked_of(lone)
        lone.start()
        lone.publish()
        lone.wait_for(status="True")
        server.token_file.write_text("second-token")
        server.tokens = {"second-token"}
        lone.publish(fault())
        lone.wait_for_events(1)
        assert lone.lines("server_unreachable") == []

    def test_impostor_learns_nothing(self, lone: Agent) -> None:
        """A server whose certificate is of another authority gets no token."""
        server = faked_of(lone)
        server.write_kubeconfig(server.folder / "other.crt")
        lone.start()
        lone.publish()
        wait_until(lambda: bool(lone.lines("server_unreachable")), SOON, "it is said")
        (line, *_) = lone.lines("server_unreachable")
        assert "CERTIFICATE_VERIFY_FAILED" in line["err"]
        assert server.requests == []
        assert TOKEN not in lone.stream.getvalue().decode()

    def test_node_that_the_server_does_not_know(self, lone: Agent) -> None:
        """Most likely the agent's node has another name there: the log says which."""
        faked_of(lone).conditions.clear()
        lone.start()
        lone.publish()
        wait_until(lambda: bool(lone.lines("server_unreachable")), SOON, "it is said")
        assert lone.node in lone.lines("server_unreachable")[0]["err"]

    def test_outside_of_a_pod(self, lone: Agent, tmp_path: Path) -> None:
        """Without an account it says so and goes on; one may be mounted later."""
        lone.start(kubeconfig=None, service_account=str(tmp_path / "none"))
        lone.publish()
        wait_until(lambda: bool(lone.lines("server_unreachable")), SOON, "it is said")
        assert "no account" in lone.lines("server_unreachable")[0]["err"]

    def test_account_of_the_pod(
        self, lone: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As the kubelet mounts it: token, authority, namespace, and the environment."""
        server, account = faked_of(lone), tmp_path / "account"
        account.mkdir()
        (account / "token").write_text(TOKEN)
        (account / "namespace").write_text("fabricmon")
        (account / "ca.crt").write_text((server.folder / "ca.crt").read_text())
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        lone.start(kubeconfig=None, service_account=str(account))
        lone.publish()
        lone.wait_for(status="True")
