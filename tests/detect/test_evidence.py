"""How findings name what they measured."""

from __future__ import annotations

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.evidence import source_of
from fabricmon.summaries import SUMMARY_LENGTH, one_line, span
from tests.views import port, spec

PORT = port("mlx5_2", netdev="ib2", pci_address="0000:1a:00.0")


@pytest.mark.parametrize(
    ("directory", "source"),
    [
        (Directory.COUNTERS, "infiniband/mlx5_2/ports/1/counters"),
        (Directory.COUNTERS_EXT, "infiniband/mlx5_2/ports/1/counters_ext"),
        (Directory.HW_COUNTERS, "infiniband/mlx5_2/ports/1/hw_counters"),
        (Directory.DEVICE_HW_COUNTERS, "infiniband/mlx5_2/hw_counters"),
        (Directory.NETDEV, "net/ib2"),
        (Directory.NETDEV_STATISTICS, "net/ib2/statistics"),
        (Directory.ETHTOOL, "ethtool:ib2"),
        (Directory.PCI, "pci/0000:1a:00.0"),
    ],
)
def test_source_leads_to_the_file(directory: Directory, source: str) -> None:
    """Whoever reads a finding knows where to look."""
    assert source_of(PORT, spec("any", directory=directory)) == source


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "5 s"), (119.0, "119 s"), (720.0, "12 min"), (7500.0, "2.1 h")],
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    """Seconds below two minutes, hours above two."""
    assert span(seconds) == text


def test_long_summary_is_cut_to_what_sinks_accept() -> None:
    """A list of names has no bound, a summary has."""
    assert one_line("short") == "short"
    assert len(one_line("x" * 500)) == SUMMARY_LENGTH
    assert one_line("y" * SUMMARY_LENGTH) == "y" * SUMMARY_LENGTH
