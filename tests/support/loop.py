"""An event loop whose time passes only when every task sleeps: no test waits."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    """Skips the time until the next timer instead of waiting for it."""

    loop: "FastLoop"

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.loop.now += timeout
        return ready


class FastLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own; a test may move `now` forward, too."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.now = 1000.0
        super().__init__(selector)

    def time(self) -> float:
        """Return the time of this loop, in seconds."""
        return self.now


def run_fast(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a loop that never waits."""
    with asyncio.Runner(loop_factory=FastLoop, debug=False) as runner:
        return runner.run(main)


def pass_time(seconds: float) -> None:
    """Let time go by without the loop running, as a starved process would."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    loop.now += seconds
