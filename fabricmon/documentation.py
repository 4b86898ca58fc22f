"""Documents that are made from the tables of the package; tests prove them fresh.

``python -m fabricmon.documentation`` writes all of them, ``... metrics`` that one,
below the folder it is started in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricmon.catalogue import ROWS, CounterKind, CounterSpec, Directory, Overflow
from fabricmon.config import Metrics
from fabricmon.config_manual import manual, schema
from fabricmon.documentation_migration import migration
from fabricmon.parse.nccl_rules import COARSE, MOST_LITERALS, SUBJECTS
from fabricmon.sim import manual as scenario_manual
from fabricmon.sinks.families import FAMILIES

_MOST_FILES = 3  # of one metric that are named one by one


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the documentation and what makes its text."""

    name: str
    path: str
    text: Callable[[], str]


def metrics() -> str:
    """Return the reference of everything that /metrics exports."""
    families = _table(
        ("Metric", "Type", "Labels", "Meaning"),
        (
            (
                f"`{family.metric}`",
                family.kind.value,
                ", ".join(f"`{name}`" for name in family.labels),
                family.help,
            )
            for family in FAMILIES
        ),
    )
    introduction = _INTRODUCTION.format(counted=Metrics().counted_series)
    return "\n".join((introduction, families, _COUNTERS, *_sections(), ""))


def _sections() -> Iterator[str]:
    """Yield the counters, one table for each folder and driver."""
    groups: dict[tuple[Directory, tuple[str, ...]], list[CounterSpec]] = {}
    for spec in ROWS:
        if spec.kind is not CounterKind.KNOB:
            groups.setdefault((spec.directory, spec.drivers), []).append(spec)
    for (directory, drivers), specs in groups.items():
        title = _TITLES[directory]
        who = f" of {', '.join(drivers)}" if drivers else ""
        yield f"### {title}{who}\n"
        yield _table(
            ("Metric", "Files", "Evidence for", "Field", "Meaning"), _rows(specs)
        )


def _rows(specs: Iterable[CounterSpec]) -> Iterator[tuple[str, ...]]:
    """Yield one row a metric and meaning; its files may be many."""
    found: dict[tuple[str, str], list[CounterSpec]] = {}
    for spec in specs:
        found.setdefault((spec.metric, spec.help), []).append(spec)
    for (metric, text), same in found.items():
        first = same[0]
        label = f"{{{first.label}}}" if first.label else ""
        shown = "" if first.export.value == "always" else f" Exported {first.export}."
        yield (
            f"`{metric}{label}`",
            _files([spec.file for spec in same]),
            first.fault_class.value,
            _field(first),
            f"{text}.{shown}",
        )


def _files(names: Sequence[str]) -> str:
    if len(names) > _MOST_FILES:
        return f"`{names[0]}` … `{names[-1]}`"
    return ", ".join(f"`{name}`" for name in names)


def _field(spec: CounterSpec) -> str:
    if spec.kind is CounterKind.GAUGE:
        return "momentary"
    if spec.overflow is Overflow.NEVER:
        return f"{spec.width} bits"
    return f"{spec.width} bits, {spec.overflow}"


def log_rules() -> str:
    """Return the reference of the log rule table."""
    literals = ", ".join(f"`{text}`" for text, _ in COARSE)
    room = MOST_LITERALS - len(COARSE)
    parts = [_LOG_RULES.format(literals=literals, room=room)]
    for subject, rows in SUBJECTS:
        table = _table(
            ("Row", "Kind", "Severity", "Library", "Versions", "Meaning"),
            (
                (
                    f"`{row.id}`",
                    f"`{row.kind}`",
                    row.severity.value,
                    row.library,
                    row.versions,
                    row.meaning + (" †" if row.unscanned else ""),
                )
                for row in rows
            ),
        )
        parts.append(f"## {subject}\n\n{table}")
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_TITLES = {
    Directory.COUNTERS: "`counters/`",
    Directory.COUNTERS_EXT: "`counters_ext/`",
    Directory.HW_COUNTERS: "`hw_counters/` of a port",
    Directory.DEVICE_HW_COUNTERS: "`hw_counters/` of a device",
    Directory.NETDEV: "Network device",
    Directory.NETDEV_STATISTICS: "Network device, `statistics/`",
    Directory.ETHTOOL: "Driver statistics (`ethtool -S`)",
    Directory.PCI: "PCI function",
}

_INTRODUCTION = """# Metrics

Made by `python -m fabricmon.documentation metrics`; do not edit.

`/metrics` answers in the text format of Prometheus, or in OpenMetrics where the client
prefers it, compressed where it accepts gzip. A value that is absent or cannot be read
has no sample: it is never 0. Failed reads are in `fabricmon_read_errors_total`.

Names that node_exporter has keep its stem: replace `node_infiniband_` by
`fabricmon_infiniband_` in a query; [migration.md](migration.md) has the names of other
exporters, and how to export node_exporter's beside ours. Numbers carry `device` and `port`, where needed one
more label with few values; who they are is in `fabricmon_infiniband_port_info` and
`fabricmon_infiniband_device_info`, to be joined with `group_left`. There is no label
for the host: the scraper sets it. Counters of a device as a whole begin with
`device_` and have an empty `port`. The process itself is in the usual `process_*`, and
requests that failed are in `fabricmon_http_failures_total`.

## Which series are exported

A port exports at most 80 series by default, the node 60 more. Counters of the RDMA
class are always there, 0 or not, but for two kinds:

- a mechanism that only the other link layer has (virtual lanes on Ethernet, congestion
  notifications on InfiniBand) appears once it counted;
- driver statistics, except the three that tell most of a link, appear once they counted
  and stay then. A port has room for `metrics.counted_series` ({counted}) of them, first come,
  in one moment in the order of the tables below. Frames of pause, of which the seconds
  tell more, and lanes before error correction give their room to any other.
  `fabricmon_series_withheld` counts those without room. So eight priorities are one metric whose used priorities show.

Such a series that is not there has the value 0. Detectors see every counter in any
case. Counters that no table knows are exported as `fabricmon_infiniband_hw_unknown_total`
(or `..._hw_unknown_value`) with the file's name as `counter`, up to
`devices.generic_counters` a port; of hfi1 only those below. Virtual functions are
counted by state unless `devices.virtual_functions` is `export`.

## The agent, the node and its ports
"""

_COUNTERS = """## Counters

`saturates`: the field stops at its ceiling until someone clears it, and its increase is
0 from then on; `fabricmon_port_count_saturated` says so. `wraps`: it starts again at 0.
A value that falls was reset; `fabricmon_port_count_resets_total` counts that.
"""


_LOG_RULES = """# Log rules

Made by `python -m fabricmon.documentation log-rules`; do not edit.

What fabricmon recognises in the logs of NCCL, RCCL, aws-ofi-nccl and what stands around
them. Kind and severity are those of the line alone; some depend on what it says, such as
the status of a completion or the text of an event, and the meaning tells so. The first
row that matches wins. Any other warning of the library is `unclassified_warn`.

Rows of your own are `logs.rules` in the configuration. They are looked for besides these
and hide none. A pattern that could take long on hostile text is refused, with the reason.
An anchor of yours that holds one of the texts below costs nothing; of all others together
at most {room} texts are made, so those that are not alike have to be few.

Only lines that hold one of these texts are looked at, and a few lines behind some:
{literals}.

† Holds none of these texts and is found only where whole files are read, as by
`fabricmon logs`.
"""


def _schema() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


DOCUMENTS: tuple[Document, ...] = (
    Document("metrics", "docs/metrics.md", metrics),
    Document("configuration", "docs/configuration.md", manual),
    Document("schema", "docs/fabricmon.schema.json", _schema),
    Document("log-rules", "docs/log-rules.md", log_rules),
    Document("migration", "docs/migration.md", migration),
    Document("scenarios", "docs/scenarios.md", scenario_manual.manual),
)


def main(names: Sequence[str]) -> None:
    """Write the documents of these names, all without any."""
    known = {document.name for document in DOCUMENTS}
    if not known.issuperset(names):
        sys.exit(f"no such document; there are: {', '.join(sorted(known))}")
    for document in DOCUMENTS:
        if not names or document.name in names:
            path = Path(document.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document.text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
