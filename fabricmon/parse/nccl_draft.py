"""An event in the making: what a pattern took from a message, put in its place."""

from __future__ import annotations

import re

from msgspec import field

from fabricmon.parse.log_event import LogEvent, LogField, LogLine, LogSeverity
from fabricmon.parse.nccl_codes import errno_number
from fabricmon.parse.nccl_context import ProcessFacts
from fabricmon.parse.nccl_rules import LogRow
from fabricmon.parse.text import decimal, number
from fabricmon.value import State

MOST_TEXT_KEPT = 1000  # characters of a message that an event keeps
MOST_VALUE = 1000  # characters of a field
MOST_PEER = 255  # of a name in the DNS

Value = str | int | float

# Groups that are no numbers although they may look like one.
_WORDS = frozenset(
    {
        *("bus_id", "comm_id", "op_count", "pointer", "gid", "gid_prefix", "asic"),
        *("value", "version", "text", "from_gpu", "to_gpu", "nic", "gpu_index"),
        *("remote", "local", "name", "local_gid", "remote_gid", "parts", "stamp"),
    }
)
_MORE = re.compile(r"_\d$")  # `status_2` is `status` said in another way
_WITH_PORT = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3}):(\d{1,5})")


class Draft(State):
    """An event in the making; it is changed until it is made."""

    kind: str
    severity: LogSeverity
    rule: str
    library: str
    cause: str | None = None
    device: str | None = None
    port: int | None = None
    peer: str | None = None
    peer_port: int | None = None
    status: int | str | None = None
    rank: int | None = None
    comm: str | None = None
    pid: int | None = None
    root: bool = True
    fields: dict[str, Value] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return a field as text, None if it is not there."""
        value = self.fields.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        """Return a field that is a whole number, None if it is not there."""
        value = self.fields.get(name)
        return value if isinstance(value, int) else None


def drafted(row: LogRow, match: re.Match[str]) -> Draft:
    """Return what the groups of a match say."""
    draft = Draft(row.kind, row.severity, row.id, row.library, row.cause)
    told = {
        _MORE.sub("", name): text.strip()
        for name, text in match.groupdict().items()
        if text is not None
    }
    draft.device = told.pop("device", None) or None
    draft.port = decimal(told.pop("port", ""))
    draft.peer_port = decimal(told.pop("peer_port", ""))
    draft.rank = decimal(told.pop("rank", ""))
    draft.comm = told.pop("comm", None) or None
    _take_peer(draft, told.pop("peer", ""))
    status = told.pop("status", "")
    draft.status = as_number(status) if status else None
    draft.fields.update(
        (name, text[:MOST_VALUE] if name in _WORDS else as_value(text))
        for name, text in told.items()
        if text
    )
    _take_errno(draft)
    return draft


def as_number(text: str) -> int | str:
    """Return a whole number, also a negative one, or else the text."""
    value = decimal(text.removeprefix("-"))
    if value is None:
        return text[:MOST_VALUE]
    return -value if text.startswith("-") else value


def as_value(text: str) -> Value:
    """Return a number where the text is one."""
    whole = as_number(text)
    if isinstance(whole, int):
        return whole
    fraction = number(text) if text[:1].isdigit() and "." in text else None
    return whole if fraction is None else fraction


def _take_peer(draft: Draft, text: str) -> None:
    peer = text.rstrip(".,;)")
    if not 0 < len(peer) <= MOST_PEER:
        return
    with_port = _WITH_PORT.fullmatch(peer)
    if with_port and draft.peer_port is None:
        draft.peer, draft.peer_port = with_port[1], decimal(with_port[2])
    else:
        draft.peer = peer


def _take_errno(draft: Draft) -> None:
    """Make the text of an errno its number; it is the status where there is none."""
    text = draft.text("errno_text")
    if text is None:
        return
    known = errno_number(text)
    if draft.status is None:
        draft.status = text if known is None else known
    elif known is not None and isinstance(draft.status, str):
        draft.fields.setdefault("errno", known)


def made(
    draft: Draft, line: LogLine, file: str, facts: ProcessFacts, version: str | None
) -> LogEvent:
    """Return the event; what the draft does not say the line or its process may."""
    fields = tuple(LogField(name, value) for name, value in draft.fields.items())
    return LogEvent(
        kind=draft.kind,
        severity=draft.severity,
        rule=draft.rule,
        file=file,
        line_number=line.line_number,
        offset=line.offset,
        device=draft.device,
        port=draft.port,
        peer=draft.peer,
        peer_port=draft.peer_port,
        status=draft.status,
        cause=draft.cause,
        rank=_rank(draft, line, facts),
        comm=draft.comm,
        pid=line.pid if draft.pid is None else draft.pid,
        thread=line.thread,
        host=line.host,
        library=draft.library or None,
        library_version=version,
        time=line.time,
        count=line.repeats,
        root=draft.root,
        job=line.job,
        pod=line.pod,
        namespace=line.namespace,
        text=line.text.strip()[:MOST_TEXT_KEPT],
        fields=fields,
    )


def _rank(draft: Draft, line: LogLine, facts: ProcessFacts) -> int | None:
    for rank in (draft.rank, line.rank):
        if rank is not None:
            return rank
    return facts.rank if line.pid is not None else None
