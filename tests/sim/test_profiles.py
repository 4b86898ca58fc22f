"""A healthy node of every profile, through the agent: silent, and known for what it is."""

from dataclasses import dataclass

import pytest

from fabricmon.model import PortSnapshot, Role, Severity, Verdict
from fabricmon.replaying import Change, Replay
from fabricmon.sim.host import simulated_host
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import JobPlan
from tests.sim import fleets

ONE_PORT = sorted(set(PROFILES) - {"B300-multiplane"})


@dataclass
class Seen:
    """What the agent saw of a node."""

    plan: FleetPlan
    changes: tuple[Change, ...]
    ports: dict[tuple[str, int], PortSnapshot]
    problems: int


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    """Replay a few minutes of one healthy node of each profile."""
    found = {}
    for profile in PROFILES:
        seconds = 40.0 if profile == "B300-multiplane" else 100.0
        job = JobPlan(start=5.0, init=10.0)
        made = fleets.stage(
            profile=profile, noise=1.0, duration=seconds, seed=3, jobs=(job,)
        )
        replay = Replay(simulated_host(made, 1))
        changes = tuple(replay.changes())
        snapshots = replay.pipeline.snapshot.ports
        ports = {(each.info.id.device, each.info.id.port): each for each in snapshots}
        found[profile] = Seen(made.plan, changes, ports, replay.host.problem_count)
    return found


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_healthy_node_is_silent(seen: dict[str, Seen], profile: str) -> None:
    """Nothing at warning or above, nothing actionable, every verdict healthy."""
    loud = [
        (change.incident.finding.kind, change.incident.finding.summary)
        for change in seen[profile].changes
        if change.incident.finding.severity >= Severity.WARNING
        or change.incident.finding.action.value != "none"
    ]
    assert loud == []
    verdicts = {port.verdict for port in seen[profile].ports.values()}
    assert verdicts == {Verdict.HEALTHY}


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_trace_can_be_used_whole(seen: dict[str, Seen], profile: str) -> None:
    """No change of it is impossible."""
    assert seen[profile].problems == 0


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_rails_are_found(seen: dict[str, Seen], profile: str) -> None:
    """By PCI order and GPUs alone, or by the topology where there are planes."""
    plan, ports = seen[profile].plan, seen[profile].ports
    for rail in range(plan.rails):
        port = plan.rail(1, rail)
        info = ports[port.device, port.port].info
        assert (info.role, info.rail) == (Role.COMPUTE, rail)
        assert (info.netdev or "") == plan.netdev(port)
    rails = [port.info.rail for port in ports.values() if port.info.rail is not None]
    assert len(rails) == plan.rails


@pytest.mark.parametrize("profile", ONE_PORT)
def test_other_ports_are_no_rails(seen: dict[str, Seen], profile: str) -> None:
    """Storage and management are told apart by their boards and rates."""
    plan, ports = seen[profile].plan, seen[profile].ports
    for port in plan.storage(1):
        assert ports[port.device, port.port].info.role is Role.STORAGE
        assert ports[port.device, port.port].info.netdev == plan.netdev(port)
    management = plan.management(1)
    if management is not None:
        assert ports[management.device, 1].info.role is Role.MANAGEMENT
