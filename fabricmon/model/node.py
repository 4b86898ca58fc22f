"""What is known of the node itself beside its devices: its clock, its addresses."""

from __future__ import annotations

from fabricmon.value import Value


class ClockStatus(Value, frozen=True):
    """How far the wall clock may be off at ``at``, by the kernel's own account.

    ``error_seconds`` is None where nothing keeps the clock, or where it cannot be
    asked; then ``problem`` is the errno that said so.
    """

    at: float
    error_seconds: float | None = None
    problem: str | None = None

    @property
    def is_synchronized(self) -> bool | None:
        """Whether something keeps the clock, None where it cannot be asked."""
        return None if self.problem else self.error_seconds is not None


class NodeAddresses(Value, frozen=True):
    """Addresses of the node's own interfaces, by which other nodes may know it."""

    at: float
    addresses: tuple[str, ...] = ()
