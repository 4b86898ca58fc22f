"""Whether findings have one cause: told by the fleet's rules, or by their company. Pure.

A finding that has come with others stays with them: it is judged by when it began, not
by how long ago, and those that are over count for a while.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from fabricmon.fusion import LOCAL
from fabricmon.gate.decision import Known
from fabricmon.gate.report import Report
from fabricmon.gate.settings import Caution
from fabricmon.kinds import BY_SLUG

_Port = tuple[str | None, str | None, int | None]
_Place = tuple[str, str, object]


@dataclass(slots=True)
class _Series:
    """Ports in the order in which their findings began."""

    at: list[float] = field(default_factory=list)
    ports: list[_Port] = field(default_factory=list)


class Company:
    """Findings by place and time, to see which came together."""

    def __init__(self, findings: Iterable[Known], caution: Caution) -> None:
        """Sort the findings of nodes that show something at their own end."""
        self._caution = caution
        self._places: dict[_Place, _Series] = defaultdict(_Series)
        counted = [known for known in findings if _counts(known.report)]
        times = [(at, known.report) for known in counted for at in _times(known)]
        for at, report in sorted(times, key=lambda each: each[0]):
            for place in _places(report):
                series = self._places[place]
                series.at.append(at)
                series.ports.append(report.port)

    def of(self, known: Known) -> str | None:
        """Say with what a finding came, None if it came alone."""
        for place in _places(known.report):
            for at in _times(known):
                told = self._tells(place, self._near(place, known.report, at))
                if told is not None:
                    return told
        return None

    def _tells(self, place: _Place, ports: set[_Port]) -> str | None:
        nodes = {node for node, _, _ in ports}
        cluster, what, value = place
        if what == "cluster":
            many = len(nodes) >= self._caution.common_nodes
            return f"{len(nodes)} nodes of {cluster or 'the cluster'}" if many else None
        many = len(nodes) > 1 and len(ports) >= self._caution.common_ports
        return f"{len(ports)} ports of {what} {value}" if many else None

    def _near(self, place: _Place, report: Report, when: float) -> set[_Port]:
        """Return ports of a place that failed about then, as many as tell."""
        window = self._caution.common_window_seconds
        enough = max(self._caution.common_nodes, self._caution.common_ports)
        series = self._places.get(place, _Series())
        start = bisect_left(series.at, when - window)
        found: set[_Port] = {report.port}
        nodes = {report.node}
        for index in range(start, len(series.at)):
            if series.at[index] > when + window or len(nodes) >= enough:
                break
            found.add(series.ports[index])
            nodes.add(series.ports[index][0])
        return found


def explains(cause: Report, report: Report) -> bool:
    """Tell whether a cause is about where a finding is.

    What a cause names and the finding does not say may be the same.
    """
    if cause.cluster and report.cluster and cause.cluster != report.cluster:
        return False
    if cause.origin == "node" and cause.node != report.node:
        return False
    named, there = cause.finding.subject, report.finding.subject
    if named.leaf is not None:
        return there.leaf in {None, named.leaf}
    if named.rail is not None:
        return there.rail is None or str(there.rail) == str(named.rail)
    if cause.rack is not None:
        return report.rack in {None, cause.rack}
    return True


def _times(known: Known) -> set[float]:
    """Return when a finding began and when it last became another."""
    return {known.first, known.changed}


def _counts(report: Report) -> bool:
    kind = BY_SLUG.get(report.finding.kind)
    shows = kind is not None and kind.proof in LOCAL
    grave = report.finding.severity in {"critical", "warning"}
    return shows and grave and report.origin == "node" and report.node is not None


def _places(report: Report) -> list[_Place]:
    subject, cluster = report.finding.subject, report.cluster
    rail = None if subject.rail is None else str(subject.rail)
    named = (("leaf", subject.leaf), ("rack", report.rack), ("rail", rail))
    found: list[_Place] = [
        (cluster, what, value) for what, value in named if value is not None
    ]
    return [*found, (cluster, "cluster", None)]
