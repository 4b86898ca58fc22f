import asyncio
from threading import Thread

import pytest

from fabricmon.runtime.ticker import Alarm, Tick, Ticker
from tests.support.loop import pass_time, run_fast


class TestTicker:
    def test_no_drift(self) -> None:
        """Ticks lie on a grid, however long the work between them takes."""

        async def ticks() -> list[float]:
            stop = asyncio.Event()
            due: list[float] = []
            async for tick in Ticker(0.1, stop):
                due.append(tick.due)
                await asyncio.sleep(0.03)
                if len(due) == 1001:
                    stop.set()
            return due

        due = run_fast(ticks())

        assert due[0] == 1000.0
        assert due[-1] == pytest.approx(1100.0, abs=1e-9)

    def test_starved(self) -> None:
        """A late tick says how late it is, and those missed are not made up for."""

        async def ticks() -> list[Tick]:
            stop = asyncio.Event()
            seen: list[Tick] = []
            async for tick in Ticker(10, stop):
                seen.append(tick)
                if len(seen) == 2:
                    pass_time(37)
                if len(seen) == 4:
                    stop.set()
            return seen

        seen = run_fast(ticks())

        assert [tick.due for tick in seen] == [1000, 1010, 1020, 1050]
        assert [tick.missed for tick in seen] == [0, 0, 2, 0]
        assert seen[2].late_seconds == pytest.approx(27, abs=0.01)
        assert seen[3].late_seconds == pytest.approx(0, abs=0.01)

    def test_phase(self) -> None:
        """A phase moves the whole grid."""

        async def first() -> float:
            return (await anext(Ticker(10, asyncio.Event(), phase=2.5))).due

        assert run_fast(first()) == 1002.5

    def test_stop_while_waiting(self) -> None:
        """The stop event ends the wait at once."""

        async def stopped_at() -> float:
            loop = asyncio.get_running_loop()
            stop = asyncio.Event()
            loop.call_later(3, stop.set)
            async for tick in Ticker(3600, stop, phase=60):
                pytest.fail(f"ticked: {tick}")
            return loop.time()

        assert run_fast(stopped_at()) == pytest.approx(1003, abs=0.01)

    def test_stopped_before(self) -> None:
        """Once stopped nothing ticks, not even what is overdue."""

        async def count() -> int:
            stop = asyncio.Event()
            stop.set()
            return len([tick async for tick in Ticker(1, stop)])

        assert run_fast(count()) == 0

    def test_cancelled(self) -> None:
        """A cancel is not taken for a tick."""

        async def cancel() -> None:
            ticker = Ticker(3600, asyncio.Event(), phase=60)
            task = asyncio.ensure_future(anext(ticker))
            asyncio.get_running_loop().call_later(1, task.cancel)
            await task

        with pytest.raises(asyncio.CancelledError):
            run_fast(cancel())


class TestAlarm:
    def test_due(self) -> None:
        """Without a ring the sleep ends when it is due."""

        async def sleep() -> tuple[float, float]:
            loop = asyncio.get_running_loop()
            late = await Alarm().sleep_until(loop.time() + 5)
            return loop.time(), late

        now, late = run_fast(sleep())

        assert now == pytest.approx(1005, abs=0.01)
        assert late == pytest.approx(0, abs=0.01)

    def test_late(self) -> None:
        """A process that was kept from running learns for how long."""

        async def sleep() -> float:
            loop = asyncio.get_running_loop()
            loop.call_later(1, pass_time, 30)
            return await Alarm().sleep_until(loop.time() + 5)

        assert run_fast(sleep()) == pytest.approx(26, abs=0.01)

    def test_ring(self) -> None:
        """A ring ends the sleep, once."""

        async def sleep() -> list[float]:
            loop = asyncio.get_running_loop()
            alarm = Alarm()
            loop.call_later(2, alarm.ring)
            return [
                await alarm.sleep_until(1005.0),
                await alarm.sleep_until(1005.0),
            ]

        assert run_fast(sleep()) == pytest.approx([-3, 0], abs=0.01)

    def test_ring_before_sleep(self) -> None:
        """News that came before the sleep is not slept over."""

        async def sleep() -> float:
            alarm = Alarm()
            alarm.ring()
            return await alarm.sleep_until(1005.0)

        assert run_fast(sleep()) == pytest.approx(-5, abs=0.01)

    def test_ring_from_thread(self) -> None:
        """Another thread wakes the loop out of its wait."""

        async def sleep() -> float:
            alarm = Alarm()
            Thread(target=alarm.ring_from_thread).start()
            return await alarm.sleep_until(asyncio.get_running_loop().time() + 60)

        assert asyncio.run(sleep()) < -30
