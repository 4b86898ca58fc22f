"""How often a device is read: closely after a change, rarely where it only fails.

`state` is five firmware commands a file on mlx5, the counter of outages is one, and
the counter also tells of an outage that was over before anybody looked.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.catalogue import CounterSpec, Directory, Group, Signal
from fabricmon.config import Config
from fabricmon.model import Counters, Hca, HcaPort, Reading
from fabricmon.observed import ObservedPorts
from fabricmon.parse.words import LinkLayer
from fabricmon.quarantine import Quarantine
from fabricmon.schedule import Entry, Schedule

UNSTABLE_SECONDS = 60.0
"""How long state is read every second after a port changed: flaps come in groups."""

SLOWEST_SECONDS = 3600.0
"""Longest period of driver statistics that are slow to give."""

MILLISECONDS = 1000


class Pacing:
    """Changes the rhythm of polls by what they gave."""

    def __init__(
        self,
        config: Config,
        schedule: Schedule,
        window: Counters,
        observed: ObservedPorts,
    ) -> None:
        """Start calm; nothing tells of link changes until `tells_links` is set."""
        self._config = config
        self._schedule = schedule
        self._window = window
        self._observed = observed
        self._quarantine = Quarantine(config.deadlines)
        self._unstable_until: dict[str, float] = {}
        self.tells_links = False

    def inherit(self, previous: Pacing) -> None:
        """Go on with what another one of the same node knows."""
        self._window = previous._window
        self._unstable_until = previous._unstable_until
        self.tells_links = previous.tells_links

    def forget(self, device: str) -> None:
        """Drop what is known of a device: one of that name may be another."""
        self._unstable_until.pop(device, None)
        self._quarantine.forget(device)

    def spare(self, entry: Entry, readings: Sequence[Reading], now: float) -> bool:
        """Read rarely what only fails; tell whether that has begun or ended."""
        device, source = entry.target.name, entry.source.name
        change = self._quarantine.judge(device, source, readings, now)
        if change is not None:
            entry.quarantined = change.reason
        if entry.quarantined is not None:
            until = self._quarantine.until(device, source)
            if until is not None and until > now:
                self._schedule.postpone(entry, until)
        return change is not None

    def back_off(self, entry: Entry, now: float) -> None:
        """Ask rarely for what holds a kernel lock for long, whatever it answers."""
        usual = entry.source.period(self._config.periods)
        limit = self._config.deadlines.driver_backoff_milliseconds / MILLISECONDS
        if entry.duration > limit:
            period = min(entry.period * 2, SLOWEST_SECONDS)
            self._schedule.set_period(entry, period, now)
        elif entry.period > usual:
            self._schedule.set_period(entry, max(entry.period / 2, usual), now)

    def watch_closely(self, device: str, now: float) -> None:
        """Read state every second until the device was stable for a while."""
        self._unstable_until[device] = now + UNSTABLE_SECONDS
        self._schedule.hasten("link_detail", device, now)
        self.pace_state(device, now)

    def is_restless(self, now: float) -> bool:
        """Tell whether any device is watched closely."""
        return any(until > now for until in self._unstable_until.values())

    def look_again(self, device: str, at: float) -> None:
        """Read the details of a link that changed once more: two samples must agree."""
        if self._is_unstable(device, at):
            again = at + self._config.periods.state_seconds
            self._schedule.hasten("link_detail", device, again)

    def pace_state(self, device: str, now: float) -> None:
        """Read state as often as nothing else tells of changes."""
        entry = self._schedule.entry("state", device)
        if entry is None:
            return
        periods = self._config.periods
        told = self._is_virtual(device) or self._kernel_tells(device)
        hca = entry.target.hca
        counted = not told and hca is not None and counts_outages(hca, self._window)
        calm = (told or counted) and not self._is_unstable(device, now)
        period = periods.state_seconds if calm else periods.state_without_netdev_seconds
        self._schedule.set_period(entry, period, now)
        counter = self._schedule.entry("outages", device)
        if counter is not None and counter.quarantined is None:
            period = periods.outages_seconds if counted else periods.errors_seconds
            self._schedule.set_period(counter, period, now)

    def _is_unstable(self, device: str, now: float) -> bool:
        return now < self._unstable_until.get(device, 0)

    def _is_virtual(self, device: str) -> bool:
        """Tell whether a device is a virtual function: the physical one is watched."""
        entry = self._schedule.entry("state", device)
        hca = entry.target.hca if entry is not None else None
        return hca is not None and hca.is_vf

    def _kernel_tells(self, device: str) -> bool:
        """Tell whether the kernel reports link changes of every port by itself."""
        if not self.tells_links:
            return False
        ports = [seen for seen in self._observed if seen.id.device == device]
        ports = [seen for seen in ports if seen.id.port > 0]
        return bool(ports) and all(
            seen.netdev is not None and seen.netdev.operstate == "up" for seen in ports
        )


def counts_outages(hca: Hca, counters: Counters) -> bool:
    """Tell whether every port has a counter of outages that can still count."""
    return bool(hca.ports) and all(_counts(port, counters) for port in hca.ports)


def _counts(port: HcaPort, counters: Counters) -> bool:
    return any(
        _is_trusted(spec, port)
        and counters.value(port.id, spec) is not None
        and spec not in counters.saturated(port.id)
        for spec in counters.by_signal(port.id, Signal.LINK_DOWN)
    )


def _is_trusted(spec: CounterSpec, port: HcaPort) -> bool:
    """Tell whether a counter is polled as often as needed, and counts on this link.

    ``counters/`` is the InfiniBand PMA: on Ethernet the file exists and may rest at 0.
    """
    if spec.group is not Group.OUTAGES:
        return False
    is_pma = spec.directory is Directory.COUNTERS
    return port.link_layer is LinkLayer.INFINIBAND or not is_pma
