"""When a group of files is left alone because every one of them fails alike.

Functions that the fabric manager of an HGX board owns answer EINVAL to every error
counter, and each read writes a line to the kernel log. Such a group is tried again
after a pause that doubles up to a day, and is read as before once anything answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.config import Deadlines
from fabricmon.model import Reading
from fabricmon.value import State, Value

LONGEST_SECONDS = 86_400.0

GONE = frozenset({"ENOENT", "ENODEV", "ESTALE"})
"""The device or its folder went away: identity finds out, nothing is restricted."""


OURS = frozenset({"EMFILE", "ENFILE"})
"""The process or the node is out of descriptors: that is no fault of the device."""


class Transition(Value, frozen=True):
    """A group was put aside (``reason``) or is read again (None); worth a log line."""

    device: str
    source: str
    reason: str | None


class _Case(State):
    """One source of one device that fails as a whole."""

    reason: str
    failures: int = 0
    pause_seconds: float = 0
    until: float | None = None


class Quarantine:
    """Decides which sources of which devices pause, from what their polls gave."""

    def __init__(self, deadlines: Deadlines) -> None:
        """Take the number of failures and the first pause from ``deadlines``."""
        self._failures = deadlines.quarantine_failures
        self._first_seconds = deadlines.quarantine_seconds
        self._cases: dict[tuple[str, str], _Case] = {}

    def judge(
        self, device: str, source: str, readings: Sequence[Reading], now: float
    ) -> Transition | None:
        """Take the readings of one poll; return a change of mind, None mostly.

        A poll without readings says nothing.
        """
        key = (device, source)
        case = self._cases.get(key)
        if not readings or (case is None and not readings[0].absent):
            return None
        reason = common_failure(readings)
        if reason in GONE | OURS:
            return None
        if reason is None:
            self._cases.pop(key, None)
            paused = case is not None and case.until is not None
            return Transition(device, source, None) if paused else None
        if case is None:
            case = self._cases[key] = _Case(reason)
        elif case.reason != reason:
            case.reason, case.failures = reason, 0
        return self._count(key, case, now)

    def until(self, device: str, source: str) -> float | None:
        """Return when the next try is due, None where nothing is put aside."""
        case = self._cases.get((device, source))
        return None if case is None else case.until

    def reason(self, device: str, source: str) -> str | None:
        """Return why a source is put aside: an errno name or the text of its files."""
        case = self._cases.get((device, source))
        return None if case is None or case.until is None else case.reason

    def forget(self, device: str) -> None:
        """Drop what is known of a device: one of that name may be another."""
        for key in [key for key in self._cases if key[0] == device]:
            del self._cases[key]

    def _count(
        self, key: tuple[str, str], case: _Case, now: float
    ) -> Transition | None:
        case.failures += 1
        if case.until is None and case.failures < self._failures:
            return None
        first = case.until is None
        doubled = 2 * case.pause_seconds or self._first_seconds
        case.pause_seconds = min(doubled, LONGEST_SECONDS)
        case.until = now + case.pause_seconds
        return Transition(*key, case.reason) if first else None


def common_failure(readings: Sequence[Reading]) -> str | None:
    """Return the one reason for which every value is missing, None if there is none."""
    reasons = {each.reason for reading in readings for each in reading.absent}
    complete = all(len(each.absent) == len(each.values) for each in readings)
    return reasons.pop() if complete and len(reasons) == 1 else None
