"""Jobs of the node and processes of collective libraries: who, whose, with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fabricmon.config import Config
from fabricmon.host.log_patterns import is_wild
from fabricmon.host.protocol import Host, LogFile, ProcessSight, ReadError
from fabricmon.model import (
    JobList,
    JobUse,
    LibrarySetting,
    NcclProcess,
    Target,
)
from fabricmon.parse.cgroup import NOBODY, CgroupOwner, parse_cgroup
from fabricmon.parse.library_settings import (
    CONFIGURATION,
    DEBUG_FILE,
    DEVICES,
    NamedValue,
    debug_pattern,
    library_version,
    named_devices,
    parse_configuration,
)
from fabricmon.sources.job_files import DropFile, DropFiles, read_drop_files
from fabricmon.sources.node_jobs import (
    CgroupFolders,
    KubeletAnswer,
    Pod,
    ask_kubelet,
    is_excluded,
    list_pods,
    owner,
)

NODE_CONFIGURATION = "/etc/nccl.conf"
MOST_BYTES = 64 << 10  # of a configuration file
RIGHTS = "install the drop-in nccl-logs.conf, which grants them"

_NO_PID = 0  # of a job whose drop file names none


@dataclass(slots=True)
class _Node:
    """What one look at the node found."""

    host: Host
    config: Config
    drops: DropFiles
    pods: tuple[Pod, ...]
    kubelet: KubeletAnswer
    problems: list[str] = field(default_factory=list)
    files: dict[str, tuple[NamedValue, ...]] = field(default_factory=dict)

    def settings_of(self, path: str, origin: str) -> tuple[LibrarySetting, ...]:
        """Return the settings of a configuration file, read once a look."""
        if path not in self.files:
            raw = read_small(self.host, path)
            self.files[path] = parse_configuration(raw)
        return _settings(self.files[path], origin)

    def pod(self, uid: str | None) -> Pod | None:
        """Return the pod with this UID, None if it has no log folder."""
        return next((pod for pod in self.pods if pod.uid == uid), None)


def poll(host: Host, _target: Target, config: Config) -> tuple[JobList, ...]:
    """List the jobs that use this node, and the processes as far as they are seen."""
    drops = read_drop_files(host, config)
    node = _Node(
        host, config, drops, list_pods(host, config), ask_kubelet(host, config)
    )
    node.problems += drops.problems
    if node.kubelet.problem is not None:
        node.problems.append(node.kubelet.problem)
    processes = (*_dropped(node), *_seen(node))
    return (
        JobList(
            at=host.monotonic(),
            processes=processes,
            jobs=tuple(_uses(node, processes)),
            problems=tuple(node.problems),
        ),
    )


def read_small(host: Host, path: str) -> bytes:
    """Read a file that a user may have made: only a regular one, without waiting."""
    (found,) = host.log_files([path])
    if not isinstance(found, LogFile):
        return b""
    raw = host.read_log(path, found.serial, 0, MOST_BYTES)
    return b"" if isinstance(raw, ReadError) else raw


def _settings(values: Sequence[NamedValue], origin: str) -> tuple[LibrarySetting, ...]:
    return tuple(LibrarySetting(each.name, each.value, origin) for each in values)


def _dropped(node: _Node) -> Iterator[NcclProcess]:
    """Yield the processes that drop files name and that are there."""
    for drop in node.drops.jobs:
        told = _settings(drop.settings, "job")
        if told and not drop.pids:
            yield NcclProcess(_NO_PID, job=drop.job, settings=told)
        for pid in drop.pids:
            whose = owner(node.host, pid)
            if whose is not None:
                process = _process(node, pid, whose)
                yield replace(process, job=drop.job, settings=told)


def _seen(node: _Node) -> Iterator[NcclProcess]:
    """Yield what a look at the processes themselves shows, where that is opted in."""
    if not node.config.jobs.processes:
        return
    found = node.host.processes()
    if isinstance(found, ReadError):
        node.problems.append(f"/proc: {found.errno}: processes cannot be listed")
        return
    if found.denied:
        node.problems.append(f"processes of other users cannot be seen: {RIGHTS}")
    named = {pid: drop.job for drop in node.drops.jobs for pid in drop.pids}
    for sight in found.processes:
        process = _process(node, sight.pid, parse_cgroup(sight.cgroup))
        library = next(iter(sight.libraries), None)
        yield replace(
            process,
            job=named.get(sight.pid, process.job),
            library=_library(library),
            library_version=None if library is None else library_version(library),
            settings=_settings_seen(node, sight),
            contained=bool(sight.root) or sight.inner_pid != sight.pid,
            logs=(*sight.logs, *_debug_file(sight)),
        )


def _library(path: str | None) -> str | None:
    if path is None:
        return None
    return "RCCL" if "librccl" in path else "NCCL"


def _settings_seen(node: _Node, sight: ProcessSight) -> tuple[LibrarySetting, ...]:
    """Return a process's settings, what wins first: environment, then files."""
    values = tuple(NamedValue(each.name, each.value) for each in sight.variables)
    files = [each.value for each in values if each.name == CONFIGURATION]
    files = [*files, NODE_CONFIGURATION]
    told = _settings(values, "environment")
    for path in files:
        if path.startswith("/"):
            told = (*told, *node.settings_of(f"{sight.root}{path}", path))
    return told


def _debug_file(sight: ProcessSight) -> tuple[str, ...]:
    """Return the log that a process's environment names, if that is one path."""
    for each in sight.variables:
        if each.name == DEBUG_FILE and each.value.startswith("/"):
            pattern = debug_pattern(each.value, None, sight.inner_pid)
            if pattern is not None and not is_wild(pattern):
                return (f"{sight.root}{pattern}",)
    return ()


def _process(node: _Node, pid: int, whose: CgroupOwner) -> NcclProcess:
    if whose == NOBODY:
        return NcclProcess(pid)
    pod = node.pod(whose.pod_uid)
    job = whose.job
    if job is None and whose.pod_uid is not None:
        job = whose.pod_uid if pod is None else pod.job
    return NcclProcess(
        pid,
        job=job,
        step=whose.step,
        pod=None if pod is None else pod.name,
        namespace=None if pod is None else pod.namespace,
    )


def _uses(node: _Node, processes: Sequence[NcclProcess]) -> Iterator[JobUse]:
    """Yield each job once: drop files first, they name what nobody else knows."""
    counts = Counter(each.job for each in processes if each.pid != _NO_PID)
    devices = _devices(processes)
    told: set[str] = set()
    for use in (*_drop_uses(node), *_slurm_uses(node), *_pod_uses(node, counts)):
        if use.job not in told:
            told.add(use.job)
            named = dict.fromkeys((*use.devices, *devices.get(use.job, ())))
            yield replace(use, processes=counts[use.job], devices=tuple(named))


def _devices(processes: Sequence[NcclProcess]) -> dict[str, tuple[str, ...]]:
    """Return the devices that settings name, by job."""
    found: dict[str, tuple[str, ...]] = {}
    for process in processes:
        value = next((s.value for s in process.settings if s.name == DEVICES), None)
        if process.job is not None and value is not None:
            known = found.get(process.job, ())
            found[process.job] = (*known, *named_devices(value))
    return found


def _drop_uses(node: _Node) -> Iterator[JobUse]:
    for drop in node.drops.jobs:
        if not drop.pids or _lives(node.host, drop):
            yield JobUse(drop.job, "job")


def _lives(host: Host, drop: DropFile) -> bool:
    """Tell whether a process of a job is still there: a prolog may not clean up."""
    return any(owner(host, pid) is not None for pid in drop.pids)


def _slurm_uses(node: _Node) -> Iterator[JobUse]:
    if node.config.jobs.slurm:
        for job in CgroupFolders(node.host).slurm_jobs():
            yield JobUse(job, "slurm")


def _pod_uses(node: _Node, counts: Counter[str | None]) -> Iterator[JobUse]:
    """Yield the pods with devices where the kubelet says so, else every pod."""
    if not node.config.jobs.kubernetes:
        return
    if node.kubelet.pods is not None:
        for given in node.kubelet.pods:
            job = f"{given.namespace}/{given.pod}"
            if not is_excluded(job, node.config):
                yield JobUse(job, "kubernetes", devices=given.ids)
        return
    uids = set(CgroupFolders(node.host).pod_uids())
    pods = [pod for pod in node.pods if pod.uid in uids]
    for pod in sorted(pods, key=lambda pod: not counts[pod.job]):
        yield JobUse(pod.job, "kubernetes")
