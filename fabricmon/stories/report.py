"""The story of a dead job for people: who failed first, whom the others name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fabricmon.finding_document import rfc3339
from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.nccl_log import LogBatch
from fabricmon.stories.advice import advise
from fabricmon.stories.job import Disagreement, JobStory, Stuck
from fabricmon.stories.nature import Nature, Phase, Tier, has_index, is_loud, tier
from fabricmon.stories.story import Story, Trouble
from fabricmon.stories.votes import Shape, Suspect
from fabricmon.summaries import span
from fabricmon.value import Value

MAX_TROUBLES = 12
"""Troubles told in full; what is left is counted."""

MAX_TIMELINE = 40
"""Lines of the timeline, the first ones: the rest follows from them."""

MAX_ROWS = 20
"""Rows of the table of suspects, and of settings."""

MAX_NAMES = 6
_WIDEST = 300  # characters of one value from a log

_PHASES = {
    Phase.START: "while connections were made: a matter of set-up",
    Phase.RUNNING: "after traffic: what worked has broken",
    Phase.UNKNOWN: "",
}


class Reading(Value, frozen=True):
    """What was read: files, bytes, lines, and what could not be."""

    files: int = 0
    bytes: int = 0
    lines: int = 0
    skipped_bytes: int = 0
    skipped_lines: int = 0
    unread: int = 0
    silent: tuple[str, ...] = ()
    """Files without any line of a collective library."""

    def plus(self, number: int, batch: LogBatch) -> Reading:
        """Return the sum with a piece of so many bytes."""
        return replace(
            self,
            bytes=self.bytes + number,
            lines=self.lines + batch.lines,
            skipped_bytes=self.skipped_bytes + batch.skipped_bytes,
            skipped_lines=self.skipped_lines + batch.skipped_lines,
        )


def report(
    story: Story, events: Sequence[LogEvent], reading: Reading, runbooks: str
) -> Iterator[str]:
    """Yield the lines of the report; nothing in them can steer a terminal.

    ``events`` are folded ones in any order, of which the loud make the timeline.
    ``runbooks`` is where the pages are, with a slash at the end.
    """
    troubles = story.troubles()
    failures = [one for one in troubles if tier(one.root) is not Tier.NONE]
    others = [one for one in troubles if tier(one.root) is Tier.NONE]
    parts: tuple[Iterable[str], ...] = (
        _head(story, reading),
        _failures(failures, reading, runbooks),
        _others(others, story.jobs(), runbooks),
        _suspects(story.suspects()),
        _timeline(events),
        _jobs(story.jobs()),
    )
    for number, part in enumerate(parts):
        lines = tuple(part)
        if lines and number:
            yield ""
        yield from map(harmless, lines)


def harmless(text: str) -> str:
    r"""Write what a terminal would obey, or cannot show, as escapes such as ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _head(story: Story, reading: Reading) -> Iterator[str]:
    logs = "log" if reading.files == 1 else "logs"
    yield (
        f"Read {reading.files} {logs}: {reading.lines:,} lines, {reading.bytes:,} bytes, "
        f"{story.events:,} events"
    )
    if reading.unread:
        yield f"Not read: {reading.unread}, named on standard error"
    if 0 < len(reading.silent) < reading.files:
        yield f"Without a line of a collective library: {_names(reading.silent)}"
    if reading.skipped_lines:
        yield (
            f"Cut short: {reading.skipped_lines:,} lines too long, "
            f"{reading.skipped_bytes:,} bytes of them not read"
        )
    if story.dropped:
        yield f"Too much to hold at once: {story.dropped:,} events counted, not kept"


def _failures(
    troubles: Sequence[Trouble], reading: Reading, runbooks: str
) -> Iterator[str]:
    if not troubles:
        is_mute = len(reading.silent) == reading.files > 0
        what_lacks = "line of a collective library" if is_mute else "failure"
        yield f"No {what_lacks} is in these logs."
        return
    yield "Who failed first"
    for number, trouble in enumerate(troubles[:MAX_TROUBLES], 1):
        yield from _trouble(number, trouble, runbooks)
    if len(troubles) > MAX_TROUBLES:
        yield f"  and {len(troubles) - MAX_TROUBLES} more"


def _trouble(number: int, trouble: Trouble, runbooks: str) -> Iterator[str]:
    advice = advise(trouble)
    rank = trouble.root.rank
    alone = rank is not None and trouble.processes == 1
    who = f"{trouble.node} rank {rank}" if alone else trouble.node
    yield f"{number:3}. {_short(who)}: {what(trouble.root)}"
    facts = (
        ("HCA", _hca(trouble)),
        ("peer", _peers(trouble)),
        ("since", _since(trouble)),
        ("phase", _PHASES[trouble.phase]),
        ("cause", advice.verdict),
        ("then", _follows(trouble)),
        ("survives", _survives(trouble)),
        ("in", f"{trouble.root.file} line {trouble.root.line_number}"),
        ("line", trouble.root.text.strip()),
    )
    for name, fact in facts:
        if fact:
            yield f"     {name:9} {_short(fact)}"
    for step in advice.steps:
        yield f"     - {step}"
    yield f"     {'runbook':9} {runbooks}{advice.runbook}.md"


def what(event: LogEvent) -> str:
    """Say what an event is in a few words."""
    status = "" if event.status is None else f" {event.status}"
    cause = f" ({event.cause})" if event.cause else ""
    return _short(f"{event.kind}{status}{cause}")


def _hca(trouble: Trouble) -> str:
    root = trouble.root
    if has_index(root):
        used = f"; the rank uses {', '.join(trouble.devices[:MAX_NAMES])}"
        return f"number {root.device} of a merged NIC{used if trouble.devices else ''}"
    if root.device is not None:
        return root.device + (f" port {root.port}" if root.port is not None else "")
    if trouble.devices:
        return f"not named; the rank uses {', '.join(trouble.devices[:MAX_NAMES])}"
    return ""


def _peers(trouble: Trouble) -> str:
    shown = ", ".join(trouble.peers[:MAX_NAMES])
    more = len(trouble.peers) - MAX_NAMES
    named = f" = {', '.join(trouble.peer_nodes)}" if trouble.peer_nodes else ""
    return shown + (f" and {more} more" if more > 0 else "") + named


def _since(trouble: Trouble) -> str:
    reports = (
        f"{_count(trouble.reports, 'report')} by {_count(trouble.processes, 'process')}"
    )
    if trouble.first is None:
        return f"the log has no times; {reports}"
    last = trouble.last if trouble.last is not None else trouble.first
    length = f" for {span(last - trouble.first)}" if last > trouble.first else ""
    return f"{moment(trouble.first)} UTC{length}; {reports}"


def _follows(trouble: Trouble) -> str:
    facts = []
    if trouble.downs > 1:
        facts.append(f"the port fell {trouble.downs} times")
    if trouble.consequences:
        follow = "follows" if trouble.consequences == 1 else "follow"
        facts.append(f"{_count(trouble.consequences, 'report')} {follow} from it")
    return "; ".join(facts)


def _count(number: int, word: str) -> str:
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{number:,} {word if number == 1 else many}"


def _survives(trouble: Trouble) -> str:
    """Say how long an outage the job bears, where an outage is what it is about."""
    if trouble.budget is None or not trouble.nature.blames_link:
        return ""
    return f"an outage of {trouble.budget.text}"


def _others(
    troubles: Sequence[Trouble], jobs: Sequence[JobStory], runbooks: str
) -> Iterator[str]:
    """Tell what the job lived with: slower transports, missing features."""
    if not troubles:
        return
    yield "What the job lived with"
    single = bool(jobs) and all(job.fallback is False for job in jobs)
    for trouble in troubles[:MAX_ROWS]:
        advice = advise(trouble)
        alone = trouble.nature is Nature.SPEED and single
        verdict = "within one node: no matter" if alone else advice.verdict
        place = _hca(trouble)
        at = f" on {place}" if place else ""
        yield f"  {_short(trouble.node)}: {what(trouble.root)}{at}: {verdict}"
        if not alone:
            yield f"     {'runbook':9} {runbooks}{advice.runbook}.md"
    if len(troubles) > MAX_ROWS:
        yield f"  and {len(troubles) - MAX_ROWS} more"


def _suspects(found: Sequence[Suspect]) -> Iterator[str]:
    if not found:
        return
    yield "Suspects: who names whom"
    yield f"  {'votes':>5}  {'reports':>7}  {'shape':8}  suspect"
    for one in found[:MAX_ROWS]:
        yield (
            f"  {one.votes:5}  {one.reports:7,}  {one.shape.value:8}  "
            f"{_short(one.name)}: {one.meaning}"
        )
        for label, names in (("named by", one.observers), ("names", one.named)):
            if names and one.shape is not Shape.CELL:
                yield f"{'':26}{label} {_names(names)}"
    if len(found) > MAX_ROWS:
        yield f"  and {len(found) - MAX_ROWS} more"


def _timeline(events: Sequence[LogEvent]) -> Iterator[str]:
    loud = [event for event in events if is_loud(event)]
    if not loud:
        return
    loud.sort(key=lambda event: (event.time is None, event.time or 0.0))
    yield "Timeline (UTC; = cause, - consequence)"
    for event in loud[:MAX_TIMELINE]:
        when = "no time" if event.time is None else moment(event.time)
        mark = "=" if event.root else "-"
        times = f" x{event.count:,}" if event.count > 1 else ""
        yield f"  {when:23} {mark} {_who(event)}: {what(event)}{_toward(event)}{times}"
    if len(loud) > MAX_TIMELINE:
        yield f"  and {len(loud) - MAX_TIMELINE:,} more (--format jsonl has all)"


def _who(event: LogEvent) -> str:
    host = event.host or event.file.rpartition("/")[2]
    rank = f" rank {event.rank}" if event.rank is not None else ""
    pid = f":{event.pid}" if event.pid is not None else ""
    return _short(f"{host}{pid}{rank}")


def _toward(event: LogEvent) -> str:
    device = f" on {event.device}" if event.device is not None else ""
    port = f" port {event.port}" if event.port is not None else ""
    peer = f" to {event.peer}" if event.peer is not None else ""
    return _short(device + port + peer)


def _jobs(jobs: Sequence[JobStory]) -> Iterator[str]:
    if not jobs:
        return
    yield "Jobs"
    for job in jobs[:MAX_ROWS]:
        yield from _job(job)
    if len(jobs) > MAX_ROWS:
        yield f"  and {len(jobs) - MAX_ROWS} more communicators"


def _job(job: JobStory) -> Iterator[str]:
    size = f", {job.ranks} ranks" if job.ranks else ""
    nodes = f" on {job.nodes} nodes" if job.nodes else ""
    heard = _count(job.processes, "process")
    name = job.name or f"unnamed on {_names(job.hosts)}"
    yield f"  {_short(name)}: {heard} heard{size}{nodes}"
    if job.versions:
        yield f"     version   {_names(job.versions)}"
    if job.networks:
        yield f"     network   {_names(job.networks)}"
    if job.fallback:
        yield "     network   traffic between nodes goes by TCP sockets"
    if job.budget is not None:
        yield f"     survives  an outage of {job.budget.text}"
    if job.stuck is not None:
        yield from _stuck(job.stuck)
    for name, value in job.settings[:MAX_ROWS]:
        yield f"     {_short(name)}={_short(value)}"
    for one in job.disagreements[:MAX_ROWS]:
        yield f"     ranks disagree: {_disagreement(one)}"


def _stuck(stuck: Stuck) -> Iterator[str]:
    yield f"     stuck     {_count(len(stuck.reporters), 'rank')} in {_short(stuck.operation)}"
    for label, ranks in (("silent", stuck.silent), ("behind", stuck.behind)):
        if ranks:
            yield f"     {label:9} ranks {_names([str(rank) for rank in ranks])}"


def _disagreement(one: Disagreement) -> str:
    uses = (
        f"{'not set' if use.value is None else _short(use.value)} "
        f"({use.number}: {_names(use.processes)})"
        for use in one.uses[:MAX_NAMES]
    )
    return f"{_short(one.name)}: {'; '.join(uses)}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return _short(", ".join(names[:MAX_NAMES])) + more


def moment(unix_seconds: float) -> str:
    """Write a time for people: UTC, to the millisecond."""
    return rfc3339(unix_seconds).replace("T", " ").removesuffix("Z")


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
