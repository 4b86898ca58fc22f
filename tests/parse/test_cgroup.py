"""Whose process it is by its cgroup, with every driver and hierarchy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.cgroup import NOBODY, CgroupOwner, parse_cgroup, slurm_job

UID = "0f3c9c2e-7d1b-4c58-a7a0-3d1f0f9d8e21"
SLICE = UID.replace("-", "_")
CONTAINER = "ab" * 32


def kubernetes(qos: str, container: str | None = CONTAINER) -> CgroupOwner:
    """Return the owner that every form of one pod's cgroup names."""
    return CgroupOwner(pod_uid=UID, container=container, qos=qos)


class TestSlurm:
    @pytest.mark.parametrize(
        "text",
        [
            "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3",
            "0::/system.slice/n1_slurmstepd.scope/job_4711/step_0/user/task_special",
            "12:cpuset:/\n9:memory:/slurm/uid_1000/job_4711/step_0/task_0\n1:name=systemd:/",
            "4:freezer:/slurm_n1/uid_0/job_4711/step_0\n",
            "0::/kubepods.slice/../system.slice/slurmstepd.scope/job_4711/step_0",
        ],
        ids=["v2", "v2 multiple slurmd", "v1", "v1 multiple slurmd", "odd"],
    )
    def test_job_and_step(self, text: str) -> None:
        """Slurm names its folders alike everywhere."""
        assert parse_cgroup(text) == CgroupOwner(job="4711", step="0")

    @pytest.mark.parametrize("step", ["batch", "extern", "interactive", "12+0"])
    def test_steps_with_names(self, step: str) -> None:
        """Not every step has a number."""
        text = f"0::/system.slice/slurmstepd.scope/job_1/step_{step}/user"
        assert parse_cgroup(text).step == step

    def test_the_daemon_itself_has_no_job(self) -> None:
        """``slurmd`` is a service."""
        assert parse_cgroup("0::/system.slice/slurmd.service") == NOBODY

    @pytest.mark.parametrize("name", ["job_", "job_x", "job_1x", "ajob_1"])
    def test_folders_of_no_job(self, name: str) -> None:
        """Only a whole name counts."""
        assert slurm_job(name) is None


class TestKubernetes:
    @pytest.mark.parametrize(
        ("path", "qos"),
        [
            (f"/kubepods/pod{UID}/{CONTAINER}", "guaranteed"),
            (f"/kubepods/burstable/pod{UID}/{CONTAINER}", "burstable"),
            (f"/kubepods/besteffort/pod{UID}/{CONTAINER}", "besteffort"),
            (
                f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{CONTAINER}.scope",
                "guaranteed",
            ),
            (
                (
                    "/kubepods.slice/kubepods-burstable.slice/"
                    f"kubepods-burstable-pod{SLICE}.slice/cri-containerd-{CONTAINER}.scope"
                ),
                "burstable",
            ),
            (
                (
                    "/kubepods.slice/kubepods-besteffort.slice/"
                    f"kubepods-besteffort-pod{SLICE}.slice/docker-{CONTAINER}.scope/init"
                ),
                "besteffort",
            ),
            (
                (
                    "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                    f"kubelet-kubepods-burstable-pod{SLICE}.slice/{CONTAINER}"
                ),
                "burstable",
            ),
        ],
    )
    def test_pod_container_and_class(self, path: str, qos: str) -> None:
        """Cgroupfs and systemd drivers; containerd, CRI-O and Docker."""
        assert parse_cgroup(f"0::{path}") == kubernetes(qos)
        assert parse_cgroup(f"5:cpuset:/\n4:memory:{path}\n") == kubernetes(qos)

    def test_a_static_pod_has_the_hash_of_its_manifest(self) -> None:
        """Without dashes."""
        uid = "0123456789abcdef0123456789abcdef"
        assert parse_cgroup(f"0::/kubepods/burstable/pod{uid}").pod_uid == uid

    @pytest.mark.parametrize(
        "path",
        ["/user.slice/user-1000.slice", "/system.slice/podman.service", "/", ""],
    )
    def test_others_are_nobody(self, path: str) -> None:
        """No job, no pod."""
        assert parse_cgroup(f"0::{path}") == NOBODY


@given(st.text())
def test_any_text(text: str) -> None:
    """Nothing raises."""
    parse_cgroup(text)
