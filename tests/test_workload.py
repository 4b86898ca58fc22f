"""What is known of the jobs of the node, put together from all who tell."""

from dataclasses import replace

from fabricmon.model import (
    FollowedLog,
    JobList,
    JobTransport,
    JobUse,
    LogCounts,
    LogEvent,
    LogNews,
    LogSeverity,
)
from fabricmon.workload import MAX_EVENTS, Workload
from tests.views import port

PORTS = (port("mlx5_0", rail=0), port("mlx5_1", rail=1))
LOG = FollowedLog("/l", "1", 0, 0, "configured", 0)


def event(kind: str = "x", *, count: int = 1, status: str | None = None) -> LogEvent:
    """Return an event of job 7."""
    return LogEvent(
        kind, LogSeverity.INFO, "T", "/l", 1, 0, status=status, count=count, job="7"
    )


def news(*events: LogEvent, saved: bytes = b"") -> LogNews:
    """Return what a poll of the logs found."""
    return LogNews(5.0, 1000.0, events, (LOG,), LogCounts(), cursors=1, saved=saved)


class TestLogs:
    def test_cursors_and_offsets_are_handed_on(self) -> None:
        """The next poll gets the ones, the next agent the others."""
        made = Workload()
        assert made.take(news(saved=b"s")) == 1
        assert made.saved_logs == b"s"

    def test_events_wait_to_be_judged_once(self) -> None:
        """Repeats count in the tally, a storm drops the oldest and counts them."""
        made = Workload()
        made.take(news(*[event(count=2)] * (MAX_EVENTS + 5)))
        assert len(made.take_events()) == MAX_EVENTS
        assert made.take_events() == ()
        assert made.view.counts.dropped_events == 5
        assert made.tallies[0].events == 2 * (MAX_EVENTS + 5)

    def test_the_set_of_series_changes_with_the_first_log(self) -> None:
        """Sinks make their layout anew then, and only then."""
        made = Workload()
        before = made.layout
        made.take(news())
        first = made.layout
        made.take(news())
        assert before < first == made.layout


class TestJobs:
    def test_lists_logs_and_ports_together(self) -> None:
        """In whichever order they come."""
        made = Workload()
        told = replace(event("net_selected"), device="mlx5_1", port=1)
        made.take(news(told, event("channel_via_net", status="IB")))
        made.take(JobList(6.0, jobs=(JobUse("7", "slurm"),)))
        assert made.view.jobs[0].devices == ("mlx5_1/1",)
        rails = [made.view.jobs[0].rails]
        made.place(PORTS)
        rails.append(made.view.jobs[0].rails)
        assert rails == [(), (1,)]
        assert made.view.transports == (JobTransport("7", "ib"),)

    def test_a_job_that_begins_is_counted(self) -> None:
        """Not what ran before the agent, nor what was not told for a moment."""
        made = Workload()
        starts = []
        for at, names in enumerate(("1", "12", "12", "", "2", "23"), 1):
            uses = tuple(JobUse(name, "slurm") for name in names)
            made.take(JobList(10.0 * at, jobs=uses))
            starts.append(made.job_starts)
        assert starts == [0, 1, 1, 1, 1, 2]

    def test_a_first_job_begins(self) -> None:
        """On a node that had none."""
        made = Workload()
        made.take(JobList(6.0))
        made.take(JobList(16.0, jobs=(JobUse("7", "slurm"),)))
        assert made.job_starts == 1

    def test_a_job_that_is_over_leaves(self) -> None:
        """Its series go with it."""
        made = Workload()
        made.take(JobList(6.0, jobs=(JobUse("7", "slurm"),)))
        before = made.layout
        made.take(JobList(16.0))
        assert made.view.jobs == ()
        assert made.layout > before

    def test_the_same_jobs_change_nothing(self) -> None:
        """Ten seconds later."""
        made = Workload()
        made.take(JobList(6.0, jobs=(JobUse("7", "slurm"),)))
        before = made.layout
        made.take(JobList(16.0, jobs=(JobUse("7", "slurm"),)))
        assert made.layout == before
