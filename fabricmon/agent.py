"""The agent: one asyncio loop around a pipeline, its sinks and its saved state."""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.config_load import Loaded
from fabricmon.driving import Drive
from fabricmon.errors import ConfigError, HostError
from fabricmon.host.store import StoreProblem
from fabricmon.model import Delivery, Incident, Job, ReadFailure, Snapshot
from fabricmon.pipeline import Pipeline
from fabricmon.registry import SOURCES
from fabricmon.runtime import memory
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import Changes
from fabricmon.runtime.notify import Notifier, watchdog_seconds
from fabricmon.runtime.saver import Saver
from fabricmon.runtime.socket import NAME, AgentSocket
from fabricmon.runtime.ticker import Ticker
from fabricmon.saved import SavedState
from fabricmon.sinks.protocol import Sender, Sink
from fabricmon.sinks.registry import SINKS
from fabricmon.topology_load import load_topology
from fabricmon.value import Value

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

READY_SECONDS = 0.5
"""After so long the agent says that it is ready, whatever still hangs."""

STOP_SECONDS = 1.0
"""How long the end waits for reads that do not return."""

LIVELINESS = 0.5
"""The watchdog is fed only while the loop turned within this part of its limit."""


class Settings(Value, frozen=True):
    """What an agent is started with; ``reload`` reads the configuration again.

    ``socket_folder`` is where the socket lies if that is not the run folder: of a node
    that is played, the run folder is the node's. ``phase`` is by how many seconds its
    polls lie behind those of other nodes; see `phase_of`.
    """

    loaded: Loaded
    node: str
    environment: Mapping[str, str]
    log: FilteringBoundLogger
    reload: Callable[[], Loaded]
    answer: Callable[[Pipeline, dict[str, object]], bytes]
    socket_folder: str | None = None
    phase: float = 0.0


class Agent:
    """Runs until it is told to stop."""

    def __init__(self, settings: Settings, drive: Drive) -> None:
        """Build everything; nothing is opened or started yet."""
        self._settings = settings
        self._loaded = settings.loaded
        self._drive = drive
        self._log = settings.log
        self._changes = Changes()
        self._notify = Notifier(settings.environment)
        self._heartbeat = Heartbeat()
        self._saver = Saver(self._loaded.config.state_folder)
        self._sinks: tuple[Sink, ...] = ()
        self._senders: tuple[Sender, ...] = ()
        self._published: Snapshot | None = None
        self._stop = asyncio.Event()
        self.was_told_to_stop = False
        self._pipeline = self._make_pipeline()
        self._pipeline.awaits_save = True
        self._shown: Pipeline | None = None
        self._untold: tuple[Incident, ...] = ()
        self._reload_waits = False

    @property
    def pipeline(self) -> Pipeline:
        """The node as it stands."""
        return self._pipeline

    def stop(self) -> None:
        """End the agent; safe to call twice."""
        if not self._stop.is_set():
            self._notify.stopping()
            self._log.info("agent_stopping")
        self._stop.set()
        self._drive.ring()

    def _stop_for_good(self) -> None:
        self.was_told_to_stop = True
        self.stop()

    async def run(self) -> None:
        """Watch until `stop`; raises `HostError` if a sink cannot start."""
        self._restore()
        with ExitStack() as stack:
            socket = self._bind_socket()
            if socket is not None:
                stack.callback(socket.remove)
            self._open_sinks(stack)
            stack.enter_context(self._signals())
            asyncio.get_running_loop().set_exception_handler(self._note_loop_failure)
            await self._drive.open(self._link_news)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch(), name="watch")
                tasks.create_task(self._feed_watchdog(), name="watchdog")
                if socket is not None:
                    serving = socket.serve(self._answer, self._stop)
                    tasks.create_task(serving, name="socket")
            self._end()

    async def _watch(self) -> None:
        """Step the pipeline whenever something is due or has come in."""
        while not self._stop.is_set():
            self._heartbeat.beat()
            self._pipeline.deliveries = self._deliveries()
            self._note_history()
            changes = self._pipeline.step(moment(self._drive.host))
            self._publish(changes)
            await self._drive.wait(self._next_look())

    def _deliveries(self) -> tuple[Delivery, ...]:
        found = (sink.delivery for sink in self._senders)
        return tuple(each for each in found if each is not None)

    def _next_look(self) -> float:
        due = self._pipeline.next_due
        if self._shown is self._pipeline:
            return due
        return min(due, self._pipeline.started_at + READY_SECONDS)

    async def _feed_watchdog(self) -> None:
        limit = watchdog_seconds(self._settings.environment)
        if limit is None:
            return
        async for _tick in Ticker(limit * LIVELINESS, self._stop):
            if self._heartbeat.age_seconds < limit:
                self._notify.alive()

    def _publish(self, changes: tuple[Incident, ...]) -> None:
        """Tell the sinks, once there is something to tell.

        After a reload the old values stay until the new pipeline has looked around.
        """
        self._untold += changes
        self._save(changed=bool(changes))
        waited = self._drive.host.monotonic() - self._pipeline.started_at
        if self._shown is not self._pipeline and (
            not self._pipeline.has_seen_all() and waited < READY_SECONDS
        ):
            return
        self._shown = self._pipeline
        self._tell()
        if not self._heartbeat.ready:
            self._say_ready(waited)
            self._save(changed=True)  # so that it is known early whether that works
        if self._reload_waits:
            self._reload_waits = False
            asyncio.get_running_loop().call_soon(self._reload)

    def _tell(self) -> None:
        snapshot, changes = self._pipeline.snapshot, self._untold
        if snapshot is self._published and not changes:
            return
        self._published, self._untold = snapshot, ()
        for sink in self._sinks:
            try:
                sink.publish(snapshot, changes)
            except Exception as error:  # noqa: BLE001 - a sink must not end the agent
                self._note_failure(sink.name, error)
        seen = f"{len(snapshot.ports)} ports, {snapshot.verdict.word}"
        if self._changes.note("status", seen):
            self._notify.status(seen)

    def _note_failure(self, sink: str, error: Exception) -> None:
        if self._changes.note(("sink", sink), repr(error)):
            where = traceback.format_exception_only(error)[-1].strip()
            self._log.error("sink_failed", sink=sink, err=where)

    def _note_loop_failure(self, _loop: object, context: dict[str, Any]) -> None:
        """Log what no task can catch, such as a client that cannot be accepted."""
        where, error = context["message"], context.get("exception")
        if self._changes.note(("loop", where), repr(error)):
            self._log.error("loop_failed", where=where, err=repr(error))

    def _say_ready(self, waited: float) -> None:
        snapshot = self._pipeline.snapshot
        self._heartbeat.ready = True
        self._notify.ready()
        memory.settle()
        seen = f"{len(snapshot.ports)} ports, {snapshot.verdict.word}"
        self._log.info("agent_ready", seen=seen, duration=round(waited, 3))

    def _save(self, *, changed: bool) -> None:
        now = self._pipeline.snapshot.now
        if self._saver.is_due(now, changed=changed):
            state = self._state()
            if state is not None:
                self._saver.offer(state, now)
        self._note_unsaved()

    def _state(self) -> SavedState | None:
        try:
            return self._pipeline.save()
        except Exception as error:  # noqa: BLE001 - a save must not end the agent
            self._saver.refuse(error)
            return None

    def _note_unsaved(self) -> None:
        problem = self._saver.problem
        self._pipeline.awaits_save = not self._saver.has_saved
        if self._changes.note("state", problem):
            self._pipeline.unsaved = _failure(problem)
            if problem is not None:
                self._log.warning("state_unsaved", err=str(problem))

    def _note_history(self) -> None:
        self._pipeline.keeps_history = self._drive.has_history
        error = self._drive.history_error
        if error is None or not self._changes.note("history", error):
            return
        folder = f"{self._settings.loaded.config.state_folder}/history"
        self._pipeline.unrecorded = ReadFailure(None, None, folder, None, error)
        self._log.warning("history_ended", err=error)

    def _restore(self) -> None:
        saved = self._saver.load()
        problem = self._saver.problem
        if self._changes.note("state", problem) and problem is not None:
            self._log.warning("state_ignored", err=str(problem))
        for reason in self._pipeline.restore(saved) if saved is not None else ():
            self._log.warning("state_ignored", err=reason)

    def _make_pipeline(self) -> Pipeline:
        host, config = self._drive.host, self._loaded.config
        poll = make_poll(host, config, SOURCES)
        reader = self._drive.make_reader(poll, self._note_crash)
        node, phase = self._settings.node, self._settings.phase
        pipeline = make_pipeline(host, reader, self._loaded, node, phase=phase)
        if config.topology is not None:
            try:
                pipeline.set_topology(load_topology(config.topology, node))
            except ConfigError as error:  # it could be read a moment ago
                self._log.error("topology_ignored", err=str(error))
        return pipeline

    def _note_crash(self, job: Job, error: Exception) -> None:
        text = "".join(traceback.format_exception(error))
        self._log.error("source_crashed", source=job.source, unit=job.unit, err=text)

    def _link_news(self) -> None:
        self._pipeline.hasten("link_events")
        self._drive.ring()

    def _answer(self, request: dict[str, object]) -> bytes:
        return self._settings.answer(self._shown or self._pipeline, request)

    def _bind_socket(self) -> AgentSocket | None:
        folder = self._settings.socket_folder or self._loaded.config.run_folder
        path = f"{folder}/{NAME}"
        try:
            return AgentSocket.bind(path)
        except HostError as error:
            self._log.warning("socket_unavailable", err=str(error))
            return None

    def _open_sinks(self, stack: ExitStack) -> None:
        made = (make(self._loaded.config, self._heartbeat, self._log) for make in SINKS)
        self._sinks = tuple(sink for sink in made if sink is not None)
        for sink in self._sinks:
            sink.open()
            stack.callback(sink.close)
        self._senders = tuple(sink for sink in self._sinks if isinstance(sink, Sender))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGHUP)
        handlers = {
            signal.SIGTERM: self._stop_for_good,
            signal.SIGINT: self._stop_for_good,
            signal.SIGHUP: self._reload,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)
            # The command ignores it: one that comes late is not an abrupt end.
            signal.signal(signal.SIGHUP, before or signal.SIG_DFL)

    def _reload(self) -> None:
        """Take a new configuration; a wrong one is refused and the old one stays.

        While the one before it looks around, it waits: a storm of signals is one reload
        and another.
        """
        self._reload_waits = self._shown is not self._pipeline
        if self._reload_waits:
            return
        self._notify.reloading()
        try:
            loaded = self._settings.reload()
        except ConfigError as error:
            self._log.error("configuration_refused", err=str(error))
        else:
            self._take_configuration(loaded)
        finally:
            self._notify.ready()

    def _take_configuration(self, loaded: Loaded) -> None:
        fixed = (
            *("listen", "root", "run_folder", "state_folder", "node", "log"),
            *("metrics", "textfile", "isolation", "history"),
        )
        old, new = self._settings.loaded.config, loaded.config
        late = [key for key in fixed if getattr(old, key) != getattr(new, key)]
        self._loaded = loaded
        previous = self._pipeline
        self._pipeline = self._make_pipeline()
        self._pipeline.inherit(previous)
        self._pipeline.unsaved = previous.unsaved
        self._pipeline.unrecorded = previous.unrecorded
        self._pipeline.awaits_save = previous.awaits_save
        del previous
        for sink in self._senders:
            sink.reload(loaded.config)
        memory.settle()
        self._drive.ring()
        self._log.info("configuration_loaded", hash=loaded.hash, restart_needed=late)

    def _end(self) -> None:
        if self._untold:
            self._tell()
        state = self._state()
        if state is not None:
            self._saver.finish(state, STOP_SECONDS)
        self._note_unsaved()
        for poll in self._drive.close(STOP_SECONDS / 2):
            self._log.warning(
                "read_abandoned", source=poll.job.source, device=poll.job.unit
            )
        self._log.info("agent_stopped")


def _failure(problem: StoreProblem | None) -> ReadFailure | None:
    if problem is None:
        return None
    return ReadFailure(None, None, problem.path, problem.errno, problem.message)
