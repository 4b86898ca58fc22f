"""Which jobs and pods this node has, by folders that anyone may list."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.parse.cgroup import CgroupOwner, parse_cgroup, pod_uid, slurm_job
from fabricmon.parse.pod_resources import PodDevices, parse_pod_resources
from fabricmon.parse.text import decode
from fabricmon.value import Value

CGROUPS = "/sys/fs/cgroup"
POD_LOGS = "/var/log/pods"
HOST_NAME = "/proc/sys/kernel/hostname"
MOST_FOLDERS = 4096  # looked at in one search

_V1_CONTROLLERS = ("memory", "cpuset", "freezer", "devices", "pids", "systemd")
_V2_MARK = "cgroup.controllers"
_KUBE_DEPTH = 3  # kubelet's own root, the QOS class, the pod
_POD_FOLDER_PARTS = 3
_UNUSUAL = frozenset("*?[")


class Pod(Value, frozen=True):
    """A pod by the name of its log folder; ``folder`` is that name."""

    uid: str
    namespace: str
    name: str
    folder: str

    @property
    def job(self) -> str:
        """What its job is called."""
        return f"{self.namespace}/{self.name}"


class KubeletAnswer(Value, frozen=True):
    """Pods with devices; None where the kubelet was not asked or did not answer."""

    pods: tuple[PodDevices, ...] | None = None
    problem: str | None = None


class CgroupFolders:
    """Looks for jobs below the cgroup file system, a bounded number of folders."""

    def __init__(self, host: Host) -> None:
        """Look on this node."""
        self._host = host
        self._left = MOST_FOLDERS

    def slurm_jobs(self) -> tuple[str, ...]:
        """Return the ids of the Slurm jobs that run here."""
        found: dict[str, None] = {}
        for folder in self._slurm_folders():
            for name in self._names(folder):
                job = slurm_job(name)
                if job is not None:
                    found[job] = None
        return tuple(found)

    def pod_uids(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that run here."""
        found: dict[str, None] = {}
        for root in self._roots():
            for name in self._names(root):
                if "kube" in name:
                    self._find_pods(f"{root}/{name}", _KUBE_DEPTH, found)
        return tuple(found)

    def _find_pods(self, folder: str, depth: int, found: dict[str, None]) -> None:
        for name in self._names(folder):
            uid = pod_uid(name)
            if uid is not None:
                found[uid] = None
            elif depth > 1 and ("kube" in name or name in {"burstable", "besteffort"}):
                self._find_pods(f"{folder}/{name}", depth - 1, found)

    def _slurm_folders(self) -> Iterator[str]:
        for root in self._roots():
            for name in self._names(root):
                if name.startswith("slurm"):  # v1: slurm, slurm_NODE; then uid_N
                    yield f"{root}/{name}"
                    for user in self._names(f"{root}/{name}"):
                        if user.startswith("uid_"):
                            yield f"{root}/{name}/{user}"
                elif name == "system.slice":
                    for scope in self._names(f"{root}/{name}"):
                        if scope.endswith("slurmstepd.scope"):
                            yield f"{root}/{name}/{scope}"

    def _roots(self) -> tuple[str, ...]:
        """Return the top of each hierarchy: one in v2, one that has jobs in v1."""
        names = self._names(CGROUPS)
        if _V2_MARK in names:
            return (CGROUPS,)
        return tuple(f"{CGROUPS}/{name}" for name in _V1_CONTROLLERS if name in names)

    def _names(self, folder: str) -> tuple[str, ...]:
        if self._left <= 0:
            return ()
        self._left -= 1
        names = self._host.names(folder)
        return () if isinstance(names, ReadError) else names


def list_pods(host: Host, config: Config) -> tuple[Pod, ...]:
    """Return the pods that have a log folder, without those that are no jobs."""
    if not config.jobs.kubernetes:
        return ()
    names = host.names(POD_LOGS)
    found = []
    for folder in () if isinstance(names, ReadError) else names[:MOST_FOLDERS]:
        parts = folder.split("_")
        if len(parts) == _POD_FOLDER_PARTS and _UNUSUAL.isdisjoint(folder):
            namespace, name, uid = parts
            pod = Pod(uid, namespace, name, folder)
            if not is_excluded(pod.job, config):
                found.append(pod)
    return tuple(found)


def is_excluded(job: str, config: Config) -> bool:
    """Tell whether a pod (``NAMESPACE/POD``) is no job."""
    return any(fnmatchcase(job, pattern) for pattern in config.jobs.pods_exclude)


def ask_kubelet(host: Host, config: Config) -> KubeletAnswer:
    """Ask which pods have devices, where that is configured."""
    path = config.jobs.kubelet_socket
    if path is None:
        return KubeletAnswer()
    answer = host.pod_resources(path)
    if isinstance(answer, ReadError):
        hint = "give its folder to the agent, or remove jobs.kubelet_socket"
        return KubeletAnswer(problem=f"{path}: {answer.errno}: {hint}")
    try:
        pods = parse_pod_resources(answer)
    except ValueError as error:
        return KubeletAnswer(problem=f"{path}: no answer of a kubelet: {error}")
    return KubeletAnswer(tuple(pod for pod in pods if pod.ids))


def owner(host: Host, pid: int) -> CgroupOwner | None:
    """Return who a process belongs to, None if there is no such process."""
    raw = host.read(f"/proc/{pid}/cgroup")
    return None if isinstance(raw, ReadError) else parse_cgroup(decode(raw))


def host_name(host: Host) -> str | None:
    """Return the short name of the node as its kernel has it."""
    raw = host.read(HOST_NAME)
    if isinstance(raw, ReadError):
        return None
    return decode(raw).strip().partition(".")[0] or None
