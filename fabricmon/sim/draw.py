"""Random numbers: the same ones for the same seed, scenario and place in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random

from fabricmon.errors import ConfigError
from fabricmon.sim.scenario import Magnitude


def source(*parts: object) -> Random:
    """Return the random numbers that belong to these words and numbers."""
    return Random("/".join(map(str, parts)))


def magnitude(random: Random, wanted: Magnitude) -> float:
    """Return a number, drawn where two are given: uniform in the logarithm.

    Between bounds of which one is not above zero it is uniform.
    """
    if isinstance(wanted, (int, float)):
        return float(wanted)
    low, high = wanted
    if low > 0 and high > 0:
        return exp(random.uniform(log(low), log(high)))
    return random.uniform(low, high)


def poisson(random: Random, mean: float) -> int:
    """Return a count of a Poisson process; large means by their normal limit."""
    if mean <= 0:
        return 0
    if mean > _NORMAL_FROM:
        return max(0, round(random.gauss(mean, mean**0.5)))
    count, rest = 0, random.expovariate(1.0)
    while rest < mean:
        count += 1
        rest += random.expovariate(1.0)
    return count


_NORMAL_FROM = 200.0  # its skew is below 7 % there


def _as_magnitude(default: float | Sequence[float]) -> Magnitude:
    if isinstance(default, (int, float)):
        return default
    low, high = default
    return low, high


class InjectionDraw:
    """The random numbers of one injection, as `planning.Draw`."""

    def __init__(
        self,
        random: Random,
        parameters: Mapping[str, Magnitude | str | bool],
    ) -> None:
        self._random = random
        self._parameters = parameters

    def number(self, key: str, default: float | Sequence[float]) -> float:
        """Return the magnitude ``key`` of the injection, else one from ``default``."""
        wanted = self._parameters.get(key)
        if wanted is None:
            wanted = _as_magnitude(default)
        if isinstance(wanted, (str, bool)):
            raise ConfigError(
                f"{wanted!r} is no number",
                key=f"inject.parameters.{key}",
                remedy="write a number, or two between which one is drawn",
            )
        return magnitude(self._random, wanted)

    def uniform(self, low: float, high: float) -> float:
        """Return a number between."""
        return self._random.uniform(low, high)

    def pick(self, many: Sequence[int]) -> int:
        """Return one of many."""
        return self._random.choice(many)

    def poisson(self, mean: float) -> int:
        """Return a count."""
        return poisson(self._random, mean)

    def gap(self, mean: float) -> float:
        """Return a time to the next event of a Poisson process."""
        return self._random.expovariate(1.0 / mean)
