"""The text of ibqueryerrors: counters above its thresholds, port by port.

Keys are GUID and port. ``port ALL`` is the tool's sum over a switch, not a port. Its
exit status is 1 where ports have errors: that is no failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.parse.counter_names import is_saturated
from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import (
    CounterGroup,
    CounterValue,
    PortReport,
    Report,
    SweepSummary,
    ToolFailure,
)
from fabricmon.parse.sysfs import parse_guid
from fabricmon.parse.text import decimal, lines
from fabricmon.value import Value

TOOL = "ibqueryerrors"
_UNANSWERED = "PMA query failures"


class _Line(Value, frozen=True):
    """One line of counters; port None is the sum over the node."""

    guid: str
    port: int | None
    counters: tuple[CounterValue, ...]


def ibqueryerrors_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the ports that the tool printed; it leaves out those without errors."""
    found = tuple(filter(None, map(_counters_of, lines(stdout))))
    summary = sweep_summary(stdout)
    said = failures(TOOL, stdout, stderr, exit_status, normal_exits=(0, 1))
    errors = (*said, *_incomplete(stdout))
    if not found and summary is None and not errors:
        errors = (nothing_found(TOOL, "port and no summary"),)
    sums = tuple(
        CounterGroup(line.guid, line.counters) for line in found if line.port is None
    )
    return Report(
        TOOL,
        tuple(_ports(found)),
        errors,
        tells_state=False,
        all_ports=sums or None,
        summary=summary,
    )


def sweep_summary(text: str) -> SweepSummary | None:
    """Read ``## Summary: 4 nodes checked, 4 bad nodes found`` and the line after."""
    nodes: tuple[int | None, ...] = ()
    ports: tuple[int | None, ...] = ()
    for line in lines(text):
        if not line.startswith("##"):
            continue
        if " nodes checked" in line:
            nodes = _numbers(line)
        elif " ports checked" in line:
            ports = _numbers(line)
    if not nodes and not ports:
        return None
    return SweepSummary(*_two(nodes), *_two(ports))


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(value for word in line.split() if (value := decimal(word)) is not None)


def _two(values: tuple[int | None, ...]) -> tuple[int | None, int | None]:
    first, second, *_ = (*values, None, None)
    return first, second


def _counters_of(line: str) -> _Line | None:
    """Read ``GUID 0x... port 5: [LinkDownedCounter == 2] [...]``."""
    place, _, rest = line.strip().partition(": ")
    words = place.split()
    if len(words) != 4 or words[0] != "GUID" or words[2] != "port":  # noqa: PLR2004
        return None
    guid, port = parse_guid(words[1]), decimal(words[3])
    if guid is None or (port is None and words[3] != "ALL"):
        return None
    return _Line(guid, port, tuple(_counters(rest)))


def _counters(text: str) -> Iterator[CounterValue]:
    """Take the exact number; ``(2.779K)`` behind it is rounded, to base 1024."""
    for item in text.split("["):
        name, equals, rest = item.partition(" == ")
        value = decimal(rest.partition("]")[0].split(" ", 1)[0])
        if equals and name and value is not None:
            yield CounterValue(name, value)


def _ports(found: tuple[_Line, ...]) -> Iterator[PortReport]:
    for line in found:
        if line.port is not None:
            yield PortReport(
                device=line.guid,
                port=line.port,
                counters=line.counters,
                saturated=tuple(
                    counter.name
                    for counter in line.counters
                    if is_saturated(counter.name, counter.value)
                ),
            )


def _incomplete(text: str) -> Iterator[ToolFailure]:
    for line in lines(text):
        if line.startswith("##") and _UNANSWERED in line:
            message = f"{line.lstrip('#').strip()}: the sweep is incomplete"
            yield ToolFailure(TOOL, message)
