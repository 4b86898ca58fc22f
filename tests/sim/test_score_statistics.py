from __future__ import annotations

import pytest

from fabricmon.sim.score_statistics import poisson_upper, quantile


@pytest.mark.parametrize(
    ("count", "bound"), [(0, 2.9957), (1, 4.7439), (3, 7.7537), (10, 16.9622)]
)
def test_poisson_upper(count: int, bound: float) -> None:
    """Half the 95 % quantile of chi square with 2(n + 1) degrees of freedom."""
    assert poisson_upper(count) == pytest.approx(bound, abs=1e-3)


def test_poisson_upper_of_many() -> None:
    """Large counts have a bound too: near n + 1.645 sqrt(n)."""
    assert poisson_upper(10_000) == pytest.approx(10_000 + 164.5, rel=1e-3)


def test_quantile() -> None:
    """The nearest rank: always a value that was there."""
    values = [40.0, 10.0, 30.0, 20.0]
    assert quantile(values, 0.5) == 20
    assert quantile(values, 0.95) == 40
    assert quantile(values, 0) == 10
    assert quantile([], 0.5) is None
