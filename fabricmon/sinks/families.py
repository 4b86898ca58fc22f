"""Every metric that is not a counter of the catalogue: one row each, in `FAMILIES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fabricmon.catalogue import CounterKind
from fabricmon.sinks import measures, port_measures
from fabricmon.sinks.measures import Sample, Scene
from fabricmon.sinks.port_measures import Hardware

_Subject = TypeVar("_Subject", Scene, Hardware)


@dataclass(frozen=True, slots=True)
class Family(Generic[_Subject]):
    """One metric: its name after ``fabricmon_``, without ``_total``, its samples."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[_Subject], Iterable[Sample]]
    kind: CounterKind = CounterKind.GAUGE

    @property
    def metric(self) -> str:
        """Full name of the metric."""
        suffix = "_total" if self.kind is CounterKind.COUNTER else ""
        return f"fabricmon_{self.name}{suffix}"


_COUNTER = CounterKind.COUNTER
_SOURCE = ("source",)
_FINDING = ("kind", "severity", "role", "action", "device", "port")
_END = ("device", "end")
PORT = ("device", "port")

# fmt: off
NODE_FAMILIES: tuple[Family[Scene], ...] = (
    Family("build_info", "Version of fabricmon and of its Python, always 1",
           ("version", "python"), measures.build),
    Family("config_info", "Hash of the configuration in force, always 1",
           ("hash",), measures.config),
    Family("snapshot_age_seconds", "Age of all that is exported here", (),
           measures.age),
    Family("series_withheld",
           "Series that found no room (metrics.counted_series); absent is none", (),
           measures.withheld),
    Family("firmware_reads", "Reads that reached the firmware of a device", (),
           measures.one(lambda s: s.firmware_reads), _COUNTER),
    Family("node_verdict", "0 healthy, 1 unknown, 2 degraded, 3 down", (),
           measures.one(lambda s: s.verdict.value)),
    Family("finding_open", "Open findings; those of shadow kinds are elsewhere",
           _FINDING, measures.findings(shadow=False)),
    Family("finding_shadow", "Open findings of kinds in shadow: never to be alerted on",
           _FINDING, measures.findings(shadow=True)),
    Family("detector_blind", "A kind of finding that cannot be judged on this node",
           ("kind", "reason"), measures.blind),
    Family("source_success", "1 if the last poll of each unit succeeded",
           _SOURCE, measures.success),
    Family("source_duration_seconds", "Duration of the longest last poll of a unit",
           _SOURCE, measures.duration),
    Family("source_age_seconds", "Time since the last success of the oldest unit",
           _SOURCE, measures.success_age),
    Family("source_in_flight_seconds", "Age of the longest poll of those going on",
           _SOURCE, measures.in_flight),
    Family("read_errors", "Reads that failed", ("source", "errno"),
           measures.errors, _COUNTER),
    Family("unreadable", "Devices, folders and tools that cannot be read at all",
           (*PORT, "errno"), measures.unreadable),
    Family("device_quarantined", "A device's files that are read rarely: they all fail",
           ("device", "source", "reason"), measures.quarantined),
    Family("maintenance", "Places that are being worked on; without a device, the node",
           PORT, measures.maintenance),
    Family("state_saved", "1 if what must survive a restart is saved",
           (), measures.one(lambda s: int(s.unsaved is None and not s.awaits_save))),
    Family("infiniband_class_readable", "1 if the folder of RDMA devices can be read",
           (), measures.one(lambda s: int(s.class_error is None))),
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
    Family("port_count_resets", "Counters of the port that fell",
           PORT, port_measures.each_port(lambda port: port.resets), _COUNTER),
    Family("port_count_saturated", "A counter that stands at the ceiling of its field",
           (*PORT, "counter"), port_measures.saturated),
    Family("netdev_info", "Network devices of a port that has several, always 1",
           (*PORT, "netdev"), port_measures.netdev_info),
    Family("netdev_carrier", "1 if the network device has a carrier",
           PORT, port_measures.each_port(port_measures.carrier)),
)
# fmt: on

FAMILIES: tuple[Family[Any], ...] = (*NODE_FAMILIES, *PORT_FAMILIES)
"""All of them, in the order in which they are exported."""
