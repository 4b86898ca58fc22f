"""Counters of the RDMA class: one burst of reads for each plan of a device."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.catalogue import Group
from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Absence, Reading, ReadPlan, Target
from fabricmon.parse.sysfs import MAX_COUNTER, parse_counter
from fabricmon.sources.protocol import Poll

NO_VALUE = MAX_COUNTER
"""All ones: drivers with a list from firmware (ionic) answer it for an unknown type."""

NO_VALUE_REASON = "all ones"


def poll_of(group: Group) -> Poll:
    """Return a poll that reads every plan of this group."""

    def poll(host: Host, target: Target, _config: Config) -> tuple[Reading, ...]:
        plans = target.hca.plans if target.hca else ()
        return tuple([read(host, each.plan) for each in plans if each.group is group])

    return poll


def read(host: Host, plan: ReadPlan) -> Reading:
    """Read the files of a plan in one burst; a bad file costs only its own value."""
    raws = host.read_many(plan.paths, plan.firmware_reads)
    return reading(plan, raws, host.monotonic())


def reading(plan: ReadPlan, raws: Sequence[bytes | ReadError], at: float) -> Reading:
    """Make a reading of what the files of a plan held."""
    try:  # almost always every file holds a number: no call of ours for each of them
        values = tuple(map(int, raws))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return _read_one_by_one(plan, raws, at)
    if values and (min(values) < 0 or max(values) >= NO_VALUE):
        return _read_one_by_one(plan, raws, at)
    return Reading(plan.port, at, plan.specs, values)


def _read_one_by_one(
    plan: ReadPlan, raws: Sequence[bytes | ReadError], at: float
) -> Reading:
    values: list[int | None] = []
    absent: list[Absence] = []
    for spec, raw in zip(plan.specs, raws, strict=True):
        value = raw.errno if isinstance(raw, ReadError) else parse_counter(raw)
        if value == NO_VALUE:
            value = NO_VALUE_REASON
        if isinstance(value, str):
            absent.append(Absence(spec.file, value))
        values.append(None if isinstance(value, str) else value)
    return Reading(plan.port, at, plan.specs, tuple(values), tuple(absent))
