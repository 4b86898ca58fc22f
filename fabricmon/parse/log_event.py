"""What a line of a collective library's log says: the line, and the event made of it.

No imports from the package: everything else may import this file.
"""

from __future__ import annotations

from enum import StrEnum

from fabricmon.value import Value


class LogSeverity(StrEnum):
    """How bad an event is by its log rule; in the order of the words below."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class LogLine(Value, frozen=True):
    """One message, out of its wrappers, with what wrappers and head told of it.

    ``text`` is the message after the head, or all that the wrappers left where there is
    no head (``level`` is None then). ``thread`` is the thread's id as it was printed,
    ``gpu`` the CUDA ordinal in the process, ``source`` the file or function that
    printed it. ``time`` is Unix seconds, None where no stamp has a zone or a date;
    ``rank`` comes from a wrapper. ``repeats`` is how often a wrapper says the line came.
    ``line_number`` counts from 1 in its file, ``offset`` is that of its first byte.
    """

    text: str
    line_number: int
    offset: int
    level: str | None = None
    host: str | None = None
    pid: int | None = None
    thread: int | None = None
    gpu: int | None = None
    source: str | None = None
    source_line: int | None = None
    time: float | None = None
    rank: int | None = None
    job: str | None = None
    pod: str | None = None
    namespace: str | None = None
    repeats: int = 1


class LogField(Value, frozen=True):
    """A value that a rule took from the text, under the rule's name for it."""

    name: str
    value: str | int | float


class LogEvent(Value, frozen=True):
    """Something that a log says happened; None where the log does not say.

    ``rule`` is the row of the rule table. ``status`` is a number where the log has one
    (work completion status, errno, provider code), else the event's or operation's
    text. ``cause`` is set only where the log itself proves it. ``count`` is the number
    of identical repeats folded in; ``root`` is False for a consequence.
    """

    kind: str
    severity: LogSeverity
    rule: str
    file: str
    line_number: int
    offset: int
    device: str | None = None
    port: int | None = None
    peer: str | None = None
    peer_port: int | None = None
    status: int | str | None = None
    cause: str | None = None
    rank: int | None = None
    comm: str | None = None
    pid: int | None = None
    thread: int | None = None
    host: str | None = None
    library: str | None = None
    library_version: str | None = None
    time: float | None = None
    count: int = 1
    root: bool = True
    job: str | None = None
    pod: str | None = None
    namespace: str | None = None
    text: str = ""
    fields: tuple[LogField, ...] = ()

    def field(self, name: str) -> str | int | float | None:
        """Return a value that the rule took from the text, None if there is none."""
        return next((item.value for item in self.fields if item.name == name), None)
