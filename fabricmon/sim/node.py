"""One node of a fleet as a stream of trace records, made while they are read.

Nothing ticks: a queue holds what happens next, to jobs, links and counters, and a
record is made for each moment at which something changed. Memory does not grow with
the length of the scenario.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from random import Random

from fabricmon.host.trace import Bridging, Header, Module, TraceRecord
from fabricmon.sim import healthy
from fabricmon.sim.counter_files import What
from fabricmon.sim.draw import source
from fabricmon.sim.effects import Effect, ModuleReading, Preset, SimPort, Unreadable
from fabricmon.sim.job_play import NodeJob
from fabricmon.sim.node_effects import EffectPlayer, concerns
from fabricmon.sim.node_traffic import NodeTraffic
from fabricmon.sim.page import Page
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.port import Port
from fabricmon.sim.processes import Course, Process
from fabricmon.sim.profiles import Family, Use
from fabricmon.sim.staging import START, Stage
from fabricmon.sim.sysfs import device_layout, first_ifindex, node_layout
from fabricmon.sim.traffic import whole

MODULE_SECONDS = 300.0
"""A transceiver's temperature moves so rarely that this shows it."""
TEMPERATURE_STEP = 0.3
HEALTHY = "healthy"


class NodePlay:
    """Plays one node; `records` does so once."""

    def __init__(self, stage: Stage, node: int) -> None:
        self.stage = stage
        self.plan: FleetPlan = stage.plan
        self.node = node
        self.page = Page()
        self.random = source(*self.plan.key, "node", node)
        self.ports = {
            port: Port(self.plan, port, self.page, self)
            for port in self.plan.ports(node)
        }
        self.habits = {
            which: healthy.habits(port, self.plan, self._source(which, "habits"))
            for which, port in self.ports.items()
        }
        self.traffic = NodeTraffic(
            self.plan, node, self.ports, self.habits, self._source(node, "traffic")
        )
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()
        self._now = 0.0
        self.jobs: tuple[NodeJob, ...] = ()
        self.is_booting = False  # nothing runs that could print
        self._effects: tuple[Effect, ...] = tuple(
            effect for effect in stage.effects if concerns(effect, node)
        )

    @property
    def header(self) -> Header:
        """The first line of the trace."""
        plan = self.plan
        return Header(
            node=plan.node_name(self.node),
            boot_id=self.boot_id(0),
            start=START,
            topology=_topology(plan, self.node),
            peers={plan.address(n): plan.node_name(n) for n in range(plan.nodes)},
        )

    def boot_id(self, boot: int) -> str:
        """Return the identity of a boot of this node."""
        digits = f"{self._source('boot', boot).getrandbits(128):032x}"
        cuts = (0, 8, 12, 16, 20, 32)
        return "-".join(digits[a:b] for a, b in pairwise(cuts))

    def real_path(self, path: str) -> str:
        """Return where a path through a class leads: texts are kept under that."""
        for slot in self.plan.profile.slots:
            folder = f"{self.plan.place(slot.device).folder}/infiniband/{slot.device}"
            way = f"/sys/class/infiniband/{slot.device}/"
            if path.startswith(way):
                return f"{folder}/{path.removeprefix(way)}"
        for port in self.ports.values():
            way = f"/sys/class/net/{port.link.netdev}/"
            if port.link.netdev and path.startswith(way):
                return f"{port.link.net_folder}/{path.removeprefix(way)}"
        return path

    def at(self, t: float, action: Callable[[float], None]) -> None:
        """Call ``action`` when time comes to ``t``; never if that is after the end."""
        t = max(whole(t), self._now)
        if t <= self.plan.duration:
            heapq.heappush(self._queue, (t, next(self._order), action))

    def records(self) -> Iterator[TraceRecord]:
        """Yield every record, in order of time; the last one is the end."""
        self._stand()
        self._start()
        while self._queue:
            t, _, action = heapq.heappop(self._queue)
            if t > self._now and not self.page.is_empty:
                yield self.page.take(self._now)
            self._now = t
            action(t)
        if not self.page.is_empty and self._now < self.plan.duration:
            yield self.page.take(self._now)
        yield self.page.take(self.plan.duration)

    def make_process(self, port: SimPort, course: Course, *key: object) -> Process:
        """Return a process on a port, with random numbers of its own."""
        return Process(self.ports[port], course, self._source(port, *key), self)

    def _source(self, *key: object) -> Random:
        return source(*self.plan.key, "node", self.node, *key)

    def _stand(self) -> None:
        """Put everything in place as it stands at t = 0."""
        plan = self.plan
        for effect in self._effects:
            if isinstance(effect, Unreadable):
                self.page.keep(self.real_path(effect.path))
        self.page.layout(node_layout(plan))
        for number, slot in enumerate(plan.profile.slots):
            layout = device_layout(plan, self.node, slot, first_ifindex(number))
            self.page.layout(layout)
        given = [e for e in self._effects if isinstance(e, Preset)]
        for which, port in self.ports.items():
            stands = healthy.presets(port, plan, self._source(which, "presets"))
            for what, value in stands.items():
                _preset(port, what, value)
            for preset in given:
                if preset.port == which:
                    _preset(port, preset.meter, preset.value)
            if plan.slot(which).card.family is Family.MLX5 or which.port == 1:
                port.show_all(0.0)
            self._stand_aside(which, port)

    def _stand_aside(self, which: SimPort, port: Port) -> None:
        """Show what lies beside the files: transceiver, bridging, health."""
        plan, habit = self.plan, self.habits[which]
        used = which.port in plan.slot(which).used
        mlx5 = plan.slot(which).card.family is Family.MLX5
        if "module" in plan.sights and used and mlx5:
            name = f"{port.name}/{which.port}"
            self.page.module(name, healthy.module(habit, habit.temperature))
        if "dcb" in plan.sights and used and plan.slot(which).card.ethernet:
            ecn = {"enabled": plan.has_cnp}
            bridging = Bridging(pfc_enabled=(3,), ecn=ecn, dscp_to_priority={"26": 3})
            self.page.bridging(port.link.netdev, bridging)
        if "pcie" in plan.sights and mlx5 and which.port == 1:
            address = plan.pci_address(which)
            for reporter in ("fw", "fw_fatal"):
                self.page.health(address, reporter, HEALTHY)

    def _start(self) -> None:
        """Let everything begin that goes on by itself, then what is injected."""
        self.traffic.start(0.0)
        for which, port in self.ports.items():
            background = healthy.courses(port, self.plan, self._source(which, "noise"))
            for number, course in enumerate(background):
                self.make_process(which, course, "course", number).start(0.0)
        self._start_modules()
        self.jobs = tuple(
            NodeJob(self, self.plan.jobs[job]) for job in self.plan.jobs_of(self.node)
        )
        effects = EffectPlayer(self)
        for number, effect in enumerate(self._effects):
            effects.schedule(effect, number)
        for job in self.jobs:
            job.start()

    def _start_modules(self) -> None:
        """Let temperatures wander, but for those that a fault speaks of."""
        if "module" not in self.plan.sights or not self.plan.scenario.noise:
            return
        told = {e.port for e in self._effects if isinstance(e, ModuleReading)}
        for which in self.ports:
            slot = self.plan.slot(which)
            has_module = which.port in slot.used and slot.card.family is Family.MLX5
            if has_module and which not in told:
                self._warm(which)

    def _warm(self, which: SimPort) -> None:
        random = self._source(which, "module")
        usual = now = self.habits[which].temperature

        def look(t: float) -> None:
            nonlocal now
            now += 0.2 * (usual - now) + random.gauss(0.0, TEMPERATURE_STEP)
            name = f"{self.ports[which].name}/{which.port}"
            self.page.module(name, Module(temperature_c=round(now, 1)))
            self.at(t + MODULE_SECONDS, look)

        self.at(random.uniform(0, MODULE_SECONDS), look)


def _preset(port: Port, what: What, value: int | None) -> None:
    for counter in port.counters.of(what):
        top = counter.ceiling or (1 << 48)
        scaled = top if value is None else int(value * counter.share)
        counter.put(0.0, min(scaled, top))


def _topology(plan: FleetPlan, node: int) -> dict[str, object] | None:
    """Return the places of a node with planes, whose rails nobody could infer."""
    if all(slot.card.ports == 1 for slot in plan.profile.slots):
        return None
    ports: dict[str, object] = {}
    for rail in range(plan.rails):
        port = plan.rail(node, rail)
        ports[f"{port.device}/{port.port}"] = {
            "leaf": plan.leaf(port),
            "rail": rail,
            "role": "compute",
            "plane": plan.slot(port).used.index(port.port),
        }
    for port in plan.ports(node):
        use = plan.slot(port).use
        role = "unknown" if use in {Use.COMPUTE, Use.UNUSED} else str(use)
        ports.setdefault(f"{port.device}/{port.port}", {"role": role})
    return {"rack": plan.rack_name(node), "ports": ports}
