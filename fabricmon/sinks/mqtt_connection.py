"""A connection of the agent to the broker, with its last will; ended in any state."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from fabricmon.config import Config
from fabricmon.sinks import mqtt_payloads as payloads
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_client import (
    LEAVE_SECONDS,
    LOST_ERRORS,
    cut,
    make_client,
    make_will,
)
from fabricmon.sinks.mqtt_retained import Retained
from fabricmon.sinks.mqtt_session import Session
from fabricmon.sinks.mqtt_settings import Access, client_id_of, root_of
from fabricmon.sinks.mqtt_store import Store
from fabricmon.sinks.mqtt_tally import Tally


class Connection:
    """One client; the broker tells that the node is offline should it vanish."""

    def __init__(self, config: Config, node: str, access: Access) -> None:
        """Make the client; nothing is sent yet."""
        self.since = time.time()
        """When it was made, Unix seconds: the node is online since then."""
        topic = root_of(config, node) + topics.STATUS
        will = make_will(topic, payloads.status(payloads.OFFLINE, self.since))
        name = client_id_of(config, node)
        self._client = make_client(config.mqtt, access, name, will)
        self._is_open = False

    async def open(self) -> None:
        """Connect; raises `MqttError` where the broker is away or refuses."""
        await self._client.__aenter__()
        self._is_open = True

    def session(
        self, retained: Retained, store: Store, tally: Tally, stop: asyncio.Event
    ) -> Session:
        """Return what sends over it."""
        return Session(self._client, retained, store, tally, stop)

    async def close(self) -> None:
        """Say goodbye if that is quick, and end the connection in any case."""
        if self._is_open:
            self._client.timeout = LEAVE_SECONDS
            with suppress(*LOST_ERRORS):
                await self._client.__aexit__(None, None, None)
        cut(self._client)
