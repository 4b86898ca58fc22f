"""Listens to the agents' findings at the broker, over as many connections as it takes.

Imported only where a broker is configured: it brings aiomqtt.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import aiomqtt

from fabricmon.errors import ConfigError, HostError, ParseError
from fabricmon.gate.inbox import Inbox
from fabricmon.gate.messages import FINDING, STATUS, SUMMARY, read_message
from fabricmon.gate.report import Report, word
from fabricmon.gate.settings import Broker
from fabricmon.gate.state import Tally
from fabricmon.runtime.logging import Changes
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_client import (
    LEAVE_SECONDS,
    LOST_ERRORS,
    Backoff,
    Message,
    cut,
    make_client,
    messages,
)
from fabricmon.sinks.mqtt_settings import broker_of, read_access

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

STEADY_SECONDS = 10.0
"""A connection that held for so long starts the pauses over."""

_REFUSED = 0x80  # of the codes of SUBACK, in every version
_TAKEN = (FINDING, SUMMARY, STATUS)


class Subscription:
    """One broker; ``connected`` tells whether what it says is heard."""

    def __init__(
        self,
        broker: Broker,
        cluster: str | None,
        inbox: Inbox,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        """Prepare; nothing is connected yet."""
        self.connected = False
        self._broker = broker
        self._mqtt = broker.as_mqtt()
        self._inbox = inbox
        self._tally = tally
        self._log = log
        self._changes = Changes()
        whole = topics.filter_of(broker.topic_prefix, cluster, None)
        stem = whole.removesuffix("#")
        self._filters = tuple((stem + what, 1) for what in _TAKEN)

    async def run(self) -> None:
        """Listen until it is cancelled."""
        pauses = Backoff(self._broker.retry_seconds, self._broker.retry_cap_seconds)
        while True:
            begun = time.monotonic()
            try:
                await self._listen()
            except (*LOST_ERRORS, ConfigError, HostError) as error:
                self._note_loss(error)
            finally:
                self.connected = False
                self._inbox.ring()
            if time.monotonic() - begun >= STEADY_SECONDS:
                pauses.reset()
            await asyncio.sleep(pauses.next())

    def _note_loss(self, error: Exception) -> None:
        why = word(error) or type(error).__name__
        if self._changes.note("broker", why):
            where = broker_of(self._mqtt)
            self._log.warning("broker_lost", broker=where, err=why)

    async def _listen(self) -> None:
        access = await asyncio.to_thread(read_access, self._mqtt)
        client = make_client(self._mqtt, access, self._broker.client_id, kept=True)
        try:
            await client.__aenter__()
            await self._subscribe(client)
            async for message in messages(client):
                await self._take(message)
        finally:
            client.timeout = LEAVE_SECONDS
            cut(client)

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        granted: Any = await client.subscribe(list(self._filters))
        if any(int(getattr(code, "value", code)) >= _REFUSED for code in granted):
            raise HostError(f"the broker refuses {self._filters[0][0]}")
        self.connected = True
        self._inbox.ring()
        if self._changes.note("broker", None):
            self._log.info("broker_connected", broker=broker_of(self._mqtt))

    async def _take(self, message: Message) -> None:
        self._tally.heard_at["mqtt"] = time.time()
        place = topics.parse(message.topic, self._broker.topic_prefix)
        if place is None:
            return
        try:
            told = read_message(place.cluster, place.node, place.what, message.payload)
        except ParseError as error:
            self._tally.unusable["mqtt"] += 1
            if self._changes.note(("form", place.node), str(error)):
                self._log.warning("message_unusable", node=place.node, err=str(error))
            return
        if told is None or (isinstance(told, Report) and message.retained):
            return  # findings are never retained: somebody else put it there
        await self._inbox.put(told)
