"""Ports that are down, or trained and not configured.

A port is down when it should be up, was not ACTIVE for ``down_seconds`` and
``down_samples`` samples say so (``health-systems``, algorithms A3 and A4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.common_cause import CommonCause
from fabricmon.detect.downs import estimate
from fabricmon.detect.expectation import ExpectedUp, Why
from fabricmon.detect.grace import Grace, SavedGrace
from fabricmon.detect.link_cause import Company, not_active, port_down
from fabricmon.detect.outage import (
    TRAINED,
    Outage,
    SavedOutage,
    begin,
    resume,
)
from fabricmon.detect.packing import pack, unpack
from fabricmon.model import (
    Blindness,
    Finding,
    LinkStatus,
    Mark,
    PortId,
    PortView,
    Role,
    View,
)
from fabricmon.parse.words import PortState
from fabricmon.port_key import port_key

LOOK_AGAIN_SECONDS = 5.0
"""How often a port that nothing expects up is looked at anew: peers may come up."""

_REMEMBERED = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
_COUNTED = frozenset({Mark.OK, Mark.SATURATED})


class SavedLinkState(Struct, frozen=True):
    """What a restarted agent needs to go on with its open findings."""

    grace: SavedGrace = SavedGrace()
    outages: tuple[SavedOutage, ...] = ()


class LinkState:
    """Follows every port that is not ACTIVE."""

    name = "link_state"
    kinds: tuple[str, ...] = (
        "port_down",
        "port_not_active",
        "common_cause",
        "fabric_control",
    )

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``link_state``."""
        self._limits = config.link_state
        self._expected = ExpectedUp(config)
        self._grace = Grace()
        self._common = CommonCause(config.link_state)
        self._up: dict[PortId, float] = {}
        self._hints: dict[PortId, float] = {}
        self._outages: dict[PortId, Outage] = {}
        self._restored: dict[str, SavedOutage] = {}
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each port that is down or not configured."""
        self._offset = view.onset_offset
        self._grace.observe(view)
        self._note_hints(view)
        for status in view.statuses:
            if status.state is PortState.ACTIVE:
                self._up[status.port] = status.at
                if self._outages or self._restored:
                    self._end(status.port, view)
            elif status.state is not None and status.state is not PortState.NOP:
                self._take(status, status.state, view)
        if self._outages:
            yield from self._findings(view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where the state of no port can be read."""
        seen = [port.status for port in view.ports if port.status is not None]
        if seen and all(status.state is None for status in seen):
            for kind in self.kinds:
                yield Blindness(kind, "the state of no port can be read")

    def save(self) -> bytes:
        """Return the outages that are known, told or not."""
        outages = tuple(
            outage.saved(outage.key, self._offset)
            for outage in self._outages.values()
            if outage.key
        )
        # Ports that were not seen since the start: the next agent must not forget them.
        outages += tuple(self._restored.values())
        return pack(SavedLinkState(self._grace.save(self._offset), outages))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedLinkState)
        self._offset = view_offset
        self._grace.restore(state.grace, view_offset)
        self._restored = {outage.key: outage for outage in state.outages}

    def _note_hints(self, view: View) -> None:
        """Remember when an event or a counter told that a port went down."""
        for event in view.events:
            if event.up is False:
                for port in view.ports:
                    if event.netdev in port.info.netdevs:
                        self._hint(port.info.id, event.at)
        for move in view.moves:
            if move.spec.signal in _REMEMBERED and move.mark in _COUNTED:
                self._hint(move.port, estimate(move.at - move.seconds, move.at))

    def _hint(self, port: PortId, at: float) -> None:
        """Keep the first hint since the port was up, as `Track.hint` does."""
        known = self._hints.get(port)
        if known is None or known < self._up.get(port, known):
            self._hints[port] = at

    def _end(self, port: PortId, view: View) -> None:
        self._outages.pop(port, None)
        if self._restored:
            self._restored.pop(_key(port, view), None)

    def _take(self, status: LinkStatus, state: PortState, view: View) -> None:
        outage = self._outages.get(status.port)
        if outage is None:
            port = status.port
            hint = self._hints.get(port)
            outage = begin(status, state, self._up.get(port), hint)
            outage.key = _key(port, view)
            saved = self._restored.pop(outage.key, None)
            if saved is not None:
                outage = resume(saved, outage, view.onset_offset)
            self._outages[port] = outage
        outage.take(status, state)

    def _findings(self, view: View) -> Iterator[Finding]:
        due = [o for o in self._outages.values() if o.look_again <= view.now]
        if not due:
            return
        ports = {port.info.id: port for port in view.ports}
        matter = sum(_matters(port) for port in view.ports)
        missing = {device.name for device in view.missing}
        for outage in due:
            port = ports.get(outage.port)
            if port is None or outage.port.device in missing:
                del self._outages[outage.port]
                continue
            outage.look(port, view.now)
            kind = self._kind(outage, port, view)
            if kind:
                outage.told = kind
                make = port_down if kind == "port_down" else not_active
                company = self._company(outage, matter)
                yield make(outage, port, view, self._limits, company)
        counting = {where: port for where, port in ports.items() if _matters(port)}
        common = self._common.judge(self._fallen(counting, view), counting, view)
        if common is not None:
            yield common

    def _kind(self, outage: Outage, port: PortView, view: View) -> str:
        """Return the kind that holds for the port, empty if none does."""
        if outage.why is None:
            outage.why = self._why(outage, port, view)
        if outage.why is None:
            outage.look_again = view.now + LOOK_AGAIN_SECONDS
            return ""
        limits = self._limits
        if not outage.told and (
            not port.fresh
            or outage.samples < limits.down_samples
            or self._may_train(outage.port, view.now)
        ):
            return ""
        if outage.trained is not None:
            waited = view.now - outage.trained
            if waited >= limits.not_active_seconds:
                return "port_not_active"
            return "port_down" if outage.told == "port_down" else ""
        if outage.told == "port_down" or view.now - outage.since >= limits.down_seconds:
            return "port_down"
        return ""

    def _why(self, outage: Outage, port: PortView, view: View) -> Why | None:
        trained = outage.state in TRAINED
        return self._expected.why_now(port, view, trained=trained)

    def _may_train(self, port: PortId, now: float) -> bool:
        """Tell whether the node or the driver started so late that links may train."""
        since = min(
            self._grace.since_boot(now), self._grace.since_load(port.device, now)
        )
        return since < self._limits.boot_down_seconds

    def _fallen(
        self, ports: dict[PortId, PortView], view: View
    ) -> dict[PortId, Outage]:
        """Return the outages of ports that should be up and are not in training."""
        return {
            where: outage
            for where, outage in self._outages.items()
            if outage.why is not None
            and where in ports
            and not self._may_train(where, view.now)
        }

    def _company(self, outage: Outage, ports: int) -> Company:
        """Count the ports of the node that share the fate of this one."""
        others = [o for o in self._outages.values() if o.why is not None]
        window = self._limits.common_cause_window_seconds
        return Company(
            ports=ports,
            fell_together=sum(outage.overlaps(other, window) for other in others),
            trained=sum(other.trained is not None for other in others),
        )


def _matters(port: PortView) -> bool:
    return (
        port.ever_active
        and not port.info.is_vf
        and port.info.role is not Role.MANAGEMENT
    )


def _key(port: PortId, view: View) -> str:
    infos: Iterable[PortView] = view.ports
    return next((port_key(each.info) for each in infos if each.info.id == port), "")
