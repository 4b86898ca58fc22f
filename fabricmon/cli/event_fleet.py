"""What messages of a broker say of the fleet: anybody may have written them.

Every payload is bounded, decoded into what it must be, and printed without what a
terminal would obey.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from fabricmon.model import Severity, Verdict
from fabricmon.runtime.logging import printable
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_topics import Place

LARGEST_PAYLOAD = 256 * 1024
"""Bytes of a message that are looked at; a finding has two thousand."""

MOST_PLACES = 200_000
"""Nodes and ports that are remembered: ten thousand nodes have half of it."""

_LONGEST = 200  # characters of one field
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)")
_T = TypeVar("_T", bound=Struct)
_Number = Annotated[int, Meta(ge=0, le=2**31)]


class StatusMessage(Struct, frozen=True):
    """Payload of ``status``."""

    state: str
    since: str | None = None
    version: str | None = None


class PortMessage(Struct, frozen=True):
    """Payload of ``port``, as far as it is shown."""

    verdict: str
    state: str | None = None
    phys_state: str | None = None
    reasons: list[str] = []


class SummaryMessage(Struct, frozen=True):
    """Payload of ``summary``."""

    time: str
    open: dict[str, dict[str, _Number]] = {}
    ports: dict[str, _Number] = {}


class SubjectMessage(Struct, frozen=True):
    """Subject of a finding, as far as it is shown."""

    device: str | None = None
    port: _Number | None = None
    rail: _Number | str | None = None
    peer: str | None = None
    leaf: str | None = None
    job: str | None = None


class FindingMessage(Struct, frozen=True):
    """Payload of ``finding``, as far as it is shown."""

    time: str
    state: str
    kind: str
    severity: str
    action: str
    summary: str
    subject: SubjectMessage = SubjectMessage()
    seq: _Number | None = None
    dry_run: bool = False


class UnreadableError(ValueError):
    """A payload is not what its topic says it is; the text says why, bounded."""


def decode(payload: bytes, kind: type[_T]) -> _T:
    """Read a payload; raises `UnreadableError`."""
    if len(payload) > LARGEST_PAYLOAD:
        raise UnreadableError(f"{len(payload)} bytes are too many")
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(shown(str(error))) from None


def shown(text: str | None, longest: int = _LONGEST) -> str:
    """Return a text for a terminal: bounded, and nothing in it acts."""
    return "" if text is None else printable(text[:longest])


def clock(time: str | None) -> str:
    """Return the time of day of RFC 3339, or what it says instead."""
    found = _CLOCK.match(time or "")
    return f"{found[1]}Z" if found else shown(time, 12) or "?"


@dataclass(slots=True)
class NodeState:
    """What is retained of one node."""

    cluster: str
    node: str
    status: StatusMessage | None = None
    summary: SummaryMessage | None = None
    ports: dict[tuple[str, str], PortMessage] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The worst of its ports; unknown while it is offline or tells nothing."""
        words = {each.verdict for each in self.ports.values()}
        worst = next(
            (v.word for v in sorted(Verdict, reverse=True) if v.word in words), ""
        )
        is_online = self.status is not None and self.status.state == "online"
        if not is_online and worst in {"", Verdict.HEALTHY.word}:
            return Verdict.UNKNOWN.word
        return worst or Verdict.UNKNOWN.word

    @property
    def open(self) -> Counter[str]:
        """Open findings by severity."""
        found: Counter[str] = Counter()
        for counts in (self.summary.open if self.summary else {}).values():
            found.update(counts)
        return found


class Fleet:
    """What is known of all nodes; what is new is told by `take`."""

    def __init__(self) -> None:
        """Know nothing."""
        self._nodes: dict[tuple[str, str], NodeState] = {}
        self._places = 0

    @property
    def nodes(self) -> list[NodeState]:
        """Every node, by cluster and name."""
        return [self._nodes[key] for key in sorted(self._nodes)]

    def take(self, place: Place, payload: bytes) -> Struct | None:
        """Take a message; return what it says if that is news, else None.

        An empty payload clears what was retained. Raises `UnreadableError`.
        """
        if place.what == topics.FINDING:
            return decode(payload, FindingMessage)
        node = self._node(place)
        if node is None:
            return None
        if place.what == topics.STATUS:
            before = node.status
            node.status = decode(payload, StatusMessage) if payload else None
            return node.status if node.status != before else None
        if place.what == topics.SUMMARY:
            node.summary = decode(payload, SummaryMessage) if payload else None
            return None
        return self._take_port(node, place, payload)

    def _take_port(
        self, node: NodeState, place: Place, payload: bytes
    ) -> PortMessage | None:
        key = (place.device or "", place.port or "")
        before = node.ports.get(key)
        if not payload:
            self._places -= node.ports.pop(key, None) is not None
            return None
        now = decode(payload, PortMessage)
        if before is None:
            if self._places >= MOST_PLACES:
                return None
            self._places += 1
        node.ports[key] = now
        usual = Verdict.HEALTHY.word if before is None else before.verdict
        return now if now.verdict != usual else None

    def _node(self, place: Place) -> NodeState | None:
        key = (place.cluster, place.node)
        known = self._nodes.get(key)
        if known is None and self._places < MOST_PLACES:
            self._places += 1
            known = self._nodes[key] = NodeState(place.cluster, place.node)
        return known


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which findings are shown; ``least`` is the mildest severity."""

    kinds: frozenset[str] = frozenset()
    least: Severity = Severity.INFO

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is left out."""
        return not self.kinds and self.least is Severity.INFO

    def admits(self, finding: FindingMessage) -> bool:
        """Tell whether a finding is shown; a severity without a name always is."""
        if self.kinds and finding.kind not in self.kinds:
            return False
        words = {each.word: each for each in Severity}
        return words.get(finding.severity, Severity.CRITICAL) >= self.least


def where(subject: SubjectMessage) -> str:
    """Return what a finding is about, in one word."""
    if subject.device is not None:
        port = "" if subject.port is None else f"/{subject.port}"
        return shown(subject.device) + port
    for name in ("peer", "leaf", "rail", "job"):
        value = getattr(subject, name)
        if value is not None:
            return f"{name} {shown(str(value))}"
    return "node"


def table(nodes: list[NodeState]) -> Iterator[tuple[str, ...]]:
    """Yield the fleet as rows of words, the head first."""
    yield ("CLUSTER", "NODE", "STATUS", "SINCE", "VERDICT", "PORTS", "OPEN")
    for node in nodes:
        status = node.status or StatusMessage("unknown")
        ports = Counter(each.verdict for each in node.ports.values())
        counts = (f"{ports[v.word]} {v.word}" for v in Verdict if ports[v.word])
        open_ = (f"{node.open[s.word]} {s.word}" for s in Severity if node.open[s.word])
        yield (
            shown(node.cluster),
            shown(node.node),
            shown(status.state, 12),
            shown(status.since, 24),
            node.verdict,
            ", ".join(counts) or "-",
            ", ".join(open_) or "-",
        )
