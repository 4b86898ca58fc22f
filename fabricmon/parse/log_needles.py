"""Lines of a piece of log that hold one of some literals, without parting it into lines.

Looking for each literal by itself costs 0.3 to 0.6 ns an octet, so what is looked for is
an octet that is rare in this log, and with one pass all literals that share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from fabricmon.value import State

SAMPLES, SAMPLE_OCTETS = 16, 256
LEAST_SAMPLED = 65536
# Measured per octet of log: `find` of a literal 0.3 to 0.6 ns; of one octet 0.02 ns and
# 250 ns at each; a pattern that begins with one octet 0.24 ns and 50 ns at each.
MOST_FOR_STOPS = 2  # in the sample: one octet in 2,000
MOST_FOR_PATTERN = 14  # one in 300
OCTETS_A_STOP = 1000  # beyond that a pattern is better than stops
LONG_NEEDLE = 10  # `find` is as fast as a pattern for one alone


class Search(State):
    """Lines found between two places of a piece, of which the first begins a line."""

    data: bytes
    start: int
    stop: int
    returns: bool
    found: set[int]

    def literal(self, needle: bytes) -> None:
        """Find a literal."""
        at = self.data.find(needle, self.start, self.stop)
        while at >= 0:
            at = self.data.find(needle, self._take(at), self.stop)

    def pattern(self, octet: int, needles: tuple[bytes, ...], at: int) -> None:
        """Find literals that hold an octet by a pattern that begins with it."""
        search = _pattern(octet, needles).search
        hit = search(self.data, at, self.stop)
        while hit:
            hit = search(self.data, self._take(hit.start()), self.stop)

    def stops(self, octet: int, needles: tuple[bytes, ...]) -> None:
        """Find literals by stopping at an octet, while it is as rare as it seemed."""
        data, stop = self.data, self.stop
        one = bytes((octet,))
        places = [(needle, needle.index(octet)) for needle in needles]
        left = (stop - self.start) // OCTETS_A_STOP
        at = data.find(one, self.start, stop)
        while at >= 0:
            after = at + 1
            for needle, place in places:
                if at - place >= self.start and data.startswith(
                    needle, at - place, stop
                ):
                    after = self._take(at)
                    break
            left -= 1
            if left < 0:
                self.pattern(octet, needles, after)
                return
            at = data.find(one, after, stop)

    def _take(self, at: int) -> int:
        """Add the line that a place is in, and return where the next one begins."""
        begin = max(self.start, self.data.rfind(b"\n", self.start, at) + 1)
        if self.returns:
            begin = max(begin, self.data.rfind(b"\r", begin, at) + 1)
        self.found.add(begin)
        return line_end(self.data, at, self.stop, returns=self.returns) + 1


def line_starts(
    data: bytes, start: int, stop: int, needles: Sequence[bytes], *, returns: bool
) -> set[int]:
    """Return where the lines begin that hold a needle, between two places.

    ``start`` is where a line begins. ``returns`` says that a carriage return ends a line
    too.
    """
    returns = returns and data.find(b"\r", start, stop) >= 0
    search = Search(data, start, stop, returns, set())
    rest = list(needles)
    if stop - start >= LEAST_SAMPLED:
        counts = _counts(_sample(data, start, stop), needles)
        for octet in sorted(counts, key=counts.__getitem__):
            if counts[octet] > MOST_FOR_STOPS:
                break
            if group := _holding(octet, rest):
                search.stops(octet, group)
                rest = [needle for needle in rest if needle not in group]
        while best := _shared(counts, rest):
            octet, shared = best
            search.pattern(octet, shared, start)
            rest = [needle for needle in rest if needle not in shared]
    for needle in rest:
        search.literal(needle)
    return search.found


def line_end(data: bytes, at: int, stop: int, *, returns: bool) -> int:
    """Return where the line ends that ``at`` is in: its terminator, or ``stop``."""
    end = data.find(b"\n", at, stop)
    if end < 0:
        end = stop
    if returns:
        other = data.find(b"\r", at, end)
        if other >= 0:
            return other
    return end


def long_line(data: bytes, start: int, stop: int, most: int, *, returns: bool) -> int:
    """Return where the first line longer than ``most`` begins, ``stop`` if none does."""
    while stop - start > most:
        end = data.rfind(b"\n", start, start + most + 1)
        if end < 0 and returns:
            end = data.rfind(b"\r", start, start + most + 1)
        if end < 0:
            return start
        start = end + 1
    return stop


def _holding(octet: int, needles: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the needles that hold an octet."""
    return tuple(needle for needle in needles if octet in needle)


def _shared(
    counts: dict[int, int], needles: Sequence[bytes]
) -> tuple[int, tuple[bytes, ...]] | None:
    """Return the rare octet that most needles hold, with these; None if none pays."""
    best: tuple[int, tuple[bytes, ...]] | None = None
    for octet, count in counts.items():
        if count > MOST_FOR_PATTERN:
            continue
        group = _holding(octet, needles)
        pays = len(group) > 1 or any(len(needle) < LONG_NEEDLE for needle in group)
        if pays and (best is None or len(group) > len(best[1])):
            best = octet, group
    return best


def _sample(data: bytes, start: int, stop: int) -> bytes:
    """Return some octets of all parts of a piece."""
    step = (stop - start) // SAMPLES
    begins = range(start, stop - step + 1, step)
    return b"".join(data[at : at + SAMPLE_OCTETS] for at in begins)


def _counts(sample: bytes, needles: Iterable[bytes]) -> dict[int, int]:
    """Return how often the sample holds each octet of the needles."""
    return {octet: sample.count(octet) for octet in sorted(set(b"".join(needles)))}


@lru_cache(maxsize=256)
def _pattern(octet: int, needles: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Return a pattern that begins with an octet that all needles hold."""
    parts = []
    for needle in needles:
        place = needle.index(octet) + 1
        before, behind = re.escape(needle[:place]), re.escape(needle[place:])
        parts.append(b"(?<=" + before + b")" + behind)
    return re.compile(re.escape(bytes((octet,))) + b"(?:" + b"|".join(parts) + b")")
