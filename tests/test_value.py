"""What every record can do."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from fabricmon.model import PortId
from fabricmon.value import State, Value


class Place(Value, frozen=True):
    """A record with a default."""

    port: PortId
    slot: int = 1


PLACE = Place(PortId("mlx5_0", 1), slot=2)


def test_equal_by_what_it_holds() -> None:
    """Two that hold the same are one key."""
    again = Place(PortId("mlx5_0", 1), slot=2)
    assert again == PLACE
    assert {PLACE: "found"}[again] == "found"
    assert Place(PortId("mlx5_0", 2), slot=2) != PLACE


def test_never_changes() -> None:
    """Whoever was given one may keep it."""
    loose: Any = PLACE
    with pytest.raises(AttributeError):
        loose.slot = 3


def test_dataclasses_know_it() -> None:
    """What works on a dataclass works on it: copies, names, dictionaries."""
    assert dataclasses.replace(PLACE, slot=3) == Place(PLACE.port, 3)
    assert PLACE.slot == 2
    assert [field.name for field in dataclasses.fields(PLACE)] == ["port", "slot"]
    assert dataclasses.asdict(PLACE) == {
        "port": {"device": "mlx5_0", "port": 1},
        "slot": 2,
    }


class Tally(State):
    """State with a default that is made anew."""

    name: str
    seen: list[int] = msgspec.field(default_factory=list)


def test_state_changes_and_is_no_key() -> None:
    """What a module keeps it changes in place, each its own."""
    one, other = Tally("a"), Tally("a")
    one.seen.append(1)
    one.name = "b"
    assert (other.name, other.seen) == ("a", [])
    assert one != other == Tally("a")
    with pytest.raises(TypeError):
        hash(one)


def test_dataclasses_know_state() -> None:
    """A copy of it is one of their calls."""
    one = Tally("a", [1])
    copy = dataclasses.replace(one, seen=[2])
    assert (copy.name, copy.seen, one.seen) == ("a", [2], [1])
