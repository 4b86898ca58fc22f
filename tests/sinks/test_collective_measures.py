"""Rates of NCCL's Inspector as metrics."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.model import CollectiveRate, JobView
from fabricmon.sinks.collective_measures import MOST_COMMUNICATORS, OTHER
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

BANDWIDTH = "fabricmon_collective_bus_bandwidth_bytes_per_second"
EXECUTION = "fabricmon_collective_execution_seconds"
TRANSFER = "fabricmon_transfer_bus_bandwidth_bytes_per_second"
PLACE = 'collective="AllReduce",comm="0xabc",rank="3",size="64MiB"'


def rate(comm: str = "0xabc", rank: int = 3, **parts: object) -> CollectiveRate:
    """Return a rate of an AllReduce."""
    found = CollectiveRate(comm, rank, "AllReduce", "64MiB", 3, 300e9, 0.02)
    return replace(found, **parts)  # type: ignore[arg-type]


def series(*rates: CollectiveRate) -> dict[str, float]:
    """Return what is exported of these rates."""
    node = nodes.node(nodes.port(), job=JobView(rates=rates))
    found = scrape(exposition(node)).items()
    wanted = ("fabricmon_collective_", "fabricmon_transfer_")
    return {name: float(value) for name, value in found if name.startswith(wanted)}


def test_nothing_without_an_inspector() -> None:
    """A node without one has no series of it."""
    assert series() == {}


def test_collectives() -> None:
    """Bandwidth and time by communicator, rank, collective and class of size."""
    assert series(rate()) == {
        f"{BANDWIDTH}{{{PLACE}}}": 300e9,
        f"{EXECUTION}{{{PLACE}}}": 0.02,
    }


def test_transfers() -> None:
    """A transfer names the other end."""
    sent = series(rate(collective="Send", peer=11))
    place = 'collective="Send",comm="0xabc",peer="11",rank="3",size="64MiB"'
    assert sent[f"{TRANSFER}{{{place}}}"] == 300e9
    assert len(sent) == 2


def test_what_is_not_known() -> None:
    """A value that could not be measured has no series: never zero."""
    assert list(series(rate(bus_bandwidth=None))) == [f"{EXECUTION}{{{PLACE}}}"]
    assert list(series(rate(seconds=None))) == [f"{BANDWIDTH}{{{PLACE}}}"]


def test_communicators_are_bounded() -> None:
    """Those beyond the limit share one label value, and the lowest of them counts."""
    many = [rate(f"{n:04}", bus_bandwidth=100e9 + n) for n in range(40)]
    found = {k: v for k, v in series(*many).items() if k.startswith(BANDWIDTH)}
    assert len(found) == MOST_COMMUNICATORS + 1
    other = PLACE.replace("0xabc", OTHER)
    assert found[f"{BANDWIDTH}{{{other}}}"] == 100e9 + MOST_COMMUNICATORS


def test_hostile_names() -> None:
    """A communicator's name is a job's to choose: it cannot leave its label."""
    found = series(rate('a"} 1\nfoo'))
    assert len(found) == 2
