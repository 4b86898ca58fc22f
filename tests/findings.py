"""The contract of findings: what one document holds, and what a stream of them may say."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from jsonschema import Draft202012Validator

from fabricmon.finding_document import finding_document
from fabricmon.kinds import KINDS
from fabricmon.replaying import Change

Json = dict[str, Any]

_IDENTITY = {kind.slug: kind.about.fields for kind in KINDS}
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
_VALUE = {"type": ["number", "string", "null"]}
_EVIDENCE = {
    "type": "object",
    "required": ["signal", "value", "unit", "source"],
    "additionalProperties": False,
    "properties": {
        "signal": {"type": "string", "minLength": 1},
        "value": _VALUE,
        "unit": {"type": "string"},
        "source": {"type": "string", "minLength": 1},
        "threshold": _VALUE,
        "window_seconds": {"type": "number", "minimum": 0},
    },
}
_NAMES = ("device", "netdev", "peer", "leaf", "job", "comm")
_SUBJECT = {
    "type": "object",
    "required": ["node"],
    "additionalProperties": False,
    "properties": {
        "node": {"type": ["string", "null"]},
        "port": {"type": "integer"},
        "rail": {"type": ["integer", "string"]},
        **{key: {"type": "string"} for key in _NAMES},
    },
}
_PROPERTIES = {
    "schema": {"const": "fabricmon.finding/1"},
    "id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "seq": {"type": "integer", "minimum": 1},
    "t": {"type": "number", "minimum": 0},
    "time": {"type": "string", "pattern": _TIME},
    "onset": {"type": "string", "pattern": _TIME},
    "state": {"enum": ["open", "update", "resolved"]},
    "kind": {"enum": sorted(_IDENTITY)},
    "severity": {"enum": ["info", "warning", "critical"]},
    "role": {"enum": ["culprit", "victim", "observer"]},
    "action": {"enum": ["none", "inspect", "drain_after_job", "drain_now"]},
    "subject": _SUBJECT,
    "evidence": {"type": "array", "minItems": 1, "items": _EVIDENCE},
    "summary": {"type": "string", "minLength": 1, "maxLength": 120},
    "runbook": {"type": "string", "minLength": 1},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "dry_run": {"type": "boolean"},
}
_VALIDATOR = Draft202012Validator(
    {
        "type": "object",
        "required": sorted(_PROPERTIES),
        "additionalProperties": False,
        "properties": _PROPERTIES,
    }
)


def documents(changes: Iterable[Change]) -> list[Json]:
    """Return changes as another program reads them."""
    return [
        msgspec.json.decode(
            msgspec.json.encode(finding_document(change.incident, change.t))
        )
        for change in changes
    ]


def check_document(document: Json) -> None:
    """Fail where a document is not what the contract says."""
    for error in _VALIDATOR.iter_errors(document):
        raise AssertionError(f"{error.json_path}: {error.message}")
    assert "\n" not in document["summary"]


def check_stream(found: Sequence[Json]) -> None:
    """Fail where the findings of one node do not make stories with an end.

    An id opens once, is updated and resolved only while it is open; numbers rise; no
    two open findings are about the same thing; time does not run backwards.
    """
    live: dict[str, tuple[str, ...]] = {}
    ids: set[str] = set()
    last_seq, last_t = 0, 0.0
    for document in found:
        check_document(document)
        number, identifier = document["seq"], document["id"]
        assert number > last_seq, "seq rises"
        assert document["t"] >= last_t, "in order of time"
        last_seq, last_t = number, document["t"]
        about = _about(document)
        if document["state"] == "open":
            assert identifier not in ids, "an id opens once"
            assert about not in live.values(), "one open finding about one thing"
            assert identifier == _expected_id(document)
            ids.add(identifier)
            live[identifier] = about
            continue
        assert live.get(identifier) == about, "told only while it is open"
        if document["state"] == "resolved":
            del live[identifier]


def _about(document: Json) -> tuple[str, ...]:
    subject = document["subject"]
    fields = _IDENTITY[document["kind"]]
    values = ("" if subject.get(f) is None else str(subject[f]) for f in fields)
    return (document["kind"], *values)


def _expected_id(document: Json) -> str:
    kind, *identity = _about(document)
    onset = datetime.fromisoformat(document["onset"]).astimezone(UTC)
    milliseconds = round(onset.timestamp() * 1000)
    node = document["subject"]["node"]
    text = f"{node}|{kind}|{'/'.join(identity)}|{milliseconds}"
    assert re.fullmatch(r"[^\n]*", text)
    return sha256(text.encode()).hexdigest()[:16]
