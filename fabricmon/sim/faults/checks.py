"""Whether the injections of a scenario can be: known, with parameters that exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TypeAlias

from fabricmon.errors import ConfigError
from fabricmon.sim.faults.case import DEADLINE
from fabricmon.sim.faults.catalogue import class_of
from fabricmon.sim.faults.row import FaultClass, Parameter
from fabricmon.sim.scenario import Injection, Magnitude, Scenario

_Given: TypeAlias = Magnitude | str | bool


def check(scenario: Scenario) -> None:
    """Raise `ConfigError` that names the first injection which cannot be."""
    for number, injection in enumerate(scenario.inject):
        try:
            _check(injection)
        except ConfigError as error:
            key = error.key or "inject"
            key = key.replace("inject", f"inject[{number}]", 1)
            raise ConfigError(error.message, key=key, remedy=error.remedy) from None


def _check(injection: Injection) -> None:
    row = class_of(injection.what)
    for name, value in injection.parameters.items():
        if name == DEADLINE and not row.is_negative:
            continue
        parameter = row.parameter(name)
        if parameter is None:
            raise _unknown(row, name)
        _check_value(row, parameter, value)


def _unknown(row: FaultClass, name: str) -> ConfigError:
    names = [each.name for each in row.parameters]
    close = get_close_matches(name, names, 1)
    remedy = f"did you mean {close[0]}?" if close else _listed(row.id, names)
    return ConfigError(
        f"{row.id} has no parameter {name!r}",
        key=f"inject.parameters.{name}",
        remedy=remedy,
    )


def _listed(what: str, names: list[str]) -> str:
    return f"it has: {', '.join(names)}" if names else f"{what} has none"


def _check_value(row: FaultClass, parameter: Parameter, value: _Given) -> None:
    problem = _problem(parameter, value)
    if problem is not None:
        raise ConfigError(
            f"{row.id}: {parameter.name} is {value!r}",
            key=f"inject.parameters.{parameter.name}",
            remedy=problem,
        )


def _problem(parameter: Parameter, value: _Given) -> str | None:
    """Say what a parameter has to be, None if the value is that."""
    if isinstance(parameter.default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(parameter.default, str):
        return _wrong_word(parameter, value)
    if isinstance(value, (bool, str)):
        return "a number, or [low, high]"
    low, high = (value, value) if isinstance(value, (int, float)) else value
    if low > high:
        return "the lower one first"
    if parameter.low <= low and high <= parameter.high:
        return None
    return f"from {parameter.low:g} to {parameter.high:g} {parameter.unit}".rstrip()


def _wrong_word(parameter: Parameter, value: _Given) -> str | None:
    if not isinstance(value, str):
        return "a word in quotes"
    if not parameter.words or value in parameter.words:
        return None
    return f"one of: {', '.join(parameter.words)}"
