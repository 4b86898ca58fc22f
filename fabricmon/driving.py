"""What moves an agent: the real node and clock, or an embedded node in time lapse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fabricmon.assembly import Poll
from fabricmon.config import Config
from fabricmon.errors import HostError
from fabricmon.host.live import LiveHost
from fabricmon.host.live_descriptors import MOMENTARY
from fabricmon.host.protocol import Host
from fabricmon.lanes import InFlight, Reader
from fabricmon.model import Job
from fabricmon.runtime.reader import ThreadReader
from fabricmon.runtime.ticker import Alarm
from fabricmon.sources.maintenance import plan_file

if TYPE_CHECKING:
    from fabricmon.host.history import HistoryHost

Crash = Callable[[Job, Exception], None]


class Drive(Protocol):
    """Where the agent's time and node come from."""

    @property
    def host(self) -> Host:
        """The node."""

    @property
    def has_history(self) -> bool:
        """Whether the last minutes are kept, or were until that failed."""

    @property
    def history_error(self) -> str | None:
        """Why they are kept no longer."""

    def make_reader(self, poll: Poll, crashed: Crash) -> Reader:
        """Return what runs the polls, with these from now on."""

    async def open(self, link_news: Callable[[], None]) -> None:
        """Start within the running loop; ``link_news`` is called on link events."""

    async def wait(self, due: float) -> None:
        """Sleep until ``due`` on the host's clock, or until something comes in."""

    def ring(self) -> None:
        """End the sleep now; from the loop's own thread."""

    def close(self, seconds: float) -> tuple[InFlight, ...]:
        """Stop; return the reads that did not end within ``seconds``."""


def live_host(
    config: Config, root: str | None = None, *, watch_links: bool = False
) -> LiveHost:
    """Return the configured node, or a copy of another below ``root``.

    The run folder is that of this system, in a container too; that of a copy is
    within it.
    """
    if root is not None:
        return LiveHost(root, watch_links=watch_links, trust=MOMENTARY)
    own = (config.run_folder, str(Path(plan_file(config)).parent))
    return LiveHost(
        config.root, watch_links=watch_links, own_folders=own, trust=MOMENTARY
    )


class LiveDrive:
    """The node that this process runs on."""

    def __init__(self, config: Config) -> None:
        """Open nothing yet but the socket for link events."""
        self._live = live_host(config, watch_links=True)
        self._host: Host = self._live
        self._history: HistoryHost | None = None
        self._reader: ThreadReader | None = None
        self._alarm: Alarm | None = None

    @property
    def host(self) -> Host:
        """The node."""
        return self._host

    @property
    def link_error(self) -> HostError | None:
        """Why no link events are heard, None if they are."""
        return self._live.link_error

    @property
    def history_error(self) -> str | None:
        """Why the history has ended."""
        return None if self._history is None else self._history.error

    @property
    def has_history(self) -> bool:
        """Whether the last minutes are kept, or were until that failed."""
        return self._history is not None

    def keep_history(
        self, config: Config, node: str, shown: Mapping[str, object]
    ) -> None:
        """Keep the last minutes from now on; ``shown`` goes into their headers."""
        # Loaded by those who want it: a history is off on most nodes.
        from fabricmon.host.history import HistoryHost  # noqa: PLC0415
        from fabricmon.host.segments import FOLDER, Segments  # noqa: PLC0415

        seconds = config.history.minutes * 60
        folder = Path(config.state_folder, FOLDER)
        segments = Segments(folder, seconds, config.history.most_megabytes * 10**6)
        self._history = HistoryHost(self._live, node, shown, segments, seconds)
        self._host = self._history

    def make_reader(self, poll: Poll, crashed: Crash) -> Reader:
        """Return the reader with a thread per lane; a second call changes its polls."""
        if self._reader is None:
            self._reader = ThreadReader(self._host, poll, self._wake, crashed)
        else:
            self._reader.take_over(poll, crashed)
        return self._reader

    async def open(self, link_news: Callable[[], None]) -> None:
        """Listen for link events."""
        self._alarm = Alarm()
        descriptor = self._live.link_descriptor

        def drain() -> None:
            self._live.drain_links()  # or the loop would spin until they are polled
            link_news()

        if descriptor is not None:
            asyncio.get_running_loop().add_reader(descriptor, drain)

    async def wait(self, due: float) -> None:
        """Sleep until then, until something comes in, or to see whether a read hangs."""
        if self._alarm is None or self._reader is None:
            return
        look = self._host.monotonic() + self._reader.look_seconds
        await self._alarm.sleep_until(min(due, look))

    def ring(self) -> None:
        """End the sleep now."""
        if self._alarm is not None:
            self._alarm.ring()

    def close(self, seconds: float) -> tuple[InFlight, ...]:
        """Give reads a moment to end, close what no hung one holds."""
        descriptor = self._live.link_descriptor
        if descriptor is not None and self._alarm is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
        hung = self._reader.close(seconds) if self._reader is not None else ()
        if self._history is not None:
            self._history.close()
        self._live.close()
        return hung

    def _wake(self) -> None:
        if self._alarm is not None:
            self._alarm.ring_from_thread()
