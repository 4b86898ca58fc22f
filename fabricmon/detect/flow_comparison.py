"""Settings of flow control that do not agree: between the rails, or within one.

A rail that differs from most is named. Where no value has most of them, the node is
told of and no port: nobody here knows which side is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from msgspec import field

from fabricmon.detect.flow_drops import KIND, is_rail, listed
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    NO_CLASS,
    Evidence,
    Finding,
    HostPath,
    PortId,
    PortInfo,
    PriorityUse,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

LEAST_RAILS = 3
"""Rails of which most can agree; of two that differ each may have its own purpose."""

MAX_NAMED = 2  # ports of one value that a summary names
MAX_VALUES = 4  # of one setting that are told

_DSCP_SHIFT = 2  # the low bits of a traffic class are ECN's


class _Setting(Value, frozen=True):
    """A setting that rails share; None is a value that could not be read."""

    name: str
    label: str
    text: Callable[[PriorityUse], str | None]


def _class(use: PriorityUse) -> str | None:
    return "none" if use.traffic_class == NO_CLASS else _number(use.traffic_class)


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


_SETTINGS = (
    _Setting("pfc_enabled", "PFC priorities", lambda use: listed(use.pfc_enabled)),
    _Setting("ecn", "ECN priorities", lambda use: listed(use.ecn_enabled)),
    _Setting("dscp_to_priority", "DSCP map", lambda use: listed(use.dscp_to_priority)),
    _Setting("traffic_class", "traffic class", _class),
    _Setting(
        "default_roce_tos",
        "type of service of RDMA-CM",
        lambda use: _number(use.default_tos),
    ),
)


class _Rail(Value, frozen=True):
    """A rail whose settings are known."""

    info: PortInfo
    use: PriorityUse

    def item(self, name: str, value: str | None, usual: str | None = None) -> Evidence:
        """Return one of its settings, as evidence."""
        return Evidence(name, value, "", f"dcb:{self.use.netdev}", usual)


class _Mismatch(Value, frozen=True):
    """What does not agree, and where; no place is the whole node."""

    place: PortInfo | None
    name: str
    evidence: tuple[Evidence, ...]
    summary: str
    severity: Severity = Severity.WARNING

    @property
    def key(self) -> tuple[PortId | None, str]:
        return None if self.place is None else self.place.id, self.name


class Comparison(State):
    """Holds the settings of the rails against each other, each time they are read."""

    _path: HostPath | None = None
    _infos: tuple[PortInfo, ...] = ()
    _found: tuple[_Mismatch, ...] = ()
    _since: dict[tuple[PortId | None, str], float] = field(default_factory=dict)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what does not agree now."""
        path = view.job.host_path
        infos = tuple(p.info for p in view.ports if p.ever_active and is_rail(p))
        if path is not self._path or infos != self._infos:
            self._path, self._infos = path, infos
            self._found = () if path is None else tuple(_mismatches(path, infos))
            keys = [each.key for each in self._found]
            self._since = {key: self._since.get(key, view.now) for key in keys}
        for each in self._found:
            yield Finding(
                kind=KIND,
                subject=Subject() if each.place is None else subject_of(each.place),
                onset=self._since[each.key] + view.onset_offset,
                evidence=each.evidence,
                summary=one_line(each.summary),
                severity=each.severity,
                confidence=0.9,
            )


def _mismatches(path: HostPath, infos: Sequence[PortInfo]) -> Iterator[_Mismatch]:
    """Yield what does not agree on ports that were in use at least once."""
    found = [(info, path.use_of(info)) for info in infos]
    rails = [_Rail(info, use) for info, use in found if use is not None]
    for setting in _SETTINGS:
        yield from _between(rails, setting)
    yield from _within(rails)


def _between(rails: Sequence[_Rail], setting: _Setting) -> Iterator[_Mismatch]:
    """Yield the rails that differ from most, or that the rails differ."""
    groups: defaultdict[str, list[_Rail]] = defaultdict(list)
    for rail in rails:
        value = setting.text(rail.use)
        if value is not None:
            groups[value].append(rail)
    if len(groups) < 2:  # noqa: PLR2004
        return
    known = sum(len(group) for group in groups.values())
    usual = max(groups, key=lambda value: len(groups[value]))
    if known < LEAST_RAILS or 2 * len(groups[usual]) <= known:
        yield _undecided(groups, setting, known)
        return
    for value, group in groups.items():
        if value != usual:
            yield from (_odd(rail, setting, value, usual) for rail in group)


def _odd(rail: _Rail, setting: _Setting, value: str, usual: str) -> _Mismatch:
    detail = "" if setting.name == "dscp_to_priority" else f": {value}"
    return _Mismatch(
        rail.info,
        setting.name,
        (rail.item(setting.name, value, usual),),
        f"{rail.info.id}: {setting.label} differ from those of the other rails"
        f"{detail}; a setting, no fault of the link",
    )


def _undecided(
    groups: dict[str, list[_Rail]], setting: _Setting, known: int
) -> _Mismatch:
    sides = [
        _names(group)
        if setting.name == "dscp_to_priority"
        else f"{value} on {_names(group)}"
        for value, group in groups.items()
    ][:MAX_VALUES]
    return _Mismatch(
        None,
        setting.name,
        tuple(
            group[0].item(setting.name, value)
            for value, group in list(groups.items())[:MAX_VALUES]
        ),
        f"{setting.label} differ between the rails, none has most: {'; '.join(sides)}",
        Severity.WARNING if known >= LEAST_RAILS else Severity.INFO,
    )


def _names(group: Sequence[_Rail]) -> str:
    named = ", ".join(str(rail.info.id) for rail in group[:MAX_NAMED])
    more = len(group) - MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _within(rails: Sequence[_Rail]) -> Iterator[_Mismatch]:
    """Yield settings of a rail that contradict each other, once if all have them."""
    groups: defaultdict[tuple[str, str], list[tuple[_Rail, tuple[Evidence, ...]]]]
    groups = defaultdict(list)
    for rail in rails:
        for name, text, items in _contradictions(rail):
            groups[name, text].append((rail, items))
    for (name, text), group in groups.items():
        if 1 < len(group) == len(rails):
            told = f"all {len(rails)} rails: {text}"
            yield _Mismatch(None, name, group[0][1], told)
            continue
        for rail, items in group:
            yield _Mismatch(rail.info, name, items, f"{rail.info.id}: {text}")


def _contradictions(rail: _Rail) -> Iterator[tuple[str, str, tuple[Evidence, ...]]]:
    """Yield what of one rail cannot be meant so; without PFC nothing is promised."""
    use = rail.use
    pfc, ecn = use.pfc_enabled, use.ecn_enabled
    if not pfc:
        return
    on = listed(pfc)
    lossless = rail.item("pfc_enabled", on)
    if ecn and not set(ecn) & set(pfc):
        marked = listed(ecn)
        text = f"PFC is on for priority {on}, ECN for {marked}: what is paused is never"
        yield "ecn_or_pfc", f"{text} marked", (lossless, rail.item("ecn", marked))
    reached = _reached(use)
    if reached and not reached & set(pfc):
        shown = listed(tuple(sorted(reached)))
        text = f"PFC is on for priority {on}, DSCPs lead to {shown} only: nothing is"
        items = [lossless, rail.item("dscp_to_priority", shown)]
        if use.enforced_class is not None:
            items.append(rail.item("traffic_class", str(use.enforced_class)))
        yield "pfc_not_reached", f"{text} lossless", tuple(items)


def _reached(use: PriorityUse) -> set[int]:
    """Return the priorities that data can have; none where the DSCP does not decide."""
    table, enforced = use.dscp_to_priority, use.enforced_class
    if not table:
        return set()
    if enforced is None:
        return set(table)
    dscp = enforced >> _DSCP_SHIFT
    return {table[dscp]} if 0 <= dscp < len(table) else set()
