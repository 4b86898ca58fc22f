"""Messages of agents, by way of an MQTT broker, as reports. Pure.

A broker's rules bind a node to its own topics; what a payload says of another node is
therefore no more than hearsay, and refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from fabricmon.errors import ParseError
from fabricmon.finding_document import SCHEMA, FindingDocument
from fabricmon.gate.report import Report, word

FINDING, SUMMARY, STATUS = "finding", "summary", "status"
"""Last levels of the topics that are read."""

LARGEST_PAYLOAD = 256 * 1024
"""Bytes of a message that are looked at; a finding has two thousand."""

_T = TypeVar("_T")


class _Summary(Struct, frozen=True):
    time: str
    open: dict[str, dict[str, Annotated[int, Meta(ge=0)]]]


class _Status(Struct, frozen=True):
    state: Literal["online", "offline"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Kinds of which a node has open findings, as of a time (RFC 3339)."""

    cluster: str
    node: str
    time: str
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a node's agent is connected to the broker."""

    cluster: str
    node: str
    is_online: bool


Told = Report | Standing | Presence


def read_message(cluster: str, node: str, what: str, payload: bytes) -> Told | None:
    """Read a message of a node; ``what`` is the last level of its topic.

    None for one that is none of the gate's business. Raises `ParseError` for what is
    not what its topic says.
    """
    cluster, node = word(cluster), word(node)
    if what == FINDING:
        return _finding(cluster, node, payload)
    if what == SUMMARY and payload:
        summary = _decoded(payload, _Summary)
        return Standing(cluster, node, word(summary.time), frozenset(summary.open))
    if what == STATUS and payload:
        return Presence(cluster, node, _decoded(payload, _Status).state == "online")
    return None


def _finding(cluster: str, node: str, payload: bytes) -> Report:
    finding = _decoded(payload, FindingDocument)
    if finding.schema != SCHEMA:
        raise ParseError(f"schema {word(finding.schema)!r} is not {SCHEMA!r}")
    if finding.id is None or not finding.evidence:
        raise ParseError("a finding without id or evidence")
    if finding.subject.node not in {None, node}:
        raise ParseError(f"{node} speaks of {word(finding.subject.node)}")
    return Report(
        id=f"mqtt:{node}:{word(finding.id)}",
        source="mqtt",
        cluster=cluster,
        node=node,
        finding=finding,
    )


def _decoded(payload: bytes, kind: type[_T]) -> _T:
    if len(payload) > LARGEST_PAYLOAD:
        raise ParseError(f"{len(payload)} bytes are too many")
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not what its topic says: {word(error)}") from None
