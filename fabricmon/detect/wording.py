"""Words that findings share: subjects, times and lengths for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fabricmon.model import PortId, PortInfo, Subject
from fabricmon.summaries import span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799.0  # the end of the year 9999
_SHORT = 10.0  # below so many seconds a tenth matters: jobs die of seven


def subject_of(info: PortInfo) -> Subject:
    """Return a port as the subject of a finding."""
    return Subject(
        device=info.id.device,
        port=info.id.port,
        rail=info.rail,
        netdev=info.netdev,
        leaf=info.leaf,
    )


def clock(wall: float) -> str:
    """Return the time of day of a Unix time: ``10:04:11Z``."""
    moment = _EPOCH + timedelta(seconds=min(max(0.0, wall), _LAST))
    return f"{moment:%H:%M:%S}Z"


def lasting(seconds: float) -> str:
    """Return the length of an outage: ``4.2 s``, ``12 s``, ``3 min``."""
    return f"{seconds:.1f} s" if seconds < _SHORT else span(seconds)


def port_source(port: PortId) -> str:
    """Return where the state of a port is read, in the way of `evidence.source_of`."""
    return f"infiniband/{port.device}/ports/{port.port}"
