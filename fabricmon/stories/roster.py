"""Who speaks in the logs: processes and nodes, and what they told of themselves. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import field

from fabricmon.parse.address import plain_peer
from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.text import fold
from fabricmon.stories.fold import Group
from fabricmon.stories.nature import Tier, kills_link
from fabricmon.value import State, Value

MAX_PROCESSES = 4096
"""Processes remembered; those that were silent longest are forgotten."""

MAX_NODES = 4096
"""Nodes, and addresses of nodes, remembered."""

MAX_SETTINGS = 128
"""Settings of one process remembered; NCCL knows about as many that matter."""

MAX_SETTINGS_HELD = 1 << 16
"""Settings remembered of all processes."""

MAX_ROUTES = 1024
"""Channels remembered of one node."""

MAX_ROUTES_HELD = 1 << 14
"""Channels remembered of all nodes."""

_CAUSES = 32  # newest groups of a node and tier that may explain something
_THREADS = 256
_PORTS = 256
_LOCAL = ("127.", "::1", "0.", "169.254.")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A mapping that forgets what was not used for longest; ``dropped`` counts."""

    def __init__(self, most: int) -> None:
        """Start empty."""
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()
        self.dropped = 0

    def get(self, key: K) -> V | None:
        """Return what is kept, and keep it for longer."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def make_room(self) -> V | None:
        """Forget one if there is no room for another; return it."""
        if len(self._kept) < self._most:
            return None
        self.dropped += 1
        return self._kept.popitem(last=False)[1]

    def put(self, key: K, value: V) -> V:
        """Keep a value."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
            self.dropped += 1
        return value

    def drop(self, key: K) -> None:
        """Forget one."""
        self._kept.pop(key, None)

    def peek(self, key: K) -> V | None:
        """Return what is kept without using it."""
        return self._kept.get(key)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield what is kept, longest unused first."""
        yield from self._kept.items()

    def values(self) -> Iterator[V]:
        """Yield the values that are kept."""
        yield from self._kept.values()

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)


class Process(State, eq=False):
    """One process; None is what it did not tell.

    ``started`` and ``ready`` are when its newest communicator began and was complete,
    ``traffic`` whether a collective is known to have completed, ``root`` the first
    failure of its present trouble, ``set_up`` why it found no device. ``stuck`` is
    the operation that its watchdog gave up, ``enqueued`` and ``completed`` the last ones
    by number. ``via`` counts its channels by network. ``source`` is the file or folder
    that it was first heard in, empty where all are of one.
    """

    place: str
    pid: int | None
    rank: int | None = None
    job: str | None = None
    comm: str | None = None
    size: int | None = None
    nodes: int | None = None
    version: str | None = None
    network: str | None = None
    started: float | None = None
    began: bool = False
    ready: bool = False
    traffic: bool = False
    stuck: str | None = None
    enqueued: int | None = None
    completed: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    via: dict[str, int] = field(default_factory=dict)
    root: Group | None = None
    set_up: Group | None = None
    source: str = ""


class Nic(Value, frozen=True):
    """One entry of NCCL's own list of devices; ``port`` as it counts them."""

    index: int
    device: str
    port: int | None = None
    link_layer: str | None = None


class Route(Value, frozen=True):
    """A channel between two ranks and the NIC that it leaves or enters by."""

    channel: int
    rank: int
    peer_rank: int
    network: str
    nic: int | None
    device: str | None = None
    gpu_direct: bool = False


class PortStory(State):
    """Port errors and returns as every thread saw them: thread to (errors, is up)."""

    threads: dict[Hashable, tuple[int, bool]] = field(default_factory=dict)
    last: float | None = None

    def note(self, thread: Hashable, *, is_up: bool, when: float | None) -> None:
        """Take in one event as one thread saw it."""
        errors, _ = self.threads.get(thread, (0, True))
        if thread in self.threads or len(self.threads) < _THREADS:
            self.threads[thread] = (errors + (not is_up), is_up)
        if when is not None and (self.last is None or when > self.last):
            self.last = when

    @property
    def downs(self) -> int:
        """How often it went down: what the thread that saw most saw."""
        return max((errors for errors, _ in self.threads.values()), default=0)

    @property
    def is_back(self) -> bool:
        """Whether it came back, as a thread tells that saw all of it."""
        return any(up and n == self.downs > 0 for n, up in self.threads.values())


class Node(State, eq=False):
    """One node: its devices as NCCL numbers them, its ports, what may explain more.

    ``lost`` are the ports and devices that it lost.
    """

    name: str
    nics: dict[int, Nic] = field(default_factory=dict)
    ports: dict[tuple[str | None, int | None], PortStory] = field(default_factory=dict)
    routes: dict[tuple[int, int, int], Route] = field(default_factory=dict)
    causes: dict[Tier, deque[Group]] = field(default_factory=dict)
    lost: deque[Group] = field(default_factory=lambda: deque(maxlen=_CAUSES))

    def add_cause(self, group: Group) -> None:
        """Remember what may explain events of lower tiers."""
        kept = self.causes.setdefault(group.tier, deque(maxlen=_CAUSES))
        kept.append(group)
        if kills_link(group.event):
            self.lost.append(group)

    def port(self, device: str | None, number: int | None) -> PortStory:
        """Return the story of a port, known from now on while there is room."""
        known = self.ports.get((device, number))
        if known is None:
            known = PortStory()
            if len(self.ports) < _PORTS:
                self.ports[device, number] = known
        return known

    def device_of(self, index: int | None) -> str | None:
        """Return the name of a device by NCCL's index."""
        nic = self.nics.get(index) if index is not None else None
        return nic.device if nic else None


class Roster:
    """Every process and node that the logs speak of."""

    def __init__(self) -> None:
        """Start knowing nobody."""
        self.processes: Bounded[tuple[str, Any], Process] = Bounded(MAX_PROCESSES)
        self.nodes: Bounded[str, Node] = Bounded(MAX_NODES)
        self.addresses: Bounded[str, str] = Bounded(MAX_NODES)
        self._folded: Bounded[str, str] = Bounded(MAX_NODES)
        self._ranks: Bounded[tuple[str | None, int], tuple[int, str]] = Bounded(
            MAX_NODES
        )
        self._settings = self._routes = 0
        self._pids: Bounded[tuple[str, int | None], int] = Bounded(MAX_NODES)
        self._only: Bounded[str, str] = Bounded(MAX_NODES)
        self._heard: Bounded[tuple[str, str], bool] = Bounded(MAX_NODES)

    @property
    def dropped(self) -> int:
        """Processes and nodes that were forgotten for others."""
        return self.processes.dropped + self.nodes.dropped

    def place_of(self, event: LogEvent) -> str:
        """Return the node that an event speaks of, its file where nobody knows.

        A line without head belongs to the one host of its file, or to that of its rank.
        """
        if event.host is not None:
            self._note_host(event.host, event.file)
            return event.host
        if event.rank is not None:
            known = self.node_of_rank(event.job, event.rank)
            if known is not None:
                return known
        return self._only.peek(event.file) or event.file

    def process_of(self, event: LogEvent, place: str) -> Process:
        """Return the process that speaks, known by pid, else by rank."""
        key: tuple[str, Any] = (place, event.pid)
        if event.pid is None:
            known_pid = self._pids.peek((place, event.rank))
            key = (place, known_pid or ("rank", event.rank))
        known = self.processes.get(key)
        if known is None:
            gone = self.processes.make_room()
            self._settings -= len(gone.settings) if gone else 0
            known = self.processes.put(key, Process(place, event.pid))
        if known.rank is None:
            self.note_rank(event, known)
        known.job = known.job or event.job
        known.version = event.library_version or known.version
        return known

    def note_rank(
        self, event: LogEvent, process: Process, size: int | None = None
    ) -> None:
        """Learn on which node a rank lives.

        ``size`` is that of the communicator: ranks are those of the largest, and one
        that two nodes claim in communicators of a size is nobody's.
        """
        if event.rank is None:
            return
        weight = size or 0
        if weight >= (process.size or 0):
            process.rank, process.size = event.rank, size or process.size
        if process.pid is not None and process.rank == event.rank:
            self._pids.put((process.place, event.rank), process.pid)
        key = (event.job or process.job, event.rank)
        known, place = self._ranks.peek(key) or (-1, "")
        if weight > known or (weight == known and place != process.place):
            place = "" if weight == known else process.place
            self._ranks.put(key, (weight, place))

    def node_of_rank(self, job: str | None, rank: int) -> str | None:
        """Return the node on which a rank lives, None if no line told."""
        _, place = self._ranks.peek((job, rank)) or (0, "")
        return place or None

    def node(self, name: str) -> Node:
        """Return a node, known from now on."""
        known = self.nodes.get(name)
        if known is None:
            gone = self.nodes.make_room()
            self._routes -= len(gone.routes) if gone else 0
            known = self.nodes.put(name, Node(name))
        return known

    def set(self, process: Process, name: str, value: str) -> None:
        """Remember a setting of a process while there is room."""
        new = name not in process.settings
        full = len(process.settings) >= MAX_SETTINGS
        if new and (full or self._settings >= MAX_SETTINGS_HELD):
            return
        self._settings += new
        process.settings[name] = value

    def lead(self, node: Node, route: Route) -> None:
        """Remember where a channel leads while there is room."""
        key = (route.channel, route.rank, route.peer_rank)
        new = key not in node.routes
        full = len(node.routes) >= MAX_ROUTES
        if new and (full or self._routes >= MAX_ROUTES_HELD):
            return
        self._routes += new
        node.routes[key] = route

    def note_address(self, address: str, place: str) -> None:
        """Learn that a node has an address; one that two share names neither."""
        plain = plain_address(address)
        known = self.addresses.peek(plain)
        if plain and not _is_local(plain):
            self.addresses.put(plain, place if known in {None, place} else "")

    def named(self, peer: str | None) -> str | None:
        """Return the node behind what a log calls a peer, None if nobody knows."""
        if peer is None:
            return None
        plain = plain_address(peer)
        return self.addresses.peek(plain) or self._folded.peek(fold(plain)) or None

    def _note_host(self, host: str, file: str) -> None:
        if (host, file) in self._heard:
            return
        self._heard.put((host, file), True)
        self._folded.put(fold(host), host)
        alone = file not in self._only or self._only.peek(file) == host
        self._only.put(file, host if alone else "")


def plain_address(text: str) -> str:
    """Return an address or host name without port, zone and mapping to IPv6."""
    return plain_peer(text).lower()


def _is_local(address: str) -> bool:
    return address.startswith(_LOCAL)
