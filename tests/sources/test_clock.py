"""The source that asks for the clock."""

from fabricmon.config import Config
from fabricmon.host.protocol import ClockState, ReadError
from fabricmon.model import ClockStatus, Target
from fabricmon.sources import clock
from tests.fake_host import FakeHost


def polled(state: ClockState | ReadError) -> tuple[ClockStatus, ...]:
    """Return what a node whose clock is like this gives."""
    host = FakeHost()
    host.clock_state = state
    return clock.poll(host, Target(), Config())


def test_error() -> None:
    """Seconds by which it may be off: something keeps it."""
    (status,) = polled(ClockState(0.01))
    assert (status.error_seconds, status.is_synchronized) == (0.01, True)


def test_left_alone() -> None:
    """How far it is off nobody knows."""
    (status,) = polled(ClockState(None))
    assert (status.error_seconds, status.is_synchronized) == (None, False)


def test_refused() -> None:
    """What cannot be asked is neither kept nor left alone."""
    (status,) = polled(ReadError("EPERM"))
    assert (status.is_synchronized, status.problem) == (None, "EPERM")


def test_not_of_the_node() -> None:
    """A copied tree, or a trace that does not say, is no trouble."""
    assert polled(ReadError("ENOENT")) == ()
