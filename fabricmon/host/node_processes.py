"""Processes of a traced node: those whose files below ``/proc`` the trace has."""

from __future__ import annotations

from fabricmon.host.process_sights import (
    inner_pid,
    is_log,
    library_variables,
    mapped_libraries,
)
from fabricmon.host.protocol import ProcessListing, ProcessSight, ReadError
from fabricmon.host.tree import Tree

_PROC = "/proc"


def node_processes(tree: Tree, now: float) -> ProcessListing | ReadError:
    """Return the processes that use a collective library, as a live node would."""
    names = tree.names(_PROC)
    if isinstance(names, ReadError):
        return names
    found = []
    for name in names:
        if name.isdigit():
            sight = _sight(tree, int(name), now)
            if sight is not None:
                found.append(sight)
    return ProcessListing(tuple(found))


def _sight(tree: Tree, pid: int, now: float) -> ProcessSight | None:
    def read(name: str) -> bytes:
        raw = tree.read(f"{_PROC}/{pid}/{name}", now)
        return b"" if isinstance(raw, ReadError) else raw

    variables = library_variables(read("environ"))
    libraries = mapped_libraries(read("maps"))
    if not (variables or libraries):
        return None
    return ProcessSight(
        pid,
        inner_pid(read("status"), pid),
        read("cgroup").decode("utf-8", "replace"),
        variables,
        libraries,
        _logs(tree, pid),
    )


def _logs(tree: Tree, pid: int) -> tuple[str, ...]:
    folder = f"{_PROC}/{pid}/fd"
    names = tree.names(folder)
    found: dict[str, None] = {}
    for name in () if isinstance(names, ReadError) else names:
        target = tree.target(f"{folder}/{name}")
        if name.isdigit() and target is not None and is_log(int(name), target):
            found[target] = None
    return tuple(found)
