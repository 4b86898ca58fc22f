"""Where logs of collective libraries may be: patterns from all who know, then files.

The order of the origins is the order of trust: a file that two of them find belongs
to the first, which knows its job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fabricmon.config import Config
from fabricmon.host.log_patterns import literal
from fabricmon.host.protocol import Host, LogFile, ProcessSight, ReadError
from fabricmon.parse.cgroup import parse_cgroup
from fabricmon.parse.library_settings import (
    DEBUG_FILE,
    debug_pattern,
    parse_configuration,
)
from fabricmon.sources.job_files import read_drop_files
from fabricmon.sources.jobs import NODE_CONFIGURATION, RIGHTS, read_small
from fabricmon.sources.node_jobs import (
    POD_LOGS,
    CgroupFolders,
    Pod,
    ask_kubelet,
    host_name,
    list_pods,
)
from fabricmon.value import Value

DOCKER_LOGS = "/var/lib/docker/containers/*/*-json.log"
MOST_PLACES = 4096
"""Patterns looked at; a node with more jobs than this has other problems."""


class LogPlace(Value, frozen=True):
    """A pattern of log files and whose they are, as far as whoever named it knows.

    ``contained`` says that who writes there has host name and process ids of its own.
    """

    pattern: str
    origin: str
    job: str | None = None
    pod: str | None = None
    namespace: str | None = None
    contained: bool = False


class FoundLog(Value, frozen=True):
    """A log file, and the place where it was found."""

    file: LogFile
    place: LogPlace


class Discovery(Value, frozen=True):
    """The files to follow, newest first, and what is in the way of more.

    ``more`` counts the files that were found beyond the limit, ``others`` are some of
    them. ``host`` is the short name of the node, ``pods`` those with log folders.
    """

    logs: tuple[FoundLog, ...]
    others: tuple[FoundLog, ...]
    more: int
    problems: tuple[str, ...]
    host: str | None
    pods: tuple[Pod, ...]


@dataclass(slots=True)
class _Search:
    """One search: what is known of the node, and what was in the way."""

    host: Host
    config: Config
    name: str | None
    pods: tuple[Pod, ...]
    problems: dict[str, None] = field(default_factory=dict)

    def places(self) -> Iterator[LogPlace]:
        """Yield where to look, the most trusted first."""
        yield from self._dropped()
        yield from self._pod_logs()
        yield from self._slurm()
        yield from self._settings()
        yield from self._processes()
        if self.config.logs.docker:
            yield LogPlace(DOCKER_LOGS, "docker", contained=True)
        for pattern in self.config.logs.paths:
            short = literal(self.name) if self.name is not None else "*"
            yield LogPlace(pattern.replace("%h", short), "configured")

    def _dropped(self) -> Iterator[LogPlace]:
        found = read_drop_files(self.host, self.config)
        self.problems.update(dict.fromkeys(found.problems))
        for job in found.jobs:
            for pattern in job.logs:
                yield LogPlace(pattern, "job", job.job)
            for each in job.settings:
                if each.name == DEBUG_FILE:
                    yield from self._named(each.value, "job", job=job.job)

    def _pod_logs(self) -> Iterator[LogPlace]:
        """Yield the container logs of pods; whoever has no device trains nothing."""
        which = self.config.logs.pods
        if which == "off" or not self.pods:
            return
        given = None
        if which == "devices":
            answer = ask_kubelet(self.host, self.config)
            if answer.pods is not None:
                given = {f"{pod.namespace}/{pod.pod}" for pod in answer.pods}
        for pod in self.pods:
            if given is None or pod.job in given:
                pattern = f"{POD_LOGS}/{pod.folder}/*/*.log"
                whose = pod.job, pod.name, pod.namespace
                yield LogPlace(pattern, "pods", *whose, contained=True)

    def _slurm(self) -> Iterator[LogPlace]:
        patterns = self.config.logs.slurm_output
        if patterns and self.config.jobs.slurm:
            for job in CgroupFolders(self.host).slurm_jobs():
                for pattern in patterns:
                    place = slurm_pattern(pattern, job, self.name)
                    yield LogPlace(place, "slurm", job)

    def _settings(self) -> Iterator[LogPlace]:
        raw = read_small(self.host, NODE_CONFIGURATION)
        for each in parse_configuration(raw) if raw else ():
            if each.name == DEBUG_FILE:
                yield from self._named(each.value, "settings")

    def _processes(self) -> Iterator[LogPlace]:
        if not self.config.jobs.processes:
            return
        found = self.host.processes(fresh=False)
        if isinstance(found, ReadError):
            return  # whoever lists the jobs says so
        pods = {pod.uid: pod for pod in self.pods}
        for sight in found.processes:
            whose = parse_cgroup(sight.cgroup)
            pod = pods.get(whose.pod_uid or "")
            job = whose.job or (pod.job if pod is not None else whose.pod_uid)
            inside = bool(sight.root)
            for path in sight.logs:
                yield LogPlace(literal(path), "process", job, contained=inside)
            for pattern in self._debug_files(sight):
                yield LogPlace(pattern, "process", job, contained=inside)

    def _debug_files(self, sight: ProcessSight) -> Iterator[str]:
        """Yield what a process's environment names; a container has its own host name."""
        for each in sight.variables:
            if each.name == DEBUG_FILE:
                name = None if sight.root else self.name
                pattern = debug_pattern(each.value, name, sight.inner_pid)
                if pattern is None:
                    continue
                if pattern.startswith("/"):
                    yield f"{sight.root}{pattern}"
                else:
                    yield f"/proc/{sight.pid}/cwd/{pattern}"

    def _named(
        self, value: str, origin: str, job: str | None = None
    ) -> Iterator[LogPlace]:
        pattern = debug_pattern(value, self.name, None)
        if pattern is not None and pattern.startswith("/"):
            yield LogPlace(pattern, origin, job)


def discover(host: Host, config: Config) -> Discovery:
    """Return the log files of the node, each once, those that were written last."""
    limit = config.logs.max_files
    search = _Search(host, config, host_name(host), list_pods(host, config))
    known = LogPlace("", "configured")
    found = {file.serial: FoundLog(file, known) for file in host.known_logs()}
    more = 0
    denied: dict[str, str] = {}
    for number, place in enumerate(search.places()):
        if number == MOST_PLACES:
            search.problems[f"more than {MOST_PLACES} places for logs"] = None
            break
        listing = host.find_logs(place.pattern, 2 * limit)
        more += listing.more
        if listing.denied is not None:
            denied.setdefault(place.origin, listing.denied)
        for file in listing.files:
            before = found.get(file.serial)
            if before is None or before.place is known:
                found[file.serial] = FoundLog(file, place)
    for path in denied.values():
        search.problems[f"{path}: no right to look for logs there: {RIGHTS}"] = None
    logs = sorted(found.values(), key=lambda log: (-log.file.modified, log.file.path))
    return Discovery(
        tuple(logs[:limit]),
        tuple(logs[limit : 2 * limit]),
        more + max(len(logs) - limit, 0),
        tuple(search.problems),
        search.name,
        search.pods,
    )


def slurm_pattern(pattern: str, job: str, host: str | None) -> str:
    """Return an output pattern of Slurm as one of the shell, for one job.

    ``%j`` is the job, ``%N`` the short host name; what is not known may be anything. A
    number between the two letters is a width.
    """
    pieces = []
    rest = iter(pattern)
    for each in rest:
        if each != "%":
            pieces.append(each)
            continue
        width = ""
        while (letter := next(rest, "")).isdigit():
            width += letter
        if letter == "j":
            pieces.append(job.zfill(int(width[:2] or 0)))
        elif letter == "J":
            pieces.append(f"{job}*")
        elif letter == "N" and host is not None:
            pieces.append(literal(host))
        else:
            pieces.append("%" if letter == "%" else "*")
    return "".join(pieces)
