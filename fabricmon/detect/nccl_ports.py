"""What the ports showed lately, to be held against what a log says of them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from fabricmon.catalogue import FaultClass, Signal
from fabricmon.detect.evidence import source_of
from fabricmon.detect.wording import port_source
from fabricmon.model import Evidence, Move, PortId, PortInfo, PortView, View
from fabricmon.parse.words import PortState
from fabricmon.value import Value

MAX_SIGNS = 64
"""Signs remembered of one port; a storm keeps the newest."""

_OUTAGES = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
_RETRIES = frozenset(
    {
        Signal.ACK_TIMEOUT,
        Signal.RETRANSMIT,
        Signal.NOT_READY_EXCEEDED,
        Signal.RETRIES_EXCEEDED,
        Signal.SEQUENCE_ERROR,
    }
)
_STRONGEST_FIRST = (
    Signal.RETRIES_EXCEEDED,
    Signal.NOT_READY_EXCEEDED,
    Signal.ACK_TIMEOUT,
    *sorted(_RETRIES),
)


class Sign(Value, frozen=True):
    """Something that a port showed at ``at``, monotonic seconds.

    A sign without ``signal`` is a state that is not ACTIVE. ``is_own`` tells a fault of
    the port itself (state, link errors) from retries, which may be the peer's doing.
    """

    at: float
    file: str
    amount: int
    is_own: bool
    source: str
    signal: Signal | None = None
    state: PortState | None = None


class PortSigns:
    """Remembers, for a while, what each port showed."""

    def __init__(self, seconds: float) -> None:
        """Remember for so long."""
        self._seconds = seconds
        self._signs: dict[PortId, deque[Sign]] = defaultdict(
            lambda: deque(maxlen=MAX_SIGNS)
        )
        self._states: dict[PortId, PortState | None] = {}
        self._lasting: dict[PortId, Sign] = {}

    def note(self, view: View) -> None:
        """Take in what is new in a view."""
        infos: dict[PortId, PortInfo] = {}
        if view.moves or view.statuses:
            infos = {port.info.id: port.info for port in view.ports}
        for move in view.moves:
            info = infos.get(move.port)
            sign = None if info is None else _sign_of(move, info)
            if sign is not None:
                self._signs[move.port].append(sign)
        for status in view.statuses:
            before = self._states.get(status.port, PortState.ACTIVE)
            self._states[status.port] = status.state
            if status.state is PortState.ACTIVE:
                self._lasting.pop(status.port, None)
            elif status.state not in {before, None}:
                source = port_source(status.port)
                sign = Sign(status.at, "state", 1, True, source, state=status.state)
                self._signs[status.port].append(sign)
                self._lasting[status.port] = sign

    def of(self, port: PortId, now: float) -> tuple[Sign, ...]:
        """Return what a port showed lately, oldest first.

        A state that lasts is never too old: watchdogs speak ten minutes later.
        """
        kept = self._signs.get(port)
        if kept is None:
            return ()
        while kept and now - kept[0].at > self._seconds:
            kept.popleft()
        lasting = self._lasting.get(port)
        if lasting is not None and lasting not in kept:
            return (lasting, *kept)
        return tuple(kept)

    def retrying(self, ports: Iterable[PortView], now: float) -> tuple[PortId, ...]:
        """Return the ports whose retries moved lately, by the strongest sign there is.

        Queue pairs that died say more than time-outs that they survived.
        """
        signs = {port.info.id: self.of(port.info.id, now) for port in ports}
        for wanted in _STRONGEST_FIRST:
            found = tuple(
                port
                for port, shown in signs.items()
                if any(sign.signal is wanted for sign in shown)
            )
            if found:
                return found
        return ()

    def has_own(self, port: PortId, now: float) -> bool:
        """Tell whether a port lately had a fault of its own."""
        return any(sign.is_own for sign in self.of(port, now))


class Shown(Value, frozen=True):
    """What one file of a port told since ``since``, joined with an error: it stays."""

    newest: Sign
    since: float
    amount: int

    def plus(self, sign: Sign) -> Shown:
        """Return it with a sign that is newer than what it has."""
        if sign.at <= self.newest.at:
            return self
        return Shown(sign, self.since, self.amount + sign.amount)

    def evidence(self, now: float) -> Evidence:
        """Return it as an item of a finding."""
        state = self.newest.state
        return Evidence(
            self.newest.file,
            self.amount if state is None else state.value,
            "" if state is None else "state",
            self.newest.source,
            window_seconds=round(now - self.since, 1),
        )


def joined(before: Iterable[Shown], signs: Iterable[Sign]) -> tuple[Shown, ...]:
    """Return what was shown before and these signs, one a file, own faults first."""
    found = {shown.newest.file: shown for shown in before}
    for sign in signs:
        known = found.get(sign.file)
        new = Shown(sign, sign.at, sign.amount)
        found[sign.file] = new if known is None else known.plus(sign)
    return tuple(sorted(found.values(), key=lambda shown: not shown.newest.is_own))


def _sign_of(move: Move, info: PortInfo) -> Sign | None:
    if move.previous is None or move.increase <= 0:
        return None
    signal = move.spec.signal
    is_own = signal in _OUTAGES or move.spec.fault_class is FaultClass.LINK
    if not is_own and signal not in _RETRIES:
        return None
    source = source_of(info, move.spec)
    return Sign(move.at, move.spec.file, move.increase, is_own, source, signal)
