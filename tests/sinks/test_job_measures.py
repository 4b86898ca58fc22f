"""Metrics of jobs and logs: nothing without them, bounded with too many."""

from dataclasses import replace
from typing import Any

from fabricmon.model import (
    FollowedLog,
    Health,
    JobTransport,
    JobUse,
    JobView,
    LogCounts,
    LogSeverity,
    LogTally,
    PortSnapshot,
    Role,
    Snapshot,
)
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

LOG = FollowedLog("/l/a.log", "1:2", 60, 100, "configured", nodes.NOW - 7)


def snapshot(*tallies: LogTally, **job: Any) -> Snapshot:
    """Return a node with these jobs and logs."""
    return replace(nodes.node(), job=JobView(**job), log_tallies=tallies)


def series(shown: Snapshot) -> dict[str, str]:
    """Return what a node exports of jobs and logs."""
    found = scrape(exposition(shown))
    names = ("fabricmon_log_", "fabricmon_job_")
    return {name: value for name, value in found.items() if name.startswith(names)}


def tally(kind: str, events: int = 1, last: float = 5.0) -> LogTally:
    """Return a tally of errors."""
    return LogTally(kind, LogSeverity.ERROR, events, last)


class TestWithout:
    def test_no_log_and_no_job_is_no_series(self) -> None:
        """A node has 60 at most."""
        assert series(nodes.node()) == {}

    def test_sources_that_found_nothing_have_no_series(self) -> None:
        """That they are well says nothing where there is nothing."""
        idle = Health("nccl_log", "", True, 1.0, 0, 1, None, lane="log", found=False)
        found = scrape(exposition(replace(nodes.node(), health=(idle,))))
        assert not any("nccl_log" in each or 'lane="log"' in each for each in found)


class TestLogs:
    def test_counts_of_followed_files(self) -> None:
        """Bytes and seconds behind, what was read, troubles once there are any."""
        counts = LogCounts(bytes=9, lines=3, rotations=1)
        assert series(snapshot(logs=(LOG,), counts=counts)) == {
            "fabricmon_log_files": "1",
            "fabricmon_log_read_bytes_total": "9",
            "fabricmon_log_lines_total": "3",
            "fabricmon_log_unread_bytes": "40",
            "fabricmon_log_lag_seconds": "7.0",
            "fabricmon_log_rotations_total": "1",
        }

    def test_counters_stay_when_the_last_file_is_gone(self) -> None:
        """A counter that vanishes and comes back is a wrong rate."""
        found = series(snapshot(counts=LogCounts(bytes=9)))
        assert found["fabricmon_log_read_bytes_total"] == "9"
        assert found["fabricmon_log_lag_seconds"] == "0"

    def test_troubles(self) -> None:
        """Each by its name."""
        counts = LogCounts(
            skipped_bytes=1,
            skipped_lines=2,
            lost_files=3,
            dropped_events=4,
            left_out=5,
        )
        assert series(snapshot(counts=counts)) == {
            "fabricmon_log_skipped_bytes_total": "1",
            "fabricmon_log_skipped_lines_total": "2",
            "fabricmon_log_lost_files_total": "3",
            "fabricmon_log_dropped_events_total": "4",
            "fabricmon_log_files_left_out": "5",
        }

    def test_events_by_kind_and_severity(self) -> None:
        """And the time of the last of each kind."""
        found = series(snapshot(tally("a", 3), replace(tally("a", 2, 9.5))))
        key = '{kind="a",severity="error"}'
        assert found[f"fabricmon_log_events_total{key}"] == "5"
        key = '{kind="a"}'
        assert found[f"fabricmon_log_last_event_timestamp_seconds{key}"] == "9.5"

    def test_kinds_without_end_share_one_name(self) -> None:
        """Operators may add as many as they like."""
        many = tuple(tally(f"k{number}") for number in range(100))
        found = series(snapshot(*many))
        assert len(found) == 2 * 32
        other = 'fabricmon_log_events_total{kind="other",severity="error"}'
        assert found[other] == "69"


class TestJobs:
    def test_rails_and_nodes(self) -> None:
        """What is not known is left out, or empty."""
        known = JobUse("7", "slurm", rails=(0, 1), nodes=4)
        assert series(snapshot(jobs=(known, JobUse("8", "slurm")))) == {
            'fabricmon_job_info{job="7",rails="0,1"}': "1",
            'fabricmon_job_info{job="8",rails=""}': "1",
            'fabricmon_job_nodes{job="7"}': "4",
        }

    def test_more_jobs_than_names(self) -> None:
        """The rest is one."""
        many = tuple(JobUse(str(number), "slurm") for number in range(100))
        found = series(snapshot(jobs=many))
        assert len(found) == 32
        assert 'fabricmon_job_info{job="other",rails=""}' in found

    def test_transports(self) -> None:
        """The newest have names; of the rest only what they are."""
        told = tuple(JobTransport(str(number), "ib") for number in range(100))
        found = series(snapshot(transports=told))
        assert len(found) == 32
        assert 'fabricmon_job_transport_info{job="99",transport="ib"}' in found
        assert 'fabricmon_job_transport_info{job="other",transport="ib"}' in found


class TestJobsOfPorts:
    @staticmethod
    def found(*jobs: JobUse, ports: tuple[PortSnapshot, ...]) -> set[str]:
        """Return device and job of each series of a node with these ports."""
        shown = replace(nodes.node(*ports), job=JobView(jobs=jobs))
        start = "fabricmon_port_job_info"
        return {name for name in scrape(exposition(shown)) if name.startswith(start)}

    @staticmethod
    def port(device: str, rail: int | None, role: Role) -> PortSnapshot:
        """Return a port that is this rail."""
        port = nodes.port(device)
        return replace(port, info=replace(port.info, rail=rail, role=role))

    @property
    def ports(self) -> tuple[PortSnapshot, ...]:
        """Two rails and a port for storage."""
        return (
            self.port("mlx5_0", 0, Role.COMPUTE),
            self.port("mlx5_1", 1, Role.COMPUTE),
            self.port("mlx5_2", None, Role.STORAGE),
        )

    def test_by_rails(self) -> None:
        """Only the ports of the rails that it uses."""
        use = JobUse("a", "slurm", rails=(1,))
        (only,) = self.found(use, ports=self.ports)
        assert only == 'fabricmon_port_job_info{device="mlx5_1",job="a",port="1"}'

    def test_by_devices(self) -> None:
        """A device that it was given counts, also one that is no rail."""
        use = JobUse("a", "slurm", devices=("mlx5_2",))
        (only,) = self.found(use, ports=self.ports)
        assert 'device="mlx5_2"' in only

    def test_unknown_rails(self) -> None:
        """It may be on any port for computing."""
        found = self.found(JobUse("a", "slurm"), ports=self.ports)
        assert len(found) == 2
        assert not any("mlx5_2" in series for series in found)

    def test_no_job(self) -> None:
        """A node without jobs has no series for them."""
        assert self.found(ports=self.ports) == set()

    def test_bounded(self) -> None:
        """At most 32 values of the label, the rest is one."""
        jobs = (JobUse(f"job-{n}", "slurm", rails=(0,)) for n in range(40))
        found = self.found(*jobs, ports=self.ports)
        assert len(found) == 32
        assert any('job="other"' in series for series in found)
