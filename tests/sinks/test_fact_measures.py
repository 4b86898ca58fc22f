from fabricmon.model import JobFacts, OutageBudget, PeerVotes, Snapshot
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape


def snapshot(jobs: int = 0, peers: int = 0) -> Snapshot:
    """Return a node that heard of so many jobs and failing peers."""
    budgets = tuple(OutageBudget(f"job-{n}", 30.0 + n) for n in range(jobs))
    votes = tuple(PeerVotes(f"10.0.0.{n}", peers - n, nodes.WALL) for n in range(peers))
    return nodes.node(nodes.port(), job_facts=JobFacts(budgets, votes))


def found(snapshot: Snapshot, name: str) -> dict[str, str]:
    """Return the series of a family."""
    every = scrape(exposition(snapshot))
    return {series: value for series, value in every.items() if name in series}


def test_how_long_a_job_survives() -> None:
    """The budget of each job."""
    series = found(snapshot(jobs=2), "outage_budget")
    assert series['fabricmon_job_outage_budget_seconds{job="job-1"}'] == "31.0"


def test_votes_on_a_peer() -> None:
    """The name that other rules rely on."""
    series = found(snapshot(peers=2), "peer_votes")
    assert series['fabricmon_peer_votes{peer="10.0.0.0"}'] == "2"


def test_labels_are_bounded() -> None:
    """At most 32 values; the rest is one, the worst of them."""
    budgets = found(snapshot(jobs=40), "outage_budget")
    assert len(budgets) == 32
    assert budgets['fabricmon_job_outage_budget_seconds{job="other"}'] == "61.0"
    votes = found(snapshot(peers=40), "peer_votes")
    assert len(votes) == 32
    assert float(votes['fabricmon_peer_votes{peer="other"}']) == sum(range(1, 10))


def test_nothing_heard() -> None:
    """A node without logs has no series for them."""
    assert found(snapshot(), "outage_budget") == found(snapshot(), "peer_votes") == {}
