"""Retries of the transport: who suffers, who is the cause, and who is only slow.

Counters of the transport name the victim: a port whose packets are lost or not
answered says that its path or its peer hurts. It is the culprit only with a fault of
its own in the last minutes (`local_evidence`) that explains it: none explains that a
peer posts no receive. A queue of this host that nobody fills is its own doing in any
case.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Config
from fabricmon.detect.local_evidence import LocalEvidence, LocalSign, Nature
from fabricmon.detect.network_sight import uncounted
from fabricmon.detect.post_flap import PostFlap
from fabricmon.detect.transport_rules import (
    EXHAUSTED,
    PARTITION,
    RETRYING,
    STALLED,
    UPSTREAM,
    Symptom,
    judge,
    rules_of,
)
from fabricmon.detect.transport_telling import Case, folded, tell
from fabricmon.model import Blindness, Finding, Mark, PortId, PortView, Role, View
from fabricmon.value import State

LOOK_SECONDS = 5.0
"""How often a port is looked at again while none of its counters moves."""

SETTLE_SECONDS = 6.0
"""Ports are read one after another: what hits all of them shows within so long."""

WATCHED = frozenset(
    {
        Signal.ACK_TIMEOUT,
        Signal.SEQUENCE_ERROR,
        Signal.RETRANSMIT,
        Signal.RETRIES_EXCEEDED,
        Signal.NOT_READY_EXCEEDED,
        Signal.REMOTE_IMPAIRED,
        Signal.RECEIVER_NOT_READY,
        Signal.RECEIVER_NOT_READY_SENT,
        Signal.OUT_OF_BUFFER,
        Signal.RECEIVE_DISCARD,
        Signal.REQUEST_FAILED,
        Signal.REMOTE_PHYSICAL,
        Signal.CORRUPTION,
        Signal.CONSTRAINT,
    }
)

_NEEDS = {
    RETRYING: (Signal.ACK_TIMEOUT, Signal.SEQUENCE_ERROR, Signal.RETRANSMIT),
    EXHAUSTED: (Signal.RETRIES_EXCEEDED,),
    STALLED: (
        Signal.OUT_OF_BUFFER,
        Signal.RECEIVER_NOT_READY_SENT,
        Signal.RECEIVE_DISCARD,
    ),
    UPSTREAM: (Signal.REMOTE_PHYSICAL, Signal.CORRUPTION),
}


class _Port(State):
    """What moved lately at one port, and which kinds hold since when."""

    specs: dict[CounterSpec, float] = field(default_factory=dict)
    began: dict[Signal, float] = field(default_factory=dict)
    looked_at: float = 0.0
    symptoms: tuple[Symptom, ...] = ()
    held: dict[str, float] = field(default_factory=dict)

    def take(self, spec: CounterSpec, begin: float, at: float, quiet: float) -> None:
        """Note a step; after a quiet time a new episode begins."""
        signal = spec.signal
        if signal is None:
            return
        newest = max(
            (t for each, t in self.specs.items() if each.signal is signal), default=None
        )
        if newest is None or begin - newest > quiet:
            self.began[signal] = begin
        self.specs[spec] = at

    def since(self, symptom: Symptom) -> float:
        """Return when the counters of a symptom began to move."""
        began = [self.began[s] for s in symptom.rule.signals if s in self.began]
        return min(began, default=self.looked_at)


class Transport:
    """Judges retries, dead queue pairs, and receivers that are not ready."""

    name = "transport"
    kinds: tuple[str, ...] = (
        RETRYING, EXHAUSTED, STALLED, "post_flap_degraded", UPSTREAM, PARTITION,
    )  # fmt: skip

    def __init__(self, config: Config) -> None:
        """Take the thresholds from ``config.transport``."""
        self._limits = config.transport
        self._rules = rules_of(config.transport)
        self._local = LocalEvidence(config)
        self._post_flap = PostFlap(config)
        self._ports: dict[PortId, _Port] = {}

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds now; a port is looked at when its counters move."""
        self._local.note(view)
        touched = self._note(view)
        yield from self._post_flap.judge(view)
        if not self._ports:
            return
        cases: list[Case] = []
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is None or not _is_judged(port):
                continue
            if port.info.id in touched or view.now - known.looked_at >= LOOK_SECONDS:
                self._look(port, known, view)
            if known.symptoms:
                cases += self._cases(port, known, view)
        rails = sum(port.info.role is Role.COMPUTE for port in view.ports)
        enough = max(self._limits.common_ports, (rails + 1) // 2)
        for case, others in folded(cases, enough):
            yield tell(case, others, self._limits, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """A driver that does not count it shows nothing of it."""
        ports = [port.info for port in view.ports if _is_judged(port)]
        for kind, signals in _NEEDS.items():
            rules = [rule for rule in self._rules if rule.kind == kind]
            if ports and not any(
                rule.is_for(port, spec)
                for port in ports
                for signal in signals
                for spec in view.counters.by_signal(port.id, signal)
                for rule in rules
            ):
                yield Blindness(kind, uncounted(view))
        yield from self._post_flap.blind(view)

    def save(self) -> bytes:
        """Nothing: windows are refilled within minutes."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Nothing is kept."""
        del saved, view_offset

    def _note(self, view: View) -> set[PortId]:
        """Note the counters that moved; return their ports."""
        touched: set[PortId] = set()
        for move in view.moves:
            signal = move.spec.signal
            if signal not in WATCHED or move.increase <= 0 or move.port.port == 0:
                continue
            if move.mark in (Mark.RESET, Mark.FIRST):
                continue
            known = self._ports.setdefault(move.port, _Port())
            begin = move.at - min(move.seconds, self._limits.window_seconds)
            known.take(move.spec, begin, move.at, self._limits.slow_window_seconds)
            touched.add(move.port)
        return touched

    def _look(self, port: PortView, known: _Port, view: View) -> None:
        """Judge a port anew, and forget it when nothing moved for a slow window."""
        known.looked_at = view.now
        oldest = view.now - self._limits.slow_window_seconds
        for spec, at in tuple(known.specs.items()):
            if at < oldest:
                del known.specs[spec]
        if not known.specs:
            del self._ports[port.info.id]
            known.symptoms = ()
            return
        known.symptoms = tuple(judge(self._rules, port.info, known.specs, view))
        kinds = {symptom.rule.kind for symptom in known.symptoms}
        known.held = {kind: known.held.get(kind, view.now) for kind in kinds}

    def _cases(self, port: PortView, known: _Port, view: View) -> Iterator[Case]:
        """Yield each kind of symptom of a port once, with all that speaks for it."""
        signs: tuple[LocalSign, ...] | None = None
        for kind, held in known.held.items():
            if view.now - held < SETTLE_SECONDS:
                continue
            signs = self._local.of(port, view) if signs is None else signs
            if kind == UPSTREAM and any(s.nature is Nature.LINK for s in signs):
                continue  # damage seen here explains damage seen here
            symptoms = tuple(s for s in known.symptoms if s.rule.kind == kind)
            since = min(known.since(symptom) for symptom in symptoms)
            explained = any(symptom.rule.explains for symptom in symptoms)
            own, other = (signs, ()) if explained else ((), signs)
            yield Case(kind, port.info, since, held, symptoms, own, other)


def _is_judged(port: PortView) -> bool:
    """Tell whether a port carries data of jobs, or may."""
    return port.info.role is not Role.MANAGEMENT and not port.info.is_vf
