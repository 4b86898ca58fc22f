from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon import replaying
from fabricmon.bursts import RECEIVED, TRANSMITTED, percentile
from fabricmon.host.inline import InlineReader, Poll
from fabricmon.host.replay import ReplayHost
from fabricmon.lanes import Progress
from fabricmon.model import Burst, Job, Outcome, PortId
from fabricmon.replaying import Replay
from fabricmon.runtime.encores import Encores
from tests import traces
from tests.sources.mlx5_node import mlx5_node

LINE = 400e9 / 8
WORDS = 4
Late = dict[float, tuple[float, float]]
PORT = "/sys/class/infiniband/mlx5_{}/ports/1/counters/port_{}_data"


def phases(period: float, busy: float, share: float, end: float) -> list[traces.Json]:
    """Return records of eight rails that send for ``busy`` s of every ``period``."""
    records = []
    words = int(share * LINE / WORDS)
    number, t, value = 0, 0.0, 1000
    while t < end:
        on = number % 2 == 0
        rate = words if on else 0
        paths = [PORT.format(d, way) for d in range(8) for way in ("rcv", "xmit")]
        records.append({"t": t, "ramp": {path: [value, rate] for path in paths}})
        length = busy if on else period - busy
        value += int(rate * length)
        t, number = round(t + length, 6), number + 1
    return [*records, {"t": end}]


def replayed(path: Path, records: list[traces.Json]) -> Replay:
    """Play a node of eight rails with these records to its end."""
    run = Replay(traces.write(path, [mlx5_node(8).record(), *records], traces.HEADER))
    for _ in run.changes():
        pass
    return run


def windows(run: Replay, direction: str = RECEIVED) -> list[Burst]:
    """Return the newest windows of a direction."""
    found = run.pipeline.intake.bursts.windows
    return [burst for burst in found if burst.direction == direction]


class Repeating(InlineReader):
    """Takes the samples of a window by itself, as the reader of a live agent does."""

    def __init__(self, host: ReplayHost, poll: Poll) -> None:
        super().__init__(host, poll)
        self.encores = Encores()
        self.samples: list[Outcome] = []

    def submit(self, job: Job) -> bool:
        """Take a job; one that repeats runs when its moments come."""
        if job in self.encores:
            return False
        if job.repeats is None:
            return super().submit(job)
        self.encores.begin(job, job.repeats)
        return True

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended, at the end of a window its samples."""
        complete = False
        for job in self.encores.take_due(now):
            self.samples.append(self._run(job, now, now))
            complete = not self.encores.goes_on(self.samples[-1]) or complete
        samples, self.samples = (self.samples, []) if complete else ([], self.samples)
        return (*super().collect(now), *samples)

    def next_event(self) -> float | None:
        """Return when the next poll ends."""
        others = super().next_event()
        return min(self.encores.next_at, inf if others is None else others)

    def progress(self) -> tuple[Progress, ...]:
        """Return how far each window is."""
        return self.encores.progress()


def test_windows_that_the_reader_takes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a live agent hands over once a window is what replay takes one by one."""
    records = phases(1, 0.6, 0.8, 100)
    one_by_one = replayed(tmp_path, records)
    monkeypatch.setattr(replaying, "InlineReader", Repeating)
    at_once = replayed(tmp_path, records)
    assert at_once.pipeline.intake.bursts.repeats
    assert windows(at_once)
    for direction in (RECEIVED, TRANSMITTED):
        assert windows(at_once, direction) == windows(one_by_one, direction)


class TestWindows:
    def test_a_busy_port(self, tmp_path: Path) -> None:
        """All samples busy, at the rate that the link carries."""
        run = replayed(tmp_path, phases(1000, 999, 0.9, 70))
        assert len(windows(run)) == 8
        for burst in windows(run, TRANSMITTED):
            assert burst.busy == 1
            assert burst.p99 == pytest.approx(0.9 * LINE, rel=1e-3)
            assert burst.mean == pytest.approx(0.9 * LINE, rel=1e-3)
            assert burst.idle_gaps == 0

    def test_duty_of_steps(self, tmp_path: Path) -> None:
        """Half a second of every second: half busy, full rate, pauses counted."""
        run = replayed(tmp_path, phases(1, 0.6, 0.8, 70))
        burst = windows(run)[0]
        assert burst.busy == pytest.approx(0.6, abs=0.1)
        assert burst.p99 == pytest.approx(0.8 * LINE, rel=0.01)
        assert burst.mean == pytest.approx(0.48 * LINE, rel=0.1)
        assert burst.idle_gaps in {2, 3}

    def test_all_rails_are_sampled_in_the_same_window(self, tmp_path: Path) -> None:
        """Windows of different times would make healthy rails differ."""
        run = replayed(tmp_path, phases(1, 0.6, 0.8, 70))
        assert len({(burst.began, burst.ended) for burst in windows(run)}) == 1

    def test_window_and_period(self, tmp_path: Path) -> None:
        """Three seconds at five a second, every thirty, a second after other polls."""
        burst = windows(replayed(tmp_path, phases(1, 0.6, 0.8, 70)))[0]
        assert burst.began % 30 == pytest.approx(1)
        assert burst.ended - burst.began == pytest.approx(3)
        assert burst.samples == 16

    def test_an_idle_node_is_looked_at_once_a_window(self, tmp_path: Path) -> None:
        """The rest of the window is spared: two firmware commands a port."""
        idle = replayed(tmp_path, [{"t": 600}])
        entry = idle.pipeline.schedule.entry("burst", "mlx5_0")
        assert entry is not None
        assert entry.period == 30
        assert {(burst.samples, burst.busy) for burst in windows(idle)} == {(2, 0)}

    def test_a_port_that_falls_idle(self, tmp_path: Path) -> None:
        """It is no longer busy, though no window was sampled."""
        burst = windows(replayed(tmp_path, phases(1000, 40, 0.9, 301)))[0]
        assert burst.ended == pytest.approx(301)
        assert (burst.busy, burst.p99, burst.mean) == (0, 0, 0)

    def test_a_reset_gives_no_rate(self, tmp_path: Path) -> None:
        """A counter that falls within a window is no traffic."""
        records = phases(1000, 999, 0.9, 70)
        path = PORT.format(0, "rcv")
        records.insert(1, {"t": 62.0, "ramp": {path: [0, int(LINE / WORDS)]}})
        found = {burst.port for burst in windows(replayed(tmp_path, records))}
        assert PortId("mlx5_0", 1) not in found
        assert PortId("mlx5_1", 1) in found

    def test_suspicion_samples_without_pause(self, tmp_path: Path) -> None:
        """After a finding, windows follow each other."""
        calm = replayed(tmp_path, phases(1000, 999, 0.9, 100)).host.firmware_reads
        records = phases(1000, 999, 0.9, 100)
        state = "/sys/class/infiniband/mlx5_7/ports/1/state"
        records.insert(1, {"t": 20.0, "set": {state: "1: DOWN\n"}})
        alarmed = replayed(tmp_path, records).host.firmware_reads
        assert alarmed > calm + 8 * 2 * 5 * 30

    def test_suspicion_keeps_rails_in_step(self, tmp_path: Path) -> None:
        """A rail that idles has whole windows too, in step with those that do not."""
        records = phases(1000, 999, 0.9, 101)
        still = {PORT.format(3, way): [1000, 0] for way in ("rcv", "xmit")}
        records.insert(1, {"t": 0.5, "ramp": still})
        state = "/sys/class/infiniband/mlx5_7/ports/1/state"
        records.insert(2, {"t": 20.0, "set": {state: "1: DOWN\n"}})
        found = windows(replayed(tmp_path, records))
        assert len(found) == 8
        assert len({(burst.began, burst.ended) for burst in found}) == 1

    def test_a_device_that_rests_says_nothing_old(self, tmp_path: Path) -> None:
        """After minutes without a sample its last window is no longer told."""
        records = phases(1000, 999, 0.9, 260)
        slow = PORT.format(3, "rcv")
        records.insert(1, {"t": 31.0, "slow": {slow: 0.08}})
        told = {burst.port.device for burst in windows(replayed(tmp_path, records))}
        assert told == {f"mlx5_{number}" for number in range(8)} - {"mlx5_3"}

    def test_a_job_connects_unwatched(self, tmp_path: Path) -> None:
        """In the first minute of a job two windows are spared."""
        records = phases(1000, 999, 0.9, 200)
        job = {"/run/fabricmon/jobs/7.json": '{"job": "7"}'}
        records.insert(1, {"t": 55.0, "set": job})
        spared = replayed(tmp_path, records).host.firmware_reads
        calm = replayed(tmp_path, phases(1000, 999, 0.9, 200)).host.firmware_reads
        assert calm - spared >= 8 * 2 * 14

    def test_jobs_that_begin_every_minute(self, tmp_path: Path) -> None:
        """They do not blind the node: it rests a fifth of the time at most."""
        records = phases(1000, 999, 0.9, 400)
        for number in range(1, 7):
            job = {f"/run/fabricmon/jobs/{number}.json": f'{{"job": "{number}"}}'}
            records.insert(number, {"t": 55.0 * number, "set": job})
        calm = replayed(tmp_path, phases(1000, 999, 0.9, 400)).host.firmware_reads
        busy = replayed(tmp_path, records).host.firmware_reads
        assert calm - busy <= 2 * 2 * 8 * 2 * 16

    def test_off(self, tmp_path: Path) -> None:
        """Turned off, nothing is sampled."""
        header = traces.HEADER | {"config": {"bursts": {"enabled": False}}}
        records = [mlx5_node(8).record(), *phases(1000, 999, 0.9, 100)]
        run = Replay(traces.write(tmp_path, records, header))
        assert list(run.changes()) is not None
        assert run.pipeline.intake.bursts.windows == ()

    def test_a_slow_device_rests(self, tmp_path: Path) -> None:
        """A device that takes 80 ms a sample is left alone for minutes."""
        records = phases(1000, 999, 0.9, 100)
        slow = PORT.format(3, "rcv")
        records.insert(1, {"t": 31.0, "slow": {slow: 0.08}})
        run = replayed(tmp_path, records)
        entry = run.pipeline.schedule.entry("burst", "mlx5_3")
        other = run.pipeline.schedule.entry("burst", "mlx5_2")
        assert entry is not None
        assert other is not None
        newest = {burst.port.device: burst.ended for burst in windows(run)}
        assert newest["mlx5_3"] < newest["mlx5_2"]


class TestSamplesTheReaderTakes:
    """Its series of samples ends by itself; windows go on as they do one by one."""

    @staticmethod
    def ended(
        monkeypatch: pytest.MonkeyPatch, folder: Path, late: Late, *, alarm: bool
    ) -> list[list[float]]:
        """Return when samples of one rail ended: one by one, and taken by the reader.

        ``late`` has moments at which a sample begins or ends by so much later.
        """
        found = []
        for reader in (InlineReader, Repeating):
            ends: list[float] = []

            class Lagging(reader):  # type: ignore[misc, valid-type]
                def _run(self, job: Job, started: float, ended: float) -> Outcome:
                    out: Outcome = super()._run(job, started, ended)
                    if (job.source, job.unit) == ("burst", "mlx5_3"):
                        begin, end = late.get(round(ended, 3), (0.0, 0.0))
                        out = Outcome(job, started + begin, ended + end, out.records)
                        ends.append(round(out.ended, 3))  # noqa: B023
                    return out

            monkeypatch.setattr(replaying, "InlineReader", Lagging)
            records = phases(1000, 999, 0.9, 45)
            if alarm:
                state = "/sys/class/infiniband/mlx5_7/ports/1/state"
                records.insert(1, {"t": 20.0, "set": {state: "1: DOWN\n"}})
            replayed(folder, records)
            found.append([end for end in ends if 31 < end < 44.5])
        return found

    def test_first_one_of_a_window_is_slow(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """It ends the series, not the window: that goes on in step with the others."""
        late = {37.4: (-0.08, 0.0)}
        one_by_one, at_once = self.ended(monkeypatch, tmp_path, late, alarm=True)
        assert at_once == one_by_one

    def test_window_that_is_complete_before_its_series(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A sample that waited for its lane completes it; the next one has all of its."""
        late = {37.0: (0.1, 0.115)}
        one_by_one, at_once = self.ended(monkeypatch, tmp_path, late, alarm=True)
        assert at_once == one_by_one

    def test_late_one_begins_no_window(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """One more sample than the window needs is no reason to take another window."""
        late = {31.0: (0.1, 0.11), 34.0: (0.015, 0.02)}
        one_by_one, at_once = self.ended(monkeypatch, tmp_path, late, alarm=False)
        assert one_by_one[-1] == 34.02
        assert at_once == [*one_by_one, 34.2]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=40), st.floats(0, 1))
def test_a_percentile_lies_between(values: list[float], share: float) -> None:
    """It is within the values, and grows with the share."""
    found = percentile(values, share)
    assert min(values) <= found <= max(values)
    steps = [percentile(values, part / 10) for part in range(11)]
    assert all(low <= high + 1e-3 for low, high in pairwise(steps))
