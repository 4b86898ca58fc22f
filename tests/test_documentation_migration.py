"""The page that maps other exporters' metrics to ours: nothing on it is made up."""

import re
from pathlib import Path

import pytest

from fabricmon.catalogue import ROWS, Directory
from fabricmon.documentation_migration import _counter, _family, migration
from fabricmon.sinks.families import FAMILIES
from fabricmon.sinks.node_exporter_names import ALIASES

DOCS = Path(__file__).parent.parent / "docs"
OURS = {spec.metric for spec in ROWS} | {family.metric for family in FAMILIES}
# Made by the exposition itself, not by a table.
OTHERS = {
    "fabricmon_infiniband_hw_unknown_total",
    "fabricmon_infiniband_",
}
NAME = re.compile(r"fabricmon_[a-z0-9_]+")


def rows() -> dict[str, tuple[str, str]]:
    """Return what stands beside each metric of a peer."""
    cells = (line.strip("| ").split(" | ") for line in migration().splitlines()
             if line.startswith("| `"))  # fmt: skip
    return {theirs.strip("`"): (ours.strip("`"), how) for theirs, ours, how in cells}


def test_every_name_of_ours_exists() -> None:
    """On the whole page, also in its prose."""
    named = set(NAME.findall(migration()))
    assert len(named) > 80
    assert named - OURS - OTHERS == set()


@pytest.mark.parametrize("page", ["migration.md", "slurm.md", "support.md"])
def test_other_pages_name_what_exists(page: str) -> None:
    """As they are committed."""
    named = set(NAME.findall((DOCS / page).read_text()))
    assert {name for name in named if name.endswith("_total")} - OURS - OTHERS == set()


def test_every_name_of_node_exporter_is_there() -> None:
    """Whoever comes from it finds each of his queries."""
    wanted = {alias.metric for alias in ALIASES.values() if alias.kind == "counter"}
    assert wanted <= set(rows())


@pytest.mark.parametrize(
    ("theirs", "ours", "how"),
    [
        ("rdma_port_rcv_data_total",
         "fabricmon_infiniband_port_data_received_bytes_total", "* 4"),
        ("node_infiniband_port_data_received_bytes_total",
         "fabricmon_infiniband_port_data_received_bytes_total", "the same"),
        ("infiniband_port_xmit_data",
         "fabricmon_infiniband_port_data_transmitted_bytes_total", "* 4"),
        ("infiniband.port_xmit_data",
         "fabricmon_infiniband_port_data_transmitted_bytes_total", "the same"),
        ('rdma_roce_pfc_pause_duration_total{direction="rx",priority="3"}',
         'fabricmon_pause_received_seconds_total{priority="3"}', "/ 1 000 000"),
        ("rdma_pcie_outbound_stalled_percent",
         'fabricmon_pci_outbound_stalled_ratio{operation="write"}', "/ 100"),
        ("node_amazonefa_retrans_pkts",
         "fabricmon_infiniband_retransmitted_packets_total", "the same"),
        ("ib_port_rcv_errors",
         "fabricmon_infiniband_port_errors_received_total", "the same"),
        ("infiniband_hca_port_receive_data_bytes_total",
         "fabricmon_infiniband_port_data_received_bytes_total", "the same"),
    ],
)  # fmt: skip
def test_conversions(theirs: str, ours: str, how: str) -> None:
    """Words into bytes, microseconds into seconds, and nothing twice."""
    assert rows()[theirs] == (ours, how)


def test_a_name_that_is_not_exported_is_refused() -> None:
    """The page cannot be made with one."""
    with pytest.raises(LookupError):
        _family("x", "fabricmon_no_such_thing")
    with pytest.raises(LookupError):
        _counter("x", Directory.ETHTOOL, "no_such_file", "mlx5_core")
