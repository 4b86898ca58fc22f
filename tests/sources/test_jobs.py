"""Which jobs use the node, and what their processes are seen to be."""

import json
from typing import Any

import pytest

from fabricmon.config import Config, Jobs
from fabricmon.host.protocol import (
    LibraryVariable,
    ProcessListing,
    ProcessSight,
    ReadError,
)
from fabricmon.model import JobList, JobUse, LibrarySetting, NcclProcess, Target
from fabricmon.sources import jobs
from fabricmon.sources.job_files import parse_drop_file
from tests.fake_host import FakeHost
from tests.parse.test_pod_resources import ANSWER

UID = "0f3c9c2e-7d1b-4c58-a7a0-3d1f0f9d8e21"
SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
SLURM = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"


def poll(host: FakeHost, **keys: Any) -> JobList:
    """Poll with these keys of the section ``jobs``."""
    (found,) = jobs.poll(host, Target(), Config(jobs=Jobs(**keys)))
    return found


def drop(host: FakeHost, text: object, name: str = "7") -> None:
    """Write a drop file."""
    raw = text if isinstance(text, str) else json.dumps(text)
    host.put(f"/run/fabricmon/jobs/{name}.json", raw)


class TestSlurm:
    def test_jobs_of_the_unified_hierarchy(self) -> None:
        """As slurmstepd makes it."""
        host = FakeHost()
        host.put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        for name in ("job_7", "job_12", "system"):
            host.folder(f"/sys/fs/cgroup/system.slice/slurmstepd.scope/{name}/x")
        assert poll(host).jobs == (JobUse("12", "slurm"), JobUse("7", "slurm"))
        assert poll(host, slurm=False).jobs == ()

    def test_jobs_of_the_old_hierarchies(self) -> None:
        """Each controller has its own; a job is in several of them."""
        host = FakeHost()
        for controller in ("memory", "cpuset", "freezer"):
            host.folder(f"/sys/fs/cgroup/{controller}/slurm/uid_1000/job_7/step_0")
        assert poll(host).jobs == (JobUse("7", "slurm"),)


class TestKubernetes:
    def node(self) -> FakeHost:
        """Return a node with two pods, one of them the cluster's own."""
        host = FakeHost()
        host.put("/sys/fs/cgroup/cgroup.controllers", "")
        host.folder(f"/var/log/pods/ml_train-0_{UID}")
        host.folder(
            "/var/log/pods/kube-system_dns_11111111-0000-0000-0000-000000000000"
        )
        slices = "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice"
        host.folder(f"{slices}/kubepods-burstable-pod{UID.replace('-', '_')}.slice/x")
        host.folder(f"{slices}/kubepods-burstable-pod11111111_0000_0000_0000_0.slice")
        return host

    def test_pods_by_their_cgroups_and_log_folders(self) -> None:
        """The cgroup says that it runs, the folder what it is called."""
        assert poll(self.node()).jobs == (JobUse("ml/train-0", "kubernetes"),)
        assert poll(self.node(), kubernetes=False).jobs == ()

    def test_pods_with_devices_by_the_kubelet(self) -> None:
        """It knows who was given what."""
        host = self.node()
        host.kubelet = ANSWER
        assert poll(host, kubelet_socket=SOCKET).jobs == (
            JobUse(
                "ml/train-0",
                "kubernetes",
                devices=("GPU-1", "GPU-2", "0000:81:00.2"),
            ),
        )

    @pytest.mark.parametrize("answer", [ReadError("EACCES"), b"\xff\xff"])
    def test_a_kubelet_that_does_not_answer(self, answer: bytes | ReadError) -> None:
        """It is said; the cgroups still tell."""
        host = self.node()
        host.kubelet = answer
        found = poll(host, kubelet_socket=SOCKET)
        assert found.jobs == (JobUse("ml/train-0", "kubernetes"),)
        assert found.problems[0].startswith(SOCKET)


class TestDropFiles:
    def test_a_job_with_a_process(self) -> None:
        """Its settings are those of the process."""
        host = FakeHost()
        host.put("/proc/41/cgroup", SLURM)
        settings = {"NCCL_IB_HCA": "=mlx5_0:1", "NCCL_DEBUG": 1, "AWS_SECRET": "x"}
        drop(host, [{"job": "train", "pids": [41, 42], "settings": settings}])
        found = poll(host)
        assert found.processes == (
            NcclProcess(
                41,
                job="train",
                step="0",
                settings=(
                    LibrarySetting("NCCL_IB_HCA", "=mlx5_0:1", "job"),
                    LibrarySetting("NCCL_DEBUG", "1", "job"),
                ),
            ),
        )
        assert found.jobs == (
            JobUse("train", "job", processes=1, devices=("mlx5_0/1",)),
        )

    def test_a_job_whose_processes_are_gone_is_over(self) -> None:
        """A prolog that crashed leaves its file."""
        host = FakeHost()
        drop(host, [{"job": "train", "pids": [41]}])
        assert poll(host) == JobList(at=host.now)

    def test_settings_without_processes_are_kept(self) -> None:
        """Under no process: the prolog does not know one yet."""
        host = FakeHost()
        drop(host, [{"job": "train", "settings": {"NCCL_IB_TC": "106"}}])
        (process,) = poll(host).processes
        assert (process.pid, process.job) == (0, "train")
        assert poll(host).jobs == (JobUse("train", "job"),)

    def test_a_bad_entry_costs_itself_alone(self) -> None:
        """And is told with its place and the form that is wanted."""
        host = FakeHost()
        drop(host, [{"job": ["x"]}, {"job": "good"}])
        drop(host, "[", name="8")
        found = poll(host)
        assert [use.job for use in found.jobs] == ["good"]
        assert any("7.json: entry 1: " in each for each in found.problems)
        assert any("8.json: " in each for each in found.problems)

    @pytest.mark.parametrize(
        ("errno", "remedy"),
        [
            ("EACCES", "make it readable for fabricmon"),
            ("EFBIG", "keep it below 64 KiB"),
            ("EINVAL", "put a regular file there"),
        ],
    )
    def test_a_file_that_cannot_be_read_is_told_with_what_helps(
        self, errno: str, remedy: str
    ) -> None:
        """A pipe or ten megabytes are no matter of rights."""
        host = FakeHost()
        drop(host, [{"job": "x"}])
        host.fail("/run/fabricmon/jobs/7.json", errno)
        (problem,) = poll(host).problems
        assert problem.endswith(f": {errno}: {remedy}")

    def test_one_job_may_stand_without_a_list(self) -> None:
        """A prolog in shell writes so."""
        assert [job.job for job in parse_drop_file(b' {"job": "7"}', "f").jobs] == ["7"]

    def test_paths_that_are_not_absolute_are_none(self) -> None:
        """Nobody knows from where."""
        told = parse_drop_file(b'[{"job": "7", "logs": ["x.log", "/y.log"]}]', "f")
        assert told.jobs[0].logs == ("/y.log",)


class TestProcesses:
    def sight(self, **parts: Any) -> ProcessSight:
        """Return a process of Slurm job 7."""
        return ProcessSight(**{"pid": 41, "inner_pid": 41, "cgroup": SLURM, **parts})

    def test_library_settings_and_logs(self) -> None:
        """The environment wins over the files, so it comes first."""
        host = FakeHost()
        host.put("/etc/nccl.conf", "NCCL_IB_TC=1\n")
        host.sights = ProcessListing(
            (
                self.sight(
                    variables=(
                        LibraryVariable("NCCL_IB_TC", "106"),
                        LibraryVariable("NCCL_DEBUG_FILE", "/s/nccl.%p"),
                    ),
                    libraries=("/usr/lib/libnccl.so.2.21.5",),
                ),
            )
        )
        (process,) = poll(host, processes=True).processes
        assert (process.job, process.step) == ("7", "0")
        assert (process.library, process.library_version) == ("NCCL", "2.21.5")
        assert process.logs == ("/s/nccl.41",)
        assert process.settings == (
            LibrarySetting("NCCL_IB_TC", "106", "environment"),
            LibrarySetting("NCCL_DEBUG_FILE", "/s/nccl.%p", "environment"),
            LibrarySetting("NCCL_IB_TC", "1", "/etc/nccl.conf"),
        )

    def test_a_configuration_of_its_own_inside_its_root(self) -> None:
        """A container has other files."""
        host = FakeHost()
        host.put("/proc/41/root/my.conf", "NCCL_IB_TC=2\n")
        named = LibraryVariable("NCCL_CONF_FILE", "/my.conf")
        seen = self.sight(variables=(named,), root="/proc/41/root")
        host.sights = ProcessListing((seen,))
        (process,) = poll(host, processes=True).processes
        assert LibrarySetting("NCCL_IB_TC", "2", "/my.conf") in process.settings

    def test_processes_that_refuse_are_said_with_what_grants_it(self) -> None:
        """The drop-in has the rights."""
        host = FakeHost()
        host.sights = ProcessListing((), denied=3)
        (problem,) = poll(host, processes=True).problems
        assert "nccl-logs.conf" in problem

    def test_are_not_looked_at_unless_opted_in(self) -> None:
        """Their environments hold secrets."""
        host = FakeHost()
        host.sights = ProcessListing((self.sight(),), denied=1)
        assert poll(host) == JobList(at=host.now)
