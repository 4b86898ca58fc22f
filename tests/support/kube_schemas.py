"""Schemas of Kubernetes objects, and of those of the Prometheus Operator."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.support.programs import MISSING

Json = dict[str, Any]

OLDEST = 30
"""Minor version of the oldest Kubernetes that the chart supports."""

_OPERATOR = Path(__file__).parent.parent / "data" / "kube" / "operator.json"
_GROUP = "monitoring.coreos.com/"


def _library() -> Any:
    reason = f"{MISSING}kubernetes-validate (pip install --group chart)"
    return pytest.importorskip("kubernetes_validate", reason=reason)


def versions() -> list[str]:
    """Return the versions of Kubernetes from the oldest to the newest known."""
    newest = int(_library().latest_version().split(".")[1])
    return [f"1.{minor}" for minor in range(OLDEST, newest + 1)]


def check(thing: Json, version: str) -> None:
    """Raise for an object that this version would not take as it stands."""
    if thing["apiVersion"].startswith(_GROUP):
        _operator(thing["kind"]).validate(thing)
    else:
        _library().validate(thing, version, strict=True)


@cache
def _operator(kind: str) -> Draft7Validator:
    document = json.loads(_OPERATOR.read_text())
    definitions = {key: _closed(each) for key, each in document["definitions"].items()}
    return Draft7Validator(
        {"$ref": f"#/definitions/{kind}", "definitions": definitions}
    )


def _closed(schema: Any) -> Any:
    """Refuse unknown fields wherever fields are listed."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: _closed(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict):
        told |= {"type": "object", "additionalProperties": False}
    return told
