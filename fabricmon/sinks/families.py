"""Every metric that is not a counter of the catalogue: one row each, in `FAMILIES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, TypeVar

from fabricmon.model import Snapshot
from fabricmon.sinks import (
    burst_measures,
    collective_measures,
    delivery_measures,
    fact_measures,
    finding_measures,
    host_measures,
    job_measures,
    measures,
    node_measures,
    port_measures,
    priority_measures,
    sight_measures,
)
from fabricmon.sinks.measures import Sample, Scene
from fabricmon.sinks.port_measures import Hardware

_Subject = TypeVar("_Subject", Scene, Hardware)


class MetricKind(StrEnum):
    """Type of a metric, as Prometheus names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"  # what has the label ``quantile``


@dataclass(frozen=True, slots=True)
class Family(Generic[_Subject]):
    """One metric: its name after the prefix, without ``_total``, its samples."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[_Subject], Iterable[Sample]]
    kind: MetricKind = MetricKind.GAUGE
    prefix: str = "fabricmon"
    of: Callable[[Snapshot], object] | None = None
    """The one part of a snapshot that the samples come from, if there is one: while it
    is the same object, so are they."""

    @property
    def metric(self) -> str:
        """Full name of the metric."""
        suffix = "_total" if self.kind is MetricKind.COUNTER else ""
        return f"{self.prefix}_{self.name}{suffix}"


_COUNTER = MetricKind.COUNTER
_SOURCE = ("source",)
_FINDING = ("kind", "severity", "role", "action", "device", "port")
_SINK = ("sink",)
_END = ("device", "end")
_COLLECTIVE = ("comm", "rank", "collective", "size")
PORT = ("device", "port")
_DIRECTION = (*PORT, "direction")
_BURSTS = attrgetter("bursts")
_DELIVERIES = attrgetter("deliveries")
_FACTS = attrgetter("job_facts")
_HASH = attrgetter("config_hash")
_HOST = attrgetter("host_side")
_INCIDENTS = attrgetter("incidents")
_JOB = attrgetter("job")
_TALLIES = attrgetter("log_tallies")

# fmt: off
NODE_FAMILIES: tuple[Family[Scene], ...] = (
    Family("build_info", "Version of fabricmon and of its Python, always 1",
           ("version", "python"), measures.build, of=_HASH),
    Family("config_info", "Hash of the configuration in force, always 1",
           ("hash",), measures.config, of=_HASH),
    Family("snapshot_age_seconds", "Age of all that is exported here", (),
           measures.age),
    Family("series_withheld",
           "Series that found no room (metrics.counted_series); absent is none", (),
           measures.withheld),
    Family("firmware_reads", "Reads that reached the firmware of a device", (),
           measures.one(lambda s: s.firmware_reads), _COUNTER),
    Family("node_info", "Where the node stands, always 1; absent where nobody says",
           ("rack", "nvlink_domain", "topology_cluster"), node_measures.place,
           of=attrgetter("topology")),
    Family("node_address_info",
           "An address by which other nodes may name this one, always 1",
           ("address",), node_measures.addresses),
    Family("clock_error_seconds",
           "How far the wall clock may be off; absent where nobody knows",
           (), node_measures.clock_error, of=_HOST),
    Family("clock_synchronized",
           "1 if something keeps the wall clock; absent where it cannot be asked",
           (), node_measures.clock_synchronized, of=_HOST),
    Family("node_verdict", "0 healthy, 1 unknown, 2 degraded, 3 down", (),
           measures.one(lambda s: s.verdict.value)),
    Family("finding_open", "Open findings; those of shadow kinds are elsewhere",
           _FINDING, measures.findings(shadow=False), of=_INCIDENTS),
    Family("finding_shadow", "Open findings of kinds in shadow: never to be alerted on",
           _FINDING, measures.findings(shadow=True), of=_INCIDENTS),
    Family("finding_actionable", "Open findings that advise to act; absent is none",
           ("action",), measures.actionable, of=_INCIDENTS),
    Family("finding_onset_timestamp_seconds",
           "When the oldest open finding of a kind and place began",
           ("kind", *PORT), finding_measures.onsets, of=_INCIDENTS),
    Family("rail_finding_open", "Open findings about a rail of a job as a whole",
           ("kind", "severity", "role", "rail", "job"), finding_measures.rails,
           of=_INCIDENTS),
    Family("detector_blind", "A kind of finding that cannot be judged on this node",
           ("kind", "reason"), measures.blind, of=attrgetter("blind")),
    Family("source_success", "1 if the last poll of each unit succeeded",
           _SOURCE, measures.success),
    Family("lane_duration_seconds",
           "Duration of the longest last poll of a lane: reads that wait for each other",
           ("lane",), measures.duration),
    Family("source_age_seconds", "Time since the last success of the oldest unit",
           _SOURCE, measures.success_age),
    Family("source_in_flight_seconds", "Age of the longest poll of those going on",
           _SOURCE, measures.in_flight),
    Family("read_errors", "Reads that failed", ("source", "errno"),
           measures.errors, _COUNTER),
    Family("unreadable", "Devices, folders and tools that cannot be read at all",
           (*PORT, "errno"), measures.unreadable, of=attrgetter("failures")),
    Family("functions_out_of_sight",
           "RoCE ports whose network device lies in another network namespace: no "
           "driver statistics, no link events; absent is none",
           ("function",), sight_measures.functions_out_of_sight),
    Family("device_quarantined", "A device's files that are read rarely: they all fail",
           ("device", "source", "reason"), measures.quarantined),
    Family("maintenance", "Places that are being worked on; without a device, the node",
           PORT, measures.maintenance, of=attrgetter("maintenance")),
    Family("state_saved", "1 if what must survive a restart is saved",
           (), measures.one(lambda s: int(s.unsaved is None and not s.awaits_save))),
    Family("history_kept", "1 while the last minutes are kept on disk; absent: off",
           (), measures.history),
    Family("sink_connected", "1 while the server of a sink answers; absent: it is off",
           _SINK, delivery_measures.each(lambda d: int(d.connected)), of=_DELIVERIES),
    Family("sink_connects", "Times that a sink reached its server",
           _SINK, delivery_measures.each(lambda d: d.connects), _COUNTER,
           of=_DELIVERIES),
    Family("sink_delivered", "Messages that the server of a sink acknowledged",
           _SINK, delivery_measures.each(lambda d: d.delivered), _COUNTER,
           of=_DELIVERIES),
    Family("sink_waiting_findings", "Findings that are kept until the server is back",
           _SINK, delivery_measures.each(lambda d: d.waiting), of=_DELIVERIES),
    Family("sink_dropped_findings",
           "Findings that were dropped, the oldest first, because too many waited",
           _SINK, delivery_measures.each(lambda d: d.dropped), _COUNTER,
           of=_DELIVERIES),
    Family("sink_failures", "Connections and messages of a sink that failed",
           _SINK, delivery_measures.each(lambda d: d.failures), _COUNTER,
           of=_DELIVERIES),
    Family("sink_success_age_seconds",
           "Time since the server of a sink last acknowledged something",
           _SINK, delivery_measures.success_age),
    Family("infiniband_class_readable", "1 if the folder of RDMA devices can be read",
           (), measures.one(lambda s: int(s.class_error is None))),
    Family("port_busy_ratio",
           "Share of the samples of the last burst in which the port was busy",
           _DIRECTION, burst_measures.each_burst(lambda burst: burst.busy), of=_BURSTS),
    Family("port_burst_rate_bytes_per_second",
           "Rate of the port within the last burst",
           (*_DIRECTION, "quantile"),
           burst_measures.each_burst(lambda burst: burst.p99, burst_measures.P99),
           MetricKind.SUMMARY, of=_BURSTS),
    Family("port_burst_mean_bytes_per_second",
           "Mean rate of the port over the last burst",
           _DIRECTION, burst_measures.each_burst(lambda burst: burst.mean), of=_BURSTS),
    Family("port_burst_idle_gaps", "Pauses of the port within the last burst",
           _DIRECTION, burst_measures.each_burst(lambda burst: burst.idle_gaps),
           of=_BURSTS),
    Family("collective_bus_bandwidth_bytes_per_second",
           "Bus bandwidth of a local rank, median of the newest operations",
           _COLLECTIVE, collective_measures.collectives(lambda r: r.bus_bandwidth),
           of=_JOB),
    Family("collective_execution_seconds",
           "Time that a local rank was in a collective: shortest on the rank that is "
           "late, because the others wait for it",
           _COLLECTIVE, collective_measures.collectives(lambda r: r.seconds), of=_JOB),
    Family("transfer_bus_bandwidth_bytes_per_second",
           "Bandwidth between a local rank and one peer, median of the newest transfers",
           (*_COLLECTIVE, "peer"),
           collective_measures.transfers(lambda r: r.bus_bandwidth), of=_JOB),
    Family("transfer_execution_seconds",
           "Time that a local rank took for a transfer to or from one peer",
           (*_COLLECTIVE, "peer"), collective_measures.transfers(lambda r: r.seconds),
           of=_JOB),
    Family("job_info", "A job on this node and the rails it uses, always 1",
           ("job", "rails"), job_measures.job_info, of=_JOB),
    Family("port_job_info",
           "A job that uses a port, always 1; one of unknown rails has all compute ports",
           (*PORT, "job"), job_measures.port_jobs),
    Family("job_nodes", "Nodes of a job, as its log says", ("job",),
           job_measures.job_nodes, of=_JOB),
    Family("job_transport_info",
           "What carries the data of a job between nodes as its log says, always 1",
           ("job", "transport"), job_measures.transports, of=_JOB),
    Family("log_events", "Events in the logs of collective libraries",
           ("kind", "severity"), job_measures.events, _COUNTER, of=_TALLIES),
    Family("log_last_event_timestamp_seconds", "When the last event of a kind came in",
           ("kind",), job_measures.last_event, of=_TALLIES),
    Family("job_outage_budget_seconds",
           "Outage of the fabric that a job survives by its own retry settings",
           ("job",), fact_measures.outage_budgets, of=_FACTS),
    Family("peer_votes", "HCAs or processes here that failed towards a peer lately",
           ("peer",), fact_measures.peer_votes, of=_FACTS),
    Family("log_files", "Log files that are followed", (), job_measures.files, of=_JOB),
    Family("log_files_left_out", "Log files beyond logs.max_files; absent is none", (),
           job_measures.trouble(lambda counts: counts.left_out), of=_JOB),
    Family("log_read_bytes", "Bytes of logs that were read", (),
           job_measures.count(lambda counts: counts.bytes), _COUNTER, of=_JOB),
    Family("log_lines", "Lines of logs that were read", (),
           job_measures.count(lambda counts: counts.lines), _COUNTER, of=_JOB),
    Family("log_unread_bytes", "Bytes of logs that are there and were not read yet",
           (), job_measures.unread, of=_JOB),
    Family("log_lag_seconds",
           "Time since the log that is most behind was last read to its end", (),
           job_measures.lag),
    Family("log_skipped_bytes",
           "Bytes of logs passed over because there were too many; absent is none", (),
           job_measures.trouble(lambda counts: counts.skipped_bytes), _COUNTER,
           of=_JOB),
    Family("log_skipped_lines", "Lines of logs too long to be read; absent is none", (),
           job_measures.trouble(lambda counts: counts.skipped_lines), _COUNTER,
           of=_JOB),
    Family("log_rotations", "Times that a log was cut or another took its name", (),
           job_measures.trouble(lambda counts: counts.rotations), _COUNTER, of=_JOB),
    Family("log_lost_files", "Logs that were gone before they were read to their end",
           (), job_measures.trouble(lambda counts: counts.lost_files), _COUNTER,
           of=_JOB),
    Family("log_foreign_events",
           "Log events of other hosts, passed over here; absent is none", (),
           job_measures.trouble(lambda counts: counts.foreign_events), _COUNTER,
           of=_JOB),
    Family("log_dropped_events", "Log events that came faster than they were judged",
           (), job_measures.trouble(lambda counts: counts.dropped_events), _COUNTER,
           of=_JOB),
    Family("kernel_events",
           "Lines of the kernel's log about RDMA devices; absent is none", ("kind",),
           host_measures.kernel_events, _COUNTER, of=_HOST),
    Family("kernel_log_lost_lines",
           "Lines of the kernel's log overwritten before they were read", (),
           host_measures.lost_lines, _COUNTER, of=_HOST),
)

PORT_FAMILIES: tuple[Family[Hardware], ...] = (
    Family("infiniband_virtual_functions", "Ports of virtual functions by state",
           ("state",), port_measures.virtual_functions),
    Family("infiniband_device_info", "Identity of a device, always 1",
           ("device", "hca_type", "board_id", "firmware_version", "node_guid",
            "sys_image_guid", "pci_address", "driver", "numa_node", "pf_address"),
           port_measures.device_info),
    Family("pci_current_link_transfers_per_second", "Speed of the PCIe link",
           _END,
           port_measures.pci(lambda link: port_measures.transfers(link.speed_gts))),
    Family("pci_max_link_transfers_per_second", "Highest speed that this end can do",
           _END,
           port_measures.pci(lambda link: port_measures.transfers(link.max_speed_gts))),
    Family("pci_current_link_width", "Lanes of the PCIe link in use",
           _END, port_measures.pci(lambda link: link.width)),
    Family("pci_max_link_width", "Most lanes that this end can do",
           _END, port_measures.pci(lambda link: link.max_width)),

    Family("infiniband_port_info", "Identity of a port, always 1",
           (*PORT, "link_layer", "netdev", "pci_address", "driver", "is_vf", "pf",
            "guid", "node_guid", "rail", "role", "leaf"), port_measures.port_info),
    Family("infiniband_state_id",
           "State of the port: 0 none, 1 down, 2 init, 3 armed, 4 active, 5 deferred",
           PORT, port_measures.each_port(port_measures.state)),
    Family("infiniband_physical_state_id",
           "Physical state: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, "
           "6 error recovery, 7 test",
           PORT, port_measures.each_port(port_measures.phys_state)),
    Family("infiniband_rate_bytes_per_second", "Rate of the link",
           PORT, port_measures.each_port(port_measures.rate)),
    Family("infiniband_expected_rate_bytes_per_second", "Rate expected of the link",
           PORT, port_measures.each_port(port_measures.expected_rate)),
    Family("port_verdict", "0 healthy, 1 unknown, 2 degraded, 3 down",
           PORT, port_measures.each_port(lambda port: port.verdict.value)),
    Family("port_flaps", "Times that the port went down and came back",
           PORT, port_measures.each_port(lambda port: port.flaps), _COUNTER),
    Family("port_downtime_seconds", "Time that the port was down",
           PORT, port_measures.each_port(lambda port: port.downtime_seconds), _COUNTER),
    Family("port_last_down_timestamp_seconds", "When the port last went down",
           PORT, port_measures.each_port(lambda port: port.last_down)),
    Family("port_pause_onset_timestamp_seconds",
           "Since when the port holds the network up with pause frames",
           PORT, port_measures.each_port(lambda port: port.pause_onset)),
    Family("port_count_resets", "Counters of the port that fell",
           PORT, port_measures.each_port(lambda port: port.resets), _COUNTER),
    Family("port_count_saturated", "A counter that stands at the ceiling of its field",
           (*PORT, "counter"), port_measures.saturated),
    Family("netdev_info", "Network devices of a port that has several, always 1",
           (*PORT, "netdev"), port_measures.netdev_info),
    Family("port_priorities_info",
           "Priorities of a compute RoCE port with PFC and with ECN, its DSCP map, the "
           "traffic class that its driver enforces and the type of service of RDMA-CM, "
           "always 1; a label is empty where it cannot be read",
           (*PORT, "pfc", "ecn", "dscp", "traffic_class", "default_tos"),
           priority_measures.priorities),
    Family("netdev_carrier", "1 if the network device has a carrier",
           PORT, port_measures.each_port(port_measures.carrier)),
)
# fmt: on

FAMILIES: tuple[Family[Any], ...] = (*NODE_FAMILIES, *PORT_FAMILIES)
"""All of them, in the order in which they are exported."""
