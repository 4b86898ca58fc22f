"""The text of ibcheckerrors, a script of old OFED releases; keys are LID and port."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.parse.counter_names import is_saturated
from fabricmon.parse.ibqueryerrors import sweep_summary
from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import CounterGroup, CounterValue, PortReport, Report
from fabricmon.parse.text import decimal, lines
from fabricmon.value import Value

TOOL = "ibcheckerrors"
ALL_PORTS = frozenset({"all", "255"})


class _Place(Value, frozen=True):
    """LID of the node and port; port None is the sum over the node."""

    lid: int
    port: int | None


def ibcheckerrors_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the ports that were above a threshold; ``0 bad nodes`` says nothing."""
    found: dict[_Place, list[CounterValue]] = {}
    for line in lines(stdout):
        for place, counter in _warning(line):
            found.setdefault(place, []).append(counter)
    summary = sweep_summary(stdout)
    errors = failures(TOOL, stdout, stderr, exit_status, normal_exits=(0, 1))
    if not found and summary is None and not errors:
        errors = (nothing_found(TOOL, "port and no summary"),)
    sums = tuple(
        CounterGroup(f"lid{place.lid}", tuple(counters))
        for place, counters in found.items()
        if place.port is None
    )
    return Report(
        TOOL,
        tuple(_ports(found)),
        errors,
        tells_state=False,
        all_ports=sums or None,
        summary=summary,
    )


def _warning(line: str) -> Iterator[tuple[_Place, CounterValue]]:
    """Read ``#warn: counter RcvErrors = 109 (threshold 10) lid 1193 port 4``."""
    words = line.split()
    if words[:2] != ["#warn:", "counter"] or len(words) < 10:  # noqa: PLR2004
        return
    name, value, lid = words[2], decimal(words[4]), decimal(words[-3])
    port = decimal(words[-1])
    if value is None or lid is None or (port is None and words[-1] not in ALL_PORTS):
        return
    place = _Place(lid, None if words[-1] in ALL_PORTS else port)
    yield place, CounterValue(name, value)


def _ports(found: dict[_Place, list[CounterValue]]) -> Iterator[PortReport]:
    for place, counters in found.items():
        if place.port is not None:
            yield PortReport(
                device=f"lid{place.lid}",
                port=place.port,
                counters=tuple(counters),
                saturated=tuple(
                    counter.name
                    for counter in counters
                    if is_saturated(counter.name, counter.value)
                ),
            )
