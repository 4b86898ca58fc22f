"""How long an outage a job survives, from its own retry settings. Pure."""

from __future__ import annotations

from fabricmon.parse.text import decimal
from fabricmon.value import Value

TIMEOUT = "NCCL_IB_TIMEOUT"
RETRIES = "NCCL_IB_RETRY_CNT"
DEFAULT_RETRIES = 7
ACK_UNIT_SECONDS = 4.096e-6
"""Unit of the Local ACK Timeout (InfiniBand specification, volume 1, 9.7.6.1.3)."""

LONGEST_TIMEOUT = 31
"""The exponent has five bits; 0 waits for ever."""

NOTE = "hardware may take up to 4x"

# Default of NCCL_IB_TIMEOUT by the first version that has it (NCCL's net_ib.cc).
_DEFAULT_TIMEOUTS = (((2, 23), 20), ((2, 14), 18), ((0, 0), 14))


class RetryBudget(Value, frozen=True):
    """Seconds until a queue pair gives up; ``seconds`` is None where it never does.

    ``known`` says whether both numbers were set by the job: else they are the defaults
    of its version.
    """

    timeout: int
    retries: int
    seconds: float | None
    known: bool

    @property
    def text(self) -> str:
        """Say it in a line, with the settings that decide it."""
        settings = f"{TIMEOUT}={self.timeout}, {RETRIES}={self.retries}"
        if self.seconds is None:
            return f"waits for ever ({settings})"
        origin = "" if self.known else ", defaults"
        return f"about {self.seconds:.3g} s ({settings}{origin}; {NOTE})"


def retry_budget(
    version: str | None, timeout: str | None = None, retries: str | None = None
) -> RetryBudget | None:
    """Return the budget of a process; None where neither it nor its version is known.

    A 12 (retry exceeded) appears after 4.096 us * 2^timeout * retries. ``timeout`` and
    ``retries`` are the values of the settings as printed; what is no number in range
    counts as not set, as NCCL itself falls back to its default then.
    """
    exponent = _number(timeout, LONGEST_TIMEOUT)
    count = _number(retries, DEFAULT_RETRIES)
    known = exponent is not None and count is not None
    if exponent is None:
        exponent = default_timeout(version)
    if exponent is None:
        return None
    if count is None:
        count = DEFAULT_RETRIES
    seconds = ACK_UNIT_SECONDS * 2**exponent * count if exponent else None
    return RetryBudget(exponent, count, seconds, known)


def default_timeout(version: str | None) -> int | None:
    """Return the default of `TIMEOUT` in a version such as ``2.19.3``."""
    parts = [decimal(part) for part in (version or "").split(".")[:2]]
    if len(parts) < len(("major", "minor")) or None in parts:
        return None
    release = tuple(part for part in parts if part is not None)
    return next(value for first, value in _DEFAULT_TIMEOUTS if release >= first)


def _number(text: str | None, most: int) -> int | None:
    value = decimal((text or "").strip())
    return value if value is not None and value <= most else None
