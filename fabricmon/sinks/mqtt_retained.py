"""What the broker should hold of this node: topics and their newest payloads. Pure.

What is not wanted any more has an empty payload until the broker has taken that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from fabricmon.config import Config
from fabricmon.detect.sample import Judgement
from fabricmon.finding_document import finding_document
from fabricmon.model import PortId, PortSnapshot, Snapshot, Verdict
from fabricmon.parse.report import PortReport
from fabricmon.port_document import Json
from fabricmon.redaction import Redactor
from fabricmon.sinks import mqtt_payloads as payloads
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.snapshot_report import port_report
from fabricmon.value import Value

LIFETIME_SECONDS = 60.0
"""How often lifetime counters are judged anew of a port of which nothing else moved."""

NOTHING = b""
"""Payload that makes a broker forget a retained topic."""


class _Told(Value, frozen=True):
    """A port as it was last told, and by what; ``at`` is monotonic seconds."""

    port: PortSnapshot
    judgement: Judgement
    at: float


class Retained:
    """Works out what is wanted from snapshots, and forgets devices gone for good."""

    def __init__(self, config: Config, redactor: Redactor, root: str) -> None:
        """Want nothing yet; ``root`` is what the node's topics begin with."""
        self.root = root
        self.wanted: dict[str, bytes] = {}
        self._config = config
        self._redactor = redactor
        self._told: dict[str, _Told] = {}
        self._absent: dict[str, float] = {}
        self._known: set[str] = set()
        self._counts: Json = {}
        self._summed_at = -inf

    def remember(self, left: Iterable[str]) -> None:
        """Take topics that an earlier run left with the broker."""
        for topic in left:
            if topic in self.wanted:
                continue
            place = self._place(topic)
            if place is not None:
                self._known.add(topic)
            elif topic not in {self.root + topics.STATUS, self.root + topics.SUMMARY}:
                self.wanted[topic] = NOTHING

    def forget(self, topic: str) -> None:
        """Take that the broker has forgotten a topic."""
        if self.wanted.get(topic) == NOTHING:
            del self.wanted[topic]

    def update(self, snapshot: Snapshot) -> None:
        """Take what the node shows now."""
        now = snapshot.now
        shown = {
            self.root + topics.port_topic(port.info.id.device, port.info.id.port): port
            for port in snapshot.ports
            if not self._is_folded(port)
        }
        verdicts = [
            self._tell(topic, port, snapshot, now) for topic, port in shown.items()
        ]
        self._absent = {t: at for t, at in self._absent.items() if t not in shown}
        self._known |= shown.keys()
        for topic in tuple(self._known - shown.keys()):
            verdict = self._miss(topic, snapshot)
            verdicts += [] if verdict is None else [verdict]
        self._count(snapshot, verdicts)

    def _is_folded(self, port: PortSnapshot) -> bool:
        return port.info.is_vf and self._config.devices.virtual_functions == "fold"

    def _place(self, topic: str) -> PortId | None:
        """Return the port that a topic below this root is about."""
        place = topics.parse(topic, self._config.mqtt.topic_prefix)
        if place is None or place.device is None or not topic.startswith(self.root):
            return None
        number = place.port or ""
        return PortId(place.device, int(number)) if number.isdecimal() else None

    def _tell(
        self, topic: str, port: PortSnapshot, snapshot: Snapshot, now: float
    ) -> Verdict:
        told = self._told.get(topic)
        if told and _same(told.port, port) and now - told.at < LIFETIME_SECONDS:
            return told.judgement.verdict
        judgement = payloads.judged(port)
        shown = replace(judgement, reasons=self._plain(judgement.reasons, snapshot))
        self._told[topic] = _Told(port, judgement, now)
        self.wanted[topic] = payloads.port(port_report(port), shown)
        return judgement.verdict

    def _plain(self, reasons: tuple[str, ...], snapshot: Snapshot) -> tuple[str, ...]:
        """Return reasons as they may be told: most are the summaries of findings."""
        if not reasons:
            return ()
        names = payloads.names_of(snapshot)
        redacted = {
            incident.finding.summary: self._redactor.finding(
                finding_document(incident), names
            ).summary
            for incident in snapshot.incidents
            if incident.finding.summary in reasons
        }
        tell = self._redactor.text
        return tuple(redacted.get(text) or tell(text, names) for text in reasons)

    def _miss(self, topic: str, snapshot: Snapshot) -> Verdict | None:
        """Tell that a port is not there, or forget it; None where it is forgotten."""
        id_ = self._place(topic)
        since = self._absent.setdefault(topic, snapshot.now)
        if snapshot.class_error not in {None, "ENOENT"}:
            since = self._absent[topic] = snapshot.now
        missed = [
            incident
            for incident in snapshot.incidents
            if id_ is not None
            and incident.finding.subject.device == id_.device
            and incident.finding.kind == "device_missing"
        ]
        gone = snapshot.now - since >= self._config.mqtt.gone_seconds
        if id_ is None or (gone and not missed):
            self._give_up(topic)
            return None
        verdict = Verdict.DOWN if missed else Verdict.UNKNOWN
        reasons = tuple(each.finding.summary for each in missed)
        shown = self._plain(reasons, snapshot) or ("nothing is known of it now",)
        report = self._last_seen(topic, id_)
        self.wanted[topic] = payloads.port(report, Judgement(verdict, shown))
        return verdict

    def _give_up(self, topic: str) -> None:
        self._known.discard(topic)
        self._absent.pop(topic, None)
        self._told.pop(topic, None)
        self.wanted[topic] = NOTHING

    def _last_seen(self, topic: str, id_: PortId) -> PortReport:
        """Return who a port is that is not there; nothing of how it is."""
        told = self._told.get(topic)
        if told is None:
            return PortReport(id_.device, id_.port)
        bare = replace(told.port, status=None, readings=(), saturated=())
        self._told[topic] = _Told(bare, told.judgement, -inf)  # told anew once back
        return port_report(bare)

    def _count(self, snapshot: Snapshot, verdicts: Iterable[Verdict]) -> None:
        counted = payloads.counts(snapshot, verdicts)
        refresh = self._config.mqtt.refresh_seconds
        if counted == self._counts and snapshot.now - self._summed_at < refresh:
            return
        self._counts, self._summed_at = counted, snapshot.now
        topic = self.root + topics.SUMMARY
        self.wanted[topic] = payloads.summary(counted, snapshot.wall)


def _same(before: PortSnapshot, now: PortSnapshot) -> bool:
    """Tell whether nothing but counters and rates differs, and times of reading."""
    if before is now:
        return True
    return (
        before.info == now.info
        and before.verdict is now.verdict
        and before.reasons == now.reasons
        and before.saturated == now.saturated
        and _shown(before) == _shown(now)
    )


def _shown(port: PortSnapshot) -> tuple[object, ...]:
    status = port.status
    absent = tuple(reading.absent for reading in port.readings if reading.absent)
    if status is None:
        return (absent,)
    words = (status.state, status.phys_state, status.rate, status.lid, status.sm_lid)
    return (*words, status.absent, absent)
