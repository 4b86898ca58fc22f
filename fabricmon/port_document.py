"""A port, and other records of tools, as the objects that ``check`` prints. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum
from typing import Any

from fabricmon.detect.sample import Judgement
from fabricmon.parse.report import CounterValue, PortReport

Json = dict[str, Any]


def port_object(port: PortReport, judgement: Judgement) -> Json:
    """Return all keys of a port; null where the input does not say."""
    return {
        "device": port.device,
        "port": port.port,
        "state": port.state,
        "phys_state": port.phys_state,
        "link_layer": port.link_layer,
        "rate_gbps": plain(port.rate.gbps),
        "width": port.rate.width,
        "speed": port.rate.speed,
        "lid": port.lid,
        "sm_lid": port.sm_lid,
        "guid": port.guid,
        "node_guid": port.node_guid,
        "fw": port.fw,
        "hca_type": port.hca_type,
        "netdev": port.netdev,
        "pci_address": port.pci_address,
        "driver": port.driver,
        "rail": port.rail,
        "role": port.role,
        "verdict": judgement.verdict.word,
        "reasons": list(judgement.reasons),
        "counters": counters_object(port.counters),
        "hw_counters": counters_object(port.hw_counters),
        "saturated": list(port.saturated),
        "unavailable": {item.name: item.reason for item in port.unavailable},
    }


def counters_object(counters: Iterable[CounterValue]) -> Json:
    """Return counters by their files' names."""
    return {counter.name: counter.value for counter in counters}


def table(record: Any) -> Json:
    """Return a record's fields by name, records within it likewise."""
    fields = dataclasses.fields(record)
    return {item.name: plain(getattr(record, item.name)) for item in fields}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: whole numbers without a fraction."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return table(value) if dataclasses.is_dataclass(value) else value
