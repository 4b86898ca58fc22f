"""Priorities of RoCE ports as text, so that nodes can be compared."""

from dataclasses import replace

import pytest

from fabricmon.model import (
    NO_CLASS,
    HostPath,
    JobView,
    PortSnapshot,
    PriorityUse,
    Role,
)
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.priority_measures import dscp_text
from tests.sinks import nodes
from tests.sinks.scraping import DRIVER_VALUES, exposition, scrape

PLAIN = tuple(dscp // 8 for dscp in range(64))
NAME = "fabricmon_port_priorities_info"
ETHERNET = LinkLayer.ETHERNET


def series(*uses: PriorityUse, port: PortSnapshot | None = None) -> list[str]:
    """Return the series of a node with this port and these settings."""
    shown = port or nodes.port(layer=ETHERNET)
    job = JobView(host_path=HostPath(0.0, priorities=uses))
    found = scrape(exposition(nodes.node(shown, job=job)))
    return [each for each in found if each.startswith(NAME)]


def table(**changes: int) -> tuple[int, ...]:
    """Return the usual map with some DSCPs (``d26=4``) changed."""
    own = {int(name[1:]): priority for name, priority in changes.items()}
    return tuple(own.get(dscp, usual) for dscp, usual in enumerate(PLAIN))


def test_one_series_tells_the_settings_of_a_port() -> None:
    """As an operator would name them."""
    use = PriorityUse("net_mlx5_0", (3,), (3, 4), table(d48=3), 106, 104)
    (found,) = series(use)
    labels = 'default_tos="104",device="mlx5_0",dscp="48:3",ecn="3,4",pfc="3",port="1"'
    assert found == f'{NAME}{{{labels},traffic_class="106"}}'


def test_what_is_off_is_told_and_what_cannot_be_read_is_not() -> None:
    """They are different: an empty label is none to Prometheus."""
    (found,) = series(PriorityUse("net_mlx5_0", (), traffic_class=NO_CLASS))
    assert 'pfc="none"' in found
    assert 'traffic_class="none"' in found
    assert 'ecn=""' in found
    assert 'dscp=""' in found


def test_a_port_of_which_nothing_can_be_read_has_no_series() -> None:
    """Nor has one that nobody asked about."""
    assert series(PriorityUse("net_mlx5_0")) == []
    assert series(PriorityUse("eth9", (3,))) == []


def test_a_bond_is_known_by_its_member() -> None:
    """The kernel has priorities of real network devices."""
    port = nodes.port(layer=ETHERNET)
    bond = replace(port.info, netdev="bond0", netdevs=("net_mlx5_0",))
    (found,) = series(PriorityUse("net_mlx5_0", (3,)), port=replace(port, info=bond))
    assert 'pfc="3"' in found


@pytest.mark.parametrize(
    "changes",
    [
        {"role": Role.STORAGE},
        {"link_layer": LinkLayer.INFINIBAND},
        {"is_vf": True},
    ],
    ids=["storage", "InfiniBand", "virtual function"],
)
def test_ports_that_are_no_rails_have_none(changes: dict[str, object]) -> None:
    """Storage has settings of its own; InfiniBand has none of these."""
    port = nodes.port(layer=ETHERNET)
    other = replace(port, info=replace(port.info, **changes))  # type: ignore[arg-type]
    assert series(PriorityUse("net_mlx5_0", (3,)), port=other) == []


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (None, ""),
        ((), "pcp"),
        (PLAIN, "default"),
        (table(d26=4, d48=6), "26:4"),
        ((0,) * 26 + (3,) + (0,) * 37, "*:0,26:3"),
        (tuple(7 - priority for priority in PLAIN), "crc32:1bbbebe2"),
    ],
)
def test_a_map_is_told_by_what_is_not_usual(
    known: tuple[int, ...] | None, text: str
) -> None:
    """Short, whatever stands in it."""
    assert dscp_text(known) == text


def test_a_node_keeps_to_its_room() -> None:
    """At most 80 series a port, with priorities and all that counts."""
    full = nodes.eight(ETHERNET, DRIVER_VALUES)
    uses = tuple(PriorityUse(f"net_mlx5_{n}", (3,)) for n in range(8))
    told = replace(full, job=JobView(host_path=HostPath(0.0, priorities=uses)))
    found = scrape(exposition(told))
    assert sum(each.startswith(NAME) for each in found) == 8
    assert sum('port="' in each or 'device="' in each for each in found) <= 80 * 8
