"""Which group a kind of finding belongs to, as classes do, and what a kind's subject must name.

The group of a fault class stands in its row of the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.sim.faults import FAULTS
from fabricmon.sim.faults.row import Group

NOTHING = "nothing"
"""Nothing was said, or there was nothing to say."""

GROUPS: tuple[str, ...] = tuple(Group)

_KINDS: dict[Group, tuple[str, ...]] = {
    Group.LINK: (
        "link_errors", "link_unstable", "rate_degraded", "module_hot", "optics_weak",
    ),
    Group.FLAP: ("port_down", "port_not_active", "port_flap", "port_flapping"),
    Group.PCIE: (
        "pcie_degraded", "pcie_errors", "device_missing", "device_stuck", "nic_power",
    ),
    Group.HOST: ("host_path_slow", "receiver_stall"),
    Group.PAUSE: ("pause_origin",),
    Group.CONGESTION: ("congestion", "pause_victim"),
    Group.FABRIC: ("fabric_suspect", "fabric_control", "common_cause"),
    Group.REMOTE: (
        "peer_suspect", "retries_exhausted", "transport_retries", "nccl_error",
    ),
    Group.STRAGGLER: ("rail_slow", "straggler_link", "post_flap_degraded"),
    Group.CONFIG: ("config_mismatch", "config_drift", "nccl_fallback"),
    Group.NOT_NETWORK: ("not_network",),
    Group.TELEMETRY: (
        "telemetry_stale", "source_failed", "counter_saturated", "counter_reset",
    ),
}  # fmt: skip

GROUP_OF_CLASS = {row.id: str(row.group) for row in FAULTS if not row.is_negative}
GROUP_OF_KIND = {kind: str(group) for group, many in _KINDS.items() for kind in many}

UNKNOWN_GROUP = "other"


def group_of_class(fault: str) -> str:
    """Return the group of a fault class."""
    return GROUP_OF_CLASS.get(fault, UNKNOWN_GROUP)


def group_of_kind(kind: str) -> str:
    """Return the group of a kind of finding."""
    return GROUP_OF_KIND.get(kind, UNKNOWN_GROUP)


@dataclass(frozen=True, slots=True)
class Naming:
    """How a kind names a place (the subject column of the formats document).

    Where the truth has one of ``must``, the finding has to have the same; of ``may``
    only what both have is compared. Of ``any_of`` at least one that the truth has.
    ``by_peer`` kinds name somebody else by ``peer``; their ``node`` is an observer.
    """

    must: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    by_peer: bool = False


_PORT = Naming(must=("node", "device", "port"))
_DEVICE = Naming(must=("node", "device"), may=("port",))
_NODE = Naming(must=("node",), may=("device", "port"))
_FABRIC = Naming(may=("rail", "leaf"), any_of=("leaf", "rail"))

_NAMING: dict[str, Naming] = {
    **dict.fromkeys(_KINDS[Group.PCIE], _DEVICE),
    **dict.fromkeys(("config_mismatch", "config_drift"), _NODE),
    **dict.fromkeys(("host_path_slow", "not_network", "nccl_fallback"), _NODE),
    **dict.fromkeys(("telemetry_stale", "source_failed"), _NODE),
    **dict.fromkeys(_KINDS[Group.FABRIC], _FABRIC),
    "rail_slow": Naming(must=("rail",), may=("leaf",)),
    "peer_suspect": Naming(by_peer=True),
    "nccl_error": Naming(must=("node",), may=("device", "port"), by_peer=True),
}


def naming(kind: str) -> Naming:
    """Return how a kind names a place; one that is not known is about a port."""
    return _NAMING.get(kind, _PORT)
