"""What is held against a device that may be stuck, and when it is enough.

Each sign has a beginning, for those of one hang begin together, and an end, for what is
over within seconds is no hang: the end of a job makes a device slow, too.
"""

from __future__ import annotations

from fabricmon.config.host_side import DeviceHealth as Limits
from fabricmon.detect.device_places import kernel_text
from fabricmon.detect.traffic_watch import BUSY_SECONDS, TOGETHER_SECONDS
from fabricmon.model import Evidence, KernelEvent, KernelKind, View
from fabricmon.sources.protocol import Lane
from fabricmon.value import State, Value

_FAILED = frozenset({KernelKind.FIRMWARE_STUCK, KernelKind.FIRMWARE_FATAL})


class Sign(Value, frozen=True):
    """Something that says that a device is stuck, since ``at`` and up to ``last``."""

    at: float
    last: float
    evidence: Evidence

    @property
    def seconds(self) -> float:
        """Return for how long it has been there."""
        return self.last - self.at


class Signs(State):
    """What is held against one device now."""

    kernel: Sign | None = None
    driver: Sign | None = None
    still: Sign | None = None
    slow: Sign | None = None
    unanswered: Sign | None = None

    @property
    def all(self) -> list[Sign]:
        """Every sign there is, the plainest first."""
        every = (self.driver, self.kernel, self.still, self.slow, self.unanswered)
        return [sign for sign in every if sign is not None]

    @property
    def said(self) -> list[Sign]:
        """What the driver itself says."""
        return [sign for sign in (self.kernel, self.driver) if sign is not None]

    @property
    def is_only_still(self) -> bool:
        """Tell whether it does nothing, as a rail without work."""
        return self.all == [self.still]

    def are_ignored(self, limits: Limits) -> bool:
        """Tell whether commands have gone unanswered for long."""
        return _lasts(self.unanswered, limits)

    def agree(self, limits: Limits, worked: float, now: float) -> bool:
        """Tell whether two that do not know of each other say that it is stuck.

        A command that was not answered and a slow read are one and the same. ``worked``
        is when traffic was last seen to flow: long after all of them began, it does.
        """
        begun = [sign.at for sign in self.all if sign is not self.still]
        if not begun or worked >= max(begun) + limits.moving_seconds:
            return False
        if self.kernel and self.driver:
            return True
        asked, together = self.unanswered, limits.together_seconds
        ignored = asked is not None and (
            _lasts(asked, limits)
            or any(abs(asked.at - each.at) <= together for each in self.said)
        )
        slow = _lasts(self.slow, limits) and now - worked > BUSY_SECONDS
        if self.said and (ignored or slow):
            return True
        felt = [each for each in (self.slow, asked) if each and _lasts(each, limits)]
        return any(self._stopped_with(each, limits) for each in (*self.said, *felt))

    def _stopped_with(self, sign: Sign, limits: Limits) -> bool:
        """Tell whether traffic stopped when a sign began, not long before or after."""
        if self.still is None:
            return False
        late = sign.at - self.still.at
        return -limits.moving_seconds <= late <= limits.together_seconds


class KernelWords:
    """What the kernel's log said of devices, until it is over."""

    def __init__(self, limits: Limits) -> None:
        """Take the thresholds of ``device_health``."""
        self._limits = limits
        self._failed: dict[str, Sign] = {}
        self._recovering: dict[str, Sign] = {}
        self._unanswered: dict[str, Sign] = {}

    @property
    def _all(self) -> tuple[dict[str, Sign], ...]:
        return self._failed, self._recovering, self._unanswered

    def hear(self, device: str, event: KernelEvent) -> None:
        """Take in what a line says of a device."""
        if event.kind in _FAILED:
            _note(self._failed, device, event)
        elif event.kind is KernelKind.RECOVERY_STARTED:
            _note(self._recovering, device, event)
        elif event.kind is KernelKind.COMMAND_TIMEOUT:
            _note(self._unanswered, device, event)
        elif event.kind is KernelKind.RECOVERED:
            self.forget(device)

    def forget(self, device: str | None = None, until: float | None = None) -> None:
        """Drop what was said of a device, or of all; ``until``: no later than that."""
        for kept in self._all:
            for name, sign in tuple(kept.items()):
                is_meant = device is None or name == device
                if is_meant and (until is None or sign.last <= until):
                    del kept[name]

    def add_to(self, found: dict[str, Signs], now: float) -> None:
        """Add what still counts to the signs of its device.

        That a recovery began says nothing as long as it may succeed.
        """
        self.forget(until=now - self._limits.hold_seconds)
        for device, sign in self._recovering.items():
            if now - sign.at >= self._limits.recovery_seconds:
                found.setdefault(device, Signs()).kernel = sign
        for device, sign in self._failed.items():
            found.setdefault(device, Signs()).kernel = sign
        for device, sign in self._unanswered.items():
            found.setdefault(device, Signs()).unanswered = sign


class SlowReads:
    """Devices whose reads take long, and since when."""

    def __init__(self, limits: Limits) -> None:
        """Take the thresholds of ``device_health``."""
        self._limits = limits
        self._since: dict[str, float] = {}

    def add_to(self, found: dict[str, Signs], view: View) -> None:
        """Add slow reads to the signs of their device; call it at every look.

        None where they are slow on most devices: a slow host.
        """
        longest = self._longest(view)
        limit = self._limits.slow_read_seconds
        slow = {name: took for name, took in longest.items() if took >= limit}
        if 2 * len(slow) > len(longest):
            slow = {}
        self._since = {
            name: self._since.get(name, view.now - took) for name, took in slow.items()
        }
        for device, took in slow.items():
            source = f"infiniband/{device}"
            item = Evidence("read_seconds", round(took, 2), "s", source, limit)
            sign = Sign(self._since[device], view.now, item)
            found.setdefault(device, Signs()).slow = sign

    def _longest(self, view: View) -> dict[str, float]:
        """Return how long the longest read of each device takes, or took just now."""
        longest: dict[str, float] = {}
        for health in view.health:
            if health.lane != Lane.DEVICE or not health.unit:
                continue
            since = health.in_flight_since
            took = 0.0 if since is None else view.now - since
            if health.due_seconds < self._limits.persist_seconds:
                took = max(took, health.duration_seconds)  # else it may be long ago
            longest[health.unit] = max(took, longest.get(health.unit, 0.0))
        return longest


def spare_a_job(found: dict[str, Signs]) -> None:
    """Hold it against no device that it stopped where others did so and are slow, too.

    One device that hangs stops all rails of its job, but only it is slow; the end of a
    job leaves all of them busy with what it gives back.
    """
    stopped = {
        device: signs.still.at
        for device, signs in found.items()
        if signs.still and (signs.slow or signs.unanswered) and not signs.said
    }
    for device, at in stopped.items():
        alike = [abs(at - other) <= TOGETHER_SECONDS for other in stopped.values()]
        if sum(alike) > 1:
            found[device].still = None


def _lasts(sign: Sign | None, limits: Limits) -> bool:
    return sign is not None and sign.seconds >= limits.persist_seconds


def _note(kept: dict[str, Sign], device: str, event: KernelEvent) -> None:
    known = kept.get(device)
    item = Evidence("kmsg", kernel_text(event), "", "kernel log")
    kept[device] = Sign(known.at if known else event.at, event.at, item)
