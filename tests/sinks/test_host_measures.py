"""Metrics of the host's side."""

from dataclasses import replace

from fabricmon.model import HostSide, KernelTally
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

EVENTS = 'fabricmon_kernel_events_total{kind="link_down"}'
LOST = "fabricmon_kernel_log_lost_lines_total"


def test_events_by_kind() -> None:
    """A counter for each kind that was seen."""
    side = HostSide(tallies=(KernelTally("link_down", 3),), kernel_lost=7)
    found = scrape(exposition(replace(nodes.node(), host_side=side)))
    assert (found[EVENTS], found[LOST]) == ("3", "7")


def test_nothing_is_absent() -> None:
    """A quiet log costs no series."""
    found = scrape(exposition(nodes.node()))
    assert not any("kernel" in series for series in found)
