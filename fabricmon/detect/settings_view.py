"""The cases that a node gives: its processes, drop files and logs, one each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fabricmon.config import Settings
from fabricmon.detect.settings_case import (
    Case,
    Ground,
    RdmaPort,
    effective,
    version_of,
)
from fabricmon.detect.settings_told import Told
from fabricmon.model import JobUse, NcclProcess, View

ENVIRONMENT = "environment"


def ground_of(view: View, limits: Settings) -> Ground:
    """Return what the node shows of its fabric."""
    ports = (
        RdmaPort(
            port.info,
            None if port.status is None else port.status.state,
            was_active=port.ever_active,
        )
        for port in view.ports
    )
    return Ground(
        tuple(ports),
        view.job.gids,
        view.job.host_path,
        limits,
        tuple(device.name for device in view.missing),
    )


def cases_of(view: View, ground: Ground, told: Iterable[Told]) -> tuple[Case, ...]:
    """Return a case for each process here whose settings are known.

    A log tells what a process took, its environment what it was given, a drop file what
    its job asked for. A drop file speaks for itself only while nothing else does.
    """
    here = [each for each in told if each.is_here(view.node)]
    return cases_of_processes(view.job.processes, view.job.jobs, ground, here)


def cases_of_processes(
    processes: Sequence[NcclProcess],
    jobs: Iterable[JobUse],
    ground: Ground,
    here: Sequence[Told] = (),
) -> tuple[Case, ...]:
    """Return the cases of the processes of this node, ``here`` being what logs told."""
    uses = {use.job: use for use in jobs}
    cases = [*_of_processes(processes, here, ground, uses)]
    seen = {process.pid for process in processes if process.pid}
    cases += [
        _of_log(each, processes, ground, uses)
        for each in here
        if each.pod is not None or each.pid not in seen
    ]
    speaking = {case.job for case in cases}
    for process in processes:
        if not process.pid and process.settings and process.job not in speaking:
            cases.append(_case(process, ground, uses))
    return tuple(cases)


def elsewhere(view: View, ground: Ground, told: Iterable[Told]) -> tuple[Case, ...]:
    """Return the cases of ranks on other nodes, as far as logs here tell them."""
    return tuple(
        Case(ground, each.settings, version_of(each.version), job=each.group)
        for each in told
        if not each.is_here(view.node)
    )


def _of_processes(
    processes: Iterable[NcclProcess],
    here: Iterable[Told],
    ground: Ground,
    uses: dict[str, JobUse],
) -> Iterator[Case]:
    """Yield the processes that were seen, each once: drop files may name them too."""
    by_pid: dict[int, NcclProcess] = {}
    for process in processes:
        if process.pid:
            by_pid[process.pid] = _joined(by_pid.get(process.pid), process)
    logs = {each.pid: each for each in here if each.pod is None}
    for pid, process in by_pid.items():
        log = logs.get(pid)
        if log is not None:
            settings = (*log.settings, *process.settings)
            version = process.library_version or log.version
            process = replace(process, settings=settings, library_version=version)  # noqa: PLW2901
        if process.settings or process.library is not None:
            yield _case(process, ground, uses)


def _joined(known: NcclProcess | None, process: NcclProcess) -> NcclProcess:
    if known is None:
        return process
    return replace(
        process,
        job=process.job or known.job,
        pod=process.pod or known.pod,
        contained=process.contained or known.contained,
        library=process.library or known.library,
        library_version=process.library_version or known.library_version,
        settings=(*known.settings, *process.settings),
    )


def _case(process: NcclProcess, ground: Ground, uses: dict[str, JobUse]) -> Case:
    use = uses.get(process.job or "")
    seen = any(each.origin == ENVIRONMENT for each in process.settings)
    return Case(
        ground,
        effective(process.settings),
        version_of(process.library_version),
        complete=seen or process.library is not None,
        in_pod=process.pod is not None or process.contained,
        processes=(use.processes or None) if use else None,
        nodes=use.nodes if use else None,
        job=process.job,
    )


def _of_log(
    told: Told,
    processes: Iterable[NcclProcess],
    ground: Ground,
    uses: dict[str, JobUse],
) -> Case:
    use = uses.get(told.job or "")
    asked = (
        setting
        for process in processes
        if told.job is not None and process.job == told.job and not process.pid
        for setting in process.settings
    )
    return Case(
        ground,
        effective((*told.settings, *asked)),
        version_of(told.version),
        in_pod=told.pod is not None or told.contained,
        processes=(use.processes or None) if use else None,
        nodes=use.nodes if use else None,
        job=told.group,
    )
