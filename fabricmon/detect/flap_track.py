"""What one port did: ups, downs and outages, and whether it is in an episode."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from msgspec import Struct, field, structs

from fabricmon.detect.downs import Down, Downs, SavedDown, estimate, restored
from fabricmon.detect.flap_account import FlapAccount
from fabricmon.model import Evidence, OutageSummary, PortInfo
from fabricmon.value import State, Value

_HOUR_SECONDS = 3600.0
MOST_OUTAGES = 300


class SavedOutageTime(Struct, frozen=True):
    """A past outage; ``at`` is Unix seconds."""

    at: float
    seconds: float


class SavedTrack(Struct, frozen=True):
    """A port's past as it is saved; times are Unix seconds."""

    key: str
    downs: tuple[SavedDown, ...] = ()
    outages: tuple[SavedOutageTime, ...] = ()
    up_at: float | None = None
    not_up_at: float | None = None
    since: float | None = None
    fell: bool = False
    episode: float | None = None
    flaps: int = 0
    downtime: float = 0.0
    last_down: float | None = None
    account: FlapAccount | None = None


class PastOutage(Value, frozen=True):
    """An outage that is over: when it ended, and how long it was."""

    at: float
    seconds: float


class Track(State):
    """One port. ``since`` is when it stopped being ACTIVE, None while it is.

    ``fell`` tells that this outage was seen as DOWN, ``off`` that someone switched the
    port off. ``episode`` is when flapping began. ``proof`` is the evidence of what is
    not told yet, by sign; ``account`` is what the newest finding of flaps tells, with
    its evidence.
    """

    info: PortInfo
    key: str
    downs: Downs
    outages: deque[PastOutage] = field(
        default_factory=lambda: deque(maxlen=MOST_OUTAGES)
    )
    up_at: float | None = None
    not_up_at: float | None = None
    since: float | None = None
    fell: bool = False
    off: bool = False
    carrier: bool | None = None
    went_down_at: float | None = None
    episode: float | None = None
    is_new: bool = False
    untold_outages: list[float] = field(default_factory=list)
    proof: dict[str, Evidence] = field(default_factory=dict)
    account: FlapAccount | None = None
    account_proof: dict[str, Evidence] = field(default_factory=dict)
    flaps: int = 0
    downtime: float = 0.0
    last_down: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Tell whether nothing about the port needs a look."""
        return (
            self.since is None
            and self.episode is None
            and not self.is_new
            and not self.downs.are_open
            and not self.downs.untold()
        )

    def hint(self, at: float) -> None:
        """Note when an event or a counter told that the port went down."""
        known = self.went_down_at
        if known is None or (self.up_at is not None and known < self.up_at):
            self.went_down_at = at

    def prove(self, sign: str, proof: Evidence) -> None:
        """Keep evidence of what is not told yet; increases of one counter add up."""
        _prove(self.proof, sign, proof)

    def tell(self, account: FlapAccount, hold_seconds: float) -> FlapAccount:
        """Take what is new into account; return all that the finding tells of."""
        if self.account is None or not self.account.goes_on(account, hold_seconds):
            self.account, self.account_proof = account, {}
        else:
            self.account = self.account.joined(account)
        for sign, proof in self.proof.items():
            _prove(self.account_proof, sign, proof)
        return self.account

    def leave(self, at: float) -> None:
        """Note a sample that is not ACTIVE."""
        if self.since is None:
            if self.up_at is None:
                return  # down since before the first look: no outage that was seen
            self.since = self._guess(self.up_at, at)
            self.downs.begin(self.since)
            self.downtime += at - self.since
        elif self.not_up_at is not None:
            self.downtime += at - self.not_up_at
        self.not_up_at = at

    def come_up(self, at: float) -> None:
        """Note that the port is ACTIVE at ``at``."""
        if self.since is not None and self.not_up_at is not None:
            end = estimate(self.not_up_at, at)
            self.downtime += end - self.not_up_at
            seconds = max(end - self.since, 0.0)
            if (self.fell or self.downs.are_open) and not self.off:
                self._end_outage(end, seconds)
        if self.off:
            for down in self.downs:
                down.quiet = down.quiet or down.up is None
        self.downs.close(at)
        self.up_at, self.not_up_at, self.since = at, None, None
        self.fell = self.off = False

    def blink(self, at: float) -> None:
        """Note an event that the port is up, of an outage that no sample saw."""
        if not self.downs.are_open:
            return
        if self.went_down_at is not None:
            seconds = max(at - self.went_down_at, 0.0)
            self._end_outage(at, seconds)
            self.downtime += seconds
        self.downs.close(at)
        self.went_down_at = None

    def interrupt(self) -> None:
        """Forget what is going on: the device went away or the node booted."""
        self.downs.drop_open()
        self.up_at = self.not_up_at = self.since = None
        self.fell = self.off = False
        self.carrier = self.went_down_at = None

    def down_in_hour(self, now: float) -> float:
        """Return the seconds of outage in the last hour."""
        begin = now - _HOUR_SECONDS
        return sum(outage.seconds for outage in self.outages if outage.at > begin)

    def outages_since(self, begin: float) -> list[PastOutage]:
        """Return the outages that ended after ``begin``."""
        return [outage for outage in self.outages if outage.at > begin]

    def summary(self) -> OutageSummary:
        """Return what is exported."""
        return OutageSummary(self.flaps, self.downtime, self.last_down)

    def saved(self, offset: float) -> SavedTrack:
        """Return what survives a restart; ``offset`` is wall minus monotonic."""

        def unix(at: float | None) -> float | None:
            return None if at is None else at + offset

        return SavedTrack(
            key=self.key,
            downs=tuple(down.saved(offset) for down in self.downs),
            outages=tuple(
                SavedOutageTime(outage.at + offset, outage.seconds)
                for outage in self.outages
            ),
            up_at=unix(self.up_at),
            not_up_at=unix(self.not_up_at),
            since=unix(self.since),
            fell=self.fell,
            episode=unix(self.episode),
            flaps=self.flaps,
            downtime=self.downtime,
            last_down=self.last_down,
            account=self.account.moved(offset) if self.account else None,
        )

    def take_back(self, saved: SavedTrack, slack: float, offset: float) -> None:
        """Go on from what `saved` returned."""

        def monotonic(at: float | None) -> float | None:
            return None if at is None else at - offset

        downs: tuple[Down, ...] = tuple(restored(each, offset) for each in saved.downs)
        self.downs = Downs(slack, downs)
        self.outages.extend(
            PastOutage(each.at - offset, each.seconds) for each in saved.outages
        )
        self.up_at = monotonic(saved.up_at)
        self.not_up_at = monotonic(saved.not_up_at)
        self.since = monotonic(saved.since)
        self.fell = saved.fell
        self.episode = monotonic(saved.episode)
        self.flaps, self.downtime = saved.flaps, saved.downtime
        self.last_down = saved.last_down
        self.account = saved.account.moved(-offset) if saved.account else None

    def _end_outage(self, at: float, seconds: float) -> None:
        self.outages.append(PastOutage(at, seconds))
        self.untold_outages.append(seconds)
        self.is_new = True

    def _guess(self, low: float, high: float) -> float:
        told = self.went_down_at
        return told if told is not None and low <= told <= high else estimate(low, high)


def _prove(known: dict[str, Evidence], sign: str, proof: Evidence) -> None:
    before = known.get(sign)
    if before is not None and before.window_seconds and proof.window_seconds:
        both = (before.value, proof.value)
        if isinstance(both[0], int) and isinstance(both[1], int):
            proof = replace(
                proof,
                value=both[0] + both[1],
                window_seconds=before.window_seconds + proof.window_seconds,
            )
    known[sign] = proof


def interrupted(saved: SavedTrack) -> SavedTrack:
    """Return a saved track without what was going on: the node booted since."""
    over = tuple(down for down in saved.downs if down.up is not None)
    return structs.replace(
        saved, downs=over, up_at=None, not_up_at=None, since=None, fell=False
    )
