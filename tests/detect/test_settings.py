"""Findings of settings that the fabric proves wrong, over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config
from fabricmon.detect.settings import SettingsFit
from fabricmon.detect.settings_told import MAX_PROCESSES
from fabricmon.model import (
    Action,
    Blindness,
    Finding,
    FollowedLog,
    JobUse,
    JobView,
    LibrarySetting,
    LogEvent,
    LogField,
    LogSeverity,
    MissingDevice,
    NcclProcess,
    Severity,
    View,
)
from fabricmon.parse.words import PortState
from tests.detect.settings_ground import ROCE, host_path, table
from tests.views import START, make_view, port_view, status

LOG = "/var/log/nccl/nccl.node-1.77.log"
RIGHT = {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "106", "NCCL_IB_TIMEOUT": "22"}


def process(pid: int = 77, /, **settings: str) -> NcclProcess:
    """Return a process with this environment."""
    told = (LibrarySetting(n, v, "environment") for n, v in settings.items())
    return NcclProcess(pid, job="4711", library_version="2.27.3", settings=tuple(told))


def told(
    name: str, value: str, pid: int = 77, host: str | None = "node-1", **parts: Any
) -> LogEvent:
    """Return the event of a line that names a setting."""
    event = LogEvent(
        kind="env_setting",
        severity=LogSeverity.INFO,
        rule="E1",
        file=LOG,
        line_number=1,
        offset=0,
        pid=pid,
        host=host,
        job="4711",
        library_version="2.27.3",
        fields=(LogField("name", name), LogField("value", value)),
    )
    return replace(event, **parts)


def followed(path: str = LOG) -> FollowedLog:
    """Return a log that is being read."""
    return FollowedLog(path, "1", 10, 10, "configured", START)


class Node:
    """The detector on a node of eight RoCE rails, and a clock."""

    def __init__(self, **parts: Any) -> None:
        self.detector = SettingsFit(Config())
        self.now = START
        self.job = JobView(
            gids=tuple(table(info) for info in ROCE),
            host_path=host_path(),
            logs=(followed(),),
        )
        self.job = replace(self.job, **parts)
        self.ports = tuple(port_view(info) for info in ROCE)
        self.missing: tuple[MissingDevice, ...] = ()

    def view(self, *events: LogEvent) -> View:
        """Return the node as it is now."""
        return make_view(
            self.now,
            ports=self.ports,
            job=self.job,
            log_events=events,
            missing=self.missing,
        )

    def judge(self, *events: LogEvent, seconds: float = 0) -> list[Finding]:
        """Let time pass and judge, twice: a mismatch must hold for a while."""
        self.now += seconds
        list(self.detector.judge(self.view(*events)))
        self.now += 31
        return list(self.detector.judge(self.view()))


class TestFindings:
    def test_without_nccl(self) -> None:
        """No process and no setting: nothing to hold against anything."""
        node = Node(host_path=host_path(acs_redirects=True, peer_memory=False))
        assert node.judge() == []
        assert list(node.detector.blind(node.view())) == []

    def test_what_is_right_is_silent(self) -> None:
        """A sound configuration says nothing at all."""
        assert Node(processes=(process(**RIGHT),)).judge() == []

    def test_one_finding_for_the_node(self) -> None:
        """Several mismatches are items of one finding: variable, value, better value."""
        bad = RIGHT | {"NCCL_IB_TIMEOUT": "14", "NCCL_IB_GID_INDEX": "0"}
        (found,) = Node(processes=(process(**bad),)).judge()
        assert found.kind == "config_mismatch"
        assert (found.severity, found.action) == (Severity.WARNING, Action.NONE)
        assert (found.subject.device, found.subject.port) == (None, None)
        assert {(e.signal, e.value, e.threshold, e.source) for e in found.evidence} == {
            ("NCCL_IB_GID_INDEX", "0", "3", "environment"),
            ("NCCL_IB_TIMEOUT", "14", "20", "environment"),
        }
        assert found.summary.startswith("NCCL_IB_GID_INDEX=0 (+1 more): ")

    def test_one_finding_a_port(self) -> None:
        """What is wrong about one port is told of that port."""
        gids = tuple(
            replace(each, gids=each.gids[:3]) if number == 2 else each
            for number, each in enumerate(table(info) for info in ROCE)
        )
        (found,) = Node(processes=(process(**RIGHT),), gids=gids).judge()
        assert (found.subject.device, found.subject.port) == ("mlx5_2", 1)
        assert found.subject.rail == 2

    def test_eight_ranks_say_it_once(self) -> None:
        """Every process of a job has the same environment."""
        ranks = tuple(
            process(pid, **RIGHT | {"NCCL_IB_TC": "0"}) for pid in range(1, 9)
        )
        (found,) = Node(processes=ranks).judge()
        assert len(found.evidence) == 1

    def test_a_moment_is_nothing(self) -> None:
        """Devices appear one by one; what is mended at once was never wrong."""
        node = Node(processes=(process(**RIGHT | {"NCCL_IB_TC": "0"}),))
        assert list(node.detector.judge(node.view())) == []
        node.job = replace(node.job, processes=(process(**RIGHT),))
        assert node.judge() == []

    def test_it_is_mended(self) -> None:
        """A job that ended leaves nothing behind; the onset was its beginning."""
        node = Node(processes=(process(**RIGHT | {"NCCL_IB_TC": "0"}),))
        (found,) = node.judge()
        assert found.onset == pytest.approx(1_700_000_000.0)
        node.job = replace(node.job, processes=())
        assert node.judge() == []

    def test_a_device_that_is_gone(self) -> None:
        """It is a fault of its own, and no mistake of who named it."""
        names = ",".join(f"mlx5_{n}" for n in range(8))
        node = Node(processes=(process(**RIGHT | {"NCCL_IB_HCA": f"={names}"}),))
        node.ports = node.ports[:-1]
        (found,) = node.judge()
        assert "no such port: mlx5_7" in found.summary
        node.missing = (MissingDevice("mlx5_7", START, 3),)
        assert node.judge() == []

    def test_an_outage(self) -> None:
        """A port that was ACTIVE and is down is not told as a setting."""
        names = ",".join(f"mlx5_{n}" for n in range(8))
        node = Node(processes=(process(**RIGHT | {"NCCL_IB_HCA": names}),))
        down = status(ROCE[0], START, PortState.DOWN)
        node.ports = (replace(node.ports[0], status=down), *node.ports[1:])
        assert [f.subject.device for f in node.judge()] == []

    def test_what_cannot_be_judged_is_said(self) -> None:
        """A setting whose proof cannot be read makes the kind blind, in fixed words."""
        path = host_path(priorities=())
        node = Node(processes=(process(**RIGHT),), host_path=path)
        assert node.judge() == []
        assert list(node.detector.blind(node.view())) == [
            Blindness(
                "config_mismatch",
                "NCCL_IB_TC: priorities of the port cannot be read",
            )
        ]


class TestDropFiles:
    def test_they_speak_until_a_process_does(self) -> None:
        """What a prolog announces is judged; what a process really has counts more."""
        asked = NcclProcess(
            0, job="4711", settings=(LibrarySetting("NCCL_IB_TIMEOUT", "14", "job"),)
        )
        node = Node(processes=(asked,))
        (found,) = node.judge()
        assert found.evidence[0].source == "job"
        node.job = replace(node.job, processes=(asked, process(**RIGHT)))
        assert node.judge() == []

    def test_a_process_in_both(self) -> None:
        """A process that a drop file names and that is seen is one; its own counts."""
        asked = NcclProcess(
            77, job="4711", settings=(LibrarySetting("NCCL_IB_TIMEOUT", "14", "job"),)
        )
        assert Node(processes=(asked, process(**RIGHT))).judge() == []


class TestLogs:
    def test_a_line_of_the_log(self) -> None:
        """It is told once, at the start, and holds while the log is followed."""
        node = Node()
        (found,) = node.judge(told("NCCL_IB_TIMEOUT", "14"))
        assert (found.evidence[0].signal, found.evidence[0].source) == (
            "NCCL_IB_TIMEOUT",
            "log",
        )
        assert node.judge(seconds=3600)
        node.job = replace(node.job, logs=(followed("/other"),))
        assert node.judge(seconds=61) == []

    def test_it_says_what_the_library_took(self) -> None:
        """The log wins over the environment of the same process."""
        node = Node(processes=(process(**RIGHT),))
        (found,) = node.judge(told("NCCL_IB_TIMEOUT", "14"))
        assert found.evidence[0].source == "log"

    def test_other_hosts(self) -> None:
        """What ranks elsewhere have is not held against this node, only compared."""
        node = Node()
        assert node.judge(told("NCCL_IB_TIMEOUT", "14", host="node-2")) == []
        (found,) = node.judge(told("NCCL_IB_TIMEOUT", "22", host="node-1"))
        assert found.evidence[0].value == "14 / 22"

    def test_ranks_that_differ(self) -> None:
        """Two ranks of one job with two values."""
        events = (told("NCCL_PROTO", "LL"), told("NCCL_PROTO", "Simple", pid=78))
        (found,) = Node().judge(*events)
        assert found.evidence[0].value == "LL / Simple"

    def test_the_job_ended(self) -> None:
        """Once others run and this one does not, it is over."""
        node = Node(jobs=(JobUse("4711", "slurm"),))
        assert node.judge(told("NCCL_IB_TIMEOUT", "14"))
        node.job = replace(node.job, jobs=(JobUse("4712", "slurm"),))
        assert node.judge() == []

    def test_a_restart(self) -> None:
        """The log will not say it again, so it is saved."""
        node = Node()
        node.judge(told("NCCL_IB_TIMEOUT", "14"))
        saved = node.detector.save()
        node.detector = SettingsFit(Config())
        node.detector.restore(saved, 1_700_000_000.0 - START)
        assert node.detector.save() == saved
        assert node.judge()

    def test_what_is_no_saved_state(self) -> None:
        """It is refused, as the pipeline expects."""
        with pytest.raises(ValueError, match="SavedSettings"):
            SettingsFit(Config()).restore(b"\x01", 0)

    def test_a_storm_of_processes(self) -> None:
        """Memory is bounded whatever a log tells."""
        node = Node()
        events = [
            told("NCCL_IB_TIMEOUT", "14", pid=pid) for pid in range(MAX_PROCESSES + 9)
        ]
        assert len(node.judge(*events)) == 1
        assert len(list(node.detector._told)) == MAX_PROCESSES


class TestContainers:
    @pytest.mark.parametrize("origin", ["pods", "docker"])
    def test_a_log_of_a_container(self, origin: str) -> None:
        """Its interfaces are its own: that the node has none of them proves nothing."""
        node = Node(logs=(replace(followed(), origin=origin),))
        assert node.judge(told("NCCL_SOCKET_IFNAME", "net1")) == []
        plain = Node()
        assert len(plain.judge(told("NCCL_SOCKET_IFNAME", "net1"))) == 1

    def test_a_process_in_a_container(self) -> None:
        """The same where the process itself is seen."""
        inside = process(**RIGHT | {"NCCL_SOCKET_IFNAME": "net1"})
        assert len(Node(processes=(inside,)).judge()) == 1
        assert Node(processes=(replace(inside, contained=True),)).judge() == []
