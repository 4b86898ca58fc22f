"""The manual of the configuration is made from its source, and is fresh."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from fabricmon.config import Config
from fabricmon.config_manual import keys, manual, schema

DOCS = Path(__file__).parent.parent / "docs"


def test_every_key_is_documented() -> None:
    """A key without a reason beside it does not get in."""
    assert [key.path for key in keys() if len(key.text) < 10] == []


def test_the_defaults_fit_the_schema() -> None:
    """What the agent does without a file is a configuration too."""
    defaults = json.loads(msgspec.json.encode(Config()))
    jsonschema.validate(defaults, schema())


@pytest.mark.parametrize(
    "wrong",
    [{"nonsense": 1}, {"log": {"level": "loud"}}, {"periods": {"errors_seconds": 0}}],
)
def test_the_schema_refuses_what_the_agent_refuses(wrong: dict[str, object]) -> None:
    """An editor that knows the schema marks the same mistakes."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema())


def test_the_committed_schema_is_fresh() -> None:
    """``make generate`` was run after the last change of a key."""
    committed = json.loads((DOCS / "fabricmon.schema.json").read_text("utf-8"))
    assert committed == json.loads(json.dumps(schema()))


def test_the_committed_manual_is_fresh() -> None:
    """The table of keys in the documentation is the one in the code."""
    assert (DOCS / "configuration.md").read_text("utf-8") == manual()
