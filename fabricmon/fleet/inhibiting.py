"""Which alerts are inhibited at a time, as Alertmanager's inhibitor decides it.

Pure. A source that is inhibited itself inhibits all the same; an alert that is source
and target of a rule is not inhibited by another of that sort.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricmon.fleet.firing import Firing
from fabricmon.fleet.rule import Inhibition, Matcher

Labels = Mapping[str, str]


class Inhibitor:
    """Knows all alerts of one Alertmanager."""

    def __init__(
        self, inhibitions: Iterable[Inhibition], firings: Sequence[Firing]
    ) -> None:
        """Sort out which alerts can inhibit others."""
        self._rules = [_Rule(each) for each in inhibitions]
        for firing in firings:
            labels = labels_of(firing)
            for rule in self._rules:
                rule.offer(firing, labels)

    def reason(self, labels: Labels, now: float) -> str | None:
        """Return why an alert is inhibited now, None if it is not."""
        found = (rule for rule in self._rules if rule.inhibits(labels, now))
        return next((rule.reason for rule in found), None)


def labels_of(firing: Firing) -> dict[str, str]:
    """Return the labels of an alert by name."""
    return {each.name: each.value for each in firing.labels}


@dataclass(frozen=True, slots=True)
class _Source:
    begin: float
    end: float
    is_target: bool


class _Rule:
    """One inhibition and the alerts that are its sources, by their equal labels."""

    def __init__(self, inhibition: Inhibition) -> None:
        self.reason = inhibition.reason
        self._equal = inhibition.equal
        self._source = _compiled(inhibition.source)
        self._target = _compiled(inhibition.target)
        self._sources: dict[tuple[str, ...], list[_Source]] = {}

    def offer(self, firing: Firing, labels: Labels) -> None:
        """Keep an alert if it is a source."""
        if _match(self._source, labels):
            is_target = _match(self._target, labels)
            source = _Source(firing.life.fired, firing.ended, is_target)
            self._sources.setdefault(self._key(labels), []).append(source)

    def inhibits(self, labels: Labels, now: float) -> bool:
        """Tell whether a source of an alert that is a target fires now."""
        if not _match(self._target, labels):
            return False
        is_source = _match(self._source, labels)
        return any(
            each.begin <= now < each.end and not (is_source and each.is_target)
            for each in self._sources.get(self._key(labels), ())
        )

    def _key(self, labels: Labels) -> tuple[str, ...]:
        return tuple(labels.get(name, "") for name in self._equal)


_Compiled = Sequence[tuple[str, re.Pattern[str]]]


def _compiled(matchers: Iterable[Matcher]) -> _Compiled:
    return [(each.label, re.compile(each.pattern, re.DOTALL)) for each in matchers]


def _match(matchers: _Compiled, labels: Labels) -> bool:
    """Tell whether all match; a label that is not there is empty."""
    return all(
        pattern.fullmatch(labels.get(name, "")) is not None
        for name, pattern in matchers
    )
