"""Finding documents of one run, folded into stories: one for each finding's id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from msgspec import Struct, field

SILENT_SEVERITY = "info"
CRITICAL = "critical"
NO_ACTION = "none"
RESOLVED = "resolved"
LOG_SOURCES = frozenset({"kmsg", "nccl_log"})
"""Evidence from a log is named by its rule; what the truth knows is the log."""


class ToldSubject(Struct, frozen=True, kw_only=True):
    """What a finding is about; see ``subject`` of the findings format."""

    node: str | None = None
    device: str | None = None
    port: int | None = None
    rail: int | str | None = None
    peer: str | None = None
    leaf: str | None = None
    job: str | None = None


class ToldEvidence(Struct, frozen=True, kw_only=True):
    """The name of a measured reason and where it was read; numbers are not scored."""

    signal: str
    source: str = ""


class Told(Struct, frozen=True, kw_only=True):
    """One finding document, as far as it is scored; ``t`` in seconds from the start.

    Documents of any program that follows the findings format can be read.
    """

    t: float
    kind: str
    severity: str
    state: str = "open"
    id: str | None = None
    role: str = "culprit"
    action: str = NO_ACTION
    subject: ToldSubject = ToldSubject()
    evidence: tuple[ToldEvidence, ...] = field(default=())
    dry_run: bool = False

    @property
    def is_actionable(self) -> bool:
        """Tell whether somebody is asked to do something."""
        return self.action != NO_ACTION

    @property
    def is_silent(self) -> bool:
        """Tell whether it is below warning and asks for nothing."""
        return self.severity == SILENT_SEVERITY and not self.is_actionable

    @property
    def identity(self) -> str:
        """What makes records one story: the id, else kind and subject."""
        return self.id or f"{self.kind} {self.subject}"


@dataclass(frozen=True, slots=True)
class Story:
    """One finding from its first record to its end; ``told`` has no resolved ones."""

    kind: str
    told: tuple[Told, ...]
    closed: float = inf

    @property
    def opened(self) -> float:
        """When it was first told."""
        return self.told[0].t

    @property
    def last(self) -> Told:
        """The finding as it was told last."""
        return self.told[-1]

    @property
    def is_actionable(self) -> bool:
        """Tell whether it ever asked somebody to do something."""
        return any(each.is_actionable for each in self.told)

    @property
    def is_silent(self) -> bool:
        """Tell whether it never was at warning or above, nor actionable."""
        return all(each.is_silent for each in self.told)

    @property
    def signals(self) -> frozenset[str]:
        """Names of everything that was ever given as evidence, logs by themselves."""
        items = [item for each in self.told for item in each.evidence]
        logs = LOG_SOURCES.intersection(item.source for item in items)
        return logs.union(item.signal for item in items)


def stories(records: Iterable[Told], *, with_shadow: bool = False) -> tuple[Story, ...]:
    """Fold records into stories, in order of their beginning.

    A finding of a kind in shadow (``dry_run``) was told to nobody: it counts only
    ``with_shadow``. A record that only resolves what was never told says nothing. A
    document that is there twice (at-least-once delivery) counts once.
    """
    open_now: dict[str, list[Told]] = {}
    done: list[Story] = []
    for record in sorted(dict.fromkeys(records), key=lambda each: each.t):
        if record.dry_run and not with_shadow:
            continue
        if record.state != RESOLVED:
            open_now.setdefault(record.identity, []).append(record)
        elif told := open_now.pop(record.identity, None):
            done.append(Story(record.kind, tuple(told), record.t))
    done += [Story(told[0].kind, tuple(told)) for told in open_now.values()]
    return tuple(sorted(done, key=lambda story: story.opened))
