"""What a job is, by its processes: settings, network, how long it survives. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricmon.stories.budget import RETRIES, TIMEOUT, RetryBudget, retry_budget
from fabricmon.stories.roster import Process
from fabricmon.value import Value

SOCKET_NETWORKS = ("Socket", "FastSocket")
"""NCCL's names of transports over TCP."""

MAX_NAMES = 16
"""Processes named of those that have one value of a setting."""

MAX_RANKS = 1 << 20
"""Ranks of the largest job that is believed."""

# Settings that may well differ between ranks: where output goes, who is who.
_OWN = ("NCCL_DEBUG", "NCCL_HOSTID", "NCCL_COMM_ID", "NCCL_TOPO_FILE", "NCCL_CONF")
_OWN_ENDS = ("_FILE", "_DIR", "_UID")


class SettingUse(Value, frozen=True):
    """A value of a setting (None: not set) and the processes that have it."""

    value: str | None
    processes: tuple[str, ...]
    number: int


class Disagreement(Value, frozen=True):
    """A setting that differs between ranks of one job."""

    name: str
    uses: tuple[SettingUse, ...]


class Stuck(Value, frozen=True):
    """Ranks whose watchdogs gave up, and those that are worth a look.

    ``silent`` did not report although the job has them and most did; ``behind`` have enqueued less
    than others: their application, not the network, is late.
    """

    operation: str
    reporters: tuple[int, ...]
    silent: tuple[int, ...]
    behind: tuple[int, ...]


class JobStory(Value, frozen=True):
    """One job, or one communicator where no job is named.

    ``nodes`` is what the library says, else None. ``networks`` are the transports that
    its processes chose. ``fallback`` says whether it spans nodes and goes by sockets,
    None where the log does not tell. ``budget`` is the shortest of its processes.
    """

    name: str
    hosts: tuple[str, ...]
    processes: int
    ranks: int | None
    nodes: int | None
    versions: tuple[str, ...]
    networks: tuple[str, ...]
    fallback: bool | None
    settings: tuple[tuple[str, str], ...]
    disagreements: tuple[Disagreement, ...]
    budget: RetryBudget | None
    stuck: Stuck | None = None


def job_stories(processes: Iterable[Process]) -> tuple[JobStory, ...]:
    """Return the jobs of these processes, in the order in which they were heard of.

    Processes that name neither job nor communicator are taken for one job with all
    others of their source where there is one at most: logs that have nothing in common
    are not one.
    """
    told = tuple(_named(tuple(processes)))
    names: dict[str, set[str]] = defaultdict(set)
    for process in told:
        names[process.source] |= {_name(process)} - {""}
    groups: dict[tuple[str, str], list[Process]] = defaultdict(list)
    unnamed = []
    for process in told:
        name = _name(process)
        if not name and len(names[process.source]) == 1:
            unnamed.append(process)
        else:
            groups[name, "" if name else process.source].append(process)
    for process in unnamed:
        (name,) = names[process.source]
        groups[name, ""].append(process)
    return tuple(_story(name, members) for (name, _), members in groups.items())


def _name(process: Process) -> str:
    return process.job or process.comm or ""


def _named(processes: Sequence[Process]) -> Iterator[Process]:
    """Leave out who has neither pid nor rank, such as a banner, beside who has."""
    places = {one.place for one in processes if not _is_nobody(one)}
    for one in processes:
        if not _is_nobody(one) or one.place not in places:
            yield one


def _is_nobody(process: Process) -> bool:
    return process.pid is None and process.rank is None


def _story(name: str, members: Sequence[Process]) -> JobStory:
    sizes = [one.size for one in members if one.size is not None]
    nodes = [one.nodes for one in members if one.nodes is not None]
    hosts = tuple(dict.fromkeys(one.place for one in members))
    spans = max(nodes, default=None)
    networks = _distinct(one.network for one in members)
    budgets = [budget for one in members if (budget := budget_of(one)) is not None]
    return JobStory(
        name,
        hosts,
        len(members),
        max(sizes, default=None),
        spans,
        _distinct(one.version for one in members),
        networks,
        _fallback(members, networks, spans),
        _agreed(members),
        disagreements(members),
        min(budgets, key=_patience, default=None) if _is_verbs(networks) else None,
        stuck_ranks(members),
    )


def stuck_ranks(members: Sequence[Process]) -> Stuck | None:
    """Return who waits for whom, None where no watchdog gave up.

    All ranks wait in one operation while a path between two is dead; the rank that is
    missing among them, or behind, is the one to look at.
    """
    waiting = [one for one in members if one.stuck is not None and one.rank is not None]
    if not waiting:
        return None
    ranks = {one.rank for one in members if one.rank is not None}
    size = max((one.size for one in members if one.size is not None), default=0)
    reporters = {one.rank for one in waiting if one.rank is not None}
    every = set(range(min(size, MAX_RANKS))) or ranks
    last = max((one.enqueued or 0 for one in members), default=0)
    behind = {
        one.rank
        for one in members
        if one.rank is not None and one.enqueued is not None and one.enqueued < last
    }
    silent = every - reporters if 2 * len(reporters) >= len(every) else set()
    return Stuck(
        next((one.stuck for one in waiting if one.stuck), ""),
        tuple(sorted(reporters)),
        tuple(sorted(silent)),
        tuple(sorted(behind)),
    )


def budget_of(process: Process) -> RetryBudget | None:
    """Return how long an outage a process survives, None if that is not known."""
    settings = process.settings
    return retry_budget(process.version, settings.get(TIMEOUT), settings.get(RETRIES))


def disagreements(members: Sequence[Process]) -> tuple[Disagreement, ...]:
    """Return the settings in which these processes differ.

    A process that told nothing of its settings does not count; one that told some and
    completed its start has the others not set.
    """
    telling = [one for one in members if one.settings]
    names = sorted({name for one in telling for name in one.settings})
    found = []
    for name in names:
        if not _is_own(name):
            uses = _uses(name, telling)
            if len(uses) > 1:
                found.append(Disagreement(name, uses))
    return tuple(found)


def _uses(name: str, telling: Sequence[Process]) -> tuple[SettingUse, ...]:
    by_value: dict[str | None, list[str]] = defaultdict(list)
    for one in telling:
        if name in one.settings or one.ready:
            by_value[one.settings.get(name)].append(title(one))
    return tuple(
        SettingUse(value, tuple(who[:MAX_NAMES]), len(who))
        for value, who in sorted(by_value.items(), key=lambda item: -len(item[1]))
    )


def title(process: Process) -> str:
    """Name a process for people."""
    if process.rank is not None:
        return f"{process.place} rank {process.rank}"
    return process.place if process.pid is None else f"{process.place}:{process.pid}"


def _agreed(members: Sequence[Process]) -> tuple[tuple[str, str], ...]:
    """Return settings with one value wherever they are told."""
    values: dict[str, set[str]] = defaultdict(set)
    for one in members:
        for name, value in one.settings.items():
            values[name].add(value)
    agreed = {name: found for name, found in values.items() if len(found) == 1}
    return tuple((name, min(found)) for name, found in sorted(agreed.items()))


def _fallback(
    members: Sequence[Process], networks: Sequence[str], nodes: int | None
) -> bool | None:
    """Tell whether traffic between nodes goes by sockets.

    A channel over the network proves that the job spans nodes, or that NCCL takes it to.
    """
    channels = sum_channels(members)
    by_socket = any(channels.get(name) for name in SOCKET_NETWORKS)
    if nodes == 1:
        return False
    if channels:
        return by_socket
    if not networks:
        return None
    if not any(network in SOCKET_NETWORKS for network in networks):
        return False
    return True if nodes is not None else None


def sum_channels(members: Iterable[Process]) -> Mapping[str, int]:
    """Return channels between nodes by the name of their network."""
    found: dict[str, int] = defaultdict(int)
    for one in members:
        for network, number in one.via.items():
            found[network] += number
    return found


def _patience(budget: RetryBudget) -> float:
    return float("inf") if budget.seconds is None else budget.seconds


def _is_verbs(networks: Sequence[str]) -> bool:
    """Whether queue pairs with these retries are used, as far as is known."""
    others = (*SOCKET_NETWORKS, "Libfabric")
    return not networks or not all(name.endswith(others) for name in networks)


def _is_own(name: str) -> bool:
    return name.startswith(_OWN) or name.endswith(_OWN_ENDS)


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
