"""The same scenario with every injection weaker or stronger by a factor.

What a detector finds must not hang on the magnitudes that somebody happened to write:
so a scenario is run at half and at double of them too. Times stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from fabricmon.sim.faults.row import FaultClass, Parameter, Scaling
from fabricmon.sim.scenario import Injection, Magnitude, Scenario


def scaled(
    scenario: Scenario, factor: float, classes: Iterable[FaultClass]
) -> Scenario:
    """Return the scenario with its injections' magnitudes times ``factor``.

    How a parameter follows is up to its class (`Scaling`); a bound of the parameter
    holds. A class that is not known, and a word or switch, stays as it is.
    """
    rows = {row.id: row for row in classes}
    inject = tuple(
        _injection(each, factor, rows[each.what]) if each.what in rows else each
        for each in scenario.inject
    )
    return replace(scenario, inject=inject)


def _injection(injection: Injection, factor: float, row: FaultClass) -> Injection:
    changed: dict[str, Magnitude | str | bool] = dict(injection.parameters)
    for parameter in row.parameters:
        given = changed.get(parameter.name, parameter.default)
        if parameter.scaling is Scaling.NONE or isinstance(given, (str, bool)):
            continue
        ends = given if isinstance(given, tuple) else (given, given)
        low, high = sorted(_number(end, factor, parameter) for end in ends)
        changed[parameter.name] = low if low == high else (low, high)
    return replace(injection, parameters=changed)


def _number(value: float, factor: float, parameter: Parameter) -> float:
    match parameter.scaling:
        case Scaling.TIMES:
            value *= factor
        case Scaling.SHORTER:
            value /= factor
        case Scaling.LOSS:
            value = 1 - (1 - value) * factor
        case Scaling.NONE:
            pass
    return min(max(value, parameter.low), parameter.high)
