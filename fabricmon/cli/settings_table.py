"""``fabricmon check --settings``: settings of NCCL against what the fabric shows."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from fabricmon.cli.document import Document, Json
from fabricmon.detect.settings_case import (
    SITE_FILE,
    Case,
    Fit,
    Ground,
    RdmaPort,
    SettingCheck,
    effective,
)
from fabricmon.detect.settings_rules import judge_all
from fabricmon.detect.settings_view import cases_of_processes
from fabricmon.model import (
    HostPath,
    JobList,
    LibrarySetting,
    Record,
    Verdict,
)
from fabricmon.parse.library_settings import (
    NamedValue,
    is_setting,
    parse_configuration,
)
from fabricmon.sources import host_path, jobs

if TYPE_CHECKING:  # dear to import, and not there for who asks the agent
    from fabricmon.sampling import Sampler

COMMAND_LINE = "command line"
NOTHING = (
    "no setting of NCCL is known here that the fabric can prove: give NAME=VALUE, or "
    "see jobs.processes\n"
)

_COLUMNS = ("variable", "value", "origin", "fabric shows", "verdict", "advice")
_WIDEST = 64
_Kind = TypeVar("_Kind", HostPath, JobList)


def setting(text: str) -> NamedValue:
    """Return ``NAME=VALUE`` as an argument type."""
    name, equals, value = text.partition("=")
    if not equals or not is_setting(name):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no setting of NCCL, RCCL or OFI: write it as in NCCL_IB_HCA=mlx5_0"
        )
    return NamedValue(name, value)


def judge(sampler: Sampler, given: Sequence[NamedValue]) -> tuple[SettingCheck, ...]:
    """Hold what is given, or else what is found on the node, against the node."""
    snapshot, config = sampler.pipeline.snapshot, sampler.pipeline.config
    ports = (
        RdmaPort(port.info, None if port.status is None else port.status.state)
        for port in snapshot.ports
    )
    path = _only(HostPath, sampler.ask(host_path.poll))
    ground = Ground(tuple(ports), snapshot.job.gids, path, config.settings)
    site = tuple(
        LibrarySetting(each.name, each.value, SITE_FILE)
        for each in parse_configuration(sampler.read(SITE_FILE))
    )
    told = tuple(LibrarySetting(each.name, each.value, COMMAND_LINE) for each in given)
    cases: tuple[Case, ...] = ()
    if not told:
        found = _only(JobList, sampler.ask(jobs.poll)) or JobList(0)
        cases = cases_of_processes(found.processes, found.jobs, ground)
    if not cases and (told or site):
        cases = (Case(ground, effective((*told, *site))),)
    return judge_all(cases)


def with_settings(document: Document, checks: Iterable[SettingCheck]) -> Document:
    """Return the document with the table; what does not fit degrades the node."""
    table = [_object(check) for check in checks]
    verdict = document.verdict
    if any(row["verdict"] == Fit.MISMATCH for row in table):
        verdict = max(verdict, Verdict.DEGRADED)
    added: Json = {"verdict": verdict.word, "settings": table}
    return Document(document.content | added, verdict)


def render(table: Sequence[Json]) -> str:
    """Return the table as lines of text, what does not fit first."""
    if not table:
        return NOTHING
    order = (Fit.MISMATCH, Fit.UNKNOWN, Fit.OK)
    rows = sorted(table, key=lambda row: order.index(Fit(row["verdict"])))
    cells = [_COLUMNS, *(tuple(_cells(row)) for row in rows)]
    widths = [
        min(max(map(len, column)), _WIDEST) for column in zip(*cells, strict=True)
    ]
    return "".join(f"{_line(line, widths)}\n" for line in cells)


def _cells(row: Json) -> Iterator[str]:
    for key in ("variable", "value", "origin", "shows", "verdict", "advice"):
        yield "".join(c if c.isprintable() else "?" for c in row[key] or "-")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _object(check: SettingCheck) -> Json:
    port = check.port
    return {
        "variable": check.variable,
        "value": check.value,
        "origin": check.origin,
        "device": None if port is None else port.device,
        "port": None if port is None else port.port,
        "shows": check.shown,
        "verdict": check.fit.value,
        "advice": check.better or check.blind or None,
    }


def _only(kind: type[_Kind], records: Iterable[Record]) -> _Kind | None:
    return next((record for record in records if isinstance(record, kind)), None)
