"""Heads of collective libraries in front of a message, of every version.

``host:pid:tid [dev] file:line (function) NCCL WARN message`` with parts that come and
go; up to 2.2 without the word NCCL; at sites with a head of their own. Lines that were
glued are parted before each head.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sequence
from itertools import islice

from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_stamp import stamp_at
from fabricmon.parse.log_told import Told
from fabricmon.value import State

MOST_MESSAGES = 64  # of one line; what stands behind them stays in the last one
_MOST_HEAD = 900  # characters before the word: a C++ signature, an absolute path
_LEVELS = "INFO|WARN|TRACE|CALL|ABORT"
# A stamp may end in "_", as NCCL_DEBUG_TIMESTAMP_FORMAT has it; no host begins with it.
_NAME = (
    r"(?<![\w.-])(?!\d{4}-\d\d-\d\d[T_]\d\d:|\d\d:\d\d:\d\d )"
    r"_*(?!_)(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10})"
)
_WORD = re.compile(rf"NCCL (?P<level>{_LEVELS})(?: |$|(?=\s))", re.ASCII)
_USUAL = re.compile(
    rf"{_NAME}:(?P<tid>\d{{1,10}}) \[(?P<dev>-?\d{{1,4}})\] "
    r"(?:(?P<src>[^\s:]{1,400}):(?P<line>\d{1,7}) (?:\(\w{1,200}\) )?)?"
    r"NCCL (?P<level>INFO|WARN) ",
    re.ASCII,
)
_PROCESS = re.compile(
    rf"{_NAME}(?::(?P<tid>\d{{1,10}})(?= )|(?= \[-?\d{{1,4}}\] ))", re.ASCII
)
_OLD = re.compile(
    rf"{_NAME}:(?P<tid>\d{{1,10}}) \[(?P<dev>-?\d{{1,4}})\] "
    r"(?:(?P<src>[^\s:]{1,400}):(?P<line>\d{1,7}) )?(?P<level>INFO|WARN) ",
    re.ASCII,
)
# What stands between the process and the word NCCL. TRACE has milliseconds there, and
# one public report lost the colon behind the file.
_PLACE = re.compile(
    r"\s*(?:\[(?P<dev>-?\d{1,4})\] ?)?(?:\d{1,12}\.\d{1,9} )?"
    r"(?:(?P<src>\S.{0,800}?)[: ](?P<line>\d{1,7})(?: \([\w~:<>]{1,200}\))?)?\s*",
    re.ASCII,
)
# The same where the reporter or the site dropped the process.
_BARE = re.compile(
    r"(?:(?<![\w\]])\[(?P<dev>-?\d{1,4})\] )?"
    r"(?:(?<![\w./+-])(?P<src>[\w./+-]{1,300}):(?P<line>\d{1,7})(?: \(\w{1,200}\))? )?$",
    re.ASCII,
)
_SITE_SOURCE = re.compile(
    r"\[(?P<src>[\w./+-]{1,300}\.(?:cc|cu|cpp|c|h)):(?P<line>\d{1,7})\]", re.ASCII
)
_SITE_PROCESS = re.compile(
    r"\[(?P<host>[\w.-]{1,255}):pid=(?P<pid>\d{1,10})\]", re.ASCII
)
_SITE_RANK = re.compile(r"\[(?P<rank>\d{1,6})/(?P<size>\d{1,6})\]", re.ASCII)
_STAMP = re.compile(r"\[[^\[\]]{8,40}\][ _]?$")
_LEFT_OVER = re.compile(r"[^\w]*$", re.ASCII)


class Head(State):
    """A head in a text: where it begins and ends, and what it says."""

    start: int
    end: int
    level: str
    host: str | None = None
    pid: int | None = None
    tid: int | None = None
    gpu: int | None = None
    source: str | None = None
    source_line: int | None = None
    rank: int | None = None
    stamp: str | None = None


def messages(text: str, told: Told, hosts: Collection[str] = ()) -> list[LogLine]:
    """Return the messages of a line without wrappers, in their order.

    Text before the first head is a message without level, unless it is only what a site
    puts there. Blank text gives none. All but the last keep their blanks at the end, as
    the rest of a torn one may follow elsewhere. ``hosts`` are names seen before: they
    tell where a message ends that was glued to the next head.
    """
    usual = _USUAL.match(text)
    if usual and not _WORD.search(text, usual.end()):
        return [_line(_head(usual), text, len(text), told)]
    heads = _heads(text, hosts)
    found = []
    before = text[: heads[0].start] if heads else text
    if before.strip():
        text_before = before if heads else before.rstrip()
        found.append(told.line(text_before))
    ends = [head.start for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=False):
        found.append(_line(head, text, end, told))
    return found


def _line(head: Head, text: str, end: int, told: Told) -> LogLine:
    """Return the message behind a head, with what the head and the wrappers say."""
    when = told.when
    if when is None and head.stamp:
        stamp = stamp_at(head.stamp)
        if stamp:
            own = Told(zone_seconds=told.zone_seconds)
            own.stamped(stamp)
            when = own.when
    return LogLine(
        text[head.end : end] if end < len(text) else text[head.end :].rstrip(),
        told.line_number,
        told.offset,
        level=head.level,
        host=head.host or told.host,
        pid=told.pid if head.pid is None else head.pid,
        thread=head.tid,
        gpu=head.gpu,
        source=head.source or told.source,
        source_line=told.source_line if head.source_line is None else head.source_line,
        time=when,
        rank=told.rank if head.rank is None else head.rank,
        job=told.job,
        pod=told.pod,
        namespace=told.namespace,
        repeats=told.repeats,
    )


def _heads(text: str, hosts: Collection[str]) -> list[Head]:
    """Return the heads of a text, in their order."""
    found: list[Head] = []
    for word in islice(_WORD.finditer(text), MOST_MESSAGES):
        start = max(found[-1].end if found else 0, word.start() - _MOST_HEAD)
        found.append(_head_before(text, start, word, found, hosts))
    if found:
        return found
    return [_head(old) for old in islice(_OLD.finditer(text), MOST_MESSAGES)]


def _head(found: re.Match[str]) -> Head:
    """Return the head that one pattern matched whole."""
    line = found["line"]
    return Head(
        found.start(),
        found.end(),
        found["level"],
        found["host"],
        int(found["pid"]),
        int(found["tid"]),
        int(found["dev"]),
        found["src"],
        int(line) if line else None,
    )


def _head_before(
    text: str,
    start: int,
    word: re.Match[str],
    earlier: list[Head],
    hosts: Collection[str],
) -> Head:
    """Return the head that ends with a word NCCL; it begins behind ``start``."""
    nearest = deque(_PROCESS.finditer(text, start, word.start()), maxlen=1)
    process = nearest[0] if nearest else None
    place = process and _PLACE.fullmatch(text, process.end(), word.start())
    if process is None or place is None:
        return _bare_head(text, start, word, is_first=not earlier)
    host, begins = process["host"], process.start()
    if begins:
        known = [*hosts, *(head.host for head in earlier if head.host)]
        host = _unglued(host, known)
        begins = process.start("pid") - 1 - len(host)
    stamp = _STAMP.search(text, max(start, begins - 45), begins)
    line = place["line"]
    return Head(
        stamp.start() if stamp else begins,
        word.end(),
        word["level"],
        host,
        int(process["pid"]),
        int(process["tid"]) if process["tid"] else None,
        int(place["dev"]) if place["dev"] else None,
        place["src"],
        int(line) if line else None,
        stamp=stamp[0] if stamp else None,
    )


def _unglued(host: str, known: Sequence[str]) -> str:
    """Return a host name without the end of the message before it."""
    if host in known:
        return host
    return max((name for name in known if host.endswith(name)), key=len, default=host)


def _bare_head(text: str, start: int, word: re.Match[str], *, is_first: bool) -> Head:
    """Return a head without a process: a reporter's cut, or a site's own."""
    end = word.start()
    bare = _BARE.search(text, max(start, end - 320), end)
    begins = bare.start() if bare else end
    dev, source, line = (
        (bare["dev"], bare["src"], bare["line"]) if bare else (None,) * 3
    )
    host = pid = rank = None
    if is_first:
        if found := _SITE_SOURCE.search(text, start, end):
            source, line = found["src"], found["line"]
        if found := _SITE_PROCESS.search(text, start, end):
            host, pid = found["host"], int(found["pid"])
        if found := _SITE_RANK.search(text, start, end):
            rank = int(found["rank"])
            rank = rank if rank < int(found["size"]) else None
        if host or source or _LEFT_OVER.fullmatch(text, start, begins):
            begins = start
    return Head(
        begins,
        word.end(),
        word["level"],
        host,
        pid,
        gpu=int(dev) if dev else None,
        source=source,
        source_line=int(line) if line else None,
        rank=rank,
    )
