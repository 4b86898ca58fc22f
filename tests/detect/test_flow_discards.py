"""Packets that a port drops on their way out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.congestion import Congestion
from fabricmon.model import Action, Part, Role, Severity
from tests.node import RAILS
from tests.rails import MLX5, ROCE, Rails

FILES = {**MLX5, "port_xmit_discards": Directory.COUNTERS}
CEILING = 65_535  # of the counter's 16 bits


def node_of(*, roce: bool = False) -> Rails:
    """Return a node that counts what it drops on the way out."""
    return Rails(Congestion, files=FILES, infos=ROCE if roce else RAILS)


@pytest.mark.parametrize("roce", [False, True])
def test_for_minutes(roce: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A victim is told of, with nothing to drain."""
    node = node_of(roce=roce)
    node.run(200)
    node.every(2, port_xmit_discards=30)
    node.run(400)
    (finding,) = node.found("congestion")
    assert (finding.subject.device, finding.part) == ("mlx5_2", Part.VICTIM)
    assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)
    (item,) = finding.evidence
    assert (item.signal, item.threshold) == ("port_xmit_discards", 6000)
    node.still()
    node.run(120)
    assert node.found("congestion") == []


def test_until_the_counter_is_full() -> None:
    """At its ceiling within two reads: so many it were at least."""
    node = node_of()
    node.run(200)
    node.put(node.rail(2), port_xmit_discards=CEILING)
    node.run(20)
    (finding,) = node.found("congestion")
    assert "at least 65535" in finding.summary


def test_full_from_an_earlier_life() -> None:
    """A counter that stands at its ceiling says nothing of today."""
    node = node_of()
    node.put(node.rail(2), port_xmit_discards=CEILING)
    node.run(10)
    node.changes.clear()
    node.run(900)
    assert node.found("congestion") == []


def test_few() -> None:
    """Below ten a second nobody suffers."""
    node = node_of()
    node.every(2, port_xmit_discards=8)
    node.run(900)
    assert node.opened == []


def test_a_burst() -> None:
    """What was queued when a job was killed."""
    node = node_of()
    node.run(200)
    node.grow(node.rail(2), port_xmit_discards=20_000)
    node.run(300)
    assert node.opened == []


def test_an_outage_of_the_link() -> None:
    """It drops what is queued: the link is the story."""
    node = node_of()
    node.run(200)
    node.every(2, port_xmit_discards=500)
    node.grow(node.rail(2), link_downed=1)
    node.run(300)
    assert node.found("congestion") == []


def test_a_storage_port() -> None:
    """What is no rail has its own ways."""
    infos = (replace(RAILS[0], role=Role.STORAGE), *RAILS[1:])
    node = Rails(Congestion, files=FILES, infos=infos)
    node.every(0, port_xmit_discards=500)
    node.run(900)
    assert node.opened == []
