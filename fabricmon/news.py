"""What came in between two judgements."""

from __future__ import annotations

from fabricmon.model import LinkEvent, LinkStatus, LogEvent, Move, NetdevStatus
from fabricmon.value import Value


class News(Value, frozen=True):
    """What has come in since the last judgement, each sample once."""

    statuses: tuple[LinkStatus, ...]
    netdevs: tuple[NetdevStatus, ...]
    events: tuple[LinkEvent, ...]
    moves: tuple[Move, ...]
    log_events: tuple[LogEvent, ...]
