"""Ports that went down and came back, once or again and again.

Flaps are found in state samples, link events and the counters that remember what a
poll misses. Repeats are damped as routes are (RFC 2439) and counted per window
(``health-systems``, algorithm A3): one finding per episode, not per flap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.counter_sense import is_impossible
from fabricmon.detect.downs import Down, Downs, Sign, estimate
from fabricmon.detect.evidence import source_of
from fabricmon.detect.flap_account import FlapAccount, account_of
from fabricmon.detect.flap_story import flap, flapping, is_management
from fabricmon.detect.flap_track import SavedTrack, Track, interrupted
from fabricmon.detect.grace import Grace, SavedGrace
from fabricmon.detect.outage import is_refused
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.wording import port_source, subject_of
from fabricmon.kinds import BY_SLUG
from fabricmon.maintenance import under_maintenance
from fabricmon.model import (
    Blindness,
    Evidence,
    Finding,
    LinkEvent,
    LinkStatus,
    Mark,
    Move,
    NetdevStatus,
    OutageSummary,
    PortId,
    PortInfo,
    View,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from fabricmon.port_key import port_key

_REMEMBERED = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
HOUR_SECONDS = 3600.0
_HOLD_SECONDS = BY_SLUG["port_flap"].hold_seconds
_SETTLING_PORTS = 3  # fewer ports that flap are no settling fabric


class SavedFlaps(Struct, frozen=True):
    """What a restarted agent needs to go on counting."""

    grace: SavedGrace = SavedGrace()
    tracks: tuple[SavedTrack, ...] = ()


class Flaps:
    """Follows how often each port goes down."""

    name = "flaps"
    kinds: tuple[str, ...] = ("port_flap", "port_flapping")

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``link_state``."""
        self._limits = config.link_state
        self._grace = Grace()
        self._tracks: dict[PortId, Track] = {}
        self._watched: dict[PortId, Track] = {}
        self._ignored: set[PortId] = set()
        self._restored: dict[str, SavedTrack] = {}
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield each flap once, and a port that flaps for as long as it does."""
        self._offset = view.onset_offset
        if self._grace.observe(view):
            self._interrupt(self._tracks.values())
            for key, saved in self._restored.items():
                self._restored[key] = interrupted(saved)
        if view.missing:
            gone = {device.name for device in view.missing}
            self._interrupt(t for p, t in self._tracks.items() if p.device in gone)
        for event in view.events:
            self._take_event(event, view)
        for move in view.moves:
            if move.spec.signal in _REMEMBERED and move.increase > 0:
                self._take_move(move, view)
        for status in view.statuses:
            self._take_status(status, view)
        if self._watched:
            self._note_switched_off(view.netdevs)
            yield from self._findings(view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where nothing remembers what happens between two polls."""
        counters = view.counters
        read = [port.info.id for port in view.ports if counters.specs(port.info.id)]
        if read and not any(
            counters.by_signal(port, signal) for port in read for signal in _REMEMBERED
        ):
            reason = "no counter remembers outages: flaps between polls are not seen"
            yield Blindness("port_flap", reason)

    def outages(self, port: PortInfo) -> OutageSummary:
        """Return flaps, downtime and the newest outage of a port, for export."""
        track = self._tracks.get(port.id)
        return OutageSummary() if track is None else track.summary()

    def save(self) -> bytes:
        """Return the past of every port that has one."""
        tracks = [track.saved(self._offset) for track in self._tracks.values()]
        tracks += self._restored.values()
        return pack(SavedFlaps(self._grace.save(self._offset), tuple(tracks)))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedFlaps)
        self._offset = view_offset
        self._grace.restore(state.grace, view_offset)
        self._restored = {track.key: track for track in state.tracks if track.key}

    # What is seen

    def _take_status(self, status: LinkStatus, view: View) -> None:
        track = self._track(status.port, view)
        if track is None or status.state is None or status.state is PortState.NOP:
            return
        if status.state is PortState.ACTIVE:
            if track.fell or status.port in self._watched:
                track.come_up(status.at)
            track.up_at = status.at
            return
        infiniband = track.info.link_layer is LinkLayer.INFINIBAND
        if infiniband and status.phys_state is PhysState.DISABLED:
            track.off = True
        if status.state is PortState.DOWN and not track.fell:
            track.fell = True
            if track.up_at is not None:
                proof = Evidence(
                    "state", "DOWN", "", port_source(status.port), "ACTIVE"
                )
                self._sign(track, Sign("state", track.up_at, status.at), proof, view)
        track.leave(status.at)
        if track.since is not None:
            self._watched[status.port] = track

    def _take_move(self, move: Move, view: View) -> None:
        """Take a counter that tells of outages; resets and first sights gain nothing.

        On InfiniBand the carrier of IPoIB also falls when the subnet manager or an
        operator acts; it counts only where the port's own counter cannot.
        """
        track = self._track(move.port, view)
        if track is None or move.mark in {Mark.FIRST, Mark.RESET}:
            return
        if is_impossible(move, self._limits.flap_least_seconds):
            return
        track.hint(estimate(move.at - move.seconds, move.at))
        if move.spec.signal is Signal.CARRIER_DOWN and _own_counter_tells(track, view):
            return
        proof = Evidence(
            signal=move.spec.file,
            value=move.increase,
            unit="events",
            source=source_of(track.info, move.spec),
            threshold=1,
            window_seconds=round(move.seconds, 1),
        )
        sign = Sign(
            name=f"{move.spec.directory}/{move.spec.file}",
            low=move.at - move.seconds,
            high=move.at,
            times=move.increase,
            lumped=move.mark is Mark.GAP,
        )
        self._sign(track, sign, proof, view)

    def _take_event(self, event: LinkEvent, view: View) -> None:
        for port in view.ports:
            if event.netdev not in port.info.netdevs:
                continue
            track = self._track(port.info.id, view)
            if track is not None:
                self._take_port_event(track, event, view)

    def _take_port_event(self, track: Track, event: LinkEvent, view: View) -> None:
        if event.gone:
            track.carrier = None
            track.off = track.off or track.since is not None or track.downs.are_open
        elif event.up is False and track.carrier is not False:
            track.carrier = False
            track.hint(event.at)
            if not _own_counter_tells(track, view):
                proof = Evidence("carrier", 0, "", f"rtnetlink/{event.netdev}", 1)
                self._sign(track, Sign("event", event.at, event.at), proof, view)
        elif event.up:
            track.carrier = True
            if track.info.link_layer is LinkLayer.ETHERNET and not track.fell:
                track.blink(event.at)  # else the next sample tells when it was up

    def _note_switched_off(self, netdevs: tuple[NetdevStatus, ...]) -> None:
        """Note an Ethernet port that someone took down: its carrier gives EINVAL."""
        for netdev in netdevs:
            track = self._watched.get(netdev.port)
            if track is None or netdev.carrier is not None or track.since is None:
                continue
            if track.info.link_layer is LinkLayer.ETHERNET and is_refused(netdev):
                track.off = True

    def _track(self, port: PortId, view: View) -> Track | None:
        """Return the track of a port, None for virtual functions and unknown ports."""
        track = self._tracks.get(port)
        if track is None and port not in self._ignored:
            return self._meet(port, view)
        return track

    def _meet(self, port: PortId, view: View) -> Track | None:
        """Begin a track, or go on with the one of the same card under another name."""
        info = next((p.info for p in view.ports if p.info.id == port), None)
        if info is None or info.is_vf:
            if info is not None:
                self._ignored.add(port)
            return None
        key = port_key(info)
        there = {each.info.id for each in view.ports}
        for old, track in tuple(self._tracks.items()):
            if track.key == key and old not in there:
                del self._tracks[old]
                self._watched.pop(old, None)
                return self._keep(port, track, info)
        track = Track(info, key, Downs(self._limits.flap_merge_seconds))
        saved = self._restored.pop(key, None)
        if saved is not None:
            track.take_back(saved, self._limits.flap_merge_seconds, view.onset_offset)
        return self._keep(port, track, info)

    def _keep(self, port: PortId, track: Track, info: PortInfo) -> Track:
        track.info = info
        self._tracks[port] = track
        if not track.is_quiet:
            self._watched[port] = track
        return track

    def _interrupt(self, tracks: Iterable[Track]) -> None:
        for track in tracks:
            track.interrupt()

    # What it means

    def _sign(self, track: Track, sign: Sign, proof: Evidence, view: View) -> None:
        """Take a sign that the port went down."""
        left = track.downs.claim(sign)
        if left:
            quiet = self._is_harmless(track, sign.high, view)
            newest = track.downs.add(sign, left, quiet=quiet)
            track.last_down = newest.at + view.onset_offset
            track.is_new = True
        if left or track.downs.are_open:
            track.prove(sign.name, proof)
        self._watched[track.info.id] = track

    def _is_harmless(self, track: Track, at: float, view: View) -> bool:
        limits, device = self._limits, track.info.id.device
        return (
            track.off
            or self._grace.since_boot(at) < limits.boot_grace_seconds
            or self._grace.since_load(device, at) < limits.driver_grace_seconds
            or under_maintenance(subject_of(track.info), view.maintenance, view.wall)
            or self._is_settling(at)
        )

    def _is_settling(self, at: float) -> bool:
        """Tell whether several ports flapped in a young boot: a new fabric does."""
        age = self._grace.since_boot(at)
        if age >= self._limits.settling_seconds:
            return False
        flapped = sum(
            any(down.high > at - age for down in track.downs)
            for track in self._tracks.values()
        )
        return flapped >= _SETTLING_PORTS

    def _findings(self, view: View) -> Iterator[Finding]:
        for port, track in tuple(self._watched.items()):
            if track.is_new:
                track.is_new = False
                self._consider(track, view.now)
            untold = track.downs.untold()
            for down in untold:
                down.told = True
                track.flaps += down.times
            if track.episode is not None:
                if self._is_over(track, view.now):
                    track.episode = None
                else:
                    yield flapping(track, view, self._limits)
            elif untold:
                yield flap(
                    track, self._tell(track, untold, view.now), view, self._limits
                )
            if untold:
                track.proof, track.untold_outages = {}, []
            if track.is_quiet:
                track.went_down_at = None
                del self._watched[port]

    def _tell(self, track: Track, untold: list[Down], now: float) -> FlapAccount:
        """Return the flaps that one finding tells of, as long as its incident holds."""
        loud = not all(down.quiet for down in untold) and not is_management(track)
        account = account_of(untold, track.untold_outages, now, loud=loud)
        return track.tell(account, _HOLD_SECONDS)

    def _consider(self, track: Track, now: float) -> None:
        """Begin an episode if the newest flaps are too many."""
        if track.episode is not None:
            return
        limits = self._limits
        short = track.downs.loud_since(now - limits.flapping_window_short_seconds)
        long = track.downs.loud_since(now - limits.flapping_window_long_seconds)
        hour = track.downs.loud_since(now - HOUR_SECONDS)
        too_long = limits.downtime_critical_seconds_per_hour
        if len(short) >= limits.flapping_count_short:
            track.episode = short[0].at
        elif len(long) >= limits.flapping_count_long:
            track.episode = long[0].at
        elif hour and (
            (len(hour) > 1 and track.down_in_hour(now) >= too_long)
            or self._penalty(track, now) > limits.flapping_penalty
        ):
            track.episode = hour[0].at

    def _is_over(self, track: Track, now: float) -> bool:
        """Tell whether a port was quiet for so long that the episode is over."""
        window = self._limits.flapping_window_short_seconds
        if track.downs.loud_since(now - window):
            return False
        return self._penalty(track, now) < self._limits.flapping_reuse_penalty

    def _penalty(self, track: Track, now: float) -> float:
        limits = self._limits
        return track.downs.penalty(
            now, limits.flap_penalty, limits.flap_half_life_seconds
        )


def _own_counter_tells(track: Track, view: View) -> bool:
    """Tell whether an InfiniBand port has a counter of its own that can still count."""
    if track.info.link_layer is not LinkLayer.INFINIBAND:
        return False
    port = track.info.id
    for spec in view.counters.by_signal(port, Signal.LINK_DOWN):
        value = view.counters.value(port, spec)
        if value is not None and value != spec.ceiling:
            return True
    return False
