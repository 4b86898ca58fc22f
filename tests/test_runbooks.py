"""Every kind of finding has a runbook that is complete, true to the code and harmless."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fabricmon.cli import _parser
from fabricmon.config import Expectation, LinkErrors, Profile
from fabricmon.config_manual import keys
from fabricmon.detect.statistics import poisson_bound
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.own_kinds import OWN_KINDS, OwnKind
from fabricmon.fleet.rule import Recording
from fabricmon.fleet.rules import groups
from fabricmon.kinds import KINDS, Kind
from tests.support.promql import SCRAPER, exported, selectors

FOLDER = Path(__file__).parent.parent / "docs" / "runbooks"
PAGES = sorted(path.name for path in FOLDER.glob("*.md"))
INDEX = "README.md"
LONGEST = 68
HEADINGS = (
    "## What it means",
    "## Impact on jobs",
    "## Confirm it",
    "## What to do",
    "## When to drain",
    "## When it is not this",
)

ALL: tuple[Kind | OwnKind, ...] = (*KINDS, *OWN_KINDS)
RULES = [rule for group in groups(FleetOptions()) for rule in group.rules]
RECORDED = {rule.record for rule in RULES if isinstance(rule, Recording)}

DEFAULTS = {key.path: key.default for key in keys()}
SECTIONS = {path.partition(".")[0] for path in DEFAULTS if "." in path}
NAMES = {
    *DEFAULTS,
    *(f"kinds.{kind.slug}" for kind in KINDS),
    *(f"expect.{field.name}" for field in msgspec.structs.fields(Expectation)),
    *(f"profiles.{field.name}" for field in msgspec.structs.fields(Profile)),
}

READS = {
    "cat": r"/(sys|proc)/\S+",
    "cd": r"/sys/\S+",
    "curl": r"-s http://127\.0\.0\.1:9879/metrics",
    "chronyc": r"tracking",
    "dcb": r"(pfc|app) show dev \w+",
    "df": r"-h /\S+",
    "dmesg": r"-T",
    "ethtool": r"(-S )?\w+",
    "fabricmon": r"(check|config|explain|parse|maintenance (show|--list))( .*)?",
    "grep": r".+",
    "ibstat": r"\w+ \d+",
    "ip": r"-s link show \w+|-br addr show \w+",
    "journalctl": r"-u fabricmon --since -1h",
    "ls": r"(-l )?/(sys/\S+|var/lib/fabricmon)",
    "lspci": r"-D",
    "mlxlink": r"-d \w+ -m -c( -e)?",
    "perfquery": r"(-x )?LID PORT",
    "ps": r"-eo \S+",
    "rdma": r"(link|dev|system) show( \S+)?",
    "sminfo": r"-C \w+ -P \d+",
    "smpquery": r"-C \w+ -P \d+ -D (nodeinfo|portinfo) 0(,\d+)?( \d+)?",
    "systemctl": r"status fabricmon",
    "tail": r"-n \d+",
    "timedatectl": r"show",
    "uptime": r"",
}
"""What may be asked of a node at night, with the arguments that only read."""


def page(name: str) -> str:
    """Return the text of a page."""
    return (FOLDER / name).read_text(encoding="utf-8")


def code(text: str) -> Iterator[str]:
    """Yield everything that is set as code: inline, and lines of blocks."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(
        r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    )


def blocks(text: str) -> Iterator[str]:
    """Yield the command lines of the blocks."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()


def words(line: str) -> list[str]:
    """Split a command line as a shell does; its operators are words of their own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def commands(line: str) -> Iterator[list[str]]:
    """Yield the programs of a pipeline with their arguments."""
    command: list[str] = []
    for word in words(line):
        if word == "|":
            yield command
            command = []
        else:
            command.append(word)
    yield command


def is_harmless(line: str) -> bool:
    """Tell whether every program of a command line is known to only read."""
    return all(
        command
        and command[0] in READS
        and re.fullmatch(READS[command[0]], " ".join(command[1:]))
        and not {">", ">>", ";", "&", "&&", "<"} & set(command)
        for command in commands(line)
    )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.slug)
def test_a_kind_has_its_page(kind: Kind | OwnKind) -> None:
    """Its title, its slug, the six headings in order, and no more than a screen."""
    lines = page(Path(kind.runbook).name).splitlines()
    assert lines[0] == f"# {kind.title}"
    assert lines[2].startswith(f"`{kind.slug}` · ")
    assert kind.usual.partition(", ")[0] in lines[2]
    assert [line for line in lines if line.startswith("#")][1:] == list(HEADINGS)
    assert len(lines) <= LONGEST


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.slug)
def test_a_page_names_what_decides(kind: Kind) -> None:
    """Each key that decides the kind is there, so that nobody needs the source."""
    text = page(Path(kind.runbook).name)
    lacking = [key for key in kind.keys if not re.search(rf"`{key}[.`]", text)]
    assert lacking == []


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.slug)
def test_a_page_names_its_alerts(kind: Kind | OwnKind) -> None:
    """Whoever comes from an alert finds it; whoever reads the page finds the alert."""
    alerts = {a.name for group in groups(FleetOptions()) for a in group.alerts}
    of_kind = {
        a.name
        for group in groups(FleetOptions())
        for a in group.alerts
        if a.kind == kind.slug
    }
    named = set(re.findall(r"`(Fabric\w+)`", page(Path(kind.runbook).name)))
    assert of_kind <= named <= alerts
    assert of_kind


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.slug)
def test_a_page_has_a_query_to_look_at(kind: Kind | OwnKind) -> None:
    """It can be evaluated, and reads what is there."""
    blocks_ = re.findall(
        r"```promql\n(.*?)```", page(Path(kind.runbook).name), re.DOTALL
    )
    queries = [line for block in blocks_ for line in block.splitlines()]
    assert queries
    for selector in [each for query in queries for each in selectors(query)]:
        assert selector.name in {*exported(), *RECORDED}
        labels = exported().get(selector.name)
        assert labels is None or selector.labels <= labels | SCRAPER


def test_the_index_lists_all_kinds() -> None:
    """One row each, in the order of the table, with its severity and its page."""
    rows = re.findall(
        r"^\| \[(\w+)\]\((\S+)\) \| ([\w, ]+) \| \S.*\|$", page(INDEX), re.MULTILINE
    )
    assert [row[:2] for row in rows] == [(kind.slug, f"{kind.slug}.md") for kind in ALL]
    assert all(
        row[2].startswith(kind.usual) for row, kind in zip(rows, ALL, strict=True)
    )


def test_no_page_is_without_a_kind() -> None:
    """A kind that was renamed leaves no page behind."""
    assert {*PAGES} == {INDEX, *(f"{kind.slug}.md" for kind in ALL)}


@pytest.mark.parametrize("name", PAGES)
def test_keys_exist(name: str) -> None:
    """Every dotted name is a key of the configuration, or of one of its entries."""
    dotted = {
        word for word in code(page(name)) if re.fullmatch(r"[a-z_]+\.[a-z_]+", word)
    }
    assert dotted - NAMES == set()


@pytest.mark.parametrize("name", PAGES)
def test_numbers_are_the_defaults(name: str) -> None:
    """``key`` (10 s) says the default of the key."""
    told = re.findall(r"`([a-z_]+\.[a-z_]+)`\s\((\d[\de.-]*)", page(name))
    assert [pair for pair in told if float(pair[1]) != DEFAULTS[pair[0]]] == []


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_fabricmon_parse(name: str) -> None:
    """They are what this version understands."""
    shown = [words(line) for line in code(page(name)) if line.startswith("fabricmon ")]
    for _, *arguments in shown:
        if arguments == ["explain", "KIND"]:
            arguments[1] = KINDS[0].slug
        assert _parser(arguments).parse_args(arguments).command == arguments[0]


@pytest.mark.parametrize("name", PAGES)
def test_blocks_only_read(name: str) -> None:
    """Nothing that can be pasted from a block writes, clears or resets."""
    assert [line for line in blocks(page(name)) if not is_harmless(line)] == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_clears(name: str) -> None:
    """Not in passing either: no counter is cleared and no device file written."""
    clears = re.compile(
        r"perfquery.* -\w*[rR]|clear_counters|--?pc\b|dmesg.* -\w*[cC]|>\s*/(sys|dev)"
        r"|\becho\b.*>|\btee\b|modprobe|ibportstate|mlxfwreset|ethtool -[^S\s]",
    )
    assert [line for line in code(page(name)) if clears.search(line)] == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Each link to another page finds it."""
    assert set(re.findall(r"\]\((\w+\.md)\)", page(name))) <= set(PAGES)


@pytest.mark.parametrize(
    "line",
    [
        "perfquery -R LID PORT",
        "dmesg -C",
        "dmesg -T | sudo tail -n 4",
        "cat /sys/class/infiniband/mlx5_3/ports/1/state > /tmp/state",
        "fabricmon maintenance clear",
        "ip link set eth3 down",
    ],
)
def test_the_guard_sees_what_writes(line: str) -> None:
    """A block with such a line would not pass."""
    assert not is_harmless(line)


@pytest.mark.parametrize("rate", [100, 200, 400, 800])
def test_bounds_of_link_errors(rate: int) -> None:
    """The table of errors by line rate is what the defaults give."""
    limits = LinkErrors()
    rows = re.findall(
        r"^\| .*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$",
        page("link_errors.md"),
        re.MULTILINE,
    )
    head, *bounds = ([int(cell) for cell in row] for row in rows)
    column = head.index(rate)
    assert [row[column] for row in bounds] == [
        poisson_bound(rate * 1e9 * ratio * seconds, limits.false_alarm_probability)
        for ratio, seconds in (
            (limits.warning_bit_error_ratio, limits.warning_window_seconds),
            (limits.warning_bit_error_ratio, limits.critical_window_seconds),
            (limits.slow_bit_error_ratio, limits.slow_window_seconds),
            (limits.critical_bit_error_ratio, limits.critical_window_seconds),
        )
    ]
