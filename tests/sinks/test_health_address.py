"""Probes on an address of their own, for kubelets without a certificate."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from fabricmon.config import Config, Listen
from fabricmon.config_rules import check_rules
from fabricmon.errors import ConfigError, HostError
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.prometheus import PrometheusSink
from tests.support.servers import accepts, free_port


def sink(address: str, metrics: str = "127.0.0.1:0") -> PrometheusSink:
    """Return a sink with such an address."""
    return PrometheusSink(Config(listen=Listen(health=address)), metrics, Heartbeat())


def status(port: int, path: str) -> int:
    """Return the status of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


class TestHealthAddress:
    def test_answers_probes_alone(self) -> None:
        """Not the metrics, which it would give to whoever asks."""
        made = sink("127.0.0.1:0")
        made.open()
        port = made.listeners[1].port
        found = [status(port, path) for path in ("/healthz", "/readyz", "/metrics")]
        made.close()
        assert found == [200, 503, 404]
        assert not accepts(port)

    def test_taken_address_leaves_nothing_open(self) -> None:
        """The other one is closed again."""
        held = sink("127.0.0.1:0")
        held.open()
        port = free_port()
        made = sink(f"127.0.0.1:{held.listeners[1].port}", f"127.0.0.1:{port}")
        with pytest.raises(HostError, match=r"listen\.health"):
            made.open()
        held.close()
        assert not accepts(port)

    @pytest.mark.parametrize(
        "listen", [Listen(health="x"), Listen(health="[::]:1", metrics=None)]
    )
    def test_wrong_address(self, listen: Listen) -> None:
        """By its key."""
        with pytest.raises(ConfigError, match=r"listen\.health"):
            check_rules(Config(listen=listen))
