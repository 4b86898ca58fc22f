"""What launchers, containers, collectors and viewers put in front of a log line.

One layer per row; they come off in any order until none matches. Every pattern is
anchored where the text begins and has bounds, since the text is anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fabricmon.parse.log_pieces import Pieces
from fabricmon.parse.log_stamp import stamp_at, unix_seconds
from fabricmon.parse.log_told import Told
from fabricmon.parse.wrapper_json import json_message
from fabricmon.value import Value

MOST_LAYERS = 16
# host:pid:tid of a collective library, which no wrapper may eat.
NATIVE = (
    r"(?!\d{4}-\d\d-\d\d[T_]\d\d:|\d\d:\d\d:\d\d )[\w.-]{1,255}"
    r":\d{1,10}(?::\d{1,10} NCCL |(?::\d{1,10})? \[-?\d{1,4}\] )"
)
_HEAD = re.compile(NATIVE, re.ASCII)
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
_REPEATED = re.compile(
    r" ?\[repeated (\d{1,9})x across (?:the )?cluster\](?: \(Ray deduplicates .*)?\s*$"
)
_ACTOR_PID = re.compile(r"pid=(\d{1,10})", re.ASCII)
_ACTOR_ADDRESS = re.compile(r"\bip=([\w.:-]{1,64})", re.ASCII)
Take = Callable[[re.Match[str], Told], None]


class Layer(Value, frozen=True):
    """A wrapper: how its front looks, and what it tells; ``first`` may begin it."""

    pattern: re.Pattern[str]
    take: Take
    first: str | None = None


def _nothing(_: re.Match[str], __: Told) -> None:
    """Tell nothing."""


def _rank(found: re.Match[str], told: Told) -> None:
    """Tell a rank that may be another launcher's."""
    if told.rank is None:
        told.rank = int(found["rank"])


def _torch_rank(found: re.Match[str], told: Told) -> None:
    """Tell the global rank, which no outer label knows better."""
    told.rank = int(found["rank"])


def _glog(found: re.Match[str], told: Told) -> None:
    """Tell who printed it; there is no year, so no time."""
    told.source, told.source_line = found["file"], int(found["line"])


def _node(found: re.Match[str], told: Told) -> None:
    """Tell the node."""
    told.host = told.host or found["host"]


def _process(found: re.Match[str], told: Told) -> None:
    """Tell node and process."""
    told.host = told.host or found["host"]
    told.pid = int(found["pid"]) if found["pid"] else told.pid


def _actor(found: re.Match[str], told: Told) -> None:
    """Tell the process of a Ray actor, and its node's address."""
    actor = found["actor"]
    if pid := _ACTOR_PID.search(actor):
        told.pid = int(pid[1])
    if address := _ACTOR_ADDRESS.search(actor):
        told.host = told.host or address[1]


def _pod(found: re.Match[str], told: Told) -> None:
    """Tell the pod."""
    told.pod = told.pod or found["pod"]


def _layer(pattern: str, take: Take = _nothing, first: str | None = None) -> Layer:
    """Return a row."""
    return Layer(re.compile(pattern, re.ASCII), take, first)


_LAYERS = (
    # A reset whose escape was lost in a copy.
    _layer(r"\[\d{0,2}(?:;\d{1,3}){0,4}m ?", first="["),
    # PyTorch, then the head of its logger (month and day, no year), old and new.
    _layer(r"\[rank(?P<rank>\d{1,6})\]: ?", _torch_rank, "["),
    _layer(
        r"\[[EWIFV](?:\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})?)? "
        r"(?P<file>[\w./+-]{1,200}):(?P<line>\d{1,7})\] ?",
        _glog,
        "[",
    ),
    _layer(
        r"[EWIF]\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})? {1,8}\d{1,10} "
        r"(?P<file>[\w./+-]{1,200}):(?P<line>\d{1,7})\] ?",
        _glog,
        "EWIF",
    ),
    # OpenMPI 4 and 5; the job there is a number of its own, not the cluster's.
    _layer(
        r"(?:\[[^\]@]{0,200}@)?\[?\d{1,10},(?P<rank>\d{1,7})\]?"
        r"<(?:stdout|stderr|stddiag)>: ?",
        _rank,
        "[0123456789",
    ),
    # kubectl logs --prefix; stern.
    _layer(r"\[pod/(?P<pod>[^/\]]{1,253})/[^\]]{1,253}\] ?", _pod, "["),
    _layer(r"(?P<pod>[\w.-]{1,253}) [\w.-]{1,253} \u203a ", _pod),
    # torchrun --tee: the number is the rank on the node.
    _layer(r"\[[A-Za-z_]{1,64}\d{1,6}\]: ?", first="["),
    # MPICH and Intel MPI, told from the device of a head by what follows.
    _layer(rf"\[(?P<rank>\d{{1,7}})\] (?={NATIVE})", _rank, "["),
    # The line's number in a viewer.
    _layer(r"\[\d{1,9}\] (?=\[[A-Za-z\d])", first="["),
    # Ray; the colour may have lost its escape.
    _layer(
        r"\((?P<actor>(?=[^()]{0,300}pid=\d)[^()]{1,400})\)(?:\[0m)? ?", _actor, "("
    ),
    # srun --label, padded: the task is the rank where each GPU has one.
    _layer(r" {0,8}(?P<rank>\d{1,7}): ", _rank, " 0123456789"),
    # Quoting; columns of a console before a stamp.
    _layer(r"(?:> ?){1,8}|`{1,3}", first=">`"),
    _layer(r"\s{0,8}\|\s{0,8}(?=\d{4}-\d\d-\d\dT)", first=" |\t"),
    _layer(r"\|\s{0,8}", first="|"),
    # grep, with and without -n.
    _layer(
        r"[\w./+=@-]{1,255}\.(?:log|out|err|txt)"
        r":(?:(?!\d{4}-\d\d-)\d{1,10}:)? ?"
    ),
    # journalctl's and syslog's own format, what is left of it behind the stamp.
    _layer(
        r"(?P<host>[\w.-]{1,255}) [\w./@:-]{1,128}?(?:\[(?P<pid>\d{1,10})\]): ",
        _process,
    ),
    # pdsh, pssh, DeepSpeed.
    _layer(rf"(?P<host>[\w.-]{{1,255}}): (?={NATIVE})", _node),
    # docker compose logs.
    _layer(rf"[\w.-]{{1,255}} {{1,64}}\| (?={NATIVE})"),
    _layer(
        r"(?P<host>(?=[A-Za-z_.-]{0,255}\d)[\w.-]{1,255}): "
        r"(?=\[(?:rank|default)\d{1,6}\]:|\[?\d{4}-\d\d-\d\d[ T]|\[[EWIF]\d{0,4} )",
        _node,
    ),
)
_CRI = re.compile(
    r"(\d{4}-\d\d-\d\dT\S{1,40}) (stdout|stderr) ([FP])(?::\S{0,100})?(?: |$)", re.ASCII
)
_JSON_FRONT = re.compile(r"(?:data: |\x1e)?(?=\{\s{0,8}\")")
_BRACKETED = re.compile(r"\s{0,8}(?=\[?[\dA-Z])")
# Stamps only begin so: most texts need no look at their shapes.
_STAMP_FIRST = frozenset("[ \t0123456789MTWFSJAOND")


def strip_wrappers(text: str, told: Told, pieces: Pieces | None = None) -> str | None:
    """Return a line without its wrappers, and tell what they say.

    None if it is a piece of a message whose end is still to come: it then waits in
    ``pieces``; without these a piece is taken for whole.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "[repeated " in text and (
        found := _REPEATED.search(text, max(0, len(text) - 600))
    ):
        told.repeats = max(1, int(found[1]))
        text = text[: found.start()]
    for _ in range(MOST_LAYERS):
        if _HEAD.match(text):
            break
        inner = _unpacked(text, told, pieces)
        if inner is None:
            return None
        if inner == text:
            inner = _peeled(text, told)
        if inner == text:
            break
        text = inner
    return text


def _unpacked(text: str, told: Told, pieces: Pieces | None) -> str | None:
    """Return what is in a wrapper that may hold a piece; None if it waits for more."""
    if found := _CRI.match(text):
        told.at(unix_seconds(found[1]))
        stream, more, inner = found[2], found[3] == "P", text[found.end() :]
    elif front := _JSON_FRONT.match(text):
        inside = json_message(text[front.end() :], told)
        if inside is None:
            return text
        stream, more = inside.stream, inside.more
        inner = _ANSI.sub("", inside.text) if "\x1b" in inside.text else inside.text
    else:
        return text
    if pieces is None:
        return inner
    key = f"{stream} {told.rank} {told.pod} {told.host}"
    if more:
        pieces.add(key, inner, told)
        return None
    return pieces.complete(key, inner, told)


def _peeled(text: str, told: Told) -> str:
    """Return the text without its outermost layer, the text itself if it has none."""
    first = text[:1]
    for layer in _LAYERS:
        if (layer.first is None or first in layer.first) and (
            found := layer.pattern.match(text)
        ):
            layer.take(found, told)
            return text[found.end() :]
    if first in _STAMP_FIRST:
        blank = _BRACKETED.match(text)
        if blank and (stamp := stamp_at(text, blank.end())):
            told.stamped(stamp)
            return text[stamp.end :]
    return text
