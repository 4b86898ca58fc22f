"""Whose job an event is about: from its file, or from the process that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fabricmon.config import Config
from fabricmon.host.protocol import Host
from fabricmon.model import LogEvent
from fabricmon.parse.cgroup import NOBODY, CgroupOwner
from fabricmon.sources.job_files import read_drop_files
from fabricmon.sources.log_cursors import MOST_OWNERS, Cursor, PidOwner
from fabricmon.sources.log_discovery import LogPlace
from fabricmon.sources.node_jobs import Pod, owner

MOST_LOOKS = 64
"""Processes looked up in one poll; the others are in the next."""

_OWN_NUMBERS = frozenset({"pods", "docker"})
"""Origins whose processes have other numbers than the node's."""

_RANDOM_LETTERS = 5
"""At the end of a pod's name, by what Kubernetes adds to that of its Job."""


_LONGEST_HOST = 63
"""kubelet cuts a pod's host name so; NCCL ends it at the first dot."""


def _host_names(pod: Pod) -> tuple[str, ...]:
    """Return what a pod may call itself: of an indexed Job without random letters."""
    job, _, random = pod.name.rpartition("-")
    cut = pod.name[:_LONGEST_HOST].rstrip("-.")
    names = (pod.name, cut, cut.partition(".")[0])
    return (*names, job) if len(random) == _RANDOM_LETTERS else names


class Owners:
    """Tells whose events are; remembers processes, which die before their last line.

    Args:
        host: The node.
        config: Where drop files lie, which name the processes of jobs.
        name: Its short host name, None if it does not say.
        pods: Pods that have log folders here.
        known: What earlier polls found out.
    """

    def __init__(
        self,
        host: Host,
        config: Config,
        name: str | None,
        pods: Sequence[Pod],
        known: Iterable[PidOwner],
    ) -> None:
        self._host = host
        self._config = config
        self._dropped: dict[int, str] | None = None
        self._name = name
        self._pods = {pod.uid: pod for pod in pods}
        self._pod_names = {name for pod in pods for name in _host_names(pod)}
        self._known = {(each.serial, each.pid): each.owner for each in known}
        self._looks = 0

    def known(self) -> tuple[PidOwner, ...]:
        """Return what is to be remembered, the newest."""
        found = tuple(self._known.items())[-MOST_OWNERS:]
        return tuple(PidOwner(serial, pid, whose) for (serial, pid), whose in found)

    def attribute(self, event: LogEvent, log: Cursor) -> LogEvent | None:
        """Return the event with its job; None if it is about another node.

        All nodes of a job may write to one file, and many jobs to one shared folder;
        each node believes its own lines, so that no process is counted twice.
        """
        place = log.place
        if not self._is_here(event, place):
            return None
        if place.job is not None:
            pod = event.pod or place.pod
            namespace = event.namespace or place.namespace
            return replace(event, job=place.job, pod=pod, namespace=namespace)
        if event.pod is not None and event.namespace is not None:
            return replace(event, job=f"{event.namespace}/{event.pod}")
        if event.pid is None or place.origin in _OWN_NUMBERS:
            return event
        if not self._is_node(event.host):
            return event
        return self._by_process(event, self._owner(log.serial, event.pid))

    def _is_here(self, event: LogEvent, place: LogPlace) -> bool:
        """Tell whether a process of this node wrote a line, as far as it can be known.

        A container has a host name of its own.
        """
        if place.contained:
            return True
        if event.pod is not None and self._pods:
            return event.pod in self._pod_names
        return (
            event.pod is not None
            or event.host in self._pod_names
            or self._is_node(event.host)
        )

    def _is_node(self, host: str | None) -> bool:
        """Tell whether a host name is this node's, in short or in full, or not known."""
        return (
            host is None or self._name is None or host.partition(".")[0] == self._name
        )

    def _owner(self, serial: str, pid: int) -> CgroupOwner:
        known = self._known.get((serial, pid))
        if known is None and self._looks < MOST_LOOKS:
            self._looks += 1
            known = owner(self._host, pid)
            if known in {None, NOBODY}:
                known = self._by_drop_file(pid)
            self._known[serial, pid] = known
        return known or NOBODY

    def _by_drop_file(self, pid: int) -> CgroupOwner:
        """Return the job whose prolog named this process."""
        if self._dropped is None:  # read once a poll, and only where it is asked for
            jobs = read_drop_files(self._host, self._config).jobs
            self._dropped = {pid: drop.job for drop in jobs for pid in drop.pids}
        job = self._dropped.get(pid)
        return NOBODY if job is None else replace(NOBODY, job=job)

    def _by_process(self, event: LogEvent, whose: CgroupOwner) -> LogEvent:
        if whose.job is not None:
            return replace(event, job=whose.job)
        if whose.pod_uid is None:
            return event
        pod = self._pods.get(whose.pod_uid)
        if pod is None:
            return replace(event, job=whose.pod_uid)
        return replace(event, job=pod.job, pod=pod.name, namespace=pod.namespace)
