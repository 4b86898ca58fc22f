"""The text of ``ethtool -S``; the first line may have been cut off by grep."""

from __future__ import annotations

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import CounterGroup, CounterValue, Report
from fabricmon.parse.text import decimal, lines

TOOL = "ethtool"
KEY = "eth"  # the text does not name its network device


def ethtool_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the driver statistics of one network device.

    A name may hold colons (``[0]: rx_packets``): the last one ends it.
    """
    counters: dict[str, int] = {}
    for line in lines(stdout):
        name, _, value = line.rpartition(":")
        count = decimal(value.strip())
        if name.strip() and count is not None:
            counters[name.strip()] = count
    errors = failures(TOOL, stdout, stderr, exit_status)
    if not counters and not errors:
        errors = (nothing_found(TOOL, "statistic"),)
    values = tuple(CounterValue(*pair) for pair in counters.items())
    groups = (CounterGroup(KEY, values),)
    return Report(TOOL, errors=errors, tells_state=False, groups=groups)
