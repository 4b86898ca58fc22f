"""The ports of the status page: a row each, rails first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from fabricmon.maintenance import under_maintenance
from fabricmon.model import (
    Health,
    Incident,
    LinkStatus,
    PortInfo,
    PortSnapshot,
    Role,
    Snapshot,
    Subject,
    Verdict,
)
from fabricmon.parse.words import PortState
from fabricmon.sinks.page_burst import busy
from fabricmon.sinks.page_findings import mark, worst_first
from fabricmon.sinks.page_spark import POINTS, spark
from fabricmon.sinks.page_words import NOTHING, clock, number, span, text
from fabricmon.value import Value
from fabricmon.verdicts import concerns, of_incident

MAP_PORTS = 16
"""With more ports than this the rows fill screens: a map of all stands above them."""

OLD_SECONDS = 60.0
"""A state that was read so long ago is shown with its age."""

HANGS_SECONDS = 2.0
"""A read in flight for so long is shown: it usually takes milliseconds."""

TRAFFIC_SOURCE = "traffic"

_MARKS = {
    Verdict.HEALTHY: "",
    Verdict.UNKNOWN: "?",
    Verdict.DEGRADED: "!",
    Verdict.DOWN: "\N{MULTIPLICATION SIGN}",
}
_ROLES = tuple(Role)
_COLUMNS = (
    ("port", ""),
    ("rail", ""),
    ("state", ""),
    ("rate", ""),
    ("errors/h", "number"),
    ("flaps", "number"),
)
_NUMBERS = re.compile(r"([0-9]{1,9})")


class Row(Value, frozen=True):
    """One port with what stands around it in the snapshot."""

    port: PortSnapshot
    snapshot: Snapshot
    incidents: tuple[Incident, ...]
    hung: tuple[Health, ...]
    anchor: str


def ports(snapshot: Snapshot) -> str:
    """Return a row for each port, or why there is none."""
    rows = list(_rows(snapshot))
    shown = _table(rows) if rows else f'<p class="calm">{_why_none(snapshot)}</p>'
    overview = _map(rows) if len(rows) > MAP_PORTS else ""
    note = f'<p class="facts">{text(snapshot.note)}</p>' if snapshot.note else ""
    legend = f'<p class="legend">{_traffic_head(snapshot)}</p>' if rows else ""
    return (
        '<section id="ports" aria-labelledby="ports-title">'
        f'<h2 id="ports-title">Ports</h2>{legend}{overview}{shown}{note}</section>'
    )


def _rows(snapshot: Snapshot) -> Iterator[Row]:
    incidents = worst_first(snapshot)
    for index, port in enumerate(sorted(snapshot.ports, key=_place)):
        device = port.info.id.device
        yield Row(
            port=port,
            snapshot=snapshot,
            incidents=tuple(i for i in incidents if concerns(i, port.info.id)),
            hung=tuple(
                health
                for health in snapshot.health
                if health.unit == device and hangs(health, snapshot.now)
            ),
            anchor=f"port-{index}",
        )


def hangs(health: Health, now: float) -> bool:
    """Tell whether a read of this source does not return."""
    since = health.in_flight_since
    return since is not None and now - since > HANGS_SECONDS


def _why_none(snapshot: Snapshot) -> str:
    devices = [each for each in snapshot.health if each.source == "devices"]
    if snapshot.class_error is not None:
        return "No RDMA port can be seen."
    if all(each.last_success is None for each in devices):
        return "The node has not been looked at yet."
    return "This node has no RDMA device that is watched (see devices.include)."


def _place(port: PortSnapshot) -> tuple[object, ...]:
    """Sort rails by number, then the others by role and name, as people count."""
    info = port.info
    rail = _natural("" if info.rail is None else str(info.rail))
    name = _natural(info.id.device)
    return info.is_vf, _ROLES.index(info.role), rail, name, info.id.port


def _natural(name: str) -> list[tuple[int, str]]:
    parts = _NUMBERS.split(name)
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]


def _map(rows: list[Row]) -> str:
    """Return one small square a port, so that many fit on a screen."""
    lines = []
    for role, group in groupby(rows, key=lambda row: row.port.info.role):
        squares = "".join(
            f'<a class="square {row.port.verdict.word}" href="#{row.anchor}" '
            f'title="{text(row.port.info.id)}: {row.port.verdict.word}">'
            f'{_MARKS[row.port.verdict]}<span class="unseen">{text(row.port.info.id)} '
            f"{row.port.verdict.word}</span></a>"
            for row in group
        )
        lines.append(
            f'<p><span class="role">{role.value}</span><span>{squares}</span></p>'
        )
    return f'<nav class="map" aria-label="All ports">{"".join(lines)}</nav>'


def _table(rows: list[Row]) -> str:
    heads = "".join(
        f'<th role="columnheader" class="{kind}">{name}</th>' for name, kind in _COLUMNS
    )
    body = "".join(map(_row, rows))
    return (
        '<table class="ports" role="table" aria-labelledby="ports-title">'
        f'<thead role="rowgroup"><tr role="row">{heads}'
        f'<th role="columnheader">{_traffic_head(rows[0].snapshot)}</th></tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _traffic_head(snapshot: Snapshot) -> str:
    periods = [h.due_seconds for h in snapshot.health if h.source == TRAFFIC_SOURCE]
    over = f", {span(max(periods) * POINTS)}" if periods else ""
    return (
        f'traffic{over} <span class="keys"><span class="received">&darr; received</span> '
        '<span class="sent">&uarr; sent</span></span>'
    )


def _row(row: Row) -> str:
    info, word = row.port.info, row.port.verdict.word
    cells = {
        "port": _name(row),
        "rail": _rail(info),
        "state": _state(row),
        "rate": _rate(row.port),
        "errors": _errors(row.port),
        "flaps": _flaps(row),
        "traffic": spark(row.port) + busy(row.snapshot.bursts, info.id),
    }
    shown = "".join(
        f'<td role="cell" class="{name}">{content}</td>'
        for name, content in cells.items()
    )
    key = text(info.id)
    return (
        f'<tr role="row" id="{row.anchor}" data-key="{key}" data-port="{key}" '
        f'class="{word}">{shown}</tr>'
    )


def _name(row: Row) -> str:
    """Return name, verdict, what is wrong, and the identity, folded away."""
    port, verdict = row.port, row.port.verdict
    told = "unseen" if verdict is Verdict.HEALTHY else "word"
    netdev = f" <bdi>{text(port.info.netdev)}</bdi>" if port.info.netdev else ""
    return (
        f'<details><summary><span class="dot {verdict.word}" aria-hidden="true">'
        f"{_MARKS[verdict]}</span><b>{text(port.info.id)}</b>{netdev} "
        f'<span class="{told} {verdict.word}">{verdict.word}</span></summary>'
        f"<dl>{_identity(port)}</dl></details>{''.join(_notes(row))}"
    )


def _notes(row: Row) -> Iterator[str]:
    """Yield what is wrong: links to findings, else the reasons of the verdict."""
    port, snapshot = row.port, row.snapshot
    marks = [mark(incident) for incident in row.incidents]
    device, number_ = port.info.id.device, port.info.id.port
    subject = Subject(device=device, port=number_)
    named = [window for window in snapshot.maintenance if window.ports]
    if under_maintenance(subject, named, snapshot.wall):  # the node's is told above
        marks.append('<span class="chip info">maintenance</span>')
    if row.hung:
        longest = max(snapshot.now - (h.in_flight_since or 0) for h in row.hung)
        marks.append(f'<b class="chip warning">a read hangs for {span(longest)}</b>')
    marks += [f'<span class="chip">{text(f)} at ceiling</span>' for f in port.saturated]
    if marks:
        yield f'<p class="notes">{" ".join(marks)}</p>'
    if not any(of_incident(each) is port.verdict for each in row.incidents):
        yield from (f'<p class="reason">{text(each)}</p>' for each in port.reasons)


def _identity(port: PortSnapshot) -> str:
    info, status = port.info, port.status
    lid = status.lid if status else None
    told = {
        "GUID": info.guid,
        "LID": lid,
        "SM LID": status.sm_lid if status and lid else None,
        "layer": info.link_layer,
        "leaf": info.leaf,
        "PCI": info.pci_address,
        "NUMA": info.numa_node,
        "device": info.hca_type,
        "board": info.board_id,
        "firmware": info.firmware,
        "driver": info.driver,
        "VF of": info.pf if info.is_vf else None,
    }
    return "".join(
        f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>"
        for name, value in told.items()
        if value is not None
    )


def _rail(info: PortInfo) -> str:
    role = "role unknown" if info.role is Role.UNKNOWN else info.role.value
    if info.is_vf:
        role = "virtual function"
    if info.rail is None:
        return role
    return f'<span class="label">rail </span><b>{text(info.rail)}</b> {role}'


def _state(row: Row) -> str:
    status = row.port.status
    if status is None or status.state is None:
        return f'<b class="bad">cannot be read</b>{_why(status, "state")}'
    phys = f' <span class="soft">{text(status.phys_state)}</span>'
    bad = status.state is not PortState.ACTIVE and row.port.verdict > Verdict.HEALTHY
    shown = f'<b class="bad">{text(status.state)}</b>' if bad else text(status.state)
    shown += phys if status.phys_state else ""
    age = row.snapshot.now - status.at
    return f"{shown} <i>{span(age)} ago</i>" if age > OLD_SECONDS else shown


def _why(status: LinkStatus | None, file: str) -> str:
    reasons = [a.reason for a in status.absent if a.file == file] if status else []
    return f' <span class="soft">{text(reasons[0])}</span>' if reasons else ""


def _rate(port: PortSnapshot) -> str:
    rate = port.status.rate if port.status else None
    if rate is None or rate.gbps is None:
        return NOTHING + _why(port.status, "rate")
    lanes = f"{rate.width}X" if rate.width else ""
    about = " ".join(filter(None, (lanes, rate.speed)))
    shown = f"{rate.gbps:g} Gb/s"
    wanted = port.info.expected_rate_gbps
    if wanted is not None and rate.gbps < wanted:
        shown = f'<b class="bad">{shown}</b> of {wanted:g}'
    return f'{shown} <span class="soft">{text(about)}</span>'


def _errors(port: PortSnapshot) -> str:
    errors = port.errors_per_hour
    if errors is None:
        shown = f'<span title="no error counter can be read">{NOTHING}</span>'
    else:
        shown = f"<b>{number(errors)}</b>" if errors else "0"
    return f'{shown}<span class="label"> errors/h</span>'


def _flaps(row: Row) -> str:
    port = row.port
    if not port.flaps:
        return '0<span class="label"> flaps</span>'
    noun = "flap" if port.flaps == 1 else "flaps"
    shown = f'<b>{port.flaps}</b><span class="label"> {noun}</span>'
    if port.last_down is None:
        return shown
    last = clock(port.last_down, row.snapshot.wall)
    return f'{shown} <span class="soft">last {last}</span>'
