"""Which alerts are not told while another fires: one story for one cause.

Alertmanager takes two absent labels for equal. Every label that must be equal, but for
the cluster, is therefore asked to be there on both sides: an alert without a node must
not silence all others without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabricmon.errors import ConfigError
from fabricmon.fleet.names import matchers
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import TRAINING, Inhibition, Matcher

_FELL = (
    "port_down|port_not_active|port_flap|port_flapping|transport_retries"
    "|retries_exhausted|post_flap_degraded|nccl_error|peer_suspect|rail_slow"
    "|common_cause|fabric_control"
)
"""What ports, peers and jobs tell when the leaf, rail or rack below them fails."""

_LINK = "port_down|port_not_active|port_flap|port_flapping|link_errors|rate_degraded"
_SUFFERS = "transport_retries|retries_exhausted|post_flap_degraded|nccl_error"
_MISSES = "transport_retries|retries_exhausted|nccl_error"
_WAITS = "congestion|pause_victim|transport_retries|retries_exhausted|rail_slow"
_DEVICE = "device_missing|device_stuck"
_OURS = "node|fleet"

_NODE_DOWN = re.compile(r"\s*ALERTS\s*\{(?P<matchers>.*)\}\s*", re.DOTALL)


def inhibitions(options: FleetOptions) -> tuple[Inhibition, ...]:
    """Return them in the order in which they are written; raises `ConfigError`."""
    cluster, node = options.where.cluster_label, options.where.node_label
    return (
        *_under_node_down(options),
        *_under_common_cause(cluster),
        *_under_link((cluster, node)),
        *_under_failed_link(cluster),
        *_under_culprit(cluster),
        *_under_fabric(cluster, node),
        *_under_fleet(cluster, node),
        _row(
            "the graver finding of a kind at a place stands for the milder",
            {"severity": "critical", "origin": "node"},
            {"severity": "warning|info", "origin": "node"},
            (cluster, node, "device", "port", "kind"),
            may_lack=("device", "port"),
        ),
    )


def _under_common_cause(cluster: str) -> Iterator[Inhibition]:
    yield _row(
        "what falls with a leaf is told with the leaf",
        {"kind": "common_cause", "origin": "fleet"},
        {"kind": _FELL, "origin": "node"},
        (cluster, "leaf"),
    )
    yield _row(
        "what falls with a rail is told with the rail",
        {"kind": "common_cause", "origin": "fleet", "leaf": ""},
        {"kind": _FELL, "origin": "node"},
        (cluster, "rail"),
    )
    yield _row(
        "what falls with a rack is told with the rack",
        {"kind": "common_cause", "origin": "fleet"},
        {"kind": f"{_FELL}|{_DEVICE}|agent_absent", "origin": _OURS},
        (cluster, "rack"),
    )


def _under_link(at: tuple[str, str]) -> Iterator[Inhibition]:
    """Yield what a link or a device explains; ``at`` are the labels of a node."""
    device, port = (*at, "device"), (*at, "device", "port")
    yield _row(
        "a link that fails loses packets: the link is the story",
        {"kind": _LINK, "notice": "page|ticket"},
        {"kind": _SUFFERS},
        port,
    )
    yield _row(
        "a port that is down or flaps has every other sign of a bad link",
        {"kind": "port_down|port_flapping", "notice": "page|ticket"},
        {"kind": "port_flap|link_errors|link_unstable|rate_degraded"},
        port,
    )
    yield _row(
        "a port that stayed down when its leaf came back is told as that",
        {"kind": "port_down", "origin": "fleet"},
        {"kind": "port_down", "origin": "node"},
        port,
    )
    yield _row(
        "a device that is gone or stuck takes its ports along",
        {"kind": _DEVICE, "notice": "page|ticket"},
        {"kind": f"{_LINK}|{_SUFFERS}|link_unstable|straggler_link"},
        device,
    )


def _under_failed_link(cluster: str) -> Iterator[Inhibition]:
    """Yield what others on a leaf see of a link there; culprits tell for themselves."""
    yield _row(
        "who waits for a link that failed is told with the link",
        {"kind": _LINK, "notice": "page|ticket", "origin": "node"},
        {"kind": _MISSES, "role": "victim|observer", "notice": "info"},
        (cluster, "leaf"),
    )


def _under_culprit(cluster: str) -> Iterator[Inhibition]:
    yield _row(
        "the port that paces a rail explains the slow rail",
        {"kind": "straggler_link", "notice": "page|ticket"},
        {"kind": "rail_slow"},
        (cluster, TRAINING, "rail"),
    )
    yield _row(
        "the port that paces a job explains what the job's nodes see of slow rails",
        {"kind": "straggler_link", "notice": "page|ticket"},
        {"kind": "rail_slow", "origin": "node"},
        (cluster, TRAINING),
    )
    yield _row(
        "who floods a leaf with pause explains who waits on it",
        {"kind": "pause_origin"},
        {"kind": "pause_victim|congestion|transport_retries|rail_slow"},
        (cluster, "leaf"),
    )
    yield _row(
        "who floods a rail with pause explains who waits on it",
        {"kind": "pause_origin"},
        {"kind": "pause_victim|congestion"},
        (cluster, "rail"),
    )


def _under_fabric(cluster: str, node: str) -> Iterator[Inhibition]:
    """Yield what the rules that compare nodes explain of the nodes' own findings."""
    yield _row(
        "what a leaf does without its subnet manager is told with the leaf",
        {"kind": "fabric_control", "origin": "fleet"},
        {"kind": _FELL, "origin": "node"},
        (cluster, "leaf"),
    )
    yield _row(
        "who suffers from the fabric is told with the fabric",
        {"kind": "fabric_suspect", "origin": "fleet"},
        {"kind": f"{_WAITS}|fabric_suspect|nccl_error", "origin": "node"},
        (cluster, "rail"),
    )
    yield _row(
        "a rail that the fabric holds up is slow for it",
        {"kind": "fabric_suspect", "origin": "fleet"},
        {"kind": "rail_slow", "origin": "fleet"},
        (cluster, "rail"),
    )
    yield _row(
        "damage from before a link is told with the fabric",
        {"kind": "fabric_suspect", "origin": "fleet"},
        {"kind": "link_errors", "role": "observer", "origin": "node"},
        (cluster, "rail"),
    )
    yield _row(
        "a slow rail that all nodes of its job see is told once",
        {"alertname": "FabricRailSlow"},
        {"kind": "rail_slow", "origin": "node"},
        (cluster,),
    )
    yield _row(
        "who pauses later than another of its rail only answers that one",
        {"alertname": "FabricPauseFollower"},
        {"kind": "pause_origin", "origin": "node"},
        (cluster, node, "device", "port"),
    )


def _under_fleet(cluster: str, node: str) -> Iterator[Inhibition]:
    yield _row(
        "the vote of several nodes stands for what each of them sees",
        {"kind": "peer_suspect", "origin": "fleet"},
        {"kind": "peer_suspect", "origin": "node"},
        (cluster,),
    )
    yield _row(
        "a node whose agent is gone is likely down: its peers tell that too",
        {"kind": "agent_absent"},
        {"kind": "peer_suspect", "origin": "fleet"},
        (cluster, node),
    )
    yield _row(
        "so many absent agents have one cause",
        {"alertname": "FabricAgentsAbsent"},
        {"alertname": "FabricAgentAbsent"},
        (cluster,),
    )
    yield _row(
        "an agent that stands still judges nothing: what it says is old",
        {"kind": "snapshot_old"},
        {"kind": "telemetry_stale|source_failed"},
        (cluster, node),
    )


def _under_node_down(options: FleetOptions) -> Iterable[Inhibition]:
    """Yield the row for the site's own alert, where there is one."""
    text = options.where.node_down.strip()
    if not text:
        return
    found = _NODE_DOWN.fullmatch(text)
    if found is None:
        raise _unusable(text)
    source: dict[str, str] = {}
    for each in matchers(found["matchers"], "where.node_down"):
        if each.operator not in {"=", "=~"}:
            raise _unusable(text)
        is_pattern = each.operator == "=~"
        source[each.label] = each.value if is_pattern else re.escape(each.value)
    source.pop("alertstate", None)
    where = options.where
    yield _row(
        "a node that is down explains all that is told of it",
        source,
        {"origin": _OURS},
        (where.cluster_label, where.node_label),
    )


def _unusable(text: str) -> ConfigError:
    remedy = 'write it as ALERTS{alertname=~"NodeDown|..."}, with = and =~ only'
    return ConfigError(f"{text!r} names no alert", key="where.node_down", remedy=remedy)


def _row(
    reason: str,
    source: dict[str, str],
    target: dict[str, str],
    equal: tuple[str, ...],
    may_lack: tuple[str, ...] = (),
) -> Inhibition:
    must = {label: ".+" for label in equal[1:] if label not in may_lack}
    return Inhibition(reason, _matching(must | source), _matching(must | target), equal)


def _matching(patterns: dict[str, str]) -> tuple[Matcher, ...]:
    return tuple(Matcher(label, pattern) for label, pattern in patterns.items())


INHIBITIONS = inhibitions(FleetOptions())
"""Those of a site with the usual labels."""
