"""Links that run slower than they should: ``rate_degraded``.

What a link should run at is what configuration says, the best rate that it once had,
or what most equal ports of the node have; never a guess. A rate that is read while the
port is not ACTIVE is a default, not a measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field

from fabricmon.config import Config
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.wording import clock, port_source, subject_of
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    LinkStatus,
    PortId,
    PortInfo,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.parse.words import PortState, Rate
from fabricmon.port_key import port_key
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

SDR_GBPS = 2.5
"""Rate of a lane that a kernel prints for every lane speed that it does not know."""

TOLERANCE = 0.99
"""Below this part of the expected rate a link is slow; texts round."""

_PEERS_MINIMUM = 3


class SavedLink(Struct, frozen=True):
    """What is kept of a port; ``since`` is Unix seconds."""

    key: str
    best_gbps: float | None = None
    best_width: int | None = None
    boot_id: str = ""
    since: float | None = None
    expected: float | None = None
    unit: str = ""
    why: str = ""


class SavedRates(Struct, frozen=True):
    """What a restarted agent needs to go on."""

    links: tuple[SavedLink, ...] = ()


class Level(Value, frozen=True):
    """A rate in Gb/s or, where the rate says nothing, a number of lanes."""

    value: float
    unit: str
    why: str = ""

    def is_below(self, other: Level) -> bool:
        """Tell whether this is plainly less, in the same unit."""
        return self.unit == other.unit and self.value < TOLERANCE * other.value


class _Link(State):
    """One port: its best level, the last one, and since when it is low."""

    key: str
    best: dict[str, float]
    boot_id: str = ""
    last: Level | None = None
    rate: Rate = field(default_factory=Rate)
    agreed: int = 0
    lows: int = 0
    since: float | None = None
    expected: Level | None = None

    def take(self, level: Level, samples: int, boot_id: str) -> None:
        """Take a level; the best one counts when ``samples`` agreed on it."""
        self.agreed = self.agreed + 1 if level == self.last else 1
        self.last = level
        if self.agreed >= samples and level.value >= self.best.get(level.unit, 0):
            self.best[level.unit] = level.value
            self.boot_id = boot_id


class LinkRate:
    """Compares the rate of each ACTIVE port with what it should be."""

    name = "rate"
    kinds: tuple[str, ...] = ("rate_degraded",)

    def __init__(self, config: Config) -> None:
        """Take ``rate_samples`` of ``link_state``."""
        self._samples = config.link_state.rate_samples
        self._links: dict[PortId, _Link] = {}
        self._low: dict[PortId, _Link] = {}
        self._restored: dict[str, SavedLink] = {}
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each port that is slow, until a sample shows better."""
        self._offset = view.onset_offset
        ports: dict[PortId, PortView] = {}
        for status in view.statuses:
            if status.complete and status.state is PortState.ACTIVE:
                ports = ports or {port.info.id: port for port in view.ports}
                port = ports.get(status.port)
                if port is not None and not port.info.is_vf:
                    self._take(status, port, view)
        if self._low:
            ports = ports or {port.info.id: port for port in view.ports}
            yield from self._findings(ports, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where the kernel does not know the speed, or no rate can be read."""
        up = [
            port.status.rate
            for port in view.ports
            if port.status is not None and port.status.state is PortState.ACTIVE
        ]
        if up and all(rate.gbps is None for rate in up):
            yield Blindness("rate_degraded", "no rate can be read")
        elif up and all(_says_sdr(rate) for rate in up):
            reason = "every rate is a multiple of 2.5 Gb/s: the kernel knows no speed"
            yield Blindness("rate_degraded", reason)

    def save(self) -> bytes:
        """Return the best rates and what is slow."""
        links = [self._saved(link) for link in self._links.values() if link.key]
        links += self._restored.values()
        return pack(SavedRates(tuple(links)))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        self._offset = view_offset
        links = unpack(saved, SavedRates).links
        self._restored = {link.key: link for link in links}

    def _take(self, status: LinkStatus, port: PortView, view: View) -> None:
        link = self._links.get(status.port) or self._meet(port.info, view)
        boot_id = view.boot.boot_id if view.boot else ""
        level = self._level(status.rate, link, port.info, view)
        if level is None:
            return
        link.take(level, self._samples, boot_id)
        link.rate = status.rate
        expected = self._expected(level, link, port, view, boot_id)
        if expected is None or not level.is_below(expected):
            link.lows, link.since, link.expected = 0, None, None
            self._low.pop(status.port, None)
            return
        link.lows += 1
        link.expected = expected
        if link.since is None:
            link.since = status.at
        if link.lows >= self._samples:
            self._low[status.port] = link

    def _meet(self, info: PortInfo, view: View) -> _Link:
        saved = self._restored.pop(port_key(info), None)
        link = _Link(port_key(info), {}) if saved is None else _resumed(saved, view)
        if saved is not None and saved.since is not None:
            link.lows = self._samples
        self._links[info.id] = link
        return link

    def _level(
        self, rate: Rate, link: _Link, info: PortInfo, view: View
    ) -> Level | None:
        """Return what can be compared: Gb/s, else lanes.

        A kernel that does not know a speed says SDR for it, on every port of the board
        (``counters``, on ``rate``); then the lanes are all that is known.
        """
        unknown = rate.gbps is None or (
            _says_sdr(rate)
            and "Gb/s" not in link.best
            and all(
                _says_sdr(other)
                for other in _rates_of_board(info, view)
                if other.gbps is not None
            )
        )
        if not unknown and rate.gbps is not None:
            return Level(rate.gbps, "Gb/s")
        return None if rate.width is None else Level(float(rate.width), "lanes")

    def _expected(
        self, level: Level, link: _Link, port: PortView, view: View, boot_id: str
    ) -> Level | None:
        """Return the highest level that anything speaks for."""
        unit, info = level.unit, port.info
        configured = info.expected_rate_gbps if unit == "Gb/s" else info.expected_width
        if configured is not None:
            why = "configured" if info.is_rate_configured else "its peers"
            return Level(configured, unit, why)
        usual = _usual(level, info, view)
        best = link.best.get(unit)
        if best is not None and link.boot_id != boot_id and usual == level.value:
            link.best[unit] = best = level.value  # all changed with the boot: re-cabled
        if best is not None and (usual is None or best >= usual):
            return Level(best, unit, "its own best")
        return None if usual is None else Level(usual, unit, "its peers")

    def _findings(self, ports: dict[PortId, PortView], view: View) -> Iterator[Finding]:
        missing = {device.name for device in view.missing}
        for id_, link in tuple(self._low.items()):
            port = ports.get(id_)
            if id_.device in missing:
                del self._low[id_]
                link.lows, link.since, link.expected = 0, None, None
            elif port is not None and link.expected is not None and link.last:
                yield _finding(link, link.last, link.expected, port, view)

    def _saved(self, link: _Link) -> SavedLink:
        width = link.best.get("lanes")
        low = link.expected if link.lows >= self._samples else None
        return SavedLink(
            key=link.key,
            best_gbps=link.best.get("Gb/s"),
            best_width=None if width is None else int(width),
            boot_id=link.boot_id,
            since=None
            if low is None or link.since is None
            else link.since + self._offset,
            expected=low.value if low else None,
            unit=low.unit if low else "",
            why=low.why if low else "",
        )


def _resumed(saved: SavedLink, view: View) -> _Link:
    best = {"Gb/s": saved.best_gbps, "lanes": saved.best_width}
    link = _Link(
        saved.key,
        {unit: float(value) for unit, value in best.items() if value is not None},
        saved.boot_id,
    )
    if saved.since is not None and saved.expected is not None:
        link.since = saved.since - view.onset_offset
        link.expected = Level(saved.expected, saved.unit, saved.why)
    return link


def _finding(
    link: _Link, level: Level, expected: Level, port: PortView, view: View
) -> Finding:
    info, onset = port.info, (link.since or view.now) + view.onset_offset
    bond = any("bond" in name for name in (info.id.device, *info.netdevs))
    severity, action, text = (
        Severity.CRITICAL,
        Action.DRAIN_AFTER_JOB,
        "link is up but slow: cable, module or peer, not load",
    )
    if bond:
        # A bond carries on with what is left; only where rails are bonds a job waits.
        rail = info.role is Role.COMPUTE
        severity = Severity.WARNING if rail else Severity.INFO
        action = Action.NONE
        text = "bond degraded, a member is lost; no NIC is missing"
    elif info.role is Role.MANAGEMENT:
        severity, action = Severity.WARNING, Action.INSPECT
        text = "management port, not the fabric"
    return Finding(
        kind="rate_degraded",
        subject=subject_of(info),
        onset=onset,
        evidence=tuple(_evidence(link.rate, level, expected, info)),
        summary=one_line(
            f"{info.id} runs at {level.value:g} of {expected.value:g} {level.unit} "
            f"since {clock(onset)}: {text}"
        ),
        severity=severity,
        action=action,
        confidence=0.9 if expected.why == "its peers" else 1.0,
    )


def _evidence(
    rate: Rate, level: Level, expected: Level, info: PortInfo
) -> Iterator[Evidence]:
    file = f"{port_source(info.id)}/rate"
    yield Evidence("rate", level.value, level.unit, file, expected.value)
    if rate.width is not None:
        yield Evidence("width", rate.width, "lanes", file, info.expected_width)
    if rate.speed is not None:
        yield Evidence("speed", rate.speed, "", file)
    yield Evidence("expected_by", expected.why, "", "fabricmon")


def _usual(level: Level, info: PortInfo, view: View) -> float | None:
    """Return the level of most equal ports that are ACTIVE, None without a majority."""
    values = [
        rate.gbps if level.unit == "Gb/s" else rate.width
        for rate in _rates_of_board(info, view)
    ]
    known = Counter(float(value) for value in values if value is not None)
    if known.total() < _PEERS_MINIMUM:
        return None
    value, count = known.most_common(1)[0]
    return value if 2 * count > known.total() else None


def _rates_of_board(info: PortInfo, view: View) -> Iterator[Rate]:
    """Go through the rates of ACTIVE ports of equal role and board."""
    for port in view.ports:
        other = port.info
        if (
            port.status is not None
            and port.status.state is PortState.ACTIVE
            and not other.is_vf
            and (other.role, other.board_id, other.hca_type, other.link_layer)
            == (info.role, info.board_id, info.hca_type, info.link_layer)
        ):
            yield port.status.rate


def _says_sdr(rate: Rate) -> bool:
    return (
        rate.speed in {None, "SDR"}
        and rate.width is not None
        and rate.gbps == SDR_GBPS * rate.width
    )
