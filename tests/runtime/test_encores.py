"""When jobs that repeat are due."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fabricmon.model import Job, Outcome, Repeats
from fabricmon.runtime.encores import Encores

JOB = Job("burst", "mlx5_0", "device:mlx5_0")
MOMENTS = st.floats(0, 1e9)


def test_moments_missed_are_left_out() -> None:
    """One that came late is followed by the next moment of the same grid."""
    job = replace(JOB, repeats=Repeats(10.0, 0.5, 12.0, 5.0))
    encores = Encores()
    encores.begin(job, Repeats(10.0, 0.5, 12.0, 5.0))
    assert (JOB in encores, encores.next_at) == (True, 10.0)
    assert list(encores.take_due(10.0)) == [JOB]
    assert encores.goes_on(Outcome(job, 10.0, 11.1))
    assert encores.next_at == 11.5
    assert list(encores.take_due(11.4)) == []
    assert list(encores.take_due(11.5)) == [JOB]
    assert encores.goes_on(Outcome(job, 11.5, 11.5))
    assert list(encores.take_due(12.0)) == [JOB]
    assert not encores.goes_on(Outcome(job, 12.0, 12.0))
    assert not encores


@given(MOMENTS, MOMENTS, st.floats(5e-324, 1e9))
def test_next_moment_is_later(first: float, at: float, every: float) -> None:
    """However short the time between two of them is."""
    assert Repeats(first, every, 1e10, 1.0).after(at) > at
