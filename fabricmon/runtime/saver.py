"""Writes the saved state from a thread of its own: a slow disk delays nothing."""

from __future__ import annotations

from threading import Condition, Thread

from fabricmon.host.store import Store, StoreProblem
from fabricmon.saved import SavedState

SAVE_SECONDS = 60.0
"""Rhythm of saving while nothing opens or resolves."""


class Saver:
    """Keeps the newest state on disk; one that waits is replaced by a newer one."""

    def __init__(self, folder: str) -> None:
        """Touch nothing yet."""
        self._store = Store(folder)
        self._news = Condition()
        self._waiting: SavedState | None = None
        self._ended = False
        self._saved_at: float | None = None
        self._thread: Thread | None = None
        self.has_saved = False
        """Whether a state was ever taken by the disk."""
        self.problem: StoreProblem | None = None

    def load(self) -> SavedState | None:
        """Return what an earlier agent saved; `problem` says why there is nothing."""
        found = self._store.load()
        if isinstance(found, StoreProblem):
            self.problem = found
            return None
        return found

    def is_due(self, now: float, *, changed: bool) -> bool:
        """Tell whether to save now (monotonic seconds)."""
        if self._saved_at is None:
            self._saved_at = now
        return changed or now - self._saved_at >= SAVE_SECONDS

    def offer(self, state: SavedState, now: float) -> None:
        """Save this state soon."""
        self._saved_at = now
        with self._news:
            self._waiting = state
            self._news.notify()
        if self._thread is None:
            self._start()

    def finish(self, state: SavedState, seconds: float) -> bool:
        """Save this last state; False if the disk did not take it in time."""
        self.offer(state, self._saved_at or 0.0)
        with self._news:
            self._ended = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join(seconds)
        ended = self._thread is not None and not self._thread.is_alive()
        if ended:
            self._store.close()
        return ended

    def refuse(self, error: Exception) -> None:
        """Note that there was nothing that could be saved, and why."""
        path, why = self._store.path, f"{type(error).__name__}: {error}"
        self.problem = StoreProblem(path, f"not saved: {why}")

    def _start(self) -> None:
        thread = Thread(target=self._serve, name="saver", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # out of threads: the next state tries again
            self.refuse(error)
        else:
            self._thread = thread

    def _serve(self) -> None:
        while (state := self._next()) is not None:
            try:
                self.problem = self._store.save(state)
            except Exception as error:  # noqa: BLE001 -- the next state may be better
                self.refuse(error)
            self.has_saved |= self.problem is None

    def _next(self) -> SavedState | None:
        with self._news:
            while self._waiting is None:
                if self._ended:
                    return None
                self._news.wait()
            state, self._waiting = self._waiting, None
            return state
