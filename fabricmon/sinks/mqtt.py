"""The sink that sends state and findings to an MQTT broker.

Nothing of it is loaded or started while ``mqtt.host`` is null; a reload may turn it on,
off, or to another broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.model import Delivery, Incident, Snapshot
from fabricmon.runtime.heartbeat import Heartbeat

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from fabricmon.sinks.mqtt_courier import Courier
    from fabricmon.sinks.mqtt_tally import Tally


class MqttSink:
    """Hands what it is told to a thread of its own, or to nobody."""

    name = "mqtt"

    def __init__(self, config: Config, log: FilteringBoundLogger) -> None:
        """Start nothing: who the node is comes with the first snapshot."""
        self._config = config
        self._log = log
        self._courier: Courier | None = None
        self._tally: Tally | None = None
        self._is_closed = False

    @property
    def delivery(self) -> Delivery | None:
        """How it fares; None while it is off."""
        tally, courier = self._tally, self._courier
        if tally is None or courier is None:
            return None
        return tally.delivery(self.name, courier.handed_over)

    def open(self) -> None:
        """Nothing to start: a broker that is away is no reason not to."""

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Hand over what is new; returns within microseconds."""
        if self._config.mqtt.host is None or self._is_closed:
            return
        if self._courier is None:
            self._courier = self._start(snapshot.node)
        self._courier.offer(snapshot, changes)

    def reload(self, config: Config) -> None:
        """Go on with these settings; the connection is made anew if they differ."""
        before, self._config = self._config, config
        courier = self._courier
        if courier is None or _relevant(before) == _relevant(config):
            return
        courier.leaves_quietly = _place(before) == _place(config)
        courier.tell_to_end()
        if config.mqtt.host is None:
            self._courier = None
        else:
            self._courier = self._start(courier.node, courier)

    def close(self) -> None:
        """Say that the node is offline and stop, within a second."""
        self._is_closed = True
        if self._courier is not None and not self._courier.end():
            self._log.warning("sink_abandoned", sink=self.name)

    def _start(self, node: str, previous: Courier | None = None) -> Courier:
        from fabricmon.sinks.mqtt_courier import Courier  # noqa: PLC0415 - dear
        from fabricmon.sinks.mqtt_tally import Tally  # noqa: PLC0415 - with it

        if self._tally is None:
            self._tally = Tally()
        courier = Courier(self._config, node, self._tally, self._log, previous)
        courier.start()
        return courier


def _relevant(config: Config) -> tuple[object, ...]:
    """Return all that a connection and its payloads depend on."""
    virtual = config.devices.virtual_functions
    return config.mqtt, config.cluster, config.state_folder, virtual


def _place(config: Config) -> tuple[object, ...]:
    """Return which topics of which broker are this node's."""
    mqtt = config.mqtt
    return mqtt.host, mqtt.port, mqtt.tls, mqtt.topic_prefix, config.cluster


def make(config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger) -> MqttSink:
    """Return the sink, also where it is off: a reload may turn it on."""
    del heartbeat
    return MqttSink(config, log)
