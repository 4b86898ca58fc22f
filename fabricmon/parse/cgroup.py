"""Whose process it is by its cgroup: a Slurm job and step, or a Kubernetes pod.

Slurm names its folders ``job_N/step_N`` in every version and hierarchy (``uid_N``
before them in v1, ``slurmstepd.scope`` in v2). The kubelet names a pod's ``podUID``
with its cgroupfs driver and ``kubepods-QOS-podUID.slice`` with systemd's, where the
dashes of the UID are underscores; runtimes put the container below it.
"""

from __future__ import annotations

import re

from fabricmon.value import Value

_JOB = re.compile(r"job_(\d{1,20})\Z")
_STEP = re.compile(r"step_([\w.+-]{1,40})\Z")
_POD = re.compile(r"(?:[\w-]{0,64}-)?pod([0-9a-f]{8}[0-9a-f_-]{0,40})(?:\.slice)?\Z")
_QOS = re.compile(r"(?:[\w-]{0,64}-)?(burstable|besteffort)(?:\.slice)?\Z")
_CONTAINER = re.compile(r"(?:[a-z-]{1,32}-)?([0-9a-f]{64})(?:\.scope)?\Z")
_SLURM = "slurm"


class CgroupOwner(Value, frozen=True):
    """Who a cgroup belongs to; all None where that is nobody we know.

    ``qos`` is Kubernetes' word: ``guaranteed``, ``burstable`` or ``besteffort``.
    """

    job: str | None = None
    step: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    qos: str | None = None


NOBODY = CgroupOwner()


def parse_cgroup(text: str) -> CgroupOwner:
    """Return the owner that ``/proc/PID/cgroup`` names, in whichever hierarchy."""
    for line in text.split("\n"):
        path = line.split(":", 2)[-1]
        owner = owner_of(path)
        if owner != NOBODY:
            return owner
    return NOBODY


def owner_of(path: str) -> CgroupOwner:
    """Return the owner of one cgroup by its path."""
    parts = path.strip().split("/")
    if any(_SLURM in part for part in parts):
        return _slurm(parts)
    uid = next((uid for part in parts if (uid := pod_uid(part))), None)
    if uid is None:
        return NOBODY
    qos = (match[1] for part in parts if (match := _QOS.match(part)))
    ids = (match[1] for part in parts if (match := _CONTAINER.match(part)))
    return CgroupOwner(
        pod_uid=uid, container=next(ids, None), qos=next(qos, "guaranteed")
    )


def slurm_job(name: str) -> str | None:
    """Return the job that a folder is named after, None if it is none."""
    match = _JOB.match(name)
    return None if match is None else match[1]


def pod_uid(name: str) -> str | None:
    """Return the pod that a folder is named after, with dashes; None if it is none."""
    match = _POD.match(name)
    return None if match is None else match[1].replace("_", "-")


def _slurm(parts: list[str]) -> CgroupOwner:
    job = next((job for part in parts if (job := slurm_job(part))), None)
    if job is None:
        return NOBODY
    steps = (match[1] for part in parts if (match := _STEP.match(part)))
    return CgroupOwner(job=job, step=next(steps, None))
