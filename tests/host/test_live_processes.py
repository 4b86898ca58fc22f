"""Processes of this machine: a real one of our own, with secrets in its environment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import CapturingLogger

from fabricmon.config import Config, Jobs
from fabricmon.host.live import LiveHost
from fabricmon.host.process_sights import (
    inner_pid,
    is_log,
    library_variables,
    mapped_libraries,
)
from fabricmon.host.protocol import LibraryVariable, ProcessListing, ProcessSight
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import JobList, LogNews, Target
from fabricmon.sources import jobs, nccl_log
from tests.sources.log_lines import _marked, lines

__all__ = ["_marked"]
SECRET = "hunter2-never-to-be-seen"
PROGRAM = """
import os, sys
log = open(sys.argv[1], "a", buffering=1)
held = open(sys.argv[2], "a")
print("ready", flush=True)
for line in sys.stdin:
    log.write(line)
    print("done", flush=True)
"""


class Process:
    """A process that has NCCL's variables and writes its log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {
            "PATH": os.environ["PATH"],
            "NCCL_DEBUG_FILE": f"{folder}/nccl.%p.log",
            "NCCL_IB_HCA": "mlx5_0",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "XNCCL_TOKEN": SECRET,
            "OTHER": f"x\nNCCL_TOKEN={SECRET}",
        }
        out = folder / "out.txt"
        self.log = folder / "placeholder"
        files = [f"{folder}/tmp.log", f"{folder}/nccl.held"]
        with out.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *files],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.answer()
        self.log = folder / f"nccl.{self.pid}.log"
        (folder / "tmp.log").rename(self.log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def write(self, text: str) -> None:
        """Let it write to its log."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()
        self.answer()

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    started = Process(tmp_path)
    yield started
    started.end()


@pytest.fixture
def host() -> Iterator[LiveHost]:
    found = LiveHost()
    yield found
    found.close()


CONFIG = Config(jobs=Jobs(processes=True))


class TestLook:
    def test_variables_of_the_libraries_and_open_logs(
        self, process: Process, host: LiveHost
    ) -> None:
        """And nothing else of it."""
        listing = host.processes()
        assert isinstance(listing, ProcessListing)
        (sight,) = [each for each in listing.processes if each.pid == process.pid]
        assert {each.name for each in sight.variables} == {
            "NCCL_DEBUG_FILE",
            "NCCL_IB_HCA",
        }
        assert f"{process.folder}/nccl.held" in sight.logs
        assert f"{process.folder}/out.txt" in sight.logs
        assert (sight.inner_pid, sight.root) == (process.pid, "")
        assert sight.cgroup

    def test_what_was_found_is_there_without_looking(
        self, process: Process, host: LiveHost
    ) -> None:
        """Whoever must not wait asks for the newest."""
        assert host.processes(fresh=False) == ProcessListing(())
        found = host.processes()
        assert host.processes(fresh=False) == found

    def test_one_that_ended_is_forgotten(
        self, process: Process, host: LiveHost
    ) -> None:
        """Its number may be another's."""
        host.processes()
        process.end()
        listing = host.processes()
        assert isinstance(listing, ProcessListing)
        assert process.pid not in [each.pid for each in listing.processes]


@pytest.mark.usefixtures("_marked")
class TestFollowing:
    def test_its_log_is_found_and_read(self, process: Process, host: LiveHost) -> None:
        """By the variable alone; no pattern of the configuration names it."""
        jobs.poll(host, Target(), CONFIG)
        (began,) = nccl_log.poll(host, Target(), CONFIG)
        process.write(lines(1))
        (news,) = nccl_log.poll(host, Target(carried=began.cursors), CONFIG)
        assert [event.text for event in news.events] == ["MARK 1"]
        assert str(process.log) in [log.path for log in news.logs]

    def test_its_secrets_are_in_no_record_trace_or_log(
        self, process: Process, host: LiveHost, tmp_path: Path
    ) -> None:
        """Whatever looks at a process must keep what it may not know to itself."""
        trace = tmp_path / "n.trace.jsonl"
        recorder = RecordingHost(host, trace, "n")
        records: list[JobList | LogNews] = [
            *jobs.poll(recorder, Target(), CONFIG),
            *nccl_log.poll(recorder, Target(), CONFIG),
        ]
        log = CapturingLogger()
        log.info("records", records=records)
        recorder.close()
        assert recorder.error is None
        assert "NCCL_IB_HCA" in repr(records)
        assert "NCCL_IB_HCA" in trace.read_text()
        assert SECRET not in repr(records)
        assert SECRET not in trace.read_text()
        assert SECRET not in repr(log.calls)

    def test_a_recording_shows_the_same_process(
        self, process: Process, host: LiveHost, tmp_path: Path
    ) -> None:
        """In the files that a live node would have them in."""
        trace = tmp_path / "n.trace.jsonl"
        recorder = RecordingHost(host, trace, "n")
        answer = recorder.processes()
        recorder.close()
        replay = ReplayHost(TraceReader(trace))
        replay.advance(60)
        replayed = replay.processes()
        replay.close()
        assert isinstance(answer, ProcessListing)
        assert isinstance(replayed, ProcessListing)
        assert {sight.pid: sight.variables for sight in replayed.processes} == {
            sight.pid: sight.variables for sight in answer.processes
        }
        assert json.loads(trace.read_text().split("\n")[0])["node"] == "n"


class TestSights:
    def test_only_whole_names_count(self) -> None:
        """A value may hold anything, also what looks like another variable."""
        raw = b"NCCL_A=1\0X=\nNCCL_B=2\0RCCL_C=\0OFI_D=a=b\0XNCCL_E=3\0NCCL\0"
        assert library_variables(raw) == (
            LibraryVariable("NCCL_A", "1"),
            LibraryVariable("RCCL_C", ""),
            LibraryVariable("OFI_D", "a=b"),
        )

    def test_libraries_in_a_memory_map(self) -> None:
        """Each path once, with blanks in it."""
        raw = (
            b"7f00-7f01 r-xp 0 08:01 7 /usr/lib/libnccl.so.2.21.5\n"
            b"7f01-7f02 r--p 0 08:01 7 /usr/lib/libnccl.so.2.21.5\n"
            b"7f02-7f03 r--p 0 08:01 7 /my lib/librccl.so.1\n"
            b"7f03-7f04 r--p 0 08:01 7 /usr/lib/libc.so.6\n"
            b"7f04-7f05 rw-p 0 00:00 0 [libnccl]\n"
        )
        assert mapped_libraries(raw) == (
            "/usr/lib/libnccl.so.2.21.5",
            "/my lib/librccl.so.1",
        )

    @pytest.mark.parametrize(
        ("descriptor", "target", "expected"),
        [
            (1, "/home/a/slurm-7.out", True),
            (5, "/tmp/NCCL.n1.7", True),
            (5, "/tmp/data.bin", False),
            (1, "/dev/pts/0", False),
            (2, "pipe:[123]", False),
            (7, "/usr/lib/libnccl.so", False),
        ],
    )
    def test_open_files_that_are_logs(
        self, descriptor: int, target: str, *, expected: bool
    ) -> None:
        """Output of any name, others by their name."""
        assert is_log(descriptor, target) is expected

    def test_a_process_in_a_namespace_of_its_own(self) -> None:
        """The last number is its own."""
        assert inner_pid(b"Name:\tx\nNSpid:\t4711\t12\t3\n", 4711) == 3
        assert inner_pid(b"Name:\tx\n", 4711) == 4711


def test_a_sight_has_no_room_for_an_environment() -> None:
    """What it holds is listed here, so that nobody adds more unseen."""
    assert set(ProcessSight.__struct_fields__) == {
        "pid", "inner_pid", "cgroup", "variables", "libraries", "logs", "root",
    }  # fmt: skip
