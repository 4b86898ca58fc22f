"""The peers' published rules on the same traces, each at its own poll period.

They read the same files through the same host as fabricmon does, are given the best
configuration that a site could write, and answer in the same documents with the kind
that comes nearest. `fair` widens what counts as an answer to the whole group of an
accepted kind, since their words are fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from fabricmon.finding_document import FindingDocument
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace_read import TraceReader
from fabricmon.sim.baseline_flaps import AzureChecks, Gpud, HealthAgent, OciChecks
from fabricmon.sim.baseline_ledger import Ledger
from fabricmon.sim.baseline_mean import Mean, MeanMeter, outliers
from fabricmon.sim.baseline_node import PeerNode
from fabricmon.sim.baseline_nvsentinel import NvSentinel
from fabricmon.sim.score_groups import GROUP_OF_KIND, naming
from fabricmon.sim.truth import FleetFile, Truth


class Peer(Protocol):
    """An agent of a peer: polled every ``seconds``."""

    name: str
    seconds: float

    def __init__(self, ledger: Ledger) -> None:
        """Start with what is to be told to."""

    def poll(self, node: PeerNode) -> None:
        """Look at the node once."""


PEERS: tuple[type[Peer], ...] = (
    NvSentinel,
    Gpud,
    AzureChecks,
    HealthAgent,
    OciChecks,
)
NAMES: tuple[str, ...] = (*(peer.name for peer in PEERS), MeanMeter.name)


@dataclass(frozen=True, slots=True)
class NodeVerdicts:
    """What the agents said of one node, and its means for the rule over all nodes."""

    node: str
    start: float
    documents: dict[str, list[FindingDocument]]
    means: list[Mean]


def watch(trace: Path, names: Sequence[str] = NAMES) -> NodeVerdicts:
    """Let the peers watch one node; raises `TraceError` where it is no trace."""
    host = ReplayHost(TraceReader(trace))
    header = host.header
    node, meter = PeerNode(host), MeanMeter()
    ledgers = {
        peer.name: Ledger(peer.name, header.node, header.start)
        for peer in PEERS
        if peer.name in names
    }
    agents: list[Peer | MeanMeter] = [
        peer(ledgers[peer.name]) for peer in PEERS if peer.name in ledgers
    ]
    if meter.name in names:
        agents.append(meter)
    _run(host, node, agents)
    documents = {name: ledger.documents for name, ledger in ledgers.items()}
    return NodeVerdicts(header.node, header.start, documents, meter.means)


def verdicts(
    nodes: Iterable[NodeVerdicts], fleet: FleetFile
) -> dict[str, list[FindingDocument]]:
    """Join what was said of all nodes, by peer, and judge the means together."""
    nodes = tuple(nodes)
    joined: dict[str, list[FindingDocument]] = {name: [] for name in NAMES}
    for each in nodes:
        for name, documents in each.documents.items():
            joined[name] += documents
    if nodes:
        means = {each.node: each.means for each in nodes}
        joined[MeanMeter.name] += outliers(means, fleet, nodes[0].start)
    return joined


def fair(truth: Truth) -> Truth:
    """Return the truth as a peer is scored: any kind of an accepted kind's group."""
    return replace(
        truth,
        faults=tuple(
            replace(fault, accept=_widened(fault.accept)) for fault in truth.faults
        ),
    )


def _widened(accept: Sequence[str]) -> tuple[str, ...]:
    """Add kinds of the same groups, but none that names itself where a peer is meant."""
    wanted = {_sort(kind) for kind in accept}
    more = (kind for kind in GROUP_OF_KIND if _sort(kind) in wanted)
    return tuple(dict.fromkeys((*accept, *more)))


def _sort(kind: str) -> tuple[str | None, bool]:
    return GROUP_OF_KIND.get(kind), naming(kind).by_peer


def _run(host: ReplayHost, node: PeerNode, agents: Sequence[Peer | MeanMeter]) -> None:
    """Poll each agent at its period; in a gap nothing runs, as for any agent."""
    due = dict.fromkeys(range(len(agents)), 0.0)

    def look() -> None:
        for number, agent in enumerate(agents):
            if due[number] <= host.monotonic():
                agent.poll(node)
                due[number] = _next(host.monotonic(), agent.seconds)

    look()
    for _ in host.moments(lambda: min(due.values(), default=inf), lambda: None):
        look()
    host.close()


def _next(now: float, seconds: float) -> float:
    return (now // seconds + 1) * seconds
