"""What a row of the log rule table is. No imports but the event's words."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.value import Value


class Wording(Value, frozen=True):
    """A text that a row matches, and the version whose wording it is.

    ``text`` may have the library's head; ``source`` is the file that the head names,
    where the row asks for one. ``severity`` is that of this text if not the row's.
    ``unscanned`` is as in `LogRow`, of this wording alone. The others are what its event
    must have, where they are given.
    """

    text: str
    version: str
    source: str | None = None
    severity: LogSeverity | None = None
    kind: str | None = None
    device: str | None = None
    port: int | None = None
    peer: str | None = None
    status: int | str | None = None
    unscanned: bool = False


class LogRow(Value, frozen=True):
    """One message of a library: how it is found and what it means.

    ``anchor`` is literal text that every such message holds; ``pattern`` is searched in
    messages that hold it. Its groups ``device``, ``port``, ``peer``, ``peer_port``,
    ``status``, ``rank`` and ``comm`` are taken as such, others as fields of the event;
    where two ways of saying it need two groups, the second has ``_2`` behind its name,
    and so on. ``versions`` are the wordings that it covers, first to last.

    ``severity`` and ``cause`` are those of the message alone. ``source`` must be part
    of the name of the file that printed it. A ``companion`` is looked for even where an
    earlier row has matched. ``behind`` is a coarse literal: such a message has none of
    its own and is read because it comes close behind a line that holds that. An
    ``unscanned`` one has none either and is found only where every line is read.
    """

    id: str
    kind: str
    severity: LogSeverity
    anchor: str
    pattern: str
    versions: str
    meaning: str
    examples: tuple[Wording, ...]
    near_misses: tuple[str, ...]
    library: str = "nccl"
    cause: str | None = None
    source: str | None = None
    companion: bool = False
    behind: str | None = None
    unscanned: bool = False
