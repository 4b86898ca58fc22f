"""Keeps this process on cores where no job feels it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.parse.core_list import parse_cores, write_cores

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_FOLDER = "sys/devices/system/cpu"
_LISTS = ("isolated", "nohz_full")


def settle_on_cores(config: Config, log: FilteringBoundLogger) -> None:
    """Move this thread, and those that it starts later, to the configured cores.

    Nothing is raised: an agent on the wrong cores is better than none. One line is
    logged where the cores change or cannot be changed.
    """
    wanted = config.isolation.cores
    if wanted == "off":
        return
    before = os.sched_getaffinity(0)
    isolated = _isolated(config.root) if wanted == "auto" else frozenset()
    cores = before - isolated if wanted == "auto" else parse_cores(wanted)
    if cores == before:
        return
    if not cores:
        log.warning("cores_unchanged", err="every core it may use is isolated")
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        log.warning("cores_unchanged", cores=write_cores(cores), err=str(error))
        return
    got = os.sched_getaffinity(0)
    log.info("cores_chosen", cores=write_cores(got), isolated=write_cores(isolated))


def _isolated(root: str) -> frozenset[int]:
    """Return the cores that the kernel keeps for jobs; none where it does not say."""
    found: frozenset[int] = frozenset()
    for name in _LISTS:
        try:
            found |= parse_cores(Path(root, _FOLDER, name).read_text("ascii"))
        except (OSError, ValueError):
            continue
    return found
