"""The fleet that a scenario describes: nodes, racks, leafs, ports and jobs.

The plan is settled before anything happens. Rails go to leafs of their own (rail
optimised), storage and management to a leaf for each group of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fabricmon.sim.counter_files import counted
from fabricmon.sim.effects import SimPort
from fabricmon.sim.job_terms import JobTerms, job_terms
from fabricmon.sim.meters import Meter
from fabricmon.sim.planning import STATE, Work
from fabricmon.sim.profiles import PROFILES, Card, Family, Profile, Slot, Use
from fabricmon.sim.scenario import Scenario

NODES_PER_RACK = 8
"""Half a rack of 8-GPU nodes at common power limits; only its order matters here."""

_BUSES = 0xF0
_NOTICES = frozenset({Meter.CNP_SENT, Meter.CNP_HANDLED, Meter.ECN_MARKED})
_RATE_SHARES = {1.0: 1, 0.5: 2, 0.25: 4}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a device sits on PCIe."""

    bus: int

    @property
    def root(self) -> str:
        """Folder of the bridge above the device."""
        return f"/sys/devices/pci0000:{self.bus:02x}/0000:{self.bus:02x}:01.0"

    @property
    def address(self) -> str:
        """PCI address of the device."""
        return f"0000:{self.bus + 1:02x}:00.0"

    @property
    def gpu_address(self) -> str:
        """PCI address of the GPU beside it."""
        return f"0000:{self.bus + 2:02x}:00.0"

    @property
    def folder(self) -> str:
        """Folder of the PCI function."""
        return f"{self.root}/{self.address}"


class FleetPlan:
    """What faults may ask of the fleet (`planning.Plan`), and what makes it.

    ``ends`` says when jobs are ended for good by what is injected, by their ids.
    """

    def __init__(
        self, scenario: Scenario, seed: int, ends: Mapping[str, float] | None = None
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.profile: Profile = PROFILES[scenario.profile]
        self.duration = scenario.duration
        self.nodes = scenario.nodes
        self.sights = frozenset[str](scenario.sights)
        self.has_cnp = self.profile.has_cnp
        self._slots = {slot.device: slot for slot in self.profile.slots}
        self._rails = tuple(
            (slot.device, port) for slot in self.profile.compute for port in slot.used
        )
        self.rails = len(self._rails)
        card = self.profile.compute[0].card
        self.line_rate_gbps = float(card.gbps)
        self.is_infiniband = card.layer == "InfiniBand"
        self.slot_speed = float(card.pci_speed.split()[0])
        self.slot_width = card.pci_width
        self._ends = dict(ends or {})

    @property
    def key(self) -> tuple[object, ...]:
        """What all random numbers of this run begin with."""
        return (self.seed, self.scenario.name)

    @cached_property
    def jobs(self) -> dict[str, JobTerms]:
        """The jobs by id."""
        made = (
            job_terms(job, self.key, self.nodes, self.rails)
            for job in self.scenario.jobs
        )
        return {job.id: job for job in made}

    @cached_property
    def shown(self) -> frozenset[str]:
        """What an agent may see of a rail: sights, meters, whether state files tell."""
        port = self.rail(0, 0)
        card = self.slot(port).card
        words: set[str] = set(self.sights)
        if not card.ethernet:
            words.discard("dcb")
        if card.family is Family.EFA:  # no transceiver is read, no driver of mlx5 logs
            words -= {"module", "kmsg"}
        elif "sysfs" in words:
            words.add(STATE)
        silent = set() if self.has_cnp else set(_NOTICES)
        if not self.is_infiniband:  # it knows no credits to wait for
            silent.add(Meter.TRANSMIT_WAIT)
        return frozenset(words | (counted(self, port) - silent))

    # Nodes

    def node_name(self, node: int) -> str:
        """Name of a node in traces."""
        return f"node{node:03d}"

    def rack(self, node: int) -> tuple[int, ...]:
        """Return the nodes of the same rack."""
        first = node - node % NODES_PER_RACK
        return tuple(range(first, min(first + NODES_PER_RACK, self.nodes)))

    def rack_name(self, node: int) -> str:
        """Name of a node's rack."""
        return f"rack{node // NODES_PER_RACK:02d}"

    def address(self, node: int) -> str:
        """Out-of-band address of a node, as NCCL prints it."""
        return f"10.20.{node // 250}.{node % 250 + 2}"

    # Ports

    def rail(self, node: int, rail: int) -> SimPort:
        """Return the port of a rail."""
        device, port = self._rails[rail]
        return SimPort(node, device, port)

    def are_planes(self, rail: int, other: int) -> bool:
        """Tell whether two rails are planes of one device, which share its traffic."""
        return rail != other and self._rails[rail][0] == self._rails[other][0]

    def rail_of(self, port: SimPort) -> int | None:
        """Return the rail of a port, None if it is none."""
        key = (port.device, port.port)
        return self._rails.index(key) if key in self._rails else None

    def storage(self, node: int) -> tuple[SimPort, ...]:
        """Return the storage ports of a node."""
        return self._of_use(node, Use.STORAGE)

    def management(self, node: int) -> SimPort | None:
        """Return the management port of a node."""
        return next(iter(self._of_use(node, Use.MANAGEMENT)), None)

    def unused(self, node: int) -> tuple[SimPort, ...]:
        """Return the ports that nothing was ever plugged into."""
        return tuple(
            port for port in self.ports(node) if port.port not in self.slot(port).used
        )

    def ports(self, node: int) -> tuple[SimPort, ...]:
        """Return every port of a node."""
        return tuple(
            SimPort(node, slot.device, port)
            for slot in self.profile.slots
            for port in range(1, slot.card.ports + 1)
        )

    def keeper(self, port: SimPort) -> SimPort:
        """Return the port of a device that keeps what is counted once for all."""
        first = min(self.slot(port).used, default=1)
        return SimPort(port.node, port.device, first)

    def slot(self, port: SimPort) -> Slot:
        """Return the slot of a port's device."""
        return self._slots[port.device]

    def place(self, device: str) -> Place:
        """Return where a device sits on PCIe."""
        slots = self.profile.slots
        number = next(n for n, slot in enumerate(slots) if slot.device == device)
        return Place((number + 1) * (_BUSES // (len(slots) + 1)))

    def rate_text(self, port: SimPort, share: float = 1.0) -> str:
        """Return what ``rate`` says at this share of the line rate.

        Half and quarter shares are fewer lanes, others a slower lane.
        """
        return rate_text(self.slot(port).card, share)

    def netdev(self, port: SimPort) -> str:
        """Return the network device of a port, empty where it has none."""
        slot, place = self.slot(port), self.place(port.device)
        if slot.card.layer == "Unknown":
            return ""
        if slot.bond:
            return "bond0"
        kind = "eno" if slot.use is Use.MANAGEMENT else "enp"
        if not slot.card.ethernet:
            kind = "ibp"
        tail = "np0" if slot.card.ethernet else ""
        plane = f"p{port.port - 1}" if slot.card.ports > 1 else ""
        return f"{kind}{place.bus + 1}s0{plane}{tail}"

    def physical_netdev(self, port: SimPort) -> str:
        """Return the network device of the PCI function itself: of a bond, a member."""
        if not self.slot(port).bond:
            return self.netdev(port)
        return f"enp{self.place(port.device).bus + 1}s0f0np0"

    def pci_address(self, port: SimPort) -> str:
        """Return the PCI address of a port's device."""
        return self.place(port.device).address

    # Fabric

    def leaf(self, port: SimPort) -> str:
        """Return the leaf that a port hangs on."""
        group = port.node // self.scenario.nodes_per_leaf
        rail = self.rail_of(port)
        if rail is not None:
            return f"leaf{group:02d}-rail{rail}"
        return f"leaf{group:02d}-{self.slot(port).use}"

    def ports_of_leaf(self, leaf: str) -> tuple[SimPort, ...]:
        """Return every port on a leaf."""
        return self.leafs.get(leaf, ())

    @cached_property
    def leafs(self) -> dict[str, tuple[SimPort, ...]]:
        """The ports of every leaf that have a cable."""
        found: dict[str, list[SimPort]] = {}
        for node in range(self.nodes):
            for port in self.ports(node):
                if port.port in self.slot(port).used:
                    found.setdefault(self.leaf(port), []).append(port)
        return {leaf: tuple(ports) for leaf, ports in found.items()}

    # Jobs

    def jobs_of(self, node: int) -> tuple[str, ...]:
        """Return the ids of the jobs that use a node."""
        return tuple(job.id for job in self.jobs.values() if node in job.nodes)

    def jobs_on(self, port: SimPort) -> tuple[str, ...]:
        """Return the ids of the jobs that use a port, whenever that is."""
        rail = self.rail_of(port)
        return tuple(
            job.id
            for job in self.jobs.values()
            if port.node in job.nodes and rail in job.rails
        )

    def work(self, port: SimPort) -> tuple[Work, ...]:
        """Return when jobs use a port, in order of their starts."""
        found = (self._work(self.jobs[job]) for job in self.jobs_on(port))
        return tuple(sorted(found, key=lambda work: work.start))

    def _work(self, job: JobTerms) -> Work:
        end = min(job.end, self._ends.get(job.id, self.duration), self.duration)
        return Work(job.id, job.plan.start, job.first_step, end)

    def job_start(self, job: str) -> float:
        """Return when the first step of a job begins."""
        return self.jobs[job].first_step

    def ack_seconds(self, job: str) -> float:
        """Return the time after which a job's connections miss an acknowledgement."""
        return self.jobs[job].ack_timeout

    def retries(self, job: str) -> int:
        """Return how often they send again before they give up."""
        return self.jobs[job].plan.retries

    def peers(self, port: SimPort) -> tuple[SimPort, ...]:
        """Return the ports that exchange data with this one in its jobs' rings."""
        rail = self.rail_of(port)
        if rail is None:
            return ()
        found: dict[SimPort, None] = {}
        for job in self.jobs.values():
            if port.node in job.nodes and rail in job.rails:
                for node in neighbours(job, job.nodes, port.node):
                    found[self.rail(node, rail)] = None
        return tuple(found)

    def _of_use(self, node: int, use: Use) -> tuple[SimPort, ...]:
        return tuple(
            SimPort(node, slot.device, port)
            for slot in self.profile.slots
            if slot.use is use
            for port in slot.used
        )


def neighbours(job: JobTerms, members: tuple[int, ...], node: int) -> tuple[int, ...]:
    """Return the nodes that talk with ``node`` on each rail: before it, then after."""
    others = tuple(each for each in members if each != node)
    if job.plan.pattern == "all_to_all" or len(others) < 2:  # noqa: PLR2004 - a pair
        return others
    at = members.index(node)
    return members[at - 1], members[(at + 1) % len(members)]


def rate_text(card: Card, share: float = 1.0) -> str:
    """Return the whole text of ``rate`` at this share of a card's line rate."""
    divisor = _RATE_SHARES.get(share)
    lanes, speed = card.lanes, card.speed
    if divisor is not None and lanes % divisor == 0:
        lanes //= divisor
    else:
        lane = card.lane_gbps * share
        speed, own = min(_LANES, key=lambda each: abs(each[1] - lane))
        share = own / card.lane_gbps
    gbps = card.gbps * share
    return f"{gbps:g} Gb/sec ({lanes}X {speed})"


_LANES = (
    ("SDR", 2.5), ("DDR", 5.0), ("QDR", 10.0), ("FDR", 14.0), ("EDR", 25.0),
    ("HDR", 50.0), ("NDR", 100.0), ("XDR", 200.0),
)  # fmt: skip
