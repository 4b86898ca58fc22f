"""Where logs are looked for, and whose they are."""

import json
from typing import Any

import pytest

from fabricmon.config import Config, Jobs, Logs
from fabricmon.host.protocol import LibraryVariable, ProcessListing, ProcessSight
from fabricmon.sources.log_discovery import discover, slurm_pattern
from tests.fake_host import FakeHost
from tests.parse.test_pod_resources import ANSWER

UID = "0f3c9c2e-7d1b-4c58-a7a0-3d1f0f9d8e21"
POD = f"/var/log/pods/ml_train-0_{UID}/pytorch/0.log"
OTHER_POD = "/var/log/pods/web_site-1_11111111-0000-0000-0000-000000000000/x/0.log"
SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"


def config(logs: dict[str, Any] | None = None, **jobs: Any) -> Config:
    """Return a configuration with these keys."""
    return Config(logs=Logs(**(logs or {})), jobs=Jobs(**jobs))


def node(*files: str) -> FakeHost:
    """Return a node with these files."""
    host = FakeHost()
    host.put("/proc/sys/kernel/hostname", "n1.cluster\n")
    for file in files:
        host.put(file, "x\n")
    return host


def found(host: FakeHost, with_config: Config) -> dict[str, tuple[str, str | None]]:
    """Return origin and job of each file that is found."""
    logs = discover(host, with_config).logs
    return {log.file.path: (log.place.origin, log.place.job) for log in logs}


def drop(host: FakeHost, *entries: object, name: str = "1") -> None:
    """Write a drop file."""
    host.put(f"/run/fabricmon/jobs/{name}.json", json.dumps(entries))


class TestConfigured:
    def test_patterns_cross_no_slash(self) -> None:
        """And hidden files are none."""
        host = node("/l/a.log", "/l/b/c.log", "/l/.d.log", "/l/e.txt")
        assert found(host, config({"paths": ("/l/*.log",)})) == {
            "/l/a.log": ("configured", None)
        }

    def test_the_short_host_name(self) -> None:
        """Many nodes share a folder."""
        host = node("/l/n1.log", "/l/n10.log", "/l/n2.log")
        assert set(found(host, config({"paths": ("/l/%h.log",)}))) == {"/l/n1.log"}

    def test_nobody_climbs_out(self) -> None:
        """Two dots are no folder."""
        host = node("/a.log")
        assert found(host, config({"paths": ("/l/../a.log",)})) == {}


class TestDropFiles:
    def test_their_logs_belong_to_the_job(self) -> None:
        """Also where another pattern finds them."""
        host = node("/var/log/nccl/a.log", "/scratch/7/b.log")
        drop(host, {"job": 7, "logs": ["/scratch/7/*.log", "/var/log/nccl/a.log"]})
        assert found(host, config()) == {
            "/var/log/nccl/a.log": ("job", "7"),
            "/scratch/7/b.log": ("job", "7"),
        }

    def test_their_settings_name_logs(self) -> None:
        """As an environment would."""
        host = node("/s/nccl.n1.44", "/s/nccl.n2.44")
        drop(host, {"job": "7", "settings": {"NCCL_DEBUG_FILE": "/s/nccl.%h.%p"}})
        assert found(host, config()) == {"/s/nccl.n1.44": ("job", "7")}


class TestSettings:
    def test_the_configuration_of_the_node(self) -> None:
        """NCCL reads it in every job."""
        host = node("/s/nccl.n1.44")
        host.put("/etc/nccl.conf", "NCCL_DEBUG_FILE=/s/nccl.%h.%p\n")
        assert found(host, config()) == {"/s/nccl.n1.44": ("settings", None)}


class TestPods:
    def test_every_pod_where_nobody_tells_of_devices(self) -> None:
        """Without those of the cluster itself."""
        host = node(POD, OTHER_POD, f"/var/log/pods/kube-system_dns_{UID}/x/0.log")
        assert found(host, config()) == {
            POD: ("pods", "ml/train-0"),
            OTHER_POD: ("pods", "web/site-1"),
        }

    def test_pods_with_devices_where_the_kubelet_tells(self) -> None:
        """A web server trains nothing."""
        host = node(POD, OTHER_POD)
        host.kubelet = ANSWER
        assert set(found(host, config(kubelet_socket=SOCKET))) == {POD}

    def test_all_of_them_where_that_is_wanted(self) -> None:
        """Then the kubelet is not asked."""
        host = node(POD, OTHER_POD)
        host.kubelet = ANSWER
        both = config({"pods": "all"}, kubelet_socket=SOCKET)
        assert set(found(host, both)) == {POD, OTHER_POD}

    def test_none_where_that_is_wanted(self) -> None:
        """Their logs are not opened."""
        assert found(node(POD), config({"pods": "off"})) == {}


class TestDocker:
    LOG = "/var/lib/docker/containers/abc/abc-json.log"

    def test_on_and_off(self) -> None:
        """The files of its json-file driver."""
        assert found(node(self.LOG), config()) == {self.LOG: ("docker", None)}
        assert found(node(self.LOG), config({"docker": False})) == {}


class TestSlurm:
    def test_output_of_the_jobs_that_run_here(self) -> None:
        """Thousands of others lie in the same folders."""
        host = node("/home/a/slurm-7.out", "/home/b/slurm-8.out")
        host.put("/sys/fs/cgroup/cgroup.controllers", "")
        host.folder("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7")
        where = config({"slurm_output": ("/home/*/slurm-%j.out",)})
        assert found(host, where) == {"/home/a/slurm-7.out": ("slurm", "7")}

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("/o/slurm-%j.out", "/o/slurm-7.out"),
            ("/o/%4j_%t.out", "/o/0007_*.out"),
            ("/o/%A_%a.out", "/o/*_*.out"),
            ("/o/%J.out", "/o/7*.out"),
            ("/o/%x.%N", "/o/*.n1"),
            ("/o/%%%", "/o/%*"),
        ],
    )
    def test_its_patterns(self, pattern: str, expected: str) -> None:
        """What a pattern says that is not known may be anything."""
        assert slurm_pattern(pattern, "7", "n1") == expected


def sight(**parts: Any) -> ProcessSight:
    """Return a process of Slurm job 7."""
    cgroup = "0::/system.slice/slurmstepd.scope/job_7/step_0"
    return ProcessSight(**{"pid": 41, "inner_pid": 5, "cgroup": cgroup, **parts})


class TestProcesses:
    FILE = (LibraryVariable("NCCL_DEBUG_FILE", "/s/nccl.%h.%p.log"),)

    def test_are_not_looked_at_unless_opted_in(self) -> None:
        """Their environments hold secrets."""
        host = node("/s/nccl.n1.5.log")
        host.sights = ProcessListing((sight(variables=self.FILE),))
        assert found(host, config()) == {}
        assert found(host, config(processes=True)) == {
            "/s/nccl.n1.5.log": ("process", "7")
        }

    def test_in_a_container_seen_from_the_node(self) -> None:
        """Through its root; it has a host name of its own."""
        host = node("/proc/41/root/s/nccl.pod-0.5.log", "/s/nccl.n1.5.log")
        seen = sight(variables=self.FILE, root="/proc/41/root")
        host.sights = ProcessListing((seen,))
        assert set(found(host, config(processes=True))) == {
            "/proc/41/root/s/nccl.pod-0.5.log"
        }

    def test_a_relative_name(self) -> None:
        """It is below the working folder."""
        host = node("/proc/41/cwd/x.log")
        relative = (LibraryVariable("NCCL_DEBUG_FILE", "x.log"),)
        host.sights = ProcessListing((sight(variables=relative),))
        assert set(found(host, config(processes=True))) == {"/proc/41/cwd/x.log"}

    def test_open_files(self) -> None:
        """Whatever they are called."""
        host = node("/s/out[1].txt")
        host.sights = ProcessListing((sight(logs=("/s/out[1].txt",)),))
        assert set(found(host, config(processes=True))) == {"/s/out[1].txt"}


def test_a_file_found_twice_is_one() -> None:
    """Its serial tells."""
    host = node("/l/a.log")
    both = config({"paths": ("/l/*.log", "/l/a.*")})
    assert len(discover(host, both).logs) == 1
