"""One injection on its way to effects and truth: who, when, how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fabricmon.errors import ConfigError
from fabricmon.sim.effects import Effect, Made, SimPort
from fabricmon.sim.faults.row import Fabric, FaultClass, Parameter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection
from fabricmon.sim.truth import FaultTruth, Forbidden, Place

DEADLINE = "deadline"
"""Parameter of every fault: seconds, in place of the class's own deadline."""


@dataclass(frozen=True, slots=True)
class Case:
    """An injection, the fleet that it hits, and its random numbers."""

    row: FaultClass
    injection: Injection
    plan: Plan
    draw: Draw
    onset: float
    until: float
    """When it is over: ``end`` of the injection, else the end of the scenario."""

    @property
    def end(self) -> float | None:
        """End as the truth has it: None if it outlives the scenario."""
        return self.until if self.until < self.plan.duration else None

    def lasting(self, seconds: float) -> Case:
        """Return the case, over after so many seconds unless the file says when."""
        if self.injection.end is not None:
            return self
        until = min(self.onset + max(seconds, 0.0), self.plan.duration)
        return replace(self, until=until)

    def at(self, onset: float) -> Case:
        """Return the case with another beginning, within the scenario."""
        onset = min(max(onset, 0.0), self.plan.duration)
        return replace(self, onset=onset, until=max(onset, self.until))

    def number(self, name: str) -> float:
        """Return a magnitude: of the file, else drawn from the class's default."""
        default = self._parameter(name).default
        if isinstance(default, (str, bool)):
            raise TypeError(f"{name} of {self.row.id} is no number")
        return self.draw.number(name, default)

    def whole(self, name: str) -> int:
        """Return a magnitude that counts something."""
        return round(self.number(name))

    def word(self, name: str) -> str:
        """Return one of the words of a parameter."""
        return str(self._given(name))

    def flag(self, name: str) -> bool:
        """Return a switch."""
        return bool(self._given(name))

    def _given(self, name: str) -> object:
        default = self._parameter(name).default
        return self.injection.parameters.get(name, default)

    def _parameter(self, name: str) -> Parameter:
        found = self.row.parameter(name)
        if found is None:
            raise KeyError(f"{self.row.id} has no parameter {name}")
        return found

    @property
    def deadline(self) -> float:
        """Seconds from the complete signature to an answer."""
        return self.draw.number(DEADLINE, self.row.deadline)

    def node(self) -> int:
        """Return the node of the injection, else one that works for a job."""
        if self.injection.node is not None:
            return self.injection.node
        if self.injection.nodes:
            return self.injection.nodes[0]
        many = range(self.plan.nodes)
        busy = [node for node in many if self.plan.jobs_of(node)]
        return self.draw.pick(busy or list(many))

    def nodes(self) -> tuple[int, ...]:
        """Return the nodes of the injection, else all."""
        if self.injection.nodes is not None:
            return self.injection.nodes
        if self.injection.node is not None:
            return (self.injection.node,)
        return tuple(range(self.plan.nodes))

    def rail(self, node: int) -> int:
        """Return the rail of the injection, else one of the node's that works."""
        if self.injection.rail is not None:
            return self.injection.rail
        many = range(self.plan.rails)
        busy = [rail for rail in many if self.plan.peers(self.plan.rail(node, rail))]
        return self.draw.pick(busy or list(many))

    def port(self) -> SimPort:
        """Return the port that is hit: by device, by rail, else drawn."""
        node = self.node()
        device = self.injection.device
        if device is not None:
            rails = (each for each in self.rails_of(node) if each.device == device)
            return next(rails, SimPort(node, device))
        return self.plan.rail(node, self.rail(node))

    def leaf(self) -> str:
        """Return the leaf of the injection, else that of the port that is hit."""
        return self.injection.leaf or self.plan.leaf(self.port())

    def peer_of(self, port: SimPort) -> SimPort | None:
        """Return one port that talks to this one, on the injection's peer if given."""
        many = sorted(self.plan.peers(port))
        if self.injection.peer is not None:
            many = [each for each in many if each.node == self.injection.peer]
        return many[self.draw.pick(range(len(many)))] if many else None

    def rails_of(self, node: int) -> tuple[SimPort, ...]:
        """Return all rails of a node."""
        return tuple(self.plan.rail(node, rail) for rail in range(self.plan.rails))

    def rail_of(self, port: SimPort) -> int | None:
        """Return the number of the rail that a port is, None if it is none."""
        rails = self.rails_of(port.node)
        return rails.index(port) if port in rails else None

    def companions(self, node: int) -> tuple[int, ...]:
        """Return the other nodes that share a job with this one."""
        mine = set(self.plan.jobs_of(node))
        return tuple(
            other
            for other in range(self.plan.nodes)
            if other != node and mine.intersection(self.plan.jobs_of(other))
        )

    def planes(self, port: SimPort) -> tuple[SimPort, ...]:
        """Return all rails of a port's device: several where it has planes."""
        rails = self.rails_of(port.node)
        return tuple(each for each in rails if each.device == port.device) or (port,)

    def begun(
        self, ports: Iterable[SimPort], since: float | None = None
    ) -> float | None:
        """Return when data first goes over one of the ports, before it is over.

        ``since`` (the onset unless given) where a job runs already; None: never.
        """
        since = self.onset if since is None else since
        works = (work for port in ports for work in self.plan.work(port))
        begins = [max(work.first_step, since) for work in works if work.end > since]
        first = min(begins, default=self.until)
        return first if first < self.until else None

    def jobs_at(self, port: SimPort, t: float) -> tuple[str, ...]:
        """Return the jobs that use a port at a time."""
        works = self.plan.work(port)
        return tuple(work.job for work in works if work.start <= t < work.end)

    def patience(self, job: str) -> float:
        """Return the seconds after which a job gives up on who does not answer."""
        return self.plan.ack_seconds(job) * self.plan.retries(job)

    def log_job(self, port: SimPort, t: float) -> str | None:
        """Return the job whose log tells of a port: one that runs, else any on it."""
        found = (*self.jobs_at(port, t), *self.plan.jobs_on(port))
        return next(iter(found), None)

    def same_rail(self, port: SimPort) -> tuple[SimPort, ...]:
        """Return the ports of the same rail on the other nodes of its jobs."""
        rail, mine = self.rail_of(port), set(self.plan.jobs_on(port))
        if rail is None:
            return ()
        others = (self.plan.rail(node, rail) for node in self.companions(port.node))
        return tuple(each for each in others if mine & set(self.plan.jobs_on(each)))

    def events(self, gap: float, most: int = 100_000) -> Iterator[float]:
        """Yield the times of a Poisson process between onset and end."""
        at = self.onset + self.draw.gap(gap)
        while at < self.until and most > 0:
            yield at
            most -= 1
            at += self.draw.gap(gap)

    def fault(
        self,
        port: SimPort | None = None,
        *,
        onset: float | None = None,
        node: int | None = None,
        accept: Sequence[str] = (),
        deadline: float | None = None,
        rail: int | None = None,
        leaf: str | None = None,
        peer: int | None = None,
        signals: Sequence[str] = (),
        by_vote: bool | None = None,
        traffic: Iterable[SimPort] | None = None,
        visible: bool = True,
    ) -> FaultTruth:
        """Return the truth of this case at a port, a node or a place of the fabric.

        ``traffic`` are ports of which one has to carry data for the signature, of a
        class that is ``by_traffic`` those of the place unless given. ``visible`` is
        False where the signature is never complete.
        """
        if port is not None:
            node = port.node
            rail = self.rail_of(port) if rail is None else rail
        if traffic is None and self.row.by_traffic:
            traffic = self._ports(port, node)
        since = self.onset if onset is None else onset
        onset = since if traffic is None else self.begun(traffic, since)
        votes = self.row.by_vote if by_vote is None else by_vote
        given = DEADLINE in self.injection.parameters
        name = self.plan.node_name
        return FaultTruth(
            fault=self.row.id,
            begin=self.onset,
            onset=since if onset is None else onset,
            end=self.end,
            accept=tuple(accept or self.row.accept),
            deadline=self.deadline if given or deadline is None else deadline,
            visible=visible and self._is_seen(onset, by_vote=votes),
            node=None if node is None else name(node),
            device=port.device if port else None,
            port=port.port if port else None,
            rail=rail,
            leaf=leaf,
            peer=None if peer is None else name(peer),
            signals=tuple(dict.fromkeys(signals)),
            by_vote=votes,
        )

    def _ports(self, port: SimPort | None, node: int | None) -> tuple[SimPort, ...]:
        """Return the ports of a place; the class says them of leafs and rails."""
        if port is None and node is None:
            raise TypeError(f"{self.row.id} does not say whose traffic shows it")
        return self.rails_of(node or 0) if port is None else (port,)

    def _is_seen(self, onset: float | None, *, by_vote: bool) -> bool:
        """Tell whether a signature that is complete at a time (None: never) shows."""
        shown = self.plan.shown
        if onset is None or onset >= self.plan.duration:
            return False
        return self.row.is_visible(shown) and ("peers" in shown or not by_vote)

    def suffering(self, ports: Sequence[SimPort]) -> tuple[Place, ...]:
        """Return ports as victims."""
        return tuple(
            Place(node=self.plan.node_name(each.node), device=each.device,
                  port=each.port)
            for each in sorted(set(ports))
        )  # fmt: skip

    def spared(self, ports: Sequence[SimPort]) -> tuple[Forbidden, ...]:
        """Return that nothing actionable may be said of these ports' devices."""
        places = sorted({(each.node, each.device) for each in ports})
        return tuple(
            Forbidden(node=self.plan.node_name(node), device=device, actionable=True)
            for node, device in places
        )

    def made(
        self,
        effects: Sequence[Effect],
        faults: Sequence[FaultTruth] = (),
        victims: Sequence[SimPort] = (),
        forbid: Sequence[Forbidden] = (),
    ) -> Made:
        """Return what became of it; victims may not be blamed."""
        return Made(
            tuple(effects),
            tuple(faults),
            self.suffering(victims),
            (*forbid, *self.spared(victims)),
        )


def case_of(
    row: FaultClass, injection: Injection, plan: Plan, draw: Draw
) -> Case:  # fmt: skip
    """Return the case of an injection; raises `ConfigError` where it cannot be."""
    _check_fabric(row, plan)
    onset = draw.number("onset", injection.onset)
    end = plan.duration
    if injection.end is not None:
        end = draw.number("end", injection.end)
    if onset >= plan.duration or end < onset:
        raise ConfigError(
            f"{row.id} begins at {onset:.0f} s and ends at {end:.0f} s of "
            f"{plan.duration:.0f} s",
            key="inject.onset",
            remedy="let it begin within the scenario and end after it began",
        )
    return Case(row, injection, plan, draw, onset, min(end, plan.duration))


def _check_fabric(row: FaultClass, plan: Plan) -> None:
    wanted = Fabric.INFINIBAND if plan.is_infiniband else Fabric.ETHERNET
    if row.fabric not in {Fabric.BOTH, wanted}:
        raise ConfigError(
            f"{row.id} can only be on {row.fabric}, the profile is {wanted}",
            key="profile",
            remedy="choose another profile",
        )
