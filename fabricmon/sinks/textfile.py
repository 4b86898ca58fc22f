"""The sink for node_exporter's textfile collector: the metrics as a file.

For sites that allow one exporter on a node. The file is written by a thread of its own,
so that a slow disk holds up nothing, and is replaced whole: no reader sees half of it.
It ends with the agent, because a file that stays would tell of a node that nobody
watches.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.errors import HostError
from fabricmon.model import Incident, Snapshot
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import Changes
from fabricmon.sinks.exposition import Exposition

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

CLOSE_SECONDS = 1.0
"""How long the end waits for a disk that does not take the file."""

_NEW = ".new"  # not .prom: the collector reads every file that ends so
_MODE = 0o644


class TextfileSink:
    """Writes the newest snapshot every ``textfile.period_seconds``.

    It leaves out what the agent's listener exports of the process: node_exporter has
    metrics with these names itself, and would refuse the whole file.
    """

    name = "textfile"

    def __init__(self, config: Config, path: str, log: FilteringBoundLogger) -> None:
        """Write to ``path``, which ends in ``.prom``."""
        self._path = Path(path)
        self._new = self._path.with_name(f".{self._path.name}{_NEW}")
        self._period = config.textfile.period_seconds
        self._exposition = Exposition(config)
        self._log = log
        self._changes = Changes()
        self._news = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="textfile", daemon=True)

    def open(self) -> None:
        """Start; raises `HostError` if the folder cannot be written to."""
        folder = self._path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            what = "cannot be written to" if folder.is_dir() else "is no folder"
            remedy = "make it and give it to the agent (drop-in textfile.conf)"
            raise HostError(f"{what}: {remedy}", path=str(folder))
        self._thread.start()

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Write this snapshot soon, or a newer one."""
        del changes
        self._exposition.publish(snapshot)
        self._news.set()

    def close(self) -> None:
        """Stop, and take the file away."""
        self._stop.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _work(self) -> None:
        self._news.wait()  # before the first look there is nothing to tell
        while not self._stop.is_set():
            self._note(self._write())
            self._stop.wait(self._period)
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self) -> OSError | None:
        body = self._exposition.render().body
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            # What a crash left, or a link of somebody else, is never written through.
            self._new.unlink(missing_ok=True)
            with os.fdopen(os.open(self._new, flags, _MODE), "wb") as file:
                os.fchmod(file.fileno(), _MODE)  # whatever the umask
                file.write(body)
            self._new.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                self._new.unlink(missing_ok=True)
            return error
        return None

    def _note(self, error: OSError | None) -> None:
        """Log that writing fails, or works again; once each."""
        if not self._changes.note("file", None if error is None else error.errno):
            return
        if error is None:
            self._log.info("textfile_written", path=str(self._path))
        else:
            why = error.strerror or str(error)
            self._log.warning("textfile_unwritten", path=str(self._path), err=why)


def make(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> TextfileSink | None:
    """Return the sink that the configuration asks for, None if it wants none."""
    del heartbeat
    path = config.textfile.path
    return None if path is None else TextfileSink(config, path, log)
