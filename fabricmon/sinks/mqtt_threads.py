"""Threads that may hang without holding anything up, least of all the agent's end.

The executors of the standard library are waited for at the end of the process; a name
server or a disk that does not answer would hold it up. These threads are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Task = Callable[[], None]


class Abandonable(ThreadPoolExecutor):
    """An executor that starts a thread for each call and waits for none."""

    def submit(
        self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Run the call in a thread of its own."""
        future: Future[_T] = Future()
        task = _task(future, lambda: fn(*args, **kwargs))
        threading.Thread(target=task, name="mqtt-call", daemon=True).start()
        return future


class Worker:
    """One thread that runs calls in order: for what only one thread may touch."""

    def __init__(self, name: str) -> None:
        """Start the thread."""
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Run a call after those before it."""
        future: Future[_T] = Future()
        self._tasks.put(_task(future, call))
        return future

    def end(self) -> None:
        """End the thread after the calls that wait; does not wait for it."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


def _task(future: Future[Any], call: Callable[[], Any]) -> _Task:
    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    return run
