"""Who names whom: a table of observers and peers, and whom it accuses. Pure.

One observer that names many peers accuses itself (a row), many observers that name one
peer accuse that peer or its leaf link (a column), one pair accuses the path between
them (a cell). Source: the method of peer votes in large-scale training clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import field

from fabricmon.value import State, Value

MAX_PAIRS = 4096
"""Pairs in a table; a job of 64 nodes in which each names each fits."""

MAX_SUSPECTS = 64
"""Nodes accused at once; more of them are everybody's trouble."""

MAX_DEVICES = 64
"""Devices of one node that are told apart."""


class Shape(StrEnum):
    """What the votes look like."""

    ROW = "row"
    COLUMN = "column"
    CELL = "cell"
    RAIL = "rail"
    EVERYONE = "everyone"


class Suspect(Value, frozen=True):
    """Whom the votes accuse.

    ``name`` is a node (for a cell the pair, for a rail its name), ``observers`` are
    those that name it, ``named`` those that it names itself, ``reports`` the errors
    behind it. ``certain`` says that the votes suffice to suspect it.
    """

    shape: Shape
    name: str
    observers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    reports: int = 0
    certain: bool = False

    @property
    def votes(self) -> int:
        """Nodes that speak for it."""
        if self.shape is Shape.CELL:
            return len(set(self.observers))
        return len({*self.observers, *self.named})

    @property
    def meaning(self) -> str:
        """Say what the shape means."""
        return _MEANINGS[self.shape]


_MEANINGS = {
    Shape.ROW: "names many peers: the fault is at this node or its leaf link",
    Shape.COLUMN: "is named by many nodes: the fault is at this node or its leaf link",
    Shape.CELL: "one pair: the path between the two, or either end",
    Shape.RAIL: "the same rail of many nodes: its leaf, spine or subnet",
    Shape.EVERYONE: "every NIC of every node: software or configuration, not a link",
}

Pair = tuple[str, str]


class Votes(State):
    """The table; ``dropped`` counts votes for which there was no room."""

    pairs: dict[Pair, int] = field(default_factory=dict)
    talks: dict[str, set[str]] = field(default_factory=dict)
    ports: dict[str, set[str]] = field(default_factory=dict)
    dropped: int = 0
    last: dict[Pair, float] = field(default_factory=dict)

    def add(
        self, observer: str, peer: str, reports: int = 1, when: float | None = None
    ) -> None:
        """Count that a node reports errors of its connections to another."""
        pair = (observer, peer)
        if observer == peer:
            return  # its own proxy: a consequence within the node
        if pair not in self.pairs and len(self.pairs) >= MAX_PAIRS:
            self.dropped += reports
            return
        self.pairs[pair] = self.pairs.get(pair, 0) + reports
        if when is not None:
            self.last[pair] = max(when, self.last.get(pair, when))

    def forget(self, before: float) -> None:
        """Drop the votes that were last cast before this time (Unix seconds)."""
        for pair in [pair for pair, when in self.last.items() if when < before]:
            del self.pairs[pair], self.last[pair]

    def add_talk(self, node: str, peer: str) -> None:
        """Note that two nodes have a connection, sound or not."""
        for one, other in ((node, peer), (peer, node)):
            known = self.talks.get(one)
            if known is None and len(self.talks) < MAX_PAIRS:
                known = self.talks[one] = set()
            if known is not None and one != other and len(known) < MAX_PAIRS:
                known.add(other)

    def add_port(self, node: str, device: str) -> None:
        """Note that a node reports an error of this device of its own."""
        if node in self.ports or len(self.ports) < MAX_PAIRS:
            known = self.ports.setdefault(node, set())
            if len(known) < MAX_DEVICES:
                known.add(device)

    def renamed(self, names: Mapping[str, str]) -> Votes:
        """Return the table with addresses replaced by the nodes that have them."""
        found = Votes(ports=self.ports, dropped=self.dropped)
        for (observer, peer), reports in self.pairs.items():
            found.add(names.get(observer, observer), names.get(peer, peer), reports)
        for node, peers in self.talks.items():
            for peer in peers:
                found.add_talk(names.get(node, node), names.get(peer, peer))
        return found


def suspects(votes: Votes, least: int, share: float) -> tuple[Suspect, ...]:
    """Return whom the table accuses, the strongest first, pairs last.

    ``least`` distinct nodes must speak for it, and for a column ``share`` of those that
    talk to it. Whoever is accused takes his row and column along, so that the peers
    whom a bad node names are not accused in turn.
    """
    left = _Table(votes)
    found: list[Suspect] = []
    while len(found) < MAX_SUSPECTS:
        best = left.strongest(least, share)
        if best is None:
            break
        found.append(best)
        left.remove(best.name)
    if _everyone(len(found), left.pairs, votes, least):
        return (_all_of(votes),)
    return (*found, *_cells(left.pairs))


def rail_suspects(
    votes: Votes, rails: Mapping[str, Mapping[str, int]], least: int
) -> tuple[Suspect, ...]:
    """Return rails that fail on many nodes, or everyone where all NICs fail.

    ``rails`` gives for each node the index of each of its devices. A node with one
    device says nothing about rails.
    """
    speaking = {
        node: votes.ports[node] for node in votes.ports if len(rails.get(node, ())) > 1
    }
    if len(speaking) < least:
        return ()
    if all(set(rails[node]) <= devices for node, devices in speaking.items()):
        nodes = tuple(sorted(speaking))
        return (Suspect(Shape.EVERYONE, "all nodes", nodes, certain=True),)
    nodes_of = defaultdict(set)
    for node, devices in speaking.items():
        for device in devices & rails[node].keys():
            nodes_of[rails[node][device]].add(node)
    return tuple(
        Suspect(Shape.RAIL, f"rail {rail}", tuple(sorted(nodes)), certain=True)
        for rail, nodes in sorted(nodes_of.items())
        if len(nodes) >= least and len(nodes_of) == 1
    )


class _Table:
    """The votes that nobody accused so far explains, by either side."""

    def __init__(self, votes: Votes) -> None:
        self.pairs = dict(votes.pairs)
        self._talks = votes.talks
        self._speakers = _speakers(votes)
        self._by: dict[str, set[str]] = defaultdict(set)
        self._of: dict[str, set[str]] = defaultdict(set)
        for observer, peer in self.pairs:
            self._by[peer].add(observer)
            self._of[observer].add(peer)

    def strongest(self, least: int, share: float) -> Suspect | None:
        """Return the node for which most speak, None if too few speak for any."""
        accused = (
            (len(by | of), node)
            for node in self._by.keys() | self._of.keys()
            for by, of in [self._sides(node)]
            if len(of) >= least or self._is_column(node, least, share)
        )
        _, node = max(accused, default=(0, ""))
        if not node:
            return None
        by, of = self._sides(node)
        column = len(by) >= len(of) and self._is_column(node, least, share)
        reports = sum(number for pair, number in self.pairs.items() if node in pair)
        return Suspect(
            Shape.COLUMN if column else Shape.ROW,
            node,
            tuple(sorted(by)),
            tuple(sorted(of)),
            reports,
            certain=True,
        )

    def remove(self, node: str) -> None:
        """Take away the row and the column of a node."""
        for observer in self._by.pop(node, ()):
            self._of[observer].discard(node)
            self.pairs.pop((observer, node), None)
        for peer in self._of.pop(node, ()):
            self._by[peer].discard(node)
            self.pairs.pop((node, peer), None)

    def _sides(self, node: str) -> tuple[set[str], set[str]]:
        return self._by.get(node, set()), self._of.get(node, set())

    def _is_column(self, node: str, least: int, share: float) -> bool:
        by = self._by.get(node, set())
        if len(by) < least:
            return False
        talkers = (self._talks.get(node) or self._speakers) - {node}
        return len(by) >= share * len(talkers | by)


def _speakers(votes: Votes) -> set[str]:
    return {observer for observer, _ in votes.pairs}


def _everyone(accused: int, left: Mapping[Pair, int], votes: Votes, least: int) -> bool:
    """Tell a fault of all from faults of some.

    Most nodes are accused or quarrel with each other, in at least as many pairs as
    there are nodes: a ring has just so many, one bad node makes fewer.
    """
    nodes = {node for pair in votes.pairs for node in pair} | votes.talks.keys()
    quarrels = {min(pair, pair[::-1]) for pair in votes.pairs}
    quarrelling = {node for pair in left for node in pair}
    return (
        len(nodes) > least
        and len(quarrels) >= len(nodes)
        and 2 * (accused + len(quarrelling)) > len(nodes)
    )


def _all_of(votes: Votes) -> Suspect:
    nodes = tuple(sorted(_speakers(votes)))
    reports = sum(votes.pairs.values())
    return Suspect(Shape.EVERYONE, "all nodes", nodes, (), reports, certain=True)


def _cells(left: Mapping[Pair, int]) -> Iterable[Suspect]:
    """Yield the pairs that are left, both directions of one as one."""
    seen: dict[Pair, list[Pair]] = defaultdict(list)
    for pair in left:
        seen[min(pair, pair[::-1])].append(pair)
    cells = [
        Suspect(
            Shape.CELL,
            f"{pairs[0][0]} and {pairs[0][1]}",
            tuple(observer for observer, _ in pairs),
            tuple(peer for _, peer in pairs),
            sum(left[pair] for pair in pairs),
        )
        for pairs in seen.values()
    ]
    return sorted(cells, key=lambda cell: (-cell.reports, cell.name))
