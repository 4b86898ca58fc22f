"""When a finding is acted on: state of the gate and its rules, with time as data. Pure.

Every rule only ever holds back. What is not known, of an agent, of a source, of the
outcome of an action, holds back too. Times are Unix seconds; a clock that was set back
makes waits longer, never shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from fabricmon.gate.causes import Company, explains
from fabricmon.gate.choosing import is_named, refusal
from fabricmon.gate.decision import (
    UNSURE,
    Attempt,
    Decision,
    Known,
    Out,
    Outcome,
    Reason,
    Sight,
    Verdict,
)
from fabricmon.gate.messages import Presence, Standing
from fabricmon.gate.report import Report
from fabricmon.gate.settings import GateConfig
from fabricmon.model import IncidentState

_Hold = tuple[Reason, str]


@dataclass(frozen=True, slots=True)
class _Moment:
    """What all findings are judged by."""

    now: float
    sight: Sight
    company: Company
    causes: Mapping[str | None, Sequence[Report]]


class Gate:
    """Knows what is open, who is out and what was done; decides when asked."""

    def __init__(self, config: GateConfig, now: float) -> None:
        """Know nothing; what may have been missed is waited for from ``now`` on."""
        self.config = config
        self.known: dict[str, Known] = {}
        self.outs: dict[str, Out] = {}
        self.attempts: list[Attempt] = []
        self.busy: str | None = None
        self._rested: dict[str, float] = {}  # node: when its cool-down began
        self._offline: set[tuple[str, str]] = set()
        self._overflow: float | None = None
        self._started = now

    @property
    def budget(self) -> int:
        """Nodes that may be out at a time."""
        caution = self.config.caution
        share = int(caution.budget_ratio * caution.cluster_nodes)
        return max(caution.budget_nodes, share)

    def restore(
        self,
        known: Iterable[Known],
        outs: Iterable[Out],
        attempts: Iterable[Attempt],
        rested: Iterable[tuple[str, float]],
    ) -> None:
        """Take up what was known before a restart."""
        self.known = {each.report.id: each for each in known}
        self.outs = {each.node: each for each in outs}
        self.attempts = list(attempts)
        self._rested = dict(rested)

    def take(self, report: Report, now: float) -> bool:
        """Take in a finding; tell whether it says something new."""
        known = self.known.get(report.id)
        if known is not None and _is_late(report, known.report):
            return False
        if not report.is_open:
            return self._resolve(report, now)
        if known is None and len(self.known) >= self.config.caution.most_findings:
            self._overflow = now
            return False
        self._speak_against(report)
        if known is None or known.resolved is not None:
            self.known[report.id] = Known(report, now, now, now)
            return True
        is_new = _says(known.report) != _says(report)
        known.report, known.told = report, now
        if is_new:
            known.changed = now
        return is_new

    def take_standing(self, standing: Standing, now: float) -> list[str]:
        """Take in which kinds a node still has open; return the ids that are over."""
        over = [
            key
            for key, known in self.known.items()
            if known.report.source == "mqtt"
            and known.resolved is None
            and (known.report.cluster, known.report.node)
            == (standing.cluster, standing.node)
            and known.report.finding.kind not in standing.kinds
            and known.report.finding.time < standing.time
        ]
        for key in over:
            self._resolve(self.known[key].report, now)
        return over

    def take_presence(self, presence: Presence) -> None:
        """Take in whether a node's agent is connected."""
        key = (presence.cluster, presence.node)
        if presence.is_online:
            self._offline.discard(key)
        elif len(self._offline) < self.config.caution.most_findings:
            self._offline.add(key)

    def note_cut(self, now: float) -> None:
        """Note that findings were left out, by whoever sent them."""
        self._overflow = now

    def judge(self, now: float, sight: Sight) -> tuple[Decision, ...]:
        """Decide what becomes of each open finding; one at most is to be acted on."""
        refused, candidates = [], []
        for known in self._open():
            refused_for = refusal(known.report, self.config)
            if refused_for is None:
                candidates.append(known)
            else:
                refused.append(Decision(known.report, Verdict.REFUSE, *refused_for))
        if not candidates:
            return tuple(refused)
        company = Company(self.known.values(), self.config.caution)
        moment = _Moment(now, sight, company, self._causes(now))
        decided, chosen = [], False
        for known in sorted(candidates, key=_urgency):
            hold = self._hold(known, moment)
            if hold is None and chosen:
                hold = Reason.BUSY, "one at a time"
            if hold is not None:
                decided.append(Decision(known.report, Verdict.HOLD, *hold))
                continue
            chosen = True
            decided.append(Decision(known.report, Verdict.ACT, Reason.CLEAR))
        return (*refused, *decided)

    def begin(self, report: Report, now: float) -> None:
        """Note that an action on the finding's node begins."""
        node = report.node or ""
        self.busy = node
        self.attempts.append(Attempt(node, now, is_dry=not self.config.act))
        self._rested[node] = now

    def end(self, report: Report, outcome: Outcome, now: float) -> None:
        """Note how the action on the finding's node ended."""
        node = report.node or ""
        self.busy = None
        self._rested[node] = now
        if outcome is Outcome.FAILED:
            return
        against = {
            key
            for key, known in self.known.items()
            if known.report.node == node
            and known.resolved is None
            and self._speaks(known.report)
        }
        well = None if against else now
        self.outs[node] = Out(node, now, outcome, against, well)

    def release(self, node: str, now: float) -> bool:
        """Take a node for back because somebody says so; False if it was not out."""
        if self.outs.pop(node, None) is None:
            return False
        self._rested[node] = now
        return True

    def forget_rehearsal(self) -> None:
        """Forget what was only done in dry-run: from now on the gate acts."""
        dry = {each.node for each in self.outs.values() if each.is_dry}
        self.outs = {node: out for node, out in self.outs.items() if node not in dry}
        self.attempts = [each for each in self.attempts if not each.is_dry]
        for node in dry:
            self._rested.pop(node, None)

    def age(self, now: float) -> tuple[list[str], list[str]]:
        """Let time pass; return the nodes that are back and the ids that are gone."""
        caution = self.config.caution
        gone = [key for key, known in self.known.items() if self._is_gone(known, now)]
        for key in gone:
            del self.known[key]
        since = now - caution.budget_window_seconds
        self.attempts = [each for each in self.attempts if each.at > since]
        back = [
            out.node
            for out in self.outs.values()
            if out.well is not None and now - out.well >= caution.cooldown_seconds
        ]
        for node in back:
            del self.outs[node]
            self._rested[node] = now
        cooled = now - caution.cooldown_seconds
        self._rested = {n: at for n, at in self._rested.items() if at > cooled}
        return back, gone

    @property
    def rested(self) -> tuple[tuple[str, float], ...]:
        """When the cool-down of each node began."""
        return tuple(self._rested.items())

    def out_nodes(self) -> int:
        """Return how many nodes are out."""
        return len(self.outs)

    def window_nodes(self, now: float) -> int:
        """Return how many nodes were acted on within the window."""
        since = now - self.config.caution.budget_window_seconds
        return len({each.node for each in self.attempts if each.at > since})

    def _open(self) -> Iterator[Known]:
        for known in self.known.values():
            if known.resolved is None and not known.report.is_cause:
                yield known

    def _causes(self, now: float) -> Mapping[str | None, Sequence[Report]]:
        """Return what explains findings, also what did until lately.

        By the node that says so of itself, None for what the fleet's rules say.
        """
        settle = self.config.caution.settle_seconds
        found: dict[str | None, list[Report]] = defaultdict(list)
        for known in self.known.values():
            over = known.resolved is not None and now - known.resolved >= settle
            if known.report.is_cause and not over:
                is_own = known.report.origin == "node"
                found[known.report.node if is_own else None].append(known.report)
        return found

    def _resolve(self, report: Report, now: float) -> bool:
        out = self.outs.get(report.node or "")
        if out is not None:
            out.against.discard(report.id)
            if not out.against and out.well is None:
                out.well = now
        known = self.known.get(report.id)
        if known is None or known.resolved is not None:
            return False
        over = IncidentState.RESOLVED.value
        finding = structs.replace(report.finding, state=over)
        known.report = structs.replace(report, finding=finding)
        known.resolved = now
        return True

    def _speak_against(self, report: Report) -> None:
        out = self.outs.get(report.node or "")
        if out is not None and self._speaks(report):
            out.against.add(report.id)
            out.well = None

    def _speaks(self, report: Report) -> bool:
        """Tell whether a node with this finding is not well."""
        return refusal(report, self.config) is None

    def _is_gone(self, known: Known, now: float) -> bool:
        caution = self.config.caution
        if known.resolved is not None:
            return now - known.resolved > _memory(self.config)
        return now - known.told > caution.forget_seconds

    def _hold(self, known: Known, moment: _Moment) -> _Hold | None:
        """Say what speaks against acting now, None if nothing."""
        return (
            self._node_hold(known, moment)
            or self._sight_hold(known, moment)
            or _cause_hold(known, moment)
            or self._budget_hold(moment.now)
        )

    def _node_hold(self, known: Known, moment: _Moment) -> _Hold | None:
        node = known.report.node or ""
        worked_on = moment.sight.worked_on
        if worked_on is None:
            return Reason.MAINTENANCE, "what is worked on cannot be read"
        if is_named(node, worked_on):
            return Reason.MAINTENANCE, "somebody works on the node"
        out = self.outs.get(node)
        if out is not None:
            doubt = ", perhaps" if out.outcome in UNSURE else ""
            return Reason.NODE_OUT, f"the node is out{doubt}"
        rested = self._rested.get(node)
        cooldown = self.config.caution.cooldown_seconds
        if rested is not None and moment.now - rested < cooldown:
            return Reason.COOLDOWN, "the node was acted on, or came back, lately"
        return None

    def _sight_hold(self, known: Known, moment: _Moment) -> _Hold | None:
        report, caution = known.report, self.config.caution
        now, memory = moment.now, _memory(self.config)
        if self._overflow is not None and now - self._overflow < memory:
            return Reason.OVERFLOW, "more findings came than are looked at"
        if report.source in moment.sight.lost:
            return Reason.INPUT_LOST, f"{report.source} is not connected"
        if (report.cluster, report.node) in self._offline and report.source == "mqtt":
            return Reason.AGENT_OFFLINE, "the agent is offline: its findings are old"
        begun = max(known.changed, self._started)
        if now - begun < caution.settle_seconds:
            return Reason.SETTLING, "a common cause may still show"
        return None

    def _budget_hold(self, now: float) -> _Hold | None:
        budget = self.budget
        if self.busy is not None:
            return Reason.BUSY, f"{self.busy} is being acted on"
        if self.out_nodes() >= budget:
            return Reason.BUDGET, f"{self.out_nodes()} of {budget} nodes are out"
        if self.window_nodes(now) >= budget:
            return Reason.BUDGET_WINDOW, f"{budget} nodes were acted on lately"
        return None


def _cause_hold(known: Known, moment: _Moment) -> _Hold | None:
    causes = moment.causes
    for cause in (*causes.get(known.report.node, ()), *causes.get(None, ())):
        if explains(cause, known.report):
            return Reason.FLEET_CAUSE, cause.finding.summary
    together = moment.company.of(known)
    return None if together is None else (Reason.COMMON_CAUSE, together)


def _memory(config: GateConfig) -> float:
    """Return how long what is over still counts, seconds."""
    caution = config.caution
    return max(caution.common_window_seconds, caution.settle_seconds)


def _is_late(report: Report, known: Report) -> bool:
    """Tell whether a message was overtaken: brokers may send one again."""
    seq, last = report.finding.seq, known.finding.seq
    return seq is not None and last is not None and seq < last


def _urgency(known: Known) -> tuple[bool, bool, float, str]:
    finding = known.report.finding
    return (
        finding.severity != "critical",
        finding.action != "drain_now",
        known.first,
        known.report.id,
    )


def _says(report: Report) -> tuple[str, str, str, bool]:
    finding = report.finding
    return finding.severity, finding.role, finding.action, report.noticed
