"""The thread of the MQTT sink: takes over findings, spools them, keeps a connection.

It has a loop of its own, so that nothing about the broker can delay a poll. What is
handed over waits in a bounded queue until the spool's thread has it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fabricmon.config import Config
from fabricmon.errors import ConfigError
from fabricmon.finding_document import finding_document
from fabricmon.model import Incident, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.runtime.logging import Changes
from fabricmon.sinks import mqtt_payloads as payloads
from fabricmon.sinks.mqtt_disk import Bounds
from fabricmon.sinks.mqtt_retained import Retained
from fabricmon.sinks.mqtt_settings import Access, broker_of, read_access, root_of
from fabricmon.sinks.mqtt_spool import Spool
from fabricmon.sinks.mqtt_store import Store
from fabricmon.sinks.mqtt_tally import Tally
from fabricmon.sinks.name_key import load_key
from fabricmon.value import Value

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MOST_HANDED_OVER = 4096
"""Findings between the agent and the spool; only a disk that hangs lets them pile up."""

STOP_SECONDS = 0.9
"""How long the end of the thread is waited for."""

GOODBYE_SECONDS = 0.3
"""Of these, what the last findings and ``offline`` may take."""

HANDOVER_SECONDS = 0.25
"""Of these, what the disk may take for what was handed over last."""

_TAKE_AT_ONCE = 256


class Handed(Value, frozen=True):
    """A change of a finding, and the snapshot that it came with."""

    incident: Incident
    snapshot: Snapshot


class Courier:
    """Runs from `start` to `end`; for one configuration."""

    def __init__(
        self,
        config: Config,
        node: str,
        tally: Tally,
        log: FilteringBoundLogger,
        previous: Courier | None = None,
    ) -> None:
        """Take over from ``previous``, which must have been told to end."""
        self._config = config
        self.node = node
        self._tally = tally
        self._log = log.bind(sink="mqtt", broker=broker_of(config.mqtt))
        self._changes = Changes()
        self._previous = previous
        self._handed: deque[Handed] = deque()
        self.newest: Snapshot | None = previous.newest if previous else None
        self._woken_at = 0.0
        self._is_waking = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = threading.Event()
        self.leaves_quietly = False
        """Whether another connection for the same topics follows at once."""
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, snapshot: Snapshot, changes: Sequence[Incident]) -> None:
        """Hand over; takes microseconds, whatever the broker does."""
        self._tally.offset = snapshot.now - time.monotonic()
        self.newest = snapshot
        for incident in changes:
            if len(self._handed) >= MOST_HANDED_OVER:
                self._handed.popleft()
                self._tally.overflow += 1
            self._handed.append(Handed(incident, snapshot))
        waited = snapshot.now - self._woken_at
        if changes or not 0 <= waited < self._config.mqtt.state_seconds:
            self._woken_at = snapshot.now
            self._wake()

    @property
    def handed_over(self) -> int:
        """How many findings are not yet with the spool."""
        return len(self._handed)

    def tell_to_end(self) -> None:
        """Begin the end; returns at once."""
        self._ending.set()
        self._wake()

    def end(self, seconds: float = STOP_SECONDS) -> bool:
        """End and wait for it; False if it takes longer, and then it is left behind."""
        self.tell_to_end()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not self._is_waking:
            self._is_waking = True
            with suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(self._on_wake)

    def _on_wake(self) -> None:
        self._is_waking = False  # before looking: what comes now wakes again
        if self._ending.is_set():
            self._stop.set()
        self._news.set()

    # In the thread

    def _run(self) -> None:
        try:
            if self._previous is not None:
                self._previous.end()
                self._previous = None
            from fabricmon.sinks import mqtt_client  # noqa: PLC0415 - dear to import

            self._client = mqtt_client
            mqtt_client.run(self._main())
        except Exception as error:  # noqa: BLE001 - the agent goes on without MQTT
            self._log.error("sink_ended", err=f"{type(error).__name__}: {error}")
        finally:
            self._tally.connected = False

    async def _main(self) -> None:
        mqtt = self._config.mqtt
        self._stop, self._news = asyncio.Event(), asyncio.Event()
        self._sendable = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._note_noise)
        bounds = Bounds(mqtt.spool_findings, mqtt.spool_bytes)
        spool = Spool(self._config.state_folder, bounds, mqtt.memory_findings)
        self._store = Store(spool, broker_of(mqtt), self._tally)
        opened = await self._until_stop(self._prepare(), HANDOVER_SECONDS)
        if opened:
            self._taking = asyncio.create_task(self._take_over(), name="mqtt-spool")
            await self._keep_connected()
            await asyncio.wait({self._taking}, timeout=HANDOVER_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER_SECONDS):
                await self._store.close()

    async def _prepare(self) -> None:
        """Read the key and what an earlier run left; the disk may take its time."""
        redact = self._config.mqtt.redact
        self._redactor = Redactor(redact, await asyncio.to_thread(self._key))
        root = root_of(self._config, self.node)
        self._retained = Retained(self._config, self._redactor, root)
        self._retained.remember(await self._store.open())
        self._note_spool()

    def _key(self) -> bytes:
        return load_key(self._config.mqtt.redact.key_file, self._config, _KEY)

    async def _until_stop(self, work: Any, grace_seconds: float = 0.0) -> bool:
        """Do something, or give it up when told to stop; tell whether it was done.

        It has ``grace_seconds`` from then on.
        """
        task = asyncio.ensure_future(work)
        self._on_wake()  # what was said before there was a loop
        stop = asyncio.create_task(self._stop.wait(), name="mqtt-stop")
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if grace_seconds:
            await asyncio.wait({task}, timeout=grace_seconds)
        if task.done():
            task.result()
            return True
        task.cancel()
        return False

    async def _take_over(self) -> None:
        """Bring to the spool whatever is handed over, to the last when told to stop."""
        while not self._stop.is_set():
            await self._news.wait()
            self._news.clear()
            await self._spool_all()
            self._sendable.set()
        await self._spool_all()
        self._sendable.set()

    async def _spool_all(self) -> None:
        while self._handed:
            most = min(len(self._handed), _TAKE_AT_ONCE)
            batch = [self._handed.popleft() for _ in range(most)]
            await self._store.append([self._encoded(each) for each in batch])
            self._note_spool()

    def _encoded(self, handed: Handed) -> bytes:
        names = payloads.names_of(handed.snapshot)
        document = finding_document(handed.incident)
        return payloads.finding(self._redactor.finding(document, names))

    def _bring(self) -> None:
        if self.newest is not None:
            self._retained.update(self.newest)

    async def _keep_connected(self) -> None:
        mqtt = self._config.mqtt
        pauses = self._client.Backoff(mqtt.retry_seconds, mqtt.retry_cap_seconds)
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                await self._connect_once()
            except (ConfigError, *self._client.LOST_ERRORS) as error:
                self._tally.failures += 1
                self._note_failure(error)
            if time.monotonic() - begun >= mqtt.steady_seconds:
                pauses.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(pauses.next()):
                    await self._stop.wait()

    async def _connect_once(self) -> None:
        """Connect, serve until the connection or the agent ends, and leave."""
        from fabricmon.sinks.mqtt_connection import Connection  # noqa: PLC0415 - dear

        access = await asyncio.to_thread(read_access, self._config.mqtt)
        self._note_open_files(access)
        connection = Connection(self._config, self.node, access)
        try:
            if not await self._until_stop(connection.open()):
                return
            self._tally.connects += 1
            self._tally.connected = True
            self._changes.note("broker", None)
            self._log.info("broker_connected")
            session = connection.session(
                self._retained, self._store, self._tally, self._stop
            )
            self._sendable.set()
            await session.serve(connection.since, self._sendable, self._bring)
            await self._say_goodbye(session)
        finally:
            self._tally.connected = False
            await connection.close()

    async def _say_goodbye(self, session: Any) -> None:
        await asyncio.wait({self._taking}, timeout=HANDOVER_SECONDS)
        if self.leaves_quietly:
            return
        with suppress(TimeoutError, *self._client.LOST_ERRORS):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await session.say_goodbye(time.time())

    # What is said in the log

    def _note_failure(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if self._changes.note("broker", text):
            self._log.warning("broker_unreachable", err=text)

    def _note_spool(self) -> None:
        problem = self._store.problem
        if self._changes.note("spool", problem):
            if problem is not None:
                self._log.warning("spool_degraded", err=problem)
            elif self._changes.note("spool_known", True):
                return
            else:
                self._log.info("spool_recovered")

    def _note_open_files(self, access: Access) -> None:
        for path in access.open_files:
            if self._changes.note(("open", path), True):
                message = f"{path}: every user of this node can read it; chmod o-r"
                self._log.warning("secret_exposed", err=message)

    def _note_noise(self, _loop: object, context: dict[str, Any]) -> None:
        """Say once what callbacks raise on a socket that has died."""
        error = context.get("exception")
        if self._changes.note("noise", type(error)):
            self._log.debug("loop_failed", where=context["message"], err=repr(error))


_KEY = "mqtt.redact.key_file"
