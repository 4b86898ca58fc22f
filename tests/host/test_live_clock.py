"""How far the clock may be off, as the kernel says it."""

import ctypes
import errno

import pytest

from fabricmon.host.live import LiveHost
from fabricmon.host.live_clock import LIMIT_MICROSECONDS, KernelClock, Timex, state_of
from fabricmon.host.protocol import ClockState, ReadError


@pytest.mark.parametrize(
    ("maximum", "estimate", "error"),
    [
        (20_000, 300, 0.0003),  # chrony and ntpd give both
        (20_000, 0, 0.02),  # systemd-timesyncd gives no estimate
        (1_500, LIMIT_MICROSECONDS, 0.0015),  # phc2sys never sets one
        (LIMIT_MICROSECONDS, 300, None),  # nobody has kept it for hours
        (LIMIT_MICROSECONDS, LIMIT_MICROSECONDS, None),  # after boot
        (-1, 0, None),
    ],
)
def test_what_daemons_tell_the_kernel(
    maximum: int, estimate: int, error: float | None
) -> None:
    """The estimate where there is one, else the largest error, else nothing."""
    found = state_of(maximum, estimate).error_seconds
    assert found == (None if error is None else pytest.approx(error))


def test_refused() -> None:
    """A sandbox that forbids the call is told by its errno."""
    assert KernelClock(lambda _: errno.EPERM).read() == ReadError("EPERM")


def test_asks_without_changing_anything() -> None:
    """No mode is set: the call reads, and takes no right."""
    asked = []

    def call(timex: Timex) -> int:
        asked.append(timex.modes)
        timex.maxerror, timex.esterror = 1000, 10
        return 0

    state = KernelClock(call).read()
    assert isinstance(state, ClockState)
    assert state.error_seconds == pytest.approx(1e-5)
    assert asked == [0]


def test_room_for_the_kernels_answer() -> None:
    """The structure is at least as large as what the kernel writes: 208 bytes."""
    assert ctypes.sizeof(Timex) >= 208


def test_running_kernel() -> None:
    """It answers, whoever keeps its clock or not."""
    state = LiveHost().clock()
    if state == ReadError("EPERM"):
        pytest.skip("a sandbox forbids to read the clock")
    assert isinstance(state, ClockState)
    assert state.error_seconds is None or 0 <= state.error_seconds < 16


def test_another_node_has_no_clock(tmp_path: object) -> None:
    """A copied tree says nothing of the clock here."""
    assert LiveHost(str(tmp_path)).clock() == ReadError("ENOENT")
