"""The text of ``rdma statistic show link``: on one line, with -p, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.rdma_json import json_links
from fabricmon.parse.rdma_link import split_link
from fabricmon.parse.report import CounterValue, PortReport, Report
from fabricmon.parse.text import decimal, lines

TOOL = "rdma_statistic"


def rdma_statistic_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the counters of every link, under the names that the driver gives."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    counters: dict[str, int] | None = None
    for line in lines(stdout):
        link = split_link(line)
        if link is not None:
            counters = found.setdefault((link.device, link.port), {})
            counters.update(_pairs(link.words))
        elif counters is not None:
            counters.update(_pairs(line.split()))
    for item in json_links(stdout):
        values = {k: v for k, v in item.fields if _is_count(k, v)}
        found.setdefault((item.device, item.port), {}).update(values)
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not found and not errors:
        errors = (nothing_found(TOOL, "link"),)
    return Report(TOOL, tuple(_ports(found)), errors, tells_state=False)


def _is_count(name: str, value: object) -> bool:
    return isinstance(value, int) and value >= 0 and name != "ifindex"


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield names and values; a name goes on to the next number (``RNR sent 7``)."""
    name: list[str] = []
    for word in words:
        value = decimal(word)
        if value is None:
            name.append(word)
        elif name:
            yield " ".join(name), value
            name = []


def _ports(found: dict[tuple[str, int], dict[str, int]]) -> Iterator[PortReport]:
    for (device, port), counters in found.items():
        values = tuple(CounterValue(*pair) for pair in counters.items())
        yield PortReport(device=device, port=port, hw_counters=values)
