"""What one finding tells of a port that flapped: every flap of its hold time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from fabricmon.detect.downs import Down


class FlapAccount(Struct, frozen=True):
    """Flaps that are told as one; times are monotonic, Unix seconds where saved.

    The first one was at ``onset``, between ``low`` and ``high``. ``unseen`` tells that
    a counter told of several at once. ``worst`` and ``downtime`` are seconds, None
    where no outage was measured.
    """

    onset: float
    low: float
    high: float
    told_at: float
    times: int
    loud: bool
    unseen: bool = False
    worst: float | None = None
    downtime: float | None = None

    def moved(self, offset: float) -> FlapAccount:
        """Return the same with its times moved by ``offset`` seconds."""
        return structs.replace(
            self,
            onset=self.onset + offset,
            low=self.low + offset,
            high=self.high + offset,
            told_at=self.told_at + offset,
        )

    def goes_on(self, newer: FlapAccount, hold_seconds: float) -> bool:
        """Tell whether newer flaps belong to the finding of these.

        What had a harmless reason is not held against the port later.
        """
        held = newer.told_at - self.told_at < hold_seconds
        return held and (self.loud or not newer.loud)

    def joined(self, newer: FlapAccount) -> FlapAccount:
        """Return both as one."""
        worst = _known(self.worst, newer.worst)
        downtime = _known(self.downtime, newer.downtime)
        return structs.replace(
            self,
            told_at=newer.told_at,
            times=self.times + newer.times,
            unseen=self.unseen or newer.unseen,
            worst=max(worst, default=None),
            downtime=sum(downtime) if downtime else None,
        )


def account_of(
    downs: Sequence[Down], outages: Sequence[float], now: float, *, loud: bool
) -> FlapAccount:
    """Return what is new: these downs, with the seconds that their outages took."""
    first = downs[0]
    return FlapAccount(
        onset=first.at,
        low=first.low,
        high=first.high,
        told_at=now,
        times=sum(down.times for down in downs),
        loud=loud,
        unseen=any(down.times > 1 for down in downs),
        worst=max(outages, default=None),
        downtime=sum(outages) if outages else None,
    )


def _known(*seconds: float | None) -> list[float]:
    return [each for each in seconds if each is not None]
