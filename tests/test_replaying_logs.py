"""Logs in a trace, through sources, intake and sinks, as a live node would have them."""

from pathlib import Path
from typing import Any

import pytest

from fabricmon.config_load import build
from fabricmon.model import IncidentState, JobTransport, JobView, Snapshot
from fabricmon.replaying import Replay
from tests.sinks.scraping import exposition, scrape
from tests.stories import FIRST, goes_down, trace

Json = dict[str, Any]
LOG = "/var/log/nccl/nccl.n1.41.log"
HEAD = "n1:41:77 [0] NCCL INFO "
BEGIN = (
    f"{HEAD}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/IB [RO]; OOB eth0:10.1.1.1<0>\n"
    f"{HEAD}comm 0x7f rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n"
    f"{HEAD}Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
)
SLURM = {
    "/proc/sys/kernel/hostname": "n1\n",
    "/proc/41/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpu\n",
    "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/cgroup.procs": "",
}


def failure(number: int) -> str:
    """Return a line that tells of a peer that does not answer; numbers differ."""
    return (
        "n1:41:99 [0] transport/net_ib.cc:100 NCCL WARN NET/IB : Got completion from "
        f"peer 10.1.1.{number}<4711> with error 12, opcode 1, len 0, vendor err 129\n"
    )


def play(path: Path, config: Json | None = None) -> Snapshot:
    """Replay a trace; return how the node stands at its end."""
    replay = Replay(path, build(config or {}, (), ()))
    list(replay.changes())
    assert replay.problems == ()
    return replay.pipeline.snapshot


def failures(snapshot: Snapshot) -> int:
    """Return how many of the failures were told."""
    return sum(
        tally.events
        for tally in snapshot.log_tallies
        if tally.kind == "ib_completion_error"
    )


class TestTrace:
    def test_a_log_tells_of_its_job(self, tmp_path: Path) -> None:
        """Slurm names it, the log its devices, nodes and transport, sysfs its rails."""
        path = trace(
            tmp_path, (1, {"set": SLURM}), (2, {"append": {LOG: BEGIN}}), end=40
        )
        job: JobView = play(path).job
        (use,) = job.jobs
        assert (use.job, use.source, use.nodes) == ("7", "slurm", 2)
        assert use.devices == ("mlx5_0/1", "mlx5_3/1")
        assert use.rails == (0, 1)
        assert job.transports == (JobTransport("7", "ib"),)
        assert [log.path for log in job.logs] == [LOG]

    def test_rotated_cut_and_restarted(self, tmp_path: Path) -> None:
        """Every failure is told once."""
        path = trace(
            tmp_path,
            (5, {"append": {LOG: failure(1)}}),
            (20, {"append": {LOG: failure(2)}}),
            (20.5, {"rotate": {LOG: f"{LOG}.1"}, "append": {LOG: failure(3)}}),
            (40, {"append": {LOG: failure(4)}}),
            (45, {"truncate": [LOG], "append": {LOG: failure(5)}}),
            (60, {"gap": 20, "restart": True}),
            (70, {"append": {LOG: failure(6)}}),
            (90, {"append": {LOG: failure(7)}}),
            end=110,
        )
        whole = play(path)
        assert whole.job.counts.lines == 2  # the counts are those of the second agent
        assert failures(whole) == 2

        until = trace(
            tmp_path / "first",
            (5, {"append": {LOG: failure(1)}}),
            (20, {"append": {LOG: failure(2)}}),
            (20.5, {"rotate": {LOG: f"{LOG}.1"}, "append": {LOG: failure(3)}}),
            (40, {"append": {LOG: failure(4)}}),
            (45, {"truncate": [LOG], "append": {LOG: failure(5)}}),
            end=60,
        )
        before = play(until)
        assert failures(before) == 5
        assert before.job.counts.rotations == 2

    def test_a_log_that_hangs_holds_nothing_else(self, tmp_path: Path) -> None:
        """Its file system does not answer; the node is still watched."""
        path = trace(
            tmp_path,
            (5, {"append": {LOG: failure(1)}}),
            (20, {"append": {LOG: failure(2)}, "hang": {LOG: 1000}}),
            end=60,
        )
        snapshot = play(path)
        health = {each.source: each for each in snapshot.health}
        assert health["nccl_log"].in_flight_since is not None
        assert snapshot.now - (health["devices"].last_success or 0) < 10
        assert snapshot.now - (health["jobs"].last_success or 0) < 15

    def test_a_file_system_that_never_answers(self, tmp_path: Path) -> None:
        """What ports do is told in time, and that the logs cannot be seen."""
        path = trace(
            tmp_path,
            (5, {"append": {LOG: failure(1)}}),
            (20, {"append": {LOG: failure(2)}, "hang": {LOG: 100_000}}),
            (60, goes_down(FIRST)),
            end=400,
        )
        told = {
            change.incident.finding.kind: change.t
            for change in Replay(path, build({}, (), ())).changes()
            if change.incident.state is IncidentState.OPEN
        }
        assert told["port_down"] <= 75
        assert "telemetry_stale" in told

    @pytest.mark.parametrize("step", [3600.0, -3600.0, 1e8])
    def test_clock_that_is_set_during_an_error(
        self, tmp_path: Path, step: float
    ) -> None:
        """It ends no error, makes none new, and holds none open."""
        path = trace(
            tmp_path,
            (20, {"append": {LOG: failure(1)}}),
            (60, {"wall_step": step}),
            (90, {"append": {LOG: failure(1)}}),
            end=700,
        )
        changes = [
            (round(change.t), change.incident.state)
            for change in Replay(path, build({}, (), ())).changes()
            if change.incident.finding.kind == "nccl_error"
        ]
        (opened, _), (ended, last) = changes
        assert opened == 22
        assert (ended, last) == (390, IncidentState.RESOLVED)

    def test_without_logs_it_is_only_searched_for(self, tmp_path: Path) -> None:
        """A node without jobs spends nothing on them, and shows nothing."""
        replay = Replay(trace(tmp_path, end=30), build({}, (), ()))
        list(replay.changes())
        health = {each.source: each for each in replay.pipeline.snapshot.health}
        assert health["nccl_log"].due_seconds == 5
        shown = scrape(exposition(replay.pipeline.snapshot))
        names = ("fabricmon_log", "fabricmon_job")
        assert not any(
            series.startswith(names) or "nccl_log" in series or '"jobs"' in series
            for series in shown
        )

    def test_metrics(self, tmp_path: Path) -> None:
        """What a rule on Prometheus may ask."""
        path = trace(
            tmp_path,
            (1, {"set": SLURM}),
            (2, {"append": {LOG: BEGIN + failure(2) * 1000}}),
            end=40,
        )
        found = scrape(exposition(play(path)))
        error = '{kind="ib_completion_error",severity="critical"}'
        assert found['fabricmon_job_info{job="7",rails="0,1"}'] == "1"
        assert found['fabricmon_job_transport_info{job="7",transport="ib"}'] == "1"
        assert found[f"fabricmon_log_events_total{error}"] == "1000"
        assert found["fabricmon_log_lines_total"] == "1003"
        assert found["fabricmon_log_files"] == "1"

    @pytest.mark.parametrize("name", ["n1", "n2"])
    def test_lines_of_other_nodes_in_a_shared_output(
        self, tmp_path: Path, name: str
    ) -> None:
        """All nodes of a Slurm job write to one file; each believes its own lines."""
        out = "/home/a/slurm-7.out"
        there = SLURM | {"/proc/sys/kernel/hostname": f"{name}\n", out: ""}
        path = trace(
            tmp_path,
            (1, {"set": there}),
            (30, {"set": {out: failure(2)}}),
            end=60,
        )
        config = {"logs": {"slurm_output": ["/home/*/slurm-%j.out"]}}
        assert failures(play(path, config)) == (1 if name == "n1" else 0)

    @pytest.mark.parametrize(
        ("name", "told"), [("n1\n", 1), ("n1.cluster\n", 1), ("n2\n", 0)]
    )
    def test_lines_of_other_nodes_in_a_shared_folder(
        self, tmp_path: Path, name: str, told: int
    ) -> None:
        """Whoever named the folder: one process is one observer, on its own node."""
        shared = "/home/logs/all.log"
        there = SLURM | {"/proc/sys/kernel/hostname": name, shared: ""}
        path = trace(
            tmp_path,
            (1, {"set": there}),
            (30, {"set": {shared: failure(2)}}),
            end=60,
        )
        shown = play(path, {"logs": {"paths": ["/home/logs/*.log"]}})
        assert failures(shown) == told
        foreign = scrape(exposition(shown)).get("fabricmon_log_foreign_events_total")
        assert foreign == (None if told else "1")
