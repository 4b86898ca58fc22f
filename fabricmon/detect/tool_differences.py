"""A tool that says something else of a port than its files: one of them is old.

The tool runs rarely and a link may change while it does, so a difference counts only
where the files said the same from before the tool began until after it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricmon.detect.wording import port_source
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Health,
    LinkStatus,
    Part,
    PortId,
    Severity,
    Subject,
    ToolReport,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import Value

MOST_EVIDENCE = 8
"""Differences named in one finding; the rest is counted."""

_STATE = "state"
_DETAILS = ("phys_state", "lid", "sm_lid", "rate_gbps")


class _Place(Value, frozen=True):
    """What of which port."""

    port: PortId
    field: str


@dataclass(slots=True)
class _Difference:
    """What the tool said at ``at`` and what the files said before it."""

    tool: str
    at: float
    said: str | float
    ours: str | float
    confirmed: bool = False


class ToolDifferences:
    """Compares each report of a tool with the states around it."""

    def __init__(self) -> None:
        """Start without any report."""
        self._seen: dict[str, float] = {}
        self._steady: dict[PortId, LinkStatus] = {}
        self._differences: dict[_Place, _Difference] = {}

    def judge(self, view: View, stale: Sequence[Health] = ()) -> Iterator[Finding]:
        """Yield one finding for all that differs, as long as it does.

        Old values explain what differs: devices of which a source is ``stale``, and
        what a tool said that is, are left out meanwhile.
        """
        for status in view.statuses:
            self._watch(status)
        for report in view.reports:
            if self._seen.get(report.tool) != report.at:
                self._forget(view)
                self._seen[report.tool] = report.at
                self._compare(report, view)
        tools = {report.tool for report in view.reports}
        for place, difference in tuple(self._differences.items()):
            if difference.tool not in tools:  # it does not say so any more
                del self._differences[place]
        if not self._differences:
            return
        for status in view.statuses:
            self._confirm(status)
        known = {port.info.id for port in view.ports}
        for place in [each for each in self._differences if each.port not in known]:
            del self._differences[place]
        told = {
            place: difference
            for place, difference in self._differences.items()
            if difference.confirmed and not _is_explained(place, difference, stale)
        }
        if told:
            yield _finding(told, view)

    def _forget(self, view: View) -> None:
        """Let go of ports that are gone."""
        for port in self._steady.keys() - {each.info.id for each in view.ports}:
            del self._steady[port]

    def _watch(self, status: LinkStatus) -> None:
        """Keep the first sample that said what the files say of a port now."""
        before = self._steady.get(status.port)
        if before is None or _said(before) != _said(status):
            self._steady[status.port] = status

    def _compare(self, report: ToolReport, view: View) -> None:
        """Note what differs; what differed before keeps its onset."""
        ours = {
            port.info.id: port.status
            for port in view.ports
            if port.fresh and self._is_steady(port.info.id, report.began)
        }
        found: dict[_Place, _Difference] = {}
        for status in report.statuses:
            known = ours.get(status.port)
            for field in (_STATE, *_DETAILS) if known else ():
                said, have = _value(status, field), _value(known, field)
                if said is None or have is None or said == have:
                    continue
                place = _Place(status.port, field)
                before = self._differences.get(place)
                if before is not None and (before.said, before.ours) == (said, have):
                    found[place] = before
                else:
                    found[place] = _Difference(report.tool, report.at, said, have)
        kept = {
            place: difference
            for place, difference in self._differences.items()
            if difference.tool != report.tool
        }
        self._differences = kept | found

    def _is_steady(self, port: PortId, began: float) -> bool:
        steady = self._steady.get(port)
        return steady is not None and steady.at <= began

    def _confirm(self, status: LinkStatus) -> None:
        """Take in a sample: it bears the difference out, or ends it."""
        for field in (_STATE, *_DETAILS):
            place = _Place(status.port, field)
            difference = self._differences.get(place)
            if difference is None or status.at <= difference.at:
                continue
            if _value(status, field) != difference.ours:
                del self._differences[place]
            elif field == _STATE or status.complete:
                difference.confirmed = True


def _is_explained(
    place: _Place, difference: _Difference, stale: Sequence[Health]
) -> bool:
    device, tool = place.port.device, difference.tool
    return any(each.unit == device or each.source == tool for each in stale)


def _said(status: LinkStatus) -> tuple[object, ...]:
    return status.state, status.phys_state, status.lid, status.sm_lid, status.rate


def _value(status: LinkStatus | None, field: str) -> str | float | None:
    """Return a field as text or number; tools print rates without fractions."""
    if status is None:
        return None
    if field == "rate_gbps":
        rate = status.rate.gbps
        return None if rate is None else float(int(rate))
    value: str | int | None = getattr(status, field)
    return value if value is None or isinstance(value, int) else str(value)


def _finding(told: dict[_Place, _Difference], view: View) -> Finding:
    ordered = sorted(told, key=lambda place: told[place].at)
    first = ordered[0]
    oldest = told[first]
    more = f", and {len(told) - 1} more" if len(told) > 1 else ""
    devices = {place.port.device for place in told}
    return Finding(
        kind="telemetry_stale",
        subject=Subject(device=devices.pop() if len(devices) == 1 else None),
        onset=oldest.at + view.onset_offset,
        evidence=tuple(
            Evidence(
                signal=place.field,
                value=told[place].said,
                unit="",
                source=f"{told[place].tool} {place.port}",
                threshold=told[place].ours,
            )
            for place in ordered[:MOST_EVIDENCE]
        ),
        summary=one_line(
            f"{oldest.tool} says {first.field} {oldest.said} of {first.port}{more}, "
            f"{port_source(first.port)} {oldest.ours}: one of them is old"
        ),
        severity=Severity.INFO,
        part=Part.OBSERVER,
        action=Action.NONE,
    )
