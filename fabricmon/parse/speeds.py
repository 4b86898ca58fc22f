"""Lane speeds of InfiniBand, as every tool calls them in its own way."""

from __future__ import annotations

from fabricmon.parse.words import Rate
from fabricmon.value import Value


class LaneSpeed(Value, frozen=True):
    """One speed: its name, Gb/s that a lane carries, Gb/s on the wire, verbs code.

    ``gbps`` is what the kernel multiplies with the lanes for the file ``rate``.
    """

    name: str
    gbps: float
    signalling: float
    code: int


SPEEDS = (
    LaneSpeed("SDR", 2.5, 2.5, 1),
    LaneSpeed("DDR", 5.0, 5.0, 2),
    LaneSpeed("QDR", 10.0, 10.0, 4),
    LaneSpeed("FDR10", 10.0, 10.3125, 8),
    LaneSpeed("FDR", 14.0, 14.0625, 16),
    LaneSpeed("EDR", 25.0, 25.78125, 32),
    LaneSpeed("HDR", 50.0, 53.125, 64),
    LaneSpeed("NDR", 100.0, 106.25, 128),
    LaneSpeed("XDR", 200.0, 212.5, 256),
)
_BY_NAME = {speed.name: speed for speed in SPEEDS}
_BY_CODE = {speed.code: speed for speed in SPEEDS}
_BY_SIGNALLING = {speed.signalling: speed for speed in SPEEDS}


def by_name(name: str) -> LaneSpeed | None:
    """Return the speed called NDR, ndr or IB-NDR."""
    return _BY_NAME.get(name.upper().removeprefix("IB-"))


def by_code(code: int | None) -> LaneSpeed | None:
    """Return the speed with this number in the verbs interface."""
    return None if code is None else _BY_CODE.get(code)


def by_signalling(gbps: float | None) -> LaneSpeed | None:
    """Return the speed with so many Gb/s on the wire of one lane."""
    return None if gbps is None else _BY_SIGNALLING.get(gbps)


def rate_of(width: int | None, speed: LaneSpeed | None) -> Rate:
    """Return the rate of so many lanes of a speed, as far as both are known."""
    if speed is None:
        return Rate(None, width, None)
    return Rate(None if width is None else width * speed.gbps, width, speed.name)
