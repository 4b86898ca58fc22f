"""A recording as it may be given away: without logs, and anonymous if that is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.host.trace import Header, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from fabricmon.parse.kmsg import recognise
from fabricmon.sources.maintenance import parse_plan
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.joining import JoinedTraces
from fabricmon.support.secrets import without_secrets

LOG_SOURCES = frozenset({"nccl_log", "inspector"})
"""Sources that read what jobs write."""

JOB_SOURCES = frozenset({"jobs"})
"""Sources that read who runs here; a bundle without names has no use for them."""

_LOG_KEYS = ("append", "truncate", "rotate")
_PROCESS = re.compile(r"/proc/\d+/(?:environ|maps|cmdline|fd|root)\b")
_MAPS = ("set", "ramp", "err", "slow", "hang", "link")
_LISTS = ("del", "dir")


@dataclass(frozen=True, slots=True)
class Kept:
    """How a recording was rewritten: records, seconds, and whether it was cut short."""

    records: int
    seconds: float
    is_cut: bool


def rewrite(
    source: JoinedTraces,
    target: Path,
    *,
    with_logs: bool,
    anonymiser: Anonymiser | None,
    most_bytes: int,
    job_paths: Collection[str] = (),
    plan_paths: Collection[str] = (),
) -> Kept:
    """Copy a trace without what may not be told; it ends where the room does.

    ``job_paths`` are files and folders that tell who runs here: an anonymous trace has
    none of what lies below them. ``plan_paths`` are files that tell who works on what:
    it has of them when that is and on which ports of this node.

    Raises `TraceError` or `OSError` for a trace that cannot be read or written.
    """
    left = _below(job_paths) if anonymiser is not None else None
    plans = dict.fromkeys(
        plan_paths if anonymiser is not None else (), source.header.node
    )
    clean = _cleaner(with_logs=with_logs, anonymiser=anonymiser, left=left, plans=plans)
    records, seconds, is_cut = 0, 0.0, False
    header = _header(source.header, anonymiser)
    with TraceWriter(target, header, private=True) as writer:
        for record in source:
            writer.write(clean(record))
            records, seconds = records + 1, record.t
            if records % 100 == 0 and _size(target) > most_bytes:
                is_cut = True
                break
    return Kept(records, seconds, is_cut)


def names_of(source: Path, anonymiser: Anonymiser) -> None:
    """Let the anonymiser learn what a trace's header and modules name."""
    with TraceReader(source) as reader:
        anonymiser.learn_from(msgspec.to_builtins(reader.header))
        for record in reader:
            if record.module:
                anonymiser.learn_from(msgspec.to_builtins(record.module))


def _size(target: Path) -> int:
    part = target.with_name(f"{target.name}.part")
    return part.stat().st_size if part.exists() else 0


def _header(header: Header, anonymiser: Anonymiser | None) -> Header:
    fields = msgspec.to_builtins(header)
    if "config" in fields:
        fields["config"] = without_secrets(fields["config"])
    if anonymiser is not None:
        fields = anonymiser.value(fields)
    return msgspec.convert(fields, Header)


def _below(paths: Collection[str]) -> re.Pattern[str] | None:
    """Return what matches these paths, what lies below them, and processes."""
    listed = "|".join(re.escape(path.rstrip("/")) for path in paths)
    return re.compile(rf"(?:{listed}|/proc/\d+)(?:/|\Z)") if listed else None


def _cleaner(
    *,
    with_logs: bool,
    anonymiser: Anonymiser | None,
    left: re.Pattern[str] | None,
    plans: Mapping[str, str],
) -> Callable[[TraceRecord], TraceRecord]:
    def clean(record: TraceRecord) -> TraceRecord:
        fields: dict[str, Any] = msgspec.to_builtins(record)
        if not with_logs:
            _drop_logs(fields)
        if left is not None:
            _drop(fields, left)
        for path in plans.keys() & fields.get("set", {}).keys():
            fields["set"][path] = _without_names(fields["set"][path], plans[path])
        if anonymiser is not None:
            fields["kmsg"] = [line for line in record.kmsg if _is_known(line)]
            fields = anonymiser.value(fields)
        return msgspec.convert(fields, TraceRecord)

    return clean


def _drop_logs(fields: dict[str, Any]) -> None:
    """Take out what jobs wrote, and what only their processes tell."""
    for key in _LOG_KEYS:
        fields.pop(key, None)
    _drop(fields, _PROCESS)


def _drop(fields: dict[str, Any], paths: re.Pattern[str]) -> None:
    """Take out all files that match."""
    for key in _MAPS:
        if key in fields:
            found = fields[key].items()
            fields[key] = {p: v for p, v in found if not paths.match(p)}
    for key in _LISTS:
        if key in fields:
            fields[key] = [p for p in fields[key] if not paths.match(p)]


def _without_names(plan: str, node: str) -> str:
    """Return a maintenance file without reasons, and without what is not of the node.

    One that no agent can read has nothing in it.
    """
    try:
        raw = plan.encode("utf-8", "surrogateescape")
        told = [
            {"until": datetime.fromtimestamp(each.until, UTC), "ports": each.ports}
            for each in parse_plan(raw, "", 0.0, node).windows
        ]
        return msgspec.json.encode(told).decode()
    except (ValueError, OverflowError):  # half surrogates; a time before the first year
        return "[]"


def _is_known(line: str) -> bool:
    """Tell whether the kernel said it of RDMA: other lines may name anything."""
    return recognise(line, 0.0) is not None
