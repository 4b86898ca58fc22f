"""The table of counters: unique, well named, right about widths, complete."""

import json
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from fabricmon.catalogue import (
    ROWS,
    CounterKind,
    CounterSpec,
    Directory,
    Export,
    FaultClass,
    Overflow,
    Signal,
    family,
    generic,
    lookup,
    takes_unknown,
)
from tests.manifest import RXE, SYSFS, entries

COUNTERS, HW = Directory.COUNTERS, Directory.HW_COUNTERS
DEVICE_HW, ETHTOOL = Directory.DEVICE_HW_COUNTERS, Directory.ETHTOOL

# The stems that node_exporter has after `node_infiniband_`, by file.
NODE_EXPORTER = {
    "counters": {
        "symbol_error": "symbol_error_total",
        "link_error_recovery": "link_error_recovery_total",
        "link_downed": "link_downed_total",
        "port_rcv_errors": "port_errors_received_total",
        "port_rcv_remote_physical_errors": "port_receive_remote_physical_errors_total",
        "port_rcv_switch_relay_errors": "port_receive_switch_relay_errors_total",
        "port_xmit_discards": "port_discards_transmitted_total",
        "port_rcv_discards": "port_discards_received_total",
        "port_xmit_constraint_errors": "port_constraint_errors_transmitted_total",
        "port_rcv_constraint_errors": "port_constraint_errors_received_total",
        "local_link_integrity_errors": "local_link_integrity_errors_total",
        "excessive_buffer_overrun_errors": "excessive_buffer_overrun_errors_total",
        "VL15_dropped": "vl15_dropped_total",
        "port_xmit_wait": "port_transmit_wait_total",
        "port_xmit_data": "port_data_transmitted_bytes_total",
        "port_rcv_data": "port_data_received_bytes_total",
        "port_xmit_packets": "port_packets_transmitted_total",
        "port_rcv_packets": "port_packets_received_total",
        "unicast_xmit_packets": "unicast_packets_transmitted_total",
        "unicast_rcv_packets": "unicast_packets_received_total",
        "multicast_xmit_packets": "multicast_packets_transmitted_total",
        "multicast_rcv_packets": "multicast_packets_received_total",
    },
    "counters_ext": {
        "port_xmit_data_64": "legacy_data_transmitted_bytes_total",
        "port_rcv_data_64": "legacy_data_received_bytes_total",
        "port_xmit_packets_64": "legacy_packets_transmitted_total",
        "port_rcv_packets_64": "legacy_packets_received_total",
        "port_unicast_xmit_packets": "legacy_unicast_packets_transmitted_total",
        "port_unicast_rcv_packets": "legacy_unicast_packets_received_total",
        "port_multicast_xmit_packets": "legacy_multicast_packets_transmitted_total",
        "port_multicast_rcv_packets": "legacy_multicast_packets_received_total",
    },
    "hw_counters": {
        "duplicate_request": "duplicate_requests_packets_total",
        "implied_nak_seq_err": "implied_nak_seq_errors_total",
        "local_ack_timeout_err": "local_ack_timeout_errors_total",
        "np_cnp_sent": "np_cnp_packets_sent_total",
        "np_ecn_marked_roce_packets": "np_ecn_marked_roce_packets_received_total",
        "out_of_buffer": "out_of_buffer_drops_total",
        "out_of_sequence": "out_of_sequence_packets_received_total",
        "packet_seq_err": "packet_sequence_errors_total",
        "req_cqe_error": "req_cqes_errors_total",
        "req_cqe_flush_error": "req_cqes_flush_errors_total",
        "req_remote_access_errors": "req_remote_access_errors_total",
        "req_remote_invalid_request": "req_remote_invalid_request_errors_total",
        "resp_cqe_error": "resp_cqes_errors_total",
        "resp_cqe_flush_error": "resp_cqes_flush_errors_total",
        "resp_local_length_error": "resp_local_length_errors_total",
        "resp_remote_access_errors": "resp_remote_access_errors_total",
        "rnr_nak_retry_err": "rnr_nak_retry_packets_received_total",
        "roce_adp_retrans": "roce_adp_retransmits_total",
        "roce_adp_retrans_to": "roce_adp_retransmits_timeout_total",
        "roce_slow_restart": "roce_slow_restart_used_total",
        "roce_slow_restart_cnps": "roce_slow_restart_cnps_total",
        "roce_slow_restart_trans": "roce_slow_restart_total",
        "rp_cnp_handled": "rp_cnp_packets_handled_total",
        "rp_cnp_ignored": "rp_cnp_ignored_packets_received_total",
        "rx_atomic_requests": "rx_atomic_requests_total",
        "rx_dct_connect": "rx_dct_connect_requests_total",
        "rx_icrc_encapsulated": "rx_icrc_encapsulated_errors_total",
        "rx_read_requests": "rx_read_requests_total",
        "rx_write_requests": "rx_write_requests_total",
    },
}

WIDTHS = {
    "symbol_error": 16, "link_error_recovery": 8, "link_downed": 8,
    "port_rcv_errors": 16, "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16, "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8, "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4, "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16, "port_xmit_wait": 32,
}  # fmt: skip


def row(directory: Directory, file: str, driver: str | None = None) -> CounterSpec:
    """Return a row that must be there."""
    spec = lookup(directory, file, driver)
    assert spec is not None, f"{directory}/{file} of {driver}"
    return spec


class TestTable:
    def test_a_driver_has_one_row_for_a_file(self) -> None:
        """No file of a driver has two meanings."""
        keys = [
            (spec.directory, spec.file, driver)
            for spec in ROWS
            for driver in spec.drivers or ("",)
        ]
        assert len(keys) == len(set(keys))

    def test_files_that_share_a_series_are_names_of_one_counter(self) -> None:
        """One driver has two files for one series only where the file was renamed."""
        series: dict[tuple[str, str, str], set[tuple[object, ...]]] = defaultdict(set)
        for spec in ROWS:
            for driver in spec.drivers or ("",):
                meaning = (spec.directory, spec.help, spec.signal, spec.factor)
                series[driver, spec.metric, spec.label_value].add(meaning)
        assert {key: found for key, found in series.items() if len(found) > 1} == {}

    def test_rows_of_a_metric_agree_on_type_and_label(self) -> None:
        """A metric is a counter or a gauge and has the same labels for all drivers."""
        shapes: dict[str, set[tuple[CounterKind, str]]] = defaultdict(set)
        for spec in ROWS:
            shapes[spec.metric].add((spec.kind, spec.label))
        assert {name: found for name, found in shapes.items() if len(found) > 1} == {}

    @pytest.mark.parametrize("spec", ROWS, ids=lambda spec: spec.metric)
    def test_name_is_one_that_prometheus_takes(self, spec: CounterSpec) -> None:
        """Names are lower case words; ``_total`` ends those of counters alone."""
        assert re.fullmatch(r"[a-z][a-z0-9_]*", spec.stem)
        assert "__" not in spec.metric
        assert spec.metric.endswith("_total") == (spec.kind is CounterKind.COUNTER)
        assert re.fullmatch(r"[a-z_]*", spec.label)
        assert bool(spec.label) == bool(spec.label_value)

    @pytest.mark.parametrize(
        "unit", ["us", "usec", "ms", "percent", "octets", "kb", "words", "bits"]
    )
    def test_names_have_base_units(self, unit: str) -> None:
        """Nothing is exported in microseconds, percent or words."""
        named = {spec.metric for spec in ROWS if unit in spec.metric.split("_")}
        assert named == set()

    def test_factors_and_units_of_names_agree(self) -> None:
        """What is converted says into what, and data words become octets."""
        units = {4: "_bytes", 1e-6: "_seconds", 1e-3: "_seconds", 0.01: "_ratio"}
        for spec in ROWS:
            if spec.factor != 1:
                assert spec.stem.endswith(units[spec.factor]), spec.file

    def test_overflow_fits_the_width(self) -> None:
        """64 bits never end, and what is narrower wraps or saturates."""
        for spec in ROWS:
            assert (spec.width == 64) == (spec.overflow is Overflow.NEVER), spec.file

    def test_help_is_one_short_line_without_full_stop(self) -> None:
        """Help texts are phrases."""
        for spec in ROWS:
            assert spec.help == spec.help.strip().rstrip(".")
            assert 0 < len(spec.help) <= 80, spec.file

    def test_every_signal_has_a_counter(self) -> None:
        """No detector asks for what no driver has."""
        assert set(Signal) - {spec.signal for spec in ROWS} == set()

    def test_every_family_of_drivers_is_known_by_its_own_name(self) -> None:
        """Rows name families, and each family is found."""
        for spec in ROWS:
            for driver in spec.drivers:
                assert family(driver) == driver

    def test_import_costs_little(self) -> None:
        """The table is made in 15 ms, its compilation and other modules not counted."""
        code = (
            "import dataclasses, enum, functools, importlib.util, itertools, sys\n"
            "import time, types\n"
            "spec = importlib.util.find_spec('fabricmon.catalogue')\n"
            "code = spec.loader.get_code('fabricmon.catalogue')\n"
            "times = []\n"
            "for _ in range(5):\n"
            "    module = types.ModuleType('fabricmon.catalogue')\n"
            "    sys.modules[module.__name__] = module\n"
            "    start = time.process_time()\n"
            "    exec(code, module.__dict__)\n"
            "    times.append(time.process_time() - start)\n"
            "print(min(times))"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert float(result.stdout) < 0.015


class TestNodeExporter:
    @pytest.mark.parametrize(
        ("directory", "file", "name"),
        [
            (directory, file, name)
            for directory, names in NODE_EXPORTER.items()
            for file, name in names.items()
        ],
    )
    def test_stem_is_kept(self, directory: str, file: str, name: str) -> None:
        """A query moves over from node_exporter by a change of its prefix."""
        spec = row(Directory(directory), file, "mlx5_core")
        assert spec.metric == f"fabricmon_infiniband_{name}"


class TestWidths:
    @pytest.mark.parametrize(("file", "width"), WIDTHS.items())
    def test_management_counters_stop_at_all_ones(self, file: str, width: int) -> None:
        """The IBTA's widths; a full one says so by its ceiling."""
        spec = row(COUNTERS, file)
        assert (spec.width, spec.overflow) == (width, Overflow.SATURATES)
        assert spec.ceiling == 2**width - 1

    @pytest.mark.parametrize(
        "file", ["port_rcv_data", "port_xmit_packets", "multicast_rcv_packets"]
    )
    def test_traffic_has_no_ceiling(self, file: str) -> None:
        """Data and packets are 64 bits wide."""
        assert row(COUNTERS, file).ceiling is None

    def test_queue_counters_of_mlx5_wrap(self) -> None:
        """They are 32 bits in the firmware and have no ceiling at which to stop."""
        spec = row(HW, "local_ack_timeout_err", "mlx5_core")
        assert (spec.width, spec.overflow) == (32, Overflow.WRAPS)
        assert spec.ceiling is None

    def test_congestion_counters_of_mlx5_are_wide(self) -> None:
        """Those are 64 bits in the firmware."""
        assert row(HW, "np_cnp_sent", "mlx5_core").width == 64


class TestLookup:
    @pytest.mark.parametrize("driver", ["efa", "bnxt_en", "mana"])
    def test_rx_bytes_are_octets(self, driver: str) -> None:
        """Only the management counters count words of four octets."""
        spec = row(HW, "rx_bytes", driver)
        assert (spec.factor, spec.signal) == (1, Signal.BYTES_RECEIVED)
        assert row(COUNTERS, "port_rcv_data", driver).factor == 4

    def test_same_file_differs_by_driver(self) -> None:
        """The same name is 32 bits wide in one driver's firmware, 64 in another's."""
        assert row(HW, "duplicate_request", "mlx5_core").width == 32
        assert row(HW, "duplicate_request", "rdma_rxe").width == 64

    def test_link_downed_is_among_the_hardware_counters_of_rxe(self) -> None:
        """Soft-RoCE has no other folder."""
        spec = row(HW, "link_downed", "rxe")
        assert spec.signal is Signal.LINK_DOWN
        assert spec.metric == row(COUNTERS, "link_downed").metric

    @pytest.mark.parametrize(
        ("driver", "old", "new"),
        [
            ("irdma", "tcpRetransSegs", "RetransSegs"),
            ("irdma", "iwInRdmaReads", "InRdmaReads"),
            ("bnxt_en", "missin_resp", "missing_resp"),
            ("bnxt_en", "rx_roce_drops", "rx_roce_discards"),
            ("bnxt_en", "oos_drop_count", "res_oos_drop_count"),
        ],
    )
    def test_renamed_files_keep_their_series(
        self, driver: str, old: str, new: str
    ) -> None:
        """A query survives an upgrade of the kernel; evidence names the real file."""
        before, after = row(HW, old, driver), row(HW, new, driver)
        assert before.metric == after.metric
        assert (before.file, after.file) == (old, new)

    @pytest.mark.parametrize(
        ("driver", "file", "signal"),
        [
            ("ice", "RNR received", Signal.RECEIVER_NOT_READY),
            ("irdma", "Nak Sequence Error", Signal.SEQUENCE_ERROR),
            ("hfi1", "SwLinkDown,32", Signal.LINK_DOWN),
            ("hfi1", "RcTimeOut", Signal.ACK_TIMEOUT),
        ],
    )
    def test_names_with_blanks_and_commas_are_known(
        self, driver: str, file: str, signal: Signal
    ) -> None:
        """File names are taken as they are, metric names are clean."""
        assert row(HW, file, driver).signal is signal

    def test_unknown_driver_gets_the_first_row_of_that_name(self) -> None:
        """Where the driver is not told, the file's name must do."""
        assert row(HW, "requester_timeout").signal is Signal.ACK_TIMEOUT
        assert row(HW, "requester_timeout", "odd_vendor_module").drivers == ("mana",)

    def test_known_driver_does_not_get_rows_of_another(self) -> None:
        """EFA has no queue counters of mlx5."""
        assert lookup(HW, "packet_seq_err", "efa") is None

    @pytest.mark.parametrize("directory", [HW, DEVICE_HW])
    @pytest.mark.parametrize("file", ["lifespan", "clear_counters"])
    def test_settings_are_no_counters(self, directory: Directory, file: str) -> None:
        """The age of the set and the control file count nothing."""
        spec = row(directory, file, "mlx5_core")
        assert spec.kind is CounterKind.KNOB
        assert not spec.metric.endswith("_total")

    @pytest.mark.parametrize(
        ("driver", "file"),
        [
            ("bnxt_en", "active_qps"),
            ("bnxt_en", "watermark_qps"),
            ("mana", "current_rate"),
            ("mana", "num_qps_congested"),
        ],
    )
    def test_momentary_values_are_gauges(self, driver: str, file: str) -> None:
        """Not all that lies among hardware counters counts."""
        spec = row(HW, file, driver)
        assert spec.kind is CounterKind.GAUGE
        assert not spec.metric.endswith("_total")

    @pytest.mark.parametrize(
        ("driver", "file"),
        [
            ("mlx5_core", "req_transport_retries_exceeded"),
            ("mlx4_core", "sq_num_tree"),
            ("bnxt_en", "max_retry_exceeded"),
            ("mana", "requester_retries_exceeded"),
            ("rdma_rxe", "retry_exceeded_err"),
            ("ionic", "req_tx_retry_excd_err"),
        ],
    )
    def test_exhausted_retries_are_fatal(self, driver: str, file: str) -> None:
        """A queue pair died: every driver's word for it means so."""
        spec = row(HW, file, driver)
        assert spec.fatal
        assert spec.signal is Signal.RETRIES_EXCEEDED

    @pytest.mark.parametrize(
        ("driver", "file"),
        [
            ("mlx5_core", "req_rnr_retries_exceeded"),
            ("mlx4_core", "sq_num_rree"),
            ("mana", "requester_rnr_nak_retries_exceeded"),
            ("rdma_rxe", "retry_rnr_exceeded_err"),
        ],
    )
    def test_peers_that_were_never_ready_are_told_apart(
        self, driver: str, file: str
    ) -> None:
        """A queue pair died, too, but of its peer and of nothing on the way."""
        spec = row(HW, file, driver)
        assert spec.fatal
        assert spec.signal is Signal.NOT_READY_EXCEEDED

    def test_adaptive_timers_are_no_acknowledge_timers(self) -> None:
        """They run out within microseconds: a share of the packets tells, no count."""
        spec = row(HW, "roce_adp_retrans_to", "mlx5_core")
        assert spec.signal is Signal.RETRANSMIT

    @pytest.mark.parametrize("file", ["req_cqe_flush_error", "resp_cqe_flush_error"])
    def test_flushes_are_no_faults(self, file: str) -> None:
        """They rise whenever a job ends."""
        spec = row(HW, file, "mlx5_core")
        assert spec.fault_class is FaultClass.STATE
        assert not spec.fatal

    def test_counters_of_a_device_have_names_of_their_own(self) -> None:
        """A sum over ports must not count the device as one more."""
        of_port = row(HW, "sq_num_to", "mlx4_core")
        of_device = row(DEVICE_HW, "sq_num_to", "mlx4_core")
        assert of_device.stem == f"device_{of_port.stem}"
        assert of_device.signal is of_port.signal


class TestDriverStatistics:
    def test_eight_priorities_are_one_metric(self) -> None:
        """A priority is a label."""
        specs = [row(ETHTOOL, f"rx_prio{n}_pause", "mlx5_core") for n in range(8)]
        assert len({spec.metric for spec in specs}) == 1
        assert [(spec.label, spec.label_value) for spec in specs] == [
            ("priority", str(n)) for n in range(8)
        ]

    def test_pause_durations_become_seconds(self) -> None:
        """The driver counts microseconds."""
        spec = row(ETHTOOL, "tx_prio3_pause_duration", "mlx5_core")
        assert spec.factor == 1e-6
        assert spec.metric == "fabricmon_pause_transmitted_seconds_total"

    def test_lanes_are_one_metric(self) -> None:
        """The lane that is bad stands out among its siblings."""
        spec = row(ETHTOOL, "rx_err_lane_3_phy", "mlx5_core")
        assert (spec.label, spec.label_value) == ("lane", "3")
        assert spec.signal is Signal.LANE_ERROR

    def test_repaired_bits_are_no_link_errors(self) -> None:
        """FEC at work is normal: only what it could not repair is an error."""
        repaired = row(ETHTOOL, "rx_corrected_bits_phy", "mlx5_core")
        damaged = row(ETHTOOL, "rx_pcs_symbol_err_phy", "mlx5_core")
        assert repaired.fault_class is FaultClass.FEC
        assert damaged.fault_class is FaultClass.LINK
        assert damaged.signal is Signal.SYMBOL_ERROR

    @pytest.mark.parametrize(
        ("driver", "file"),
        [
            ("mlx5_core", "rx_prio3_pause"),
            ("bnxt_en", "rx_pfc_ena_frames_pri3"),
            ("ice", "rx_priority_3_xoff.nic"),
        ],
    )
    def test_pause_means_the_same_for_every_driver(
        self, driver: str, file: str
    ) -> None:
        """Priority 3 of any NIC is in the same metric."""
        spec = row(ETHTOOL, file, driver)
        assert spec.metric == "fabricmon_pause_frames_received_total"
        assert spec.label_value == "3"
        assert spec.signal is Signal.PAUSE_RECEIVED

    def test_a_statistic_of_a_priority_is_exported_once_it_counted(self) -> None:
        """Eight idle priorities would be eight times too many series."""
        labelled = [s for s in ROWS if s.directory is ETHTOOL and s.label]
        once = {Export.COUNTED, Export.SPARE}
        assert {s.export for s in labelled} == once | {Export.NEVER}

    def test_rdma_counters_are_exported_also_at_zero(self) -> None:
        """Absent is not zero, but for what the other link layer alone has.

        Spared are a few that are zero for ever on nearly every node, and that no rule
        compares: a port has room for 80 series.
        """
        spared = {Export.COUNTED, Export.SPARE, Export.NEVER}
        assert {s.file for s in ROWS if s.directory.is_rdma and s.export in spared} == {
            "roce_slow_restart",
            "roce_slow_restart_cnps",
            "roce_slow_restart_trans",
            "rx_atomic_requests",
        }


class TestAer:
    def test_totals_of_the_three_tables(self) -> None:
        """Repaired errors are apart from the two kinds that were not."""
        correctable = row(Directory.PCI, "aer_dev_correctable")
        nonfatal = row(Directory.PCI, "aer_dev_nonfatal")
        fatal = row(Directory.PCI, "aer_dev_fatal")
        assert correctable.signal is Signal.AER_CORRECTABLE
        assert (
            nonfatal.metric
            == fatal.metric
            == ("fabricmon_pci_aer_uncorrectable_errors_total")
        )
        assert (nonfatal.label_value, fatal.label_value) == ("nonfatal", "fatal")
        assert fatal.fatal


class TestGeneric:
    def test_same_file_gives_the_same_spec(self) -> None:
        """Windows go by identity."""
        assert generic(HW, "new counter") is generic(HW, "new counter")

    def test_file_name_is_a_label_as_it_stands(self) -> None:
        """No name is invented for what nobody knows."""
        spec = generic(HW, "Odd Name,32")
        assert spec.metric == "fabricmon_infiniband_hw_unknown_total"
        assert (spec.label, spec.label_value) == ("counter", "Odd Name,32")
        assert spec.generic

    def test_momentary_values_are_told_by_their_names(self) -> None:
        """A driver of tomorrow may have gauges too."""
        spec = generic(HW, "active_rc_qps")
        assert spec.kind is CounterKind.GAUGE
        assert spec.metric == "fabricmon_infiniband_hw_unknown_value"

    @pytest.mark.parametrize(
        ("directory", "driver", "taken"),
        [
            (HW, "ionic", True),
            (HW, None, True),
            (COUNTERS, "mlx5_core", True),
            (HW, "hfi1", False),
            (DEVICE_HW, "hfi1", False),
            (ETHTOOL, "mlx5_core", False),
            (Directory.NETDEV_STATISTICS, None, False),
        ],
    )
    def test_where_unknown_files_are_taken(
        self,
        directory: Directory,
        driver: str | None,
        taken: bool,  # noqa: FBT001
    ) -> None:
        """Not hfi1's hundreds, nor the hundreds of network statistics."""
        assert takes_unknown(directory, driver) is taken


class TestRecordedTrees:
    @pytest.mark.parametrize(
        "manifest",
        [*sorted(SYSFS.glob("*.manifest")), *sorted(RXE.glob("*.manifest"))],
        ids=lambda path: path.stem,
    )
    def test_every_counter_of_a_recorded_tree_is_known(self, manifest: object) -> None:
        """What devices in the field have is in the table."""
        unknown = set()
        for entry in entries(manifest):  # type: ignore[arg-type]
            folder, _, file = entry.path.rpartition("/")
            name = folder.rpartition("/")[2]
            if name in {"counters", "counters_ext", "hw_counters"} and file:
                known = lookup(Directory(name), file, None)
                if known is None and not entry.is_folder:
                    unknown.add(file)
        assert unknown == set()

    def test_every_statistic_that_an_expected_verdict_rests_on_is_known(self) -> None:
        """The recorded cases of driver statistics are about rows of the table."""
        case = SYSFS.parent / "fabric" / "ethtool-lane-errors.expect.json"
        text = json.dumps(json.loads(case.read_text()))
        lanes = set(re.findall(r"rx_err_lane_\d_phy", text))
        assert lanes
        assert all(lookup(ETHTOOL, lane, "mlx5_core") for lane in lanes)
