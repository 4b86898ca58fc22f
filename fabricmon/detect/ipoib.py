"""InfiniBand ports that are ACTIVE while their IPoIB interface is down.

RDMA works, what needs IP over InfiniBand does not (connection set-up, storage). It is
told only where most equal ports have their interface up: many sites use none.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    NetdevStatus,
    PortId,
    PortView,
    Severity,
    View,
)
from fabricmon.parse.words import LinkLayer, PortState
from fabricmon.summaries import one_line
from fabricmon.value import State

FRESH_SECONDS = 60.0
"""An interface that was not read for so long is not there any more."""

_UP, _DOWN = "up", "down"
_PEERS_MINIMUM = 3


class _Silence(State):
    """Since when an interface is down beside an ACTIVE port, and samples that said so."""

    since: float
    samples: int = 0


class IpoibState:
    """Compares the state of a port with that of its interface."""

    name = "ipoib"
    kinds: tuple[str, ...] = ("config_mismatch",)

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``link_state``."""
        self._limits = config.link_state
        self._down: dict[PortId, _Silence] = {}

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each interface that is down beside an ACTIVE port."""
        self._note(view)
        for port in view.ports if self._down else ():
            down = self._down.get(port.info.id)
            if down is None or port.netdev is None:
                continue
            if view.now - port.netdev.at > FRESH_SECONDS:
                del self._down[port.info.id]  # it went to another namespace
            elif self._counts(down, port, view):
                yield _finding(port, port.netdev, down, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Without interfaces there is nothing to compare, and nothing to miss."""
        del view
        yield from ()

    def save(self) -> bytes:
        """Return nothing: what is still down is found again."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Have nothing to take back."""

    def _note(self, view: View) -> None:
        """Take in samples; the time counts from when the port is ACTIVE.

        After an outage an interface comes back later than its port.
        """
        for netdev in view.netdevs:
            if netdev.operstate == _DOWN:
                silence = self._down.setdefault(netdev.port, _Silence(netdev.at))
                silence.samples += 1
            elif self._down:
                self._down.pop(netdev.port, None)
        for status in view.statuses if self._down else ():
            if status.state is not PortState.ACTIVE:
                self._down.pop(status.port, None)

    def _counts(self, silence: _Silence, port: PortView, view: View) -> bool:
        status = port.status
        if port.info.link_layer is not LinkLayer.INFINIBAND or port.info.is_vf:
            return False
        if status is None or status.state is not PortState.ACTIVE:
            return False
        enough = silence.samples >= self._limits.down_samples
        waited = view.now - silence.since >= self._limits.not_active_seconds
        return enough and waited and _peers_are_up(port, view)


def _peers_are_up(port: PortView, view: View) -> bool:
    peers = [
        each.netdev.operstate == _UP
        for each in view.ports
        if each.netdev is not None
        and each.info.link_layer is LinkLayer.INFINIBAND
        and (each.info.role, each.info.board_id) == (port.info.role, port.info.board_id)
    ]
    return len(peers) >= _PEERS_MINIMUM and 2 * sum(peers) > len(peers)


def _finding(
    port: PortView, netdev: NetdevStatus, silence: _Silence, view: View
) -> Finding:
    id_, name = port.info.id, netdev.netdev
    losses = next(
        (
            view.counters.value(id_, spec)
            for spec in view.counters.by_signal(id_, Signal.CARRIER_DOWN)
        ),
        None,
    )
    age = round(view.now - silence.since, 1)
    lost = f" after {losses} carrier losses" if losses else ""
    counted: tuple[Evidence, ...] = ()
    if losses is not None:
        counted = (Evidence("carrier_down_count", losses, "events", f"net/{name}"),)
    return Finding(
        kind="config_mismatch",
        subject=subject_of(port.info),
        onset=silence.since + view.onset_offset,
        evidence=(
            Evidence("operstate", _DOWN, "", f"net/{name}", _UP, age),
            *counted,
            Evidence(
                "state", "ACTIVE", "", f"infiniband/{id_.device}/ports/{id_.port}"
            ),
        ),
        summary=one_line(
            f"{id_} is ACTIVE but its {name} is down{lost}: no link fault"
        ),
        severity=Severity.WARNING,
        action=Action.INSPECT,
    )
