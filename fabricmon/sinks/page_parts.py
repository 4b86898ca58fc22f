"""The head and the foot of the status page: verdict, notices, sources, blind spots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from fabricmon import __version__
from fabricmon.kinds import BY_SLUG
from fabricmon.model import Health, Snapshot, Verdict
from fabricmon.sinks.page_findings import in_words
from fabricmon.sinks.page_ports import hangs
from fabricmon.sinks.page_words import clock, listed, number, plural, span, text

NO_CLASS = "ENOENT"

_MILLISECONDS = 1000.0


def header(snapshot: Snapshot) -> str:
    """Return the node's name and verdict, in the size that counts."""
    word = snapshot.verdict.word
    up = snapshot.boot.uptime_seconds if snapshot.boot else None
    facts = [f"as of {clock(snapshot.wall, snapshot.wall)}"]
    facts.append(f"watched for {span(snapshot.wall - snapshot.started)}")
    facts += [f"node up {span(up)}"] if up is not None else []
    return (
        f'<header class="{word}"><h1>{text(snapshot.node)}</h1>'
        f'<p id="verdict" role="status"><b class="verdict {word}">{word}</b> '
        f'<span class="counts">{_counts(snapshot)}</span></p>'
        f'<p class="facts">{" &middot; ".join(facts)}</p></header>'
    )


def _counts(snapshot: Snapshot) -> str:
    counts = Counter(port.verdict for port in snapshot.ports)
    bad = [
        f"{counts[v]} {v.word}" for v in sorted(Verdict, reverse=True)[:-1] if counts[v]
    ]
    total = plural(len(snapshot.ports), "port")
    told = f"{listed(bad)} of {total}" if bad else f"{total}, all healthy"
    if not snapshot.ports:
        told = "no port"
    return f"{told} &middot; {in_words(snapshot.incidents)}"


def notices(snapshot: Snapshot, silent_seconds: float) -> str:
    """Return what one must know before one believes the rest."""
    blows = _blows(snapshot, silent_seconds)
    return "".join(
        (
            *(f'<p class="notice bad">{words}</p>' for words in blows),
            *(f'<p class="notice warning">{w}</p>' for w in _warnings(snapshot)),
            *(f'<p class="notice info">{w}</p>' for w in _maintenance(snapshot)),
        )
    )


def _blows(snapshot: Snapshot, silent_seconds: float) -> Iterator[str]:
    if silent_seconds:
        age = span(silent_seconds)
        yield f"The agent has not looked at the node for {age}: all of this is old."
    if snapshot.class_error == NO_CLASS:
        yield (
            "No RDMA driver is loaded: /sys/class/infiniband does not exist. "
            "Nothing about RDMA can be judged."
        )
    elif snapshot.class_error is not None:
        yield (
            f"/sys/class/infiniband cannot be read ({text(snapshot.class_error)}). "
            "Nothing about RDMA can be judged."
        )


def _warnings(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.maintenance_error is not None:
        yield f"Of the maintenance file: {text(snapshot.maintenance_error)}"
    if snapshot.unsaved is not None:
        yield (
            "What must survive a restart of the agent cannot be saved: "
            f"{text(snapshot.unsaved.message)}"
        )
    if snapshot.unrecorded is not None:
        yield f"The last minutes are kept no longer: {text(snapshot.unrecorded.message)}"


def _maintenance(snapshot: Snapshot) -> Iterator[str]:
    for window in snapshot.maintenance:
        ports = listed([text(port) for port in window.ports]) or "the whole node"
        left, until = window.until - snapshot.wall, clock(window.until, snapshot.wall)
        why = f": <bdi>{text(window.reason)}</bdi>" if window.reason else ""
        yield f"<b>Maintenance</b> of {ports} for {span(left)} more, until {until}{why}"


def sources(snapshot: Snapshot) -> str:
    """Return how each source fares: what fails openly, the rest folded away."""
    now = snapshot.now
    bad = [each for each in snapshot.health if not is_well(each, now)]
    well = [each for each in snapshot.health if is_well(each, now)]
    return (
        '<section id="sources" aria-labelledby="sources-title">'
        f'<h2 id="sources-title">Sources</h2>{_troubles(bad, now)}'
        f"{_failures(snapshot)}{_wells(well, len(snapshot.health), now)}</section>"
    )


def is_well(health: Health, now: float) -> bool:
    """Tell whether a source answers; single files of it may be unreadable."""
    answers = health.ok and not hangs(health, now)
    return answers and health.quarantined is None


def _troubles(bad: list[Health], now: float) -> str:
    items = "".join(
        f'<li><b class="bad">{text(each.source)}</b> of {text(each.unit or "the node")}: '
        f"{'; '.join(_trouble(each, now))}</li>"
        for each in bad
    )
    return f'<ul class="troubles">{items}</ul>' if items else ""


def _trouble(health: Health, now: float) -> Iterator[str]:
    if hangs(health, now):
        yield f"a read hangs for {span(now - (health.in_flight_since or now))}"
    if not health.ok:
        yield "every read fails"
    if health.quarantined is not None:
        yield f"read rarely: {text(health.quarantined)}"
    if health.errors:
        yield _errnos((health,))
    if health.last_success is None:
        yield "never answered"
    else:
        yield f"last answer {span(now - health.last_success)} ago"


def _errnos(healths: Iterable[Health]) -> str:
    counts: Counter[str] = Counter()
    for health in healths:
        counts.update({each.errno: each.count for each in health.errors})
    return ", ".join(f"{text(name)} {number(n)}" for name, n in sorted(counts.items()))


def _failures(snapshot: Snapshot) -> str:
    items = "".join(
        f'<li><b class="bad">{text(each.file)}</b> {text(each.message)} '
        f"{text(each.errno or '')}</li>"
        for each in snapshot.failures
    )
    return f'<p class="facts">Cannot be read:</p><ul>{items}</ul>' if items else ""


def _wells(well: list[Health], total: int, now: float) -> str:
    """Return one row for each source, over all its devices."""
    told = f"{len(well):,} of {plural(total, 'source')} answer"
    heads = "".join(
        f'<th class="{kind}">{name}</th>'
        for name, kind in (
            ("source", ""),
            ("every", "number"),
            ("units", "number"),
            ("oldest", "number"),
            ("slowest", "number"),
            ("failed reads of files", ""),
        )
    )
    by_name = groupby(sorted(well, key=attrgetter("source")), attrgetter("source"))
    rows = "".join(_well(name, tuple(group), now) for name, group in by_name)
    return (
        f'<details data-key="sources"><summary>{told}</summary><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        "</details>"
    )


def _well(name: str, group: tuple[Health, ...], now: float) -> str:
    answers = [each.last_success for each in group if each.last_success is not None]
    oldest = f"{span(now - min(answers))}" if answers else "waits"
    slowest = max(each.duration_seconds for each in group) * _MILLISECONDS
    return (
        f"<tr><td>{text(name)}</td>"
        f'<td class="number">{span(group[0].due_seconds)}</td>'
        f'<td class="number">{len(group)}</td><td class="number">{oldest}</td>'
        f'<td class="number">{slowest:.1f} ms</td><td>{_errnos(group)}</td></tr>'
    )


def blind_spots(snapshot: Snapshot) -> str:
    """Return what cannot be judged on this node, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each in snapshot.blind:
        kind = BY_SLUG.get(each.kind)
        title = f"{kind.title} ({each.kind})" if kind else each.kind
        by_reason.setdefault(each.reason, []).append(text(title))
    items = "".join(
        f"<li>{listed(titles)}: {text(reason)}</li>"
        for reason, titles in by_reason.items()
    )
    if not items:
        return ""
    return (
        '<section id="blind" aria-labelledby="blind-title">'
        f'<h2 id="blind-title">Cannot be judged here</h2><ul>{items}</ul></section>'
    )


def footer(snapshot: Snapshot) -> str:
    """Return what the agent is and costs."""
    seconds = snapshot.wall - snapshot.started
    rate = round(snapshot.firmware_reads / seconds, 1) if seconds > 1 else None
    each = f" ({number(rate)} a second)" if rate is not None else ""
    return (
        f"<footer>fabricmon {text(__version__)} &middot; configuration "
        f"{text(snapshot.config_hash)} &middot; {snapshot.firmware_reads:,} reads "
        f"reached firmware{each}</footer>"
    )
