from __future__ import annotations

import pytest

from fabricmon.sim.effects import Made
from fabricmon.sim.faults.row import FaultClass, Group, Parameter, Scaling
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection, Magnitude, Scenario
from fabricmon.sim.sensitivity import scaled


def _make(injection: Injection, plan: Plan, draw: Draw) -> Made:
    return Made()


ROW = FaultClass(
    "F01",
    "Made for a test",
    Group.LINK,
    _make,
    parameters=(
        Parameter("rate", (1.0, 10.0), "1/s", "", scaling=Scaling.TIMES, high=15),
        Parameter("gap", 60.0, "s", "", scaling=Scaling.SHORTER),
        Parameter("capacity", 0.6, "", "", scaling=Scaling.LOSS, low=0.05, high=1),
        Parameter("length", 30.0, "s", ""),
        Parameter("shape", "step", "", "", scaling=Scaling.TIMES, words=("step",)),
    ),
)


def parameters(factor: float, **given: Magnitude | str | bool) -> dict[str, object]:
    """Return the parameters of a scaled injection."""
    injection = Injection(what="F01", parameters=given)
    scenario = Scenario(name="a", summary="b", inject=(injection,))
    return dict(scaled(scenario, factor, (ROW,)).inject[0].parameters)


def test_defaults_follow() -> None:
    """What the file leaves to the class is scaled as well; times stay."""
    assert parameters(0.5) == {
        "rate": (0.5, 5),
        "gap": 120,
        "capacity": pytest.approx(0.8),
    }


def test_given_values_follow() -> None:
    """So is what the file gives."""
    assert parameters(2, rate=3.0, gap=(10, 20), capacity=0.9, length=5) == {
        "rate": 6,
        "gap": (5, 10),
        "capacity": pytest.approx(0.8),
        "length": 5,
    }


def test_bounds_hold() -> None:
    """A parameter never leaves its bounds."""
    assert parameters(2)["rate"] == (2, 15)
    assert parameters(3)["capacity"] == 0.05
    assert parameters(100)["rate"] == 15


def test_as_it_is() -> None:
    """At factor 1 nothing moves; a class that is not known stays."""
    assert parameters(1)["rate"] == (1, 10)
    other = Scenario(name="a", summary="b", inject=(Injection(what="N01"),))
    assert scaled(other, 2, (ROW,)) == other
