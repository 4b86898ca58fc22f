"""``docs/migration.md``: what the metrics of other exporters are called here.

Peers name the kernel's files; what each file is called here is looked up in the
catalogue, so that the page cannot name a metric that is not exported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricmon.catalogue import ROWS, CounterSpec, Directory, lookup
from fabricmon.sinks.families import FAMILIES
from fabricmon.sinks.node_exporter_names import ALIASES

_COUNTERS, _EXT = Directory.COUNTERS, Directory.COUNTERS_EXT
_HARDWARE, _DEVICE = Directory.HW_COUNTERS, Directory.DEVICE_HW_COUNTERS
_ETHTOOL = Directory.ETHTOOL

_OURS = frozenset(family.metric for family in FAMILIES) | {s.metric for s in ROWS}

_SAME = "the same"
_EQUAL = 1e-9  # of two factors that floating point makes differ


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a peer's table: its metric, ours, and how to get from one to other."""

    theirs: str
    ours: str
    conversion: str = _SAME


def _counter(
    theirs: str, directory: Directory, file: str, driver: str, factor: float = 1
) -> _Row:
    """Return the line of a file; ``factor`` is what the peer multiplies it with."""
    spec = lookup(directory, file, driver)
    if spec is None:
        raise LookupError(f"no row for {directory}/{file}")
    return _Row(theirs, _shown(spec), _conversion(spec, factor))


def _family(theirs: str, ours: str, conversion: str = _SAME) -> _Row:
    """Return the line of what is no counter of a file."""
    name = ours.partition("{")[0]
    if name not in _OURS:
        raise LookupError(f"{name} is not exported")
    return _Row(theirs, ours, conversion)


def _shown(spec: CounterSpec) -> str:
    label = f'{{{spec.label}="{spec.label_value}"}}' if spec.label else ""
    return f"{spec.metric}{label}"


def _conversion(spec: CounterSpec, factor: float) -> str:
    """Say how their number becomes ours."""
    ratio = spec.factor / factor
    if abs(ratio - 1) < _EQUAL:
        return _SAME
    return f"* {ratio:g}" if ratio > 1 else f"/ {round(1 / ratio):,}".replace(",", " ")


def _node_exporter() -> Iterator[_Row]:
    for (directory, file), alias in ALIASES.items():
        if alias.kind == "counter":
            yield _counter(alias.metric, directory, file, "mlx5_core", alias.factor)
    for name in ("state_id", "physical_state_id", "rate_bytes_per_second"):
        ours = f"fabricmon_infiniband_{name}"
        yield _family(f"node_infiniband_{name}", ours)
    yield _family(
        "node_infiniband_info",
        "fabricmon_infiniband_device_info",
        "the same labels and more",
    )


def _yuuki() -> Iterator[_Row]:
    for directory, file in ALIASES:
        if directory is not _EXT and file != "lifespan":
            yield _counter(f"rdma_{file}_total", directory, file, "mlx5_core")
    for file in ("req_transport_retries_exceeded", "req_rnr_retries_exceeded"):
        yield _counter(f"rdma_{file}_total", _HARDWARE, file, "mlx5_core")
    yield _family(
        "rdma_port_info",
        "fabricmon_infiniband_port_info",
        "`pci_addr` is `pci_address`, `pf_device` is `pf`; states are metrics",
    )
    for way, word in (("rx", "received"), ("tx", "transmitted")):
        place = f'{{direction="{way}",priority="3"}}'
        own = f'{{priority="3"}}'  # noqa: F541 - as the line above
        yield _family(
            f"rdma_roce_pfc_pause_frames_total{place}",
            f"fabricmon_pause_frames_{word}_total{own}",
        )
        yield _family(
            f"rdma_roce_pfc_pause_duration_total{place}",
            f"fabricmon_pause_{word}_seconds_total{own}",
            "/ 1 000 000",
        )
    yield _family(
        'rdma_roce_pfc_pause_transitions_total{direction="rx",priority="3"}',
        'fabricmon_pause_transitions_received_total{priority="3"}',
    )
    for theirs, file in _YUUKI_DRIVER:
        yield _counter(theirs, _ETHTOOL, file, "mlx5_core")
    yield _counter(
        "rdma_pcie_outbound_stalled_percent",
        _ETHTOOL,
        "outbound_pci_stalled_wr",
        "mlx5_core",
    )


_YUUKI_DRIVER = (
    ("rdma_netdev_prio_discards_total", "rx_prio3_discards"),
    ("rdma_netdev_prio_buf_discard_total", "rx_prio3_buf_discard"),
    ("rdma_netdev_prio_cong_discard_total", "rx_prio3_cong_discard"),
    ("rdma_netdev_prio_ecn_marked_total", "rx_prio3_marked"),
    ("rdma_netdev_rx_discards_phy_total", "rx_discards_phy"),
    ("rdma_netdev_pause_storm_events_total", "tx_pause_storm_warning_events"),
    ("rdma_pcie_outbound_stalled_seconds_total", "outbound_pci_stalled_wr_events"),
    ("rdma_pcie_outbound_buffer_overflow_total", "outbound_pci_buffer_overflow"),
    ("rdma_pcie_signal_integrity_total", "rx_pci_signal_integrity"),
    ("rdma_phy_rx_corrected_bits_total", "rx_corrected_bits_phy"),
    ("rdma_phy_rx_pcs_symbol_err_total", "rx_pcs_symbol_err_phy"),
    ("rdma_phy_rx_err_lane_total", "rx_err_lane_0_phy"),
    ("rdma_phy_rx_crc_errors_total", "rx_crc_errors_phy"),
    ("rdma_phy_link_down_events_total", "link_down_events_phy"),
)

_TREYDOCK = {
    "port_transmit_data_bytes_total": "port_xmit_data",
    "port_receive_data_bytes_total": "port_rcv_data",
    "port_transmit_packets_total": "port_xmit_packets",
    "port_receive_packets_total": "port_rcv_packets",
    "port_unicast_transmit_packets_total": "unicast_xmit_packets",
    "port_unicast_receive_packets_total": "unicast_rcv_packets",
    "port_multicast_transmit_packets_total": "multicast_xmit_packets",
    "port_multicast_receive_packets_total": "multicast_rcv_packets",
    "port_symbol_error_total": "symbol_error",
    "port_link_error_recovery_total": "link_error_recovery",
    "port_link_downed_total": "link_downed",
    "port_receive_errors_total": "port_rcv_errors",
    "port_receive_remote_physical_errors_total": "port_rcv_remote_physical_errors",
    "port_receive_switch_relay_errors_total": "port_rcv_switch_relay_errors",
    "port_transmit_discards_total": "port_xmit_discards",
    "port_transmit_constraint_errors_total": "port_xmit_constraint_errors",
    "port_receive_constraint_errors_total": "port_rcv_constraint_errors",
    "port_local_link_integrity_errors_total": "local_link_integrity_errors",
    "port_excessive_buffer_overrun_errors_total": "excessive_buffer_overrun_errors",
    "port_vl15_dropped_total": "VL15_dropped",
    "port_transmit_wait_total": "port_xmit_wait",
}
_WORDS = frozenset({"port_xmit_data", "port_rcv_data"})


def _treydock() -> Iterator[_Row]:
    for name, file in _TREYDOCK.items():
        factor = 4 if file in _WORDS else 1
        yield _counter(f"infiniband_hca_{name}", _COUNTERS, file, "mlx5_core", factor)
    yield _family(
        "infiniband_hca_rate_bytes_per_second",
        "fabricmon_infiniband_rate_bytes_per_second",
        "theirs by `guid`; join over `fabricmon_infiniband_port_info`",
    )


_OCI_COUNTERS = ("symbol_error", "port_rcv_errors", "link_downed",
                 "link_error_recovery", "port_xmit_wait")  # fmt: skip
_OCI_HARDWARE = ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
                 "rx_icrc_encapsulated", "np_ecn_marked_roce_packets",
                 "roce_adp_retrans", "np_cnp_sent", "rp_cnp_handled",
                 "roce_slow_restart")  # fmt: skip


def _oci() -> Iterator[_Row]:
    for file in _OCI_HARDWARE:
        yield _counter(f"rdma_{file}", _HARDWARE, file, "mlx5_core")
    for file in _OCI_COUNTERS:
        yield _counter(f"ib_{file}", _COUNTERS, file, "mlx5_core")
    for file in sorted(_WORDS):
        yield _counter(f"ib_{file}", _COUNTERS, file, "mlx5_core", 4)
    yield _family("ib_link_state", "fabricmon_infiniband_state_id")
    yield _family("ib_link_phys_state", "fabricmon_infiniband_physical_state_id")
    yield _family("rdma_device_status", "fabricmon_port_verdict", "0 is healthy")
    yield _family(
        "rdma_link_noflap", "fabricmon_port_flaps_total", "a count, not a switch"
    )


_MONEO = ("port_xmit_discards", "port_rcv_errors", "port_xmit_constraint_errors",
          "port_rcv_constraint_errors")  # fmt: skip


def _moneo() -> Iterator[_Row]:
    for file in ("port_xmit_data", "port_rcv_data"):
        spec = lookup(_COUNTERS, file, "mlx5_core")
        if spec is not None:
            ours = f"rate({spec.metric}[1m])"
            yield _Row(f"ib_{file}", ours, "theirs is bytes a second already")
    for file in _MONEO:
        yield _counter(f"ib_{file}", _COUNTERS, file, "mlx5_core")
    yield _family(
        "ib_port_physical_state",
        "fabricmon_infiniband_physical_state_id",
        "5 is up; theirs has numbers of its own",
    )
    yield _family("the label `job_id`", "fabricmon_job_info", "join by `on (instance)`")


def _datadog() -> Iterator[_Row]:
    for directory, file in ALIASES:
        if directory is _COUNTERS:
            factor = 4 if file in _WORDS else 1
            yield _counter(f"infiniband.{file}", directory, file, "mlx5_core", factor)
    for directory, file in ALIASES:
        if directory is _HARDWARE and file != "lifespan":
            yield _counter(f"infiniband.rdma.{file}", directory, file, "mlx5_core")


def _telegraf() -> Iterator[_Row]:
    for directory, file in ALIASES:
        if directory is _COUNTERS:
            yield _counter(f"infiniband_{file}", directory, file, "mlx5_core")
    for directory, file in ALIASES:
        if directory is _HARDWARE and file != "lifespan":
            yield _counter(f"infiniband_{file}", directory, file, "mlx5_core")


def _efa() -> Iterator[_Row]:
    for spec in ROWS:
        if "efa" in spec.drivers:
            theirs = f"node_amazonefa_{spec.file}"
            yield _counter(theirs, spec.directory, spec.file, "efa")


@dataclass(frozen=True, slots=True)
class _Peer:
    """A chapter of the page."""

    title: str
    text: str
    rows: tuple[_Row, ...]


def _peers() -> tuple[_Peer, ...]:
    return (
        _Peer(
            "node_exporter, `infiniband` collector",
            _NODE_EXPORTER,
            (*_node_exporter(),),
        ),
        _Peer("yuuki/rdma_exporter", _YUUKI, (*_yuuki(),)),
        _Peer("treydock/infiniband_exporter and its forks", _FABRIC, (*_treydock(),)),
        _Peer("OCI `rdma_counters_exporter.py`", _OCI, (*_oci(),)),
        _Peer("Azure Moneo", _MONEO_TEXT, (*_moneo(),)),
        _Peer("Datadog `infiniband`", _DATADOG, (*_datadog(),)),
        _Peer("Telegraf `inputs.infiniband`", _TELEGRAF, (*_telegraf(),)),
        _Peer("Amazon EFA exporter", _EFA, (*_efa(),)),
    )


def migration() -> str:
    """Return the page."""
    chapters = (
        f"## {peer.title}\n\n{peer.text}\n{_table(peer.rows)}" for peer in _peers()
    )
    return "\n".join((_INTRODUCTION, *chapters))


def _table(rows: Sequence[_Row]) -> str:
    lines = ["| Theirs | Here | Theirs to ours |", "|---|---|---|", *_lines(rows)]
    return "\n".join(lines) + "\n"


def _lines(rows: Iterable[_Row]) -> Iterator[str]:
    for row in dict.fromkeys(rows):
        theirs = row.theirs if "`" in row.theirs else f"`{row.theirs}`"
        yield f"| {theirs} | `{row.ours}` | {row.conversion} |"


_INTRODUCTION = """# Moving to fabricmon from another exporter

Made by `python -m fabricmon.documentation migration`; do not edit.

One page per exporter would say the same: here is what each of its metrics is called, and
how its number becomes ours. `* 4` turns words of four octets, as InfiniBand counts data,
into bytes; `/ 1 000 000` microseconds into seconds. All counters here are counters to
Prometheus too, and end in `_total`: take `rate()` or `increase()` of them, also where the
old exporter had a gauge.

Four things differ from all of them:

- A value that cannot be read has no sample. Panels that took 0 for it go empty; the
  reason is in `fabricmon_unreadable` and `fabricmon_read_errors_total`.
- Numbers carry `device` and `port`, and nothing else that names. Host, link layer,
  network device and PCI address come from `fabricmon_infiniband_port_info` by
  `* on (instance, device, port) group_left (netdev, link_layer)`.
- What only the other link layer has appears once it counted; see
  [metrics.md](metrics.md#which-series-are-exported). Write `or vector(0)` where an
  expression needs the 0.
- Files of other drivers than mlx5 have the name of what they mean, not of the file, so
  that one query serves all; those without a row are
  `fabricmon_infiniband_hw_unknown_total` with the file's name as `counter`.

## The old names for the time of the move

    metrics:
      node_exporter_names: true

exports `node_infiniband_*` beside ours: every name that node_exporter's collector has, with
its labels and exactly its values, also those that are spared under our names. A test
compares them with a real node_exporter, file by file. Dashboards and alerts go on while
they are moved. Turn node_exporter's own collector off (`--no-collector.infiniband`), or
all of it is there twice; and expect up to 56 series more on a port of mlx5, 25 on one
without hardware counters, and one a device. Off, it costs nothing.

Two values differ on purpose, and neither is one that a kernel writes: a state whose word
contradicts its number is not exported, and one file that fails costs its own sample and
not, as there, the whole collector. Virtual functions follow `devices.virtual_functions`,
which folds them unless told otherwise.
"""

_NODE_EXPORTER = """Replace `node_infiniband_` by `fabricmon_infiniband_`. `lifespan_seconds`
has no counterpart: it is a setting of the kernel, and there always 0.
"""

_YUUKI = """It names files and keeps their units. Priorities and directions are labels of one
metric there, of two here; its optional counters of netlink are not read.
"""

_FABRIC = """It asks the subnet for every port, by `guid`; fabricmon sees the ports of its own
node. Names of switches (`infiniband_switch_*`) have no counterpart: keep it for these,
scraped beside. Its `guid` is that of our `fabricmon_infiniband_port_info`.
"""

_OCI = """Gauges of port 1 alone, with `hostname` and `interface`; an unreadable file is 0
there. The companion scripts for state and flaps become findings: alert on
`fabricmon_finding_open`.
"""

_MONEO_TEXT = """Gauges with `ib_port` and `ib_sys_guid`; rates are worked out by the exporter
there, by Prometheus here.
"""

_DATADOG = """Names of files behind a prefix. Data is in bytes since version 2.0.0 of the
check, in words before: then `* 4`. Its `.count` twins are increases: `increase()` here.
"""

_TELEGRAF = """Fields of the measurement `infiniband`, here as its Prometheus output names
them. A file that cannot be read is 0 there.
"""

_EFA = """Counters without `_total`, by the names of files. The errors of making
resources are one metric here, `operation` tells which.
"""
