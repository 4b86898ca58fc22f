"""Which peers the processes of this node name, and how many of them do."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from fabricmon.model import LogEvent, PeerVotes
from fabricmon.parse.address import plain_peer
from fabricmon.stories.story import names_peer

MAX_PEERS = 256
"""Peers counted; a node talks to fewer."""

MAX_OBSERVERS = 256
"""Observers counted of one peer."""


class PeerTally:
    """Counts, for a while, who named whom; times are Unix seconds of the arrival.

    An observer is an HCA that fails towards the peer, or a process where no HCA is
    named: several behind one port may be that port's own trouble.
    """

    def __init__(self, seconds: float) -> None:
        """Count what is no older than this."""
        self._seconds = seconds
        self._named: dict[str, dict[Hashable, float]] = {}
        self._since: dict[str, float] = {}

    def add(self, event: LogEvent, wall: float) -> None:
        """Count an event if it accuses a peer."""
        if event.peer is None or not names_peer(event):
            return
        peer = plain_peer(event.peer)
        if peer not in self._named and len(self._named) >= MAX_PEERS:
            return
        observers = self._named.setdefault(peer, {})
        self._since.setdefault(peer, wall)
        observer = event.device or (event.pid, event.rank)
        if observer in observers or len(observers) < MAX_OBSERVERS:
            observers[observer] = wall

    def votes(
        self, wall: float, name_of: Callable[[str], str] = str
    ) -> tuple[PeerVotes, ...]:
        """Return the peers that are named now, the one named most first.

        ``name_of`` gives the node that has an address: one with several is one peer.
        """
        for peer, observers in list(self._named.items()):
            for observer, heard in list(observers.items()):
                if wall - heard > self._seconds:
                    del observers[observer]
            if not observers:
                del self._named[peer], self._since[peer]
        nodes: dict[str, list[str]] = {}
        for peer in self._named:
            nodes.setdefault(name_of(peer), []).append(peer)
        found = (
            PeerVotes(
                node,
                len({each for peer in peers for each in self._named[peer]}),
                min(self._since[peer] for peer in peers),
            )
            for node, peers in nodes.items()
        )
        return tuple(sorted(found, key=lambda votes: (-votes.votes, votes.peer)))
