"""Files that are made from the fleet's rules; tests prove them fresh.

``python -m fabricmon.fleet.documents`` writes all of them, below the folder it is
started in. Helm reads nothing outside its folder: the chart has copies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill

from fabricmon.config_manual import Key, keys
from fabricmon.fleet.alertmanager import alertmanager_file
from fabricmon.fleet.inhibitions import INHIBITIONS
from fabricmon.fleet.names import EXPORTED
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.render import rule_file
from fabricmon.fleet.rule import Alert, Group, Matcher
from fabricmon.fleet.rules import groups

CHART = "deploy/helm/fabricmon/rules"
FOLDERS = ("deploy/prometheus", CHART)
_OPTIONS = FleetOptions()


@dataclass(frozen=True, slots=True)
class Document:
    """A file and what makes its text."""

    path: str
    text: Callable[[], str]


def rules_of(group: Group) -> str:
    """Return the file of one group."""
    return _MADE + rule_file((group,), _OPTIONS)


def manual() -> str:
    """Return the reference of options, rules and inhibitions."""
    made = groups(_OPTIONS)
    return "\n".join(
        (
            _INTRODUCTION,
            *_option_tables(),
            "## Alerts\n",
            _ALERTS,
            _table(("Alert", "Kind", "Notice", "For", "What it is not"), _rows(made)),
            "## Recordings\n",
            _table(
                ("Series", "Group", "Level", "Meaning"),
                (
                    (f"`{rule.record}`", group.name, str(rule.level), rule.meaning)
                    for group in made
                    for rule in group.recordings
                ),
            ),
            "## What the rules read of agents\n",
            _wrapped(_read(made)),
            "## Inhibitions\n",
            _table(
                ("While this fires", "these are not told", "equal", "because"),
                (
                    (
                        _matchers(row.source),
                        _matchers(row.target),
                        ", ".join(row.equal),
                        row.reason,
                    )
                    for row in INHIBITIONS
                ),
            ),
        )
    )


def _option_tables() -> Iterable[str]:
    sections: dict[str, list[Key]] = {}
    for key in keys(FleetOptions):
        sections.setdefault(key.path.rpartition(".")[0], []).append(key)
    for section, rows in sections.items():
        yield f"### `{section}`\n" if section else "### Top level\n"
        yield _table(
            ("key", "default", "meaning"),
            (
                (
                    f"`{key.path.rpartition('.')[2]}`",
                    f"`{json.dumps(key.default, ensure_ascii=False)}`",
                    key.text.replace("``", "`"),
                )
                for key in rows
            ),
        )


def _rows(made: Sequence[Group]) -> Iterable[tuple[str, ...]]:
    for alert in (alert for group in made for alert in group.alerts):
        yield (
            f"`{alert.name}`",
            f"[{alert.kind}](runbooks/{alert.kind}.md)",
            _notice(alert),
            f"{alert.for_seconds:g} s",
            alert.is_not,
        )


def _read(made: Sequence[Group]) -> list[str]:
    """Return the metrics of agents that expressions read, sorted."""
    words = {
        word
        for group in made
        for rule in group.rules
        for word in re.findall(r"\bfabricmon_\w+", rule.expr)
    }
    return sorted(words & EXPORTED.keys())


def _wrapped(names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return fill(text, 96, break_long_words=False, break_on_hyphens=False) + ".\n"


def _notice(alert: Alert) -> str:
    return alert.notice.value if alert.notice else "as the finding"


def _matchers(row: Iterable[Matcher]) -> str:
    return ", ".join(f"`{each.label}=~{each.pattern}`" for each in row)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_MADE = "# Made by `python -m fabricmon.fleet.documents`; do not edit. For other\n"
_MADE += "# labels, periods or thresholds: `fabricmon rules --config FILE`.\n"

_INTRODUCTION = """# Rules of the fleet

Made by `python -m fabricmon.fleet.documents`; do not edit. How to deploy them is in
[fleet.md](fleet.md).

## Options

`fabricmon rules --config FILE` reads them as YAML; `--set SECTION.KEY=VALUE` sets one.
Expressions and matchers are taken as they are.
"""

_ALERTS = """Labels of every alert: `kind`, `notice`, `severity`, `role`, `action`,
`origin` (`node`: an agent found it; `fleet`: only a comparison of nodes can), the
cluster, and as far as they are known the node, `device`, `port`, `leaf`, `rail`,
`netdev`, `rack`, and the training job as `training`.

A finding of an agent is a page if it is critical, advises to act, and a job is on its
port, or was within `findings.job_seconds`; for a device or a node any job of the node
counts, as it does where an agent does not tell the ports of jobs. Nobody is paged for
nodes that are cordoned, nor told more than information about places that are being
worked on. Anything else that advises to act is a ticket, so also where no job is known.
A warning without advice is information, and so are some kinds that are only info: at
once, while new, or after `findings.lasting_seconds`. A kind at a place is told once.
"""

DOCUMENTS: tuple[Document, ...] = (
    *(
        Document(
            f"{folder}/{group.name.replace('.', '-')}.yaml", partial(rules_of, group)
        )
        for folder in FOLDERS
        for group in groups(_OPTIONS)
    ),
    Document(
        "deploy/alertmanager/alertmanager.yml", lambda: alertmanager_file(_OPTIONS)
    ),
    Document("docs/fleet-rules.md", manual),
)
"""A file for each group: single ones can be evaluated elsewhere, see ``fleet.md``."""


def main() -> None:
    """Write all documents; files of groups that are gone are removed."""
    kept = {Path(document.path) for document in DOCUMENTS}
    for folder in map(Path, FOLDERS):
        for path in {*folder.glob("*.yaml")} - kept:
            path.unlink()
    for document in DOCUMENTS:
        path = Path(document.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
