"""MQTT sinks for tests: told of findings with growing numbers, as an agent would."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabricmon.config import Log
from fabricmon.config_load import build
from fabricmon.model import Delivery, Snapshot
from fabricmon.parse.words import LinkLayer
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks.mqtt import MqttSink
from tests.sinks import nodes
from tests.support.servers import LOOPBACK, wait_until

Json = dict[str, Any]
FAST: Json = {
    "retry_seconds": 0.05,
    "retry_cap_seconds": 0.2,
    "timeout_seconds": 2,
    "state_seconds": 0.05,
}
ROOT = "fabricmon/v1/c1/n1/"


def snapshot(**changes: Any) -> Snapshot:
    """Return a node with one InfiniBand port."""
    port = nodes.full_port("mlx5_0", LinkLayer.INFINIBAND)
    return nodes.node(port, **changes)


class Rig:
    """A sink, what it logged, and the numbers of the findings that it was told."""

    def __init__(self, folder: Path, port: int | None, **mqtt: Any) -> None:
        self.folder = folder
        self.log = io.BytesIO()
        self.config = self.configure(port, **mqtt)
        self.sink = MqttSink(self.config, make_logger(Log(format="json"), self.log))
        self.told = 0
        self.now = nodes.NOW
        self.shown = snapshot()

    def configure(self, port: int | None, cluster: str = "c1", **mqtt: Any) -> Any:
        """Return a configuration for a broker on the loopback interface."""
        host = None if port is None else LOOPBACK
        tree = {
            "cluster": cluster,
            "state_folder": str(self.folder),
            "mqtt": FAST | {"host": host, "port": port} | mqtt,
        }
        return build(tree, (), ()).config

    def publish(self, **changes: Any) -> Rig:
        """Show the node as it is."""
        self.now += 1
        self.shown = replace(self.shown, now=self.now, **changes)
        self.sink.publish(self.shown, ())
        return self

    def tell(self, number: int, summary: str = "down") -> Iterable[int]:
        """Tell so many findings; return their numbers."""
        first = self.told + 1
        for _ in range(number):
            self.told += 1
            self.now += 0.001
            base = nodes.incident()
            finding = replace(base.finding, summary=summary)
            incident = replace(base, seq=self.told, finding=finding)
            shown = replace(self.shown, now=self.now)
            self.sink.publish(shown, (incident,))
        return range(first, self.told + 1)

    @property
    def delivery(self) -> Delivery:
        """How it fares."""
        found = self.sink.delivery
        assert found is not None
        return found

    def lines(self, event: str) -> list[Json]:
        """Return what it logged of an event."""
        found = map(json.loads, self.log.getvalue().splitlines())
        return [line for line in found if line["event"] == event]

    def until_connected(self, times: int = 1) -> Rig:
        """Wait until it has a connection."""
        wait_until(
            lambda: self.delivery.connected and self.delivery.connects >= times,
            20,
            "it is connected",
        )
        return self

    def until_spooled(self, number: int) -> None:
        """Wait until so many findings wait on disk."""
        wait_until(
            lambda: not self._handed and self.delivery.waiting == number,
            20,
            f"{number} findings wait",
        )

    @property
    def _handed(self) -> int:
        courier = self.sink._courier
        return courier.handed_over if courier else 0
