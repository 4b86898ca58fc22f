"""Events of collective libraries, out of the messages of their logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fabricmon.parse.log_event import LogEvent, LogLine, LogSeverity
from fabricmon.parse.nccl_adjust import ADJUST
from fabricmon.parse.nccl_context import LogContext, ProcessFacts
from fabricmon.parse.nccl_draft import Draft, drafted, made
from fabricmon.parse.nccl_networks import LEARN, SPREAD
from fabricmon.parse.nccl_rules import LogRow
from fabricmon.parse.nccl_table import EVERY_LINE, OperatorRow, RuleTable
from fabricmon.parse.pattern_effort import MOST_TEXT
from fabricmon.value import Value

__all__ = [
    "EVERY_LINE",
    "LogContext",
    "OperatorRow",
    "Recognised",
    "RuleTable",
    "recognise",
]

UNCLASSIFIED = "unclassified"  # stands for a row in events that no row made
_LAST_ERROR = "Last error:"
# Rows whose messages are the library's own, so that its version is theirs.
_OWN_LIBRARIES = frozenset({"nccl", "rccl", "ras", "sharp"})
_RCCL_SOURCES = ("hipify", "rccl")


class Recognised(Value, frozen=True):
    """The events of one line and the context for the next."""

    events: tuple[LogEvent, ...]
    context: LogContext


def recognise(
    line: LogLine, file: str, context: LogContext, table: RuleTable
) -> Recognised:
    """Return what a line says, judged by itself and by what its process said before.

    Severity and cause are those of the line. What it is beside other failures, root or
    consequence, is for whoever folds events; only where one line proves it ``root`` is
    False here. Never raises.
    """
    text = line.text[:MOST_TEXT]
    drafts: list[Draft] = []
    facts = before = context.process(line.host, line.pid)
    for row, match in _matches(text, line, table):
        found, facts = _judged(row, match, line, facts)
        drafts += found
    if not drafts and _is_unknown_warning(text, line, context):
        drafts.append(_unclassified(line))
    context = _learned(context, facts, before, text)
    return Recognised(
        tuple(_made(draft, line, file, facts, context) for draft in drafts), context
    )


def _matches(
    text: str, line: LogLine, table: RuleTable
) -> Iterator[tuple[LogRow, re.Match[str]]]:
    """Yield the first row that matches, and all its companions."""
    found = False
    for each in table.candidates(text):
        row = each.row
        if row.anchor not in text or (found and not row.companion):
            continue
        if row.source is not None and row.source not in (line.source or text):
            continue
        if match := each.pattern.search(text):
            found = found or not row.companion
            yield row, match


def _judged(
    row: LogRow, match: re.Match[str], line: LogLine, facts: ProcessFacts
) -> tuple[list[Draft], ProcessFacts]:
    """Return the events of a match and what it teaches."""
    draft = drafted(row, match)
    if adjust := ADJUST.get(row.id):
        adjust(draft, line, facts)
    spread = SPREAD.get(row.id)
    drafts = spread(draft) if spread else [draft]
    if learn := LEARN.get(row.id):
        for each in drafts:
            facts = learn(each, facts)
    return drafts, facts


def _is_unknown_warning(text: str, line: LogLine, context: LogContext) -> bool:
    """Say whether a line that no row knows is one that should be seen."""
    if not text.strip():
        return False
    if line.level in {"WARN", "ABORT"}:
        return True
    _, marker, body = text.partition(_LAST_ERROR)
    return bool(body.strip()) if marker else context.awaits_body


def _unclassified(line: LogLine) -> Draft:
    severity = LogSeverity.ERROR if line.level == "ABORT" else LogSeverity.WARNING
    return Draft("unclassified_warn", severity, UNCLASSIFIED, "nccl")


def _learned(
    context: LogContext, facts: ProcessFacts, before: ProcessFacts, text: str
) -> LogContext:
    if facts != before:
        context = context.with_process(facts)
        if facts.pid is None and facts.version is not None:
            context = replace(context, library=facts.library, version=facts.version)
    _, marker, body = text.partition(_LAST_ERROR)
    awaits = bool(marker) and not body.strip()
    if not text.strip():
        awaits = context.awaits_body  # a blank line between the two
    if awaits != context.awaits_body:
        context = replace(context, awaits_body=awaits)
    return context


def _made(
    draft: Draft, line: LogLine, file: str, facts: ProcessFacts, context: LogContext
) -> LogEvent:
    library = facts.library or context.library
    if draft.library == "nccl" and (library == "rccl" or _is_rccl(line.source)):
        draft.library = "rccl"
    version = None
    if draft.library in _OWN_LIBRARIES:
        version = facts.version or context.version
    return made(draft, line, file, facts, version)


def _is_rccl(source: str | None) -> bool:
    return source is not None and any(part in source for part in _RCCL_SOURCES)
