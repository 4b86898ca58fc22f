"""One connection to the broker: what is sent over it, in which order, until it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import aiomqtt
from aiomqtt import MqttError

from fabricmon.sinks import mqtt_payloads as payloads
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_client import messages
from fabricmon.sinks.mqtt_retained import NOTHING, Retained
from fabricmon.sinks.mqtt_spool import Waiting
from fabricmon.sinks.mqtt_store import Store
from fabricmon.sinks.mqtt_tally import Tally

WINDOW = 8
"""Findings on their way at once: the broker takes them in order, and a path of 50 ms
still carries 160 a second. aiomqtt warns from 10 on."""

AT_ONCE = 256
"""Findings taken from the spool in one step."""

DELETED_AT_ONCE = 32
"""Findings that are deleted in one step: as many may come twice after kill -9."""

CANCEL_SECONDS = 0.1
"""How long work that was cancelled is waited for."""


class Session:
    """Sends state and findings over one connection; ends when told, or when it ends."""

    def __init__(
        self,
        client: aiomqtt.Client,
        retained: Retained,
        store: Store,
        tally: Tally,
        stop: asyncio.Event,
    ) -> None:
        """Send over a client that is connected."""
        self._client = client
        self._retained = retained
        self._store = store
        self._tally = tally
        self._stop = stop
        self._sent: dict[str, bytes] = {}
        self._taken = 0  # the newest finding that the broker took, and all before it
        self._deleted = 0

    async def serve(
        self, since: float, news: asyncio.Event, bring: Callable[[], None]
    ) -> None:
        """Say that the node is online, then send what there is and what comes.

        ``bring`` brings what is retained up to date. Returns when told to stop, raises
        `MqttError` when the connection is lost: a message on its way would wait for its
        time-out, so neither is left to it.
        """
        work = asyncio.create_task(self._work(since, news, bring), name="mqtt-send")
        lost = asyncio.create_task(self._until_lost(), name="mqtt-lost")
        stop = asyncio.create_task(self._stop.wait(), name="mqtt-stop")
        tasks: tuple[asyncio.Task[Any], ...] = (work, lost, stop)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not lost.done():  # what is on its way may still be acknowledged
                await asyncio.wait({work}, timeout=CANCEL_SECONDS)
            for task in (lost, work):
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            # On Python 3.11 a cancel may be lost (python/cpython#86296): the work also
            # ends by itself after its message, and is not waited for beyond that.
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.exception()  # it was seen
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await self._delete()

    async def _work(
        self, since: float, news: asyncio.Event, bring: Callable[[], None]
    ) -> None:
        await self._announce(payloads.ONLINE, since)
        while not self._ends:
            news.clear()
            bring()
            await self._send_state()
            await self._send_findings()
            if not self._changed() and not await self._store.oldest(1):
                await news.wait()

    async def say_goodbye(self, now: float) -> None:
        """Send what still waits, then that the node is offline."""
        await self._send_findings(at_end=True)
        await self._announce(payloads.OFFLINE, now)

    async def _announce(self, state: str, since: float) -> None:
        topic = self._retained.root + topics.STATUS
        await self._store.retain((topic,))
        await self._publish(topic, payloads.status(state, since), retain=True)

    async def _send_state(self) -> None:
        """Send the newest value of whatever changed; what came before is not sent."""
        wanted = self._retained.wanted
        changed = [t for t, payload in wanted.items() if self._sent.get(t) != payload]
        await self._store.retain([t for t in changed if t not in self._sent])
        for topic in changed:
            payload = wanted.get(topic, NOTHING)
            await self._publish(topic, payload, retain=True)
            self._sent[topic] = payload
            if payload == NOTHING and wanted.get(topic) == NOTHING:
                self._retained.forget(topic)
                del self._sent[topic]
                await self._store.release((topic,))
            if self._ends:
                return

    async def _send_findings(self, *, at_end: bool = False) -> None:
        """Send what waits, the oldest first."""
        while found := await self._store.oldest(AT_ONCE):
            taken = await self._send_in_order(found, at_end=at_end)
            await self._delete()
            ends = self._ends and not at_end
            if taken < len(found) and not ends:
                raise MqttError("a finding was not acknowledged in time")
            if self._changed() or ends:
                return

    async def _send_in_order(self, found: Sequence[Waiting], *, at_end: bool) -> int:
        """Return how many the broker took, without a gap.

        A new one goes out with each acknowledgement. Were it a window at a time, the
        broker's Nagle and our delayed acknowledgement would cost 40 ms for each.
        """
        topic = self._retained.root + topics.FINDING
        rest, pending, taken = iter(found), deque[asyncio.Task[None]](), 0
        try:
            while True:
                ends = self._ends and not at_end
                for each in islice(rest, 0 if ends else WINDOW - len(pending)):
                    # Tasks start in order, and each hands its message to the socket
                    # before the next one does.
                    sending = self._publish(topic, each.payload)
                    pending.append(asyncio.create_task(sending, name="mqtt-finding"))
                if not pending:
                    return taken
                await asyncio.wait({pending[0]})
                if _has_failed(pending.popleft()):
                    return taken
                self._taken = found[taken].number
                taken += 1
                if taken % DELETED_AT_ONCE == 0:
                    await self._delete()
        finally:
            for task in pending:
                task.cancel()

    async def _delete(self) -> None:
        """Delete what the broker took."""
        if self._taken > self._deleted:
            self._deleted = self._taken
            await self._store.delivered(self._taken)

    @property
    def _ends(self) -> bool:
        return self._stop.is_set()

    async def _publish(
        self, topic: str, payload: bytes, *, retain: bool = False
    ) -> None:
        await self._client.publish(topic, payload, qos=1, retain=retain)
        self._tally.note_success()

    def _changed(self) -> bool:
        """Tell whether state waits that should not wait for all the findings."""
        wanted = self._retained.wanted
        return any(self._sent.get(topic) != each for topic, each in wanted.items())

    async def _until_lost(self) -> None:
        """End with the connection's error: nothing is subscribed to, nothing comes."""
        async for _ in messages(self._client):
            pass


def _has_failed(task: asyncio.Task[None]) -> bool:
    return task.cancelled() or task.exception() is not None
