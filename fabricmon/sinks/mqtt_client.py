"""The door to aiomqtt: the only file that knows it. Import it only where MQTT is on."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import aiomqtt
from aiomqtt import MqttError

from fabricmon.config import Config, Mqtt
from fabricmon.errors import HostError
from fabricmon.sinks.mqtt_settings import Access, port_of, read_access
from fabricmon.sinks.mqtt_threads import Abandonable
from fabricmon.value import Value

LOST_ERRORS = (MqttError, OSError, ValueError)
"""What a connection may end with; ValueError: a name that no broker takes."""

LEAVE_SECONDS = 0.1
"""How long a goodbye may take; the broker sees the end of the connection anyhow."""

MOST_INCOMING = 50_000
"""Messages of a broker that wait to be read; retained state of a large fleet at once."""

_TCP, _NO_DELAY = 6, 1  # IPPROTO_TCP, TCP_NODELAY
_VERSIONS = {
    "3.1.1": aiomqtt.ProtocolVersion.V311,
    5: aiomqtt.ProtocolVersion.V5,
}
# paho and aiomqtt log what they raise as well; to the agent's log it would be noise.
_SILENT = logging.getLogger("fabricmon.mqtt")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Message(Value, frozen=True):
    """A message of a broker; who wrote it is not known, nor is it checked."""

    topic: str
    payload: bytes
    retained: bool


def make_client(
    mqtt: Mqtt,
    access: Access,
    client_id: str,
    will: aiomqtt.Will | None = None,
    *,
    kept: bool = False,
) -> aiomqtt.Client:
    """Return a client that is not connected yet, for the running loop.

    What a ``kept`` one subscribed to waits at the broker while it is away; that takes
    a name of its own and MQTT 3.1.1.
    """
    client = aiomqtt.Client(
        mqtt.host or "",
        port_of(mqtt),
        username=access.user if access.user is not None else _nobody(access),
        password=access.password,
        logger=_SILENT,
        identifier=client_id,
        protocol=_VERSIONS[mqtt.protocol],
        will=will,
        timeout=mqtt.timeout_seconds,
        keepalive=mqtt.keepalive_seconds,
        clean_session=False if kept else None,
        tls_context=access.tls,
        max_queued_incoming_messages=MOST_INCOMING,
        socket_options=((_TCP, _NO_DELAY, 1),),
    )
    client._client.connect_timeout = mqtt.timeout_seconds  # noqa: SLF001 - no other way
    return client


def cut(client: aiomqtt.Client) -> None:
    """End a connection whatever state it is in.

    aiomqtt leaves the socket of a connection open that did not end in an orderly way,
    and answers on it: towards the broker there would be two clients of one name.
    """
    with suppress(OSError, ValueError, RuntimeError):
        client._client._sock_close()  # noqa: SLF001 - as the library itself ends it


def make_will(topic: str, payload: bytes) -> aiomqtt.Will:
    """Return what the broker tells of a client that is gone without a goodbye."""
    return aiomqtt.Will(topic, payload, qos=1, retain=True)


def _nobody(access: Access) -> str | None:
    """Return an empty name where there is a password alone: MQTT has none without."""
    return None if access.password is None else ""


async def messages(client: aiomqtt.Client) -> AsyncIterator[Message]:
    """Yield what comes in; raises `MqttError` when the connection is lost."""
    async for each in client.messages:
        yield Message(str(each.topic), bytes(each.payload), each.retain)


class Backoff:
    """Pauses between tries: full jitter, doubled up to a cap.

    The pause is uniform between zero and the cap of its round (M. Brooker, "Exponential
    Backoff And Jitter", 2015), so that clients that failed together do not come back
    together.
    """

    def __init__(
        self,
        first_seconds: float,
        cap_seconds: float,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Begin with a pause of ``first_seconds`` at most."""
        self._first = first_seconds
        self._cap = cap_seconds
        self._draw = draw
        self._round = 0

    def next(self) -> float:
        """Return the next pause in seconds."""
        most = min(self._cap, self._first * 2 ** min(self._round, _MOST_DOUBLINGS))
        self._round += 1
        return max(self._draw(0, most), _SHORTEST_PAUSE)

    def reset(self) -> None:
        """Start over, after a connection that held."""
        self._round = 0


_MOST_DOUBLINGS = 32  # far beyond any cap
_SHORTEST_PAUSE = 0.05  # a broker that refuses at once is not asked without pause


def publish_retained(config: Config, topic: str, payload: bytes) -> None:
    """Publish one retained message and wait for the broker; for commands.

    An empty payload clears the topic. Raises `ConfigError` for files that cannot be
    used and `HostError` where the broker does not take it.
    """
    access = read_access(config.mqtt)
    try:
        run(_publish_once(config.mqtt, access, topic, payload))
    except LOST_ERRORS as error:
        raise HostError(f"the broker did not take {topic}: {error}") from error


def run(main: Any) -> Any:
    """Run a coroutine in a loop whose calls to other threads are never waited for."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(Abandonable(1))
        return runner.run(main)


async def _publish_once(mqtt: Mqtt, access: Access, topic: str, payload: bytes) -> None:
    client = make_client(mqtt, access, "")
    try:
        async with client:
            await client.publish(topic, payload, qos=1, retain=True)
    finally:
        cut(client)
