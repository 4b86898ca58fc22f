"""Takes out of findings, or replaces by keyed codes, what a sink may not tell. Pure.

A pseudonym is an HMAC of the name (RFC 2104, SHA-256, cut to 48 bits), so that the same
name stays the same wherever the key is the same, and nobody without the key can try
names. Only what is known to be a name can be found in prose: what a finding's subject
names, what the caller adds, addresses, and home folders.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from msgspec import UNSET, structs

from fabricmon.config import Exposure, Redaction
from fabricmon.finding_document import (
    SUMMARY_LENGTH,
    EvidenceDocument,
    FindingDocument,
)
from fabricmon.kinds import BY_SLUG
from fabricmon.parse.nccl_rules import RULES
from fabricmon.value import Value

WITHHELD = "(withheld)"
"""Stands in a summary for text of a log."""

SHORTEST_KEY = 16
"""Bytes of a key; with less, names could be tried."""

_CODE_DIGITS = 12
_SHARED = 12  # characters in common by which a summary is known to quote a log
_SHORT_NUMBER = 4  # a job of fewer digits is replaced only after the word job
_SHORTEST_REST = 3  # of a name that a summary's end was cut out of
_ADDRESS = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)|(?<![\w:.])[0-9A-Fa-f:.]{3,45}(?!\w)"
)
_HOME = re.compile(r"(?P<before>/(?:home|users|Users|u)/)(?P<name>[^/\s'\",;]{1,64})")
_OWNER = re.compile(r"(?P<before>\b(?:user|owner)[=:] ?)(?P<name>[\w.-]{1,64})")
_PLAIN_STATUS = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,31}")
_BUILT_IN_ROWS = frozenset(row.id for row in RULES)
_Text = float | int | str | None


class Names(Value, frozen=True):
    """Names that are known on the node now, to be found in prose."""

    jobs: frozenset[str] = frozenset()
    peers: frozenset[str] = frozenset()


NO_NAMES = Names()


class Redactor:
    """Applies one policy with one key."""

    def __init__(self, policy: Redaction, key: bytes) -> None:
        """Take what may be told; raises ValueError for a key that is too short."""
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"a key has {SHORTEST_KEY} bytes or more")
        self._policy = policy
        self._key = key

    def job(self, name: str | None) -> str | None:
        """Return what may be told of a job, None for nothing."""
        return self._told(self._policy.jobs, "job", name)

    def peer(self, name: str | None) -> str | None:
        """Return what may be told of another node, None for nothing."""
        return self._told(self._policy.peers, "peer", name)

    def finding(
        self, document: FindingDocument, known: Names = NO_NAMES
    ) -> FindingDocument:
        """Return the finding as it may be told; ``known`` are names to look for."""
        subject = document.subject
        words = self._words(document, known)
        quoted = tuple(map(str, self._quoted(document)))
        summary = document.summary
        if quoted:
            summary = _without_quotes(document, quoted)
        return structs.replace(
            document,
            id=self._id(document),
            subject=structs.replace(
                subject,
                job=self.job(subject.job),
                comm=self._told(self._policy.jobs, "comm", subject.comm),
                peer=self.peer(subject.peer),
            ),
            evidence=tuple(self._evidence(item, words) for item in document.evidence),
            summary=self._line(summary, words)[:SUMMARY_LENGTH],
        )

    def text(self, text: str, known: Names = NO_NAMES) -> str:
        """Return prose as it may be told."""
        return self._line(text, dict(self._of_names(known)))

    def _told(self, exposure: Exposure, kind: str, name: str | None) -> str | None:
        if name is None or exposure == "keep":
            return name
        return None if exposure == "remove" else self._code(kind, name)

    def _shown(self, exposure: Exposure, kind: str, name: str) -> str:
        return self._told(exposure, kind, name) or f"({kind})"

    def _code(self, kind: str, name: str) -> str:
        message = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
        return (
            f"{kind}-{hmac.digest(self._key, message, 'sha256').hex()[:_CODE_DIGITS]}"
        )

    def _id(self, document: FindingDocument) -> str | None:
        """Return the identity; one that is made of a hidden name would confirm it."""
        kind = BY_SLUG.get(document.kind)
        hidden = self._policy.peers != "keep" and document.subject.peer is not None
        if document.id is None or not hidden or kind is None:
            return document.id
        if "peer" not in kind.about.fields:
            return document.id
        code = hmac.digest(self._key, f"id\0{document.id}".encode(), "sha256")
        return code.hex()[:16]

    def _words(self, document: FindingDocument, known: Names) -> dict[str, str]:
        subject, words = document.subject, dict(self._of_names(known))
        named = Names(
            frozenset(filter(None, (subject.job,))),
            frozenset(filter(None, (subject.peer,))),
        )
        words |= self._of_names(named)
        if subject.comm is not None and self._policy.jobs != "keep":
            words[subject.comm] = self._shown(self._policy.jobs, "comm", subject.comm)
        return words

    def _of_names(self, names: Names) -> Iterator[tuple[str, str]]:
        groups: tuple[tuple[Exposure, str, Iterable[str]], ...] = (
            (self._policy.jobs, "job", names.jobs),
            (self._policy.peers, "peer", names.peers),
        )
        for exposure, kind, found in groups:
            if exposure != "keep":
                yield from ((n, self._shown(exposure, kind, n)) for n in found if n)

    def _evidence(
        self, item: EvidenceDocument, words: dict[str, str]
    ) -> EvidenceDocument:
        value, threshold = item.value, item.threshold
        if self._is_withheld(item):
            value, threshold = None, UNSET
        return structs.replace(
            item,
            signal=self._line(item.signal, words),
            source=self._line(item.source, words),
            value=self._value(value, words),
            threshold=UNSET if threshold is UNSET else self._value(threshold, words),
        )

    def _value(self, value: _Text, words: dict[str, str]) -> _Text:
        return self._line(value, words) if isinstance(value, str) else value

    def _quoted(self, document: FindingDocument) -> Iterator[_Text]:
        return (item.value for item in document.evidence if self._is_withheld(item))

    def _is_withheld(self, item: EvidenceDocument) -> bool:
        return self._policy.log_text == "remove" and _is_log_text(item)

    def _line(self, text: str, words: dict[str, str]) -> str:
        """Replace names, the longest first, then addresses and home folders."""
        for name in sorted(words, key=len, reverse=True):
            text = _replaced(text, name, words[name])
        if self._policy.peers != "keep":
            text = _ADDRESS.sub(self._address, text)
        if self._policy.users != "keep":
            text = _HOME.sub(self._user, text)
            text = _OWNER.sub(self._user, text)
        return text

    def _address(self, found: re.Match[str]) -> str:
        text = found[0].rstrip(".:")
        try:
            ip_address(text)
        except ValueError:
            return found[0]
        shown = self._shown(self._policy.peers, "peer", text)
        return shown + found[0][len(text) :]

    def _user(self, found: re.Match[str]) -> str:
        shown = self._shown(self._policy.users, "user", found["name"])
        return found["before"] + shown


def _is_log_text(item: EvidenceDocument) -> bool:
    """Tell text that a log's writer chose from a word of a rule that fabricmon has."""
    if not isinstance(item.value, str):
        return False
    if item.source == "nccl_log":
        row = item.signal.partition(" ")[0]
        return not (row in _BUILT_IN_ROWS and _PLAIN_STATUS.fullmatch(item.value))
    kernel = item.source == "kernel log" or item.source.startswith("kmsg")
    return (kernel and " " in item.value) or item.signal.startswith("kmsg")


def _without_quotes(document: FindingDocument, quoted: Iterable[str]) -> str:
    """Return the summary without what it quotes of a log, all of it if parts remain."""
    summary = document.summary
    for text in filter(None, (" ".join(each.split()) for each in quoted)):
        summary = summary.replace(text, WITHHELD)
        last = len(text) - _SHARED + 1
        if any(text[at : at + _SHARED] in summary for at in range(max(last, 0))):
            kind = BY_SLUG.get(document.kind)
            title = kind.title if kind else document.kind
            return f"{title} {WITHHELD}"
    return summary


def _replaced(text: str, name: str, shown: str) -> str:
    """Replace a name where it stands as a word, also one that the end was cut out of."""
    before = r"(?<!\w)"
    if name.isdecimal() and len(name) < _SHORT_NUMBER:
        before = r"(?<=job )"
    text = re.sub(rf"{before}{re.escape(name)}(?!\w)", lambda _: shown, text)
    if not text.endswith("…"):
        return text
    whole = text[:-1]
    for length in range(len(name), _SHORTEST_REST - 1, -1):
        if whole.endswith(name[:length]):
            return f"{whole[:-length]}…"
    return text
