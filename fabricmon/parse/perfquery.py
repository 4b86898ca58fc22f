"""The text of perfquery: one or more blocks of ``Name:....value``.

Keys are ``lidN`` and the port, for the text does not name the device.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.parse.counter_names import is_saturated
from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import CounterGroup, CounterValue, PortReport, Report
from fabricmon.parse.text import decimal, lines
from fabricmon.value import Value

TOOL = "perfquery"
ALL_PORTS = 255  # the port number that asks a switch for the sum over its ports
# What the query selected, repeated in the answer.
_SELECTORS = ("PortSelect", "CounterSelect")


class _Place(Value, frozen=True):
    """Whose block it is: ``lid2719`` (or a directed route) and port."""

    device: str
    port: int


def perfquery_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the counters of every port, under the names that the tool gives."""
    found: dict[_Place, dict[str, int]] = {}
    counters: dict[str, int] | None = None
    for line in lines(stdout):
        place = _header(line)
        if place is not None:
            counters = found.setdefault(place, {})
        elif counters is not None:
            counters.update(_counter(line))
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not found and not errors:
        errors = (nothing_found(TOOL, "block of counters"),)
    sums = tuple(
        CounterGroup(place.device, _values(counters))
        for place, counters in found.items()
        if place.port == ALL_PORTS
    )
    return Report(
        TOOL, tuple(_ports(found)), errors, tells_state=False, all_ports=sums or None
    )


def _header(line: str) -> _Place | None:
    """Read ``# Port extended counters: Lid 2719 port 1 (CapMask: ...)``."""
    title, _, place = line.partition(" counters: ")
    if not title.startswith("# "):
        return None
    device, _, rest = place.partition(" port ")
    port = decimal(rest.split(" ", 1)[0].strip())
    if port is None:
        return None
    lid = decimal(device.removeprefix("Lid ").strip())
    return _Place(device.strip() if lid is None else f"lid{lid}", port)


def _counter(line: str) -> Iterator[tuple[str, int]]:
    name, _, padded = line.partition(":")
    value = decimal(padded.lstrip(".").strip())
    if value is not None and name and not name.startswith(_SELECTORS):
        yield name, value


def _values(counters: dict[str, int]) -> tuple[CounterValue, ...]:
    return tuple(CounterValue(*pair) for pair in counters.items())


def _ports(found: dict[_Place, dict[str, int]]) -> Iterator[PortReport]:
    for place, counters in found.items():
        if place.port == ALL_PORTS:
            continue
        full = tuple(
            name for name, value in counters.items() if is_saturated(name, value)
        )
        yield PortReport(
            device=place.device,
            port=place.port,
            counters=_values(counters),
            saturated=full,
        )
