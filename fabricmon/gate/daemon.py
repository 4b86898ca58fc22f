"""The gate as a service: one asyncio loop around its rules, its journal and its script.

A turn takes in what came, decides, writes, and only then begins an action. The journal
has a thread of its own, and so has the script; neither holds up a probe.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fabricmon.errors import ConfigError, HostError
from fabricmon.gate.clerk import Clerk
from fabricmon.gate.deciding import Gate
from fabricmon.gate.decision import UNSURE, Outcome, Sight
from fabricmon.gate.inbox import Inbox, Letter
from fabricmon.gate.journal import Ended, Entry, Journal, Release
from fabricmon.gate.maintenance import worked_on
from fabricmon.gate.report import Report, word
from fabricmon.gate.script import Runner, call_of
from fabricmon.gate.settings import GateConfig
from fabricmon.gate.settings_load import LoadedGate, read_token
from fabricmon.gate.state import Gauges, Tally
from fabricmon.gate.web import Web
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import Changes
from fabricmon.runtime.notify import Notifier, watchdog_seconds
from fabricmon.sinks.mqtt_threads import Worker

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from fabricmon.gate.subscription import Subscription

TICK_SECONDS = 1.0
"""Longest time between two turns."""

PRUNE_SECONDS = 3600.0
"""How often old lines are forgotten."""

PRUNE_ENTRIES = 10_000
"""Lines after which that is done sooner."""

STOP_SECONDS = 1.0
"""How long the end waits for a script that was told to end."""

_DAY_SECONDS = 86_400.0
_FIXED = ("listen", "journal", "log")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a gate is started with; ``reload`` reads the configuration again."""

    loaded: LoadedGate
    environment: Mapping[str, str]
    log: FilteringBoundLogger
    reload: Callable[[], LoadedGate]
    clock: Callable[[], float] = time.time


class GateService:
    """Runs until it is told to stop."""

    def __init__(self, settings: GateSettings) -> None:
        """Prepare; the loop must run. Raises `ConfigError`, `HostError`."""
        self._settings = settings
        self._log = settings.log
        self._clock = settings.clock
        self._notify = Notifier(settings.environment)
        self._changes = Changes()
        self._heartbeat = Heartbeat()
        self._stop = asyncio.Event()
        self._tally = Tally()
        config = settings.loaded.config
        self._clerk = Clerk(Gate(config, self._clock()), self._tally)
        self._gauges = Gauges(self._tally, self._clock, self._clock())
        self._inbox = Inbox(asyncio.get_running_loop())
        self._web = Web(
            config,
            token=read_token(config),
            inbox=self._inbox,
            gauges=self._gauges,
            tally=self._tally,
            heartbeat=self._heartbeat,
        )
        self._worker = Worker("gate-journal")
        self._journal: Journal | None = None
        self._runner = Runner()
        self._acting: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._subscription: Subscription | None = None
        self._pruned, self._unpruned = self._clock(), 0

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        return None if self._web.listener is None else self._web.listener.port

    @property
    def _config(self) -> GateConfig:
        return self._clerk.gate.config

    def stop(self) -> None:
        """End the gate; safe to call twice."""
        if not self._stop.is_set():
            self._notify.stopping()
            self._log.info("gate_stopping")
        self._stop.set()
        self._runner.stop()
        self._inbox.ring()

    async def run(self) -> None:
        """Serve until `stop`; raises `HostError` where it cannot start."""
        await self._open()
        self._web.open()
        self._listen()
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
            signal.SIGHUP: self.reload,
        }
        for number, handler in handlers.items():
            with suppress(ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, handler)
        feeding = asyncio.create_task(self._feed_watchdog(), name="watchdog")
        try:
            while not self._stop.is_set():
                self._heartbeat.beat()
                await self._turn()
                await self._inbox.wait(TICK_SECONDS)
        finally:
            feeding.cancel()
            await self._end()
            for number in handlers:
                with suppress(ValueError, RuntimeError):
                    loop.remove_signal_handler(number)

    def reload(self) -> None:
        """Take a new configuration; a wrong one is refused and the old one stays."""
        self._notify.reloading()
        try:
            loaded = self._settings.reload()
            token = read_token(loaded.config)
        except ConfigError as error:
            self._log.error("configuration_refused", err=str(error))
        else:
            self._take_configuration(loaded.config, token)
        finally:
            self._notify.ready()

    def _take_configuration(self, config: GateConfig, token: bytes | None) -> None:
        old = self._config
        late = [key for key in _FIXED if getattr(old, key) != getattr(config, key)]
        self._clerk.gate.config = config
        self._web.token = token
        if (old.mqtt, old.cluster) != (config.mqtt, config.cluster):
            self._listen()
        if config.act and not old.act:
            self._clerk.gate.forget_rehearsal()
            self._submit(lambda journal: journal.forget_rehearsal())
        self._inbox.ring()
        self._log.info("configuration_loaded", act=config.act, restart_needed=late)

    async def _open(self) -> None:
        """Take up what was known, and own up to actions that nobody saw end."""
        folder = self._config.journal.folder
        self._journal = await asyncio.wrap_future(
            self._worker.submit(lambda: Journal(folder))
        )
        restored = await self._ask(lambda journal: journal.restored())
        gate, now = self._clerk.gate, self._clock()
        nodes = restored.nodes
        gate.restore(restored.known, nodes.outs, restored.attempts, nodes.rested)
        if self._config.act:
            gate.forget_rehearsal()
            await self._ask(lambda journal: journal.forget_rehearsal())
        for each in await self._ask(lambda journal: journal.unfinished()):
            gate.end(each.report, Outcome.UNKNOWN, now)
            await self._write_end(each.number, each.report, Ended(Outcome.UNKNOWN))

    async def _turn(self) -> None:
        letters = self._inbox.take()
        now = self._clock()
        for letter in letters:
            self._clerk.take(letter.content, now)
        try:
            sight = await self._look(now)
            chosen = self._clerk.judge(now, sight)
            await self._flush()
            if chosen is not None and not self._stop.is_set():
                await self._begin(chosen, now)
            await self._prune(now)
        except HostError as error:
            self._answer(letters, error)
            self._show(now, fails=True)
            if self._changes.note("journal", str(error)):
                self._log.error("journal_failed", err=str(error))
            return
        self._answer(letters, None)
        self._changes.note("journal", None)
        self._show(now, fails=False)
        if not self._heartbeat.ready:
            self._heartbeat.ready = True
            self._notify.ready()
            self._log.info("gate_ready", act=self._config.act, port=self.port)

    async def _look(self, now: float) -> Sight:
        """Ask for what is known elsewhere: releases, maintenance, the broker."""
        file = self._config.maintenance_file

        def look(journal: Journal) -> tuple[tuple[Release, ...], Any]:
            return journal.releases(), worked_on(file, now)

        releases, nodes = await self._ask(look)
        for release in releases:
            await self._release(release, now)
        if self._changes.note("maintenance", nodes is None) and nodes is None:
            self._log.error("maintenance_unreadable", path=file)
        return Sight(nodes, self._lost())

    async def _release(self, release: Release, now: float) -> None:
        was_out = self._clerk.gate.release(release.node, now)
        detail = f"by {word(release.who)}" if was_out else "it was not out"
        node = word(release.node)
        self._clerk.write(Entry(time=now, what="released", node=node, detail=detail))
        self._log.info("node_released", node=node, was_out=was_out)
        nodes = self._clerk.nodes()
        await self._ask(lambda journal: journal.taken(release, nodes))

    def _lost(self) -> frozenset[str]:
        if self._subscription is None or self._subscription.connected:
            return frozenset()
        return frozenset({"mqtt"})

    async def _flush(self) -> None:
        pending = self._clerk.pending()
        nodes = self._clerk.nodes()
        if any(pending):
            await self._ask(lambda journal: journal.note(*pending, nodes))
            self._clerk.written(*pending)
            self._unpruned += len(pending[0])

    async def _begin(self, report: Report, now: float) -> None:
        """Write that an action begins, then begin it, or only say so."""
        gate = self._clerk.gate
        told = {"node": report.node, "kind": report.finding.kind, "finding": report.id}
        gate.begin(report, now)
        if not self._config.act:
            gate.end(report, Outcome.DRY_RUN, now)
            nodes = self._clerk.nodes()
            await self._ask(lambda journal: journal.rehearse(report, now, nodes))
            self._tally.actions[Outcome.DRY_RUN.value] += 1
            self._log.warning("action_withheld", **told, why="act is false")
            return
        nodes = self._clerk.nodes()
        try:
            number = await self._ask(lambda journal: journal.begin(report, now, nodes))
        except HostError:
            gate.busy = None
            raise
        self._log.warning("action_begun", **told)
        self._acting = asyncio.create_task(self._act(number, report), name="action")

    async def _act(self, number: int, report: Report) -> None:
        script = self._config.script
        try:
            call = call_of(script.path or "", report)
            ended = await asyncio.to_thread(self._runner.run, call, script)
        except Exception as error:  # noqa: BLE001 - what it did is then not known
            ended = Ended(Outcome.UNKNOWN, output=repr(error))
        self._clerk.gate.end(report, ended.outcome, self._clock())
        while True:
            try:
                await self._write_end(number, report, ended)
            except HostError as error:  # until it can be written, nothing is acted on
                if self._changes.note("journal", str(error)):
                    self._log.error("journal_failed", err=str(error))
                if self._stop.is_set():
                    return
                await asyncio.sleep(TICK_SECONDS)
            else:
                break
        self._inbox.ring()

    async def _write_end(self, number: int, report: Report, ended: Ended) -> None:
        now, nodes = self._clock(), self._clerk.nodes()
        await self._ask(lambda journal: journal.end(number, report, ended, now, nodes))
        self._tally.actions[ended.outcome.value] += 1
        is_bad = ended.outcome in UNSURE or ended.outcome is Outcome.FAILED
        say = self._log.error if is_bad else self._log.info
        say(
            "action_ended",
            node=report.node,
            outcome=ended.outcome.value,
            status=ended.status,
            output=ended.output,
        )

    async def _prune(self, now: float) -> None:
        is_late = not 0 <= now - self._pruned < PRUNE_SECONDS
        if not is_late and self._unpruned < PRUNE_ENTRIES:
            return
        self._pruned, self._unpruned = now, 0
        records = self._config.journal
        before = now - records.keep_days * _DAY_SECONDS
        await self._ask(lambda journal: journal.prune(before, records.most_entries))

    def _show(self, now: float, *, fails: bool) -> None:
        shown = self._clerk.shown(now, lost=self._lost(), fails=fails)
        self._gauges.shown = shown
        told = f"{shown.out} of {shown.budget} nodes out, {shown.open} findings open"
        if self._changes.note("status", told):
            self._notify.status(told + (", dry run" if shown.dry_run else ""))

    def _listen(self) -> None:
        """Listen to the broker that is configured, if one is."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = self._subscription = None
        config = self._config
        if config.mqtt.host is None:
            return
        # Imported late: aiomqtt is for those who use it.
        from fabricmon.gate.subscription import Subscription  # noqa: PLC0415

        self._subscription = Subscription(
            config.mqtt, config.cluster, self._inbox, self._tally, self._log
        )
        self._listening = asyncio.create_task(self._subscription.run(), name="mqtt")

    async def _feed_watchdog(self) -> None:
        limit = watchdog_seconds(self._settings.environment)
        while limit is not None:
            if self._heartbeat.age_seconds < limit:
                self._notify.alive()
            await asyncio.sleep(limit / 2)

    async def _end(self) -> None:
        self._web.close()
        tasks = [t for t in (self._acting, self._listening) if t is not None]
        if self._listening is not None:
            self._listening.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
        self._answer(self._inbox.take(), HostError("the gate stops"))
        with suppress(HostError, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS / 2):
                await self._flush()
        if self._journal is not None:
            self._submit(lambda journal: journal.close())
        self._worker.end()
        self._log.info("gate_stopped")

    def _submit(self, call: Callable[[Journal], _T]) -> Future[_T]:
        def run() -> _T:
            if self._journal is None:
                raise HostError("the journal is not open")
            return call(self._journal)

        return self._worker.submit(run)

    async def _ask(self, call: Callable[[Journal], _T]) -> _T:
        """Have the journal's thread do something; raises `HostError`."""
        return await asyncio.wrap_future(self._submit(call))

    def _answer(self, letters: list[Letter], error: Exception | None) -> None:
        for letter in letters:
            if letter.written.done():
                continue
            if error is None:
                letter.written.set_result(None)
            else:
                letter.written.set_exception(error)
