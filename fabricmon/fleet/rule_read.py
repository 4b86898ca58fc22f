"""Rules out of a file as Prometheus reads it, so that a site can replay its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from fabricmon.errors import AbsentError, ConfigError, ParseError
from fabricmon.fleet.rule import Alert, Group, Label, Recording
from fabricmon.yaml_text import parse

_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_UNITS = {
    "ms": 0.001,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "y": 31536000,
}
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")


class _Rule(Struct, frozen=True):
    expr: str | int | float
    record: str = ""
    alert: str = ""
    hold: str | int = field(name="for", default="0s")
    keep: str | int = field(name="keep_firing_for", default="0s")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Group(Struct, frozen=True):
    name: str
    rules: tuple[_Rule, ...]
    interval: str | int = "0s"


class _File(Struct, frozen=True):
    groups: tuple[_Group, ...] = ()
    spec: Any = None


def read_rules(path: Path) -> tuple[Group, ...]:
    """Read the groups of a file of rules, or of an object of the operator.

    Raises `ParseError`; `AbsentError` where there is no such file.
    """
    try:
        document = parse(path.read_bytes().decode(), str(path))
        file = msgspec.convert(document.tree, _File)
        if file.spec is not None:
            file = msgspec.convert(file.spec, _File)
        groups = tuple(map(_group, file.groups))
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        kind = AbsentError if absent else ParseError
        raise kind(f"cannot be read: {error.strerror}", source=str(path)) from None
    except ConfigError as error:
        message = f"holds no rules: {error.message}"
        raise ParseError(message, source=str(path), line=error.line) from None
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise ParseError(f"holds no rules: {reason}", source=str(path)) from None
    return _with_levels(groups)


def _group(group: _Group) -> Group:
    rules = tuple(map(_rule, group.rules))
    return Group(group.name, _seconds(group.interval), rules)


def _rule(rule: _Rule) -> Recording | Alert:
    if rule.record:
        return Recording(rule.record, str(rule.expr), "")
    return Alert(
        name=rule.alert,
        kind=rule.labels.get("kind", rule.alert),
        expr=str(rule.expr),
        notice=None,
        summary=rule.annotations.get("summary", ""),
        description=rule.annotations.get("description", ""),
        is_not="",
        for_seconds=_seconds(rule.hold),
        keep_seconds=_seconds(rule.keep),
        labels=tuple(Label(*each) for each in rule.labels.items() if each[0] != "kind"),
    )


def _seconds(text: str | int) -> float:
    """Return a duration of Prometheus in seconds; raises `ValueError`."""
    parts = _DURATION.findall(str(text))
    if "".join(number + unit for number, unit in parts) != str(text):
        if str(text) == "0":
            return 0
        raise ValueError(f"{text!r} is no duration")
    return float(sum(int(number) * _UNITS[unit] for number, unit in parts))


def _with_levels(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Find out which recordings read others; raises `ParseError` never."""
    recordings = [each for group in groups for each in group.recordings]
    read = {each.record: set(_WORD.findall(each.expr)) for each in recordings}
    levels = dict.fromkeys(read, 1)
    for _ in read:  # as deep as there are recordings, at the most
        before = dict(levels)
        for name, words in read.items():
            below = [levels[word] for word in words if word in levels and word != name]
            levels[name] = min(len(read), max(below, default=0) + 1)
        if levels == before:
            break
    return tuple(
        replace(group, rules=_levelled(group.rules, levels)) for group in groups
    )


def _levelled(
    rules: Iterable[Recording | Alert], levels: Mapping[str, int]
) -> tuple[Recording | Alert, ...]:
    return tuple(
        replace(rule, level=levels[rule.record])
        if isinstance(rule, Recording)
        else rule
        for rule in rules
    )
