"""Whose the lines of a log are: of this node, of a container on it, or of another."""

from dataclasses import replace

import pytest

from fabricmon.config import Config
from fabricmon.model import LogEvent, LogSeverity
from fabricmon.parse.nccl_log import NEW_LOG
from fabricmon.sources.log_cursors import Cursor
from fabricmon.sources.log_discovery import LogPlace
from fabricmon.sources.log_owners import Owners
from fabricmon.sources.node_jobs import Pod
from tests.fake_host import FakeHost

POD = Pod("uid", "ml", "train-0", "ml_train-0_uid")
INDEXED = Pod("other", "ml", "job-0-x7k2p", "ml_job-0-x7k2p_other")
SHARED = ("configured", "job", "process", "settings", "slurm")


def event(host: str | None, pod: str | None = None) -> LogEvent:
    """Return a failure that a process of this host, in this pod, tells."""
    return LogEvent(
        "ib_completion_error",
        LogSeverity.ERROR,
        "A1",
        "/l/all.log",
        1,
        0,
        text="failed",
        pid=4242,
        host=host,
        pod=pod,
    )


def is_believed(
    told: LogEvent, place: LogPlace, *pods: Pod, name: str | None = "n1"
) -> bool:
    """Tell whether the node takes an event for its own."""
    log = Cursor("/l/all.log", "1:1", place, 0, 0, NEW_LOG, b"", 0.0, 0.0, 0.0)
    owners = Owners(FakeHost(), Config(), name, pods, ())
    return owners.attribute(told, log) is not None


@pytest.mark.parametrize("origin", SHARED)
@pytest.mark.parametrize(
    ("host", "believed"),
    [("n1", True), ("n1.cluster.example", True), (None, True), ("n7", False)],
)
def test_only_lines_of_this_node(
    origin: str, host: str | None, *, believed: bool
) -> None:
    """Whoever named the file; a line that names no host is taken for this node's."""
    assert is_believed(event(host), LogPlace("/l/*", origin, "7")) is believed


def test_a_node_that_does_not_know_its_name_believes_all() -> None:
    """Better counted twice than not at all."""
    assert is_believed(event("n7"), LogPlace("/l/*", "configured"), name=None)


@pytest.mark.parametrize("origin", ["pods", "docker", "process"])
def test_a_container_has_a_host_name_of_its_own(origin: str) -> None:
    """Its log lies on this node: every line of it is this node's."""
    assert is_believed(event("6f1e"), LogPlace("/l/*", origin, contained=True))


@pytest.mark.parametrize(
    ("told", "believed"),
    [
        (event("train-0"), True),
        (event("train-1"), False),
        (event("train", pod="train-0"), True),
        (event("train", pod="train-1"), False),
        (event("job-0"), True),
        (event("job-1"), False),
        (event("long-" + "x" * 58), True),
        (event("dotted"), True),
    ],
)
def test_pods_that_write_to_a_shared_folder(told: LogEvent, *, believed: bool) -> None:
    """Those with a log folder here are this node's."""
    place = LogPlace("/l/*", "configured")
    named = (replace(POD, name=f"long-{'x' * 80}"), replace(POD, name="dotted.pod"))
    assert is_believed(told, place, POD, INDEXED, *named) is believed


def test_a_pod_where_pods_are_not_known() -> None:
    """Nothing says that it is of another node."""
    told = event("train", pod="train-0")
    assert is_believed(told, LogPlace("/l/*", "configured"))
