"""How far the wall clock may be off, as the kernel is told by who keeps it.

Reads with adjtimex(2) and changes nothing: ``modes`` is 0, which takes no right. A
sandbox that refuses the call (systemd's ``ProtectClock=``) gives EPERM.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from ctypes import c_int, c_long, c_uint

from fabricmon.host.live_files import failure
from fabricmon.host.protocol import ClockState, ReadError

LIMIT_MICROSECONDS = 16_000_000
"""The kernel's largest error (``NTP_PHASE_LIMIT``): what it has at the start, after the
clock was set, and when nobody has kept the clock for nine hours."""

_MICROSECOND = 1e-6


class Timex(ctypes.Structure):
    """The kernel's ``struct timex`` (linux/timex.h), with what is added to its end."""

    _fields_ = (
        ("modes", c_uint),
        ("offset", c_long),
        ("freq", c_long),
        ("maxerror", c_long),
        ("esterror", c_long),
        ("status", c_int),
        ("constant", c_long),
        ("precision", c_long),
        ("tolerance", c_long),
        ("seconds", c_long),
        ("microseconds", c_long),
        ("rest", c_long * 24),
    )


def state_of(maximum: int, estimate: int) -> ClockState:
    """Return what the two errors (microseconds) of the kernel mean.

    Whoever keeps the clock resets the largest one, which then grows by 500 ppm. That
    is what tells, not ``STA_UNSYNC``: chrony leaves that set unless it also keeps the
    hardware clock (``rtcsync``). The estimate is 0 where a daemon gives none
    (systemd-timesyncd), and at its limit where one never set it (phc2sys).
    """
    if not 0 <= maximum < LIMIT_MICROSECONDS:
        return ClockState(None)
    is_estimate = 0 < estimate < LIMIT_MICROSECONDS
    return ClockState((estimate if is_estimate else maximum) * _MICROSECOND)


class KernelClock:
    """Asks the kernel; any thread may."""

    def __init__(self, call: Callable[[Timex], int] | None = None) -> None:
        """Use ``call`` in place of the kernel, for tests; it returns an errno or 0."""
        self._call = call or _adjtimex

    def read(self) -> ClockState | ReadError:
        """Return how far the clock may be off; EPERM where a sandbox forbids to ask."""
        timex = Timex()
        number = self._call(timex)
        if number:
            return failure(number)
        return state_of(timex.maxerror, timex.esterror)


def _adjtimex(timex: Timex) -> int:
    try:
        call = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return errno.ENOSYS
    return ctypes.get_errno() if call(ctypes.byref(timex)) < 0 else 0
