"""Link events of a trace, derived from what its network devices say of themselves.

As rtnetlink tells them: one event for a change, with the state after it. A step of
the kernel's carrier counters alone is a flap that was over before anyone looked: an
event, too, with the state as it stands.
"""

from __future__ import annotations

from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import TraceRecord
from fabricmon.host.tree import Tree
from fabricmon.model import LinkEvent
from fabricmon.value import Value

NETDEVS = "/sys/class/net"

_COUNTERS = ("carrier_changes", "carrier_up_count", "carrier_down_count")
_FILES = ("carrier", "operstate", *_COUNTERS)
_ENDS = tuple(f"/{name}" for name in _FILES)
_NOT_UP = frozenset({b"down", b"lowerlayerdown", b"notpresent"})


class _Carrier(Value, frozen=True):
    """What one network device says; equal means that nothing happened."""

    up: bool | None
    operstate: bytes
    counters: tuple[bytes | ReadError, ...]


class CarrierWatch:
    """Compares the network devices of a tree with what they were."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: dict[str, _Carrier] = {}
        self._moving = False

    def up(self, netdev: str) -> bool | None:
        """Tell whether a device was up at the last look, None if it did not say."""
        known = self._known.get(netdev)
        return None if known is None else known.up

    def concerns(self, record: TraceRecord) -> bool:
        """Tell whether a record may change a network device."""
        if record.deleted or record.link or record.dir:
            return True
        changes = (record.set, record.ramp, record.err)
        return any(path.endswith(_ENDS) for paths in changes for path in paths)

    @property
    def is_moving(self) -> bool:
        """Tell whether a carrier counter moves by itself, so that looking is due."""
        return self._moving

    def look(self, now: float) -> list[LinkEvent]:
        """Return what changed since the last look."""
        self._moving = False
        names = self._tree.names(NETDEVS)
        before, self._known = self._known, {}
        events = []
        for name in names if isinstance(names, tuple) else ():
            carrier = self._known[name] = self._carrier(name, now)
            if carrier != before.pop(name, None):
                events.append(LinkEvent(now, name, up=carrier.up))
        gone = (LinkEvent(now, name, up=None, gone=True) for name in sorted(before))
        return [*gone, *events]

    def _carrier(self, netdev: str, now: float) -> _Carrier:
        paths = [f"{NETDEVS}/{netdev}/{name}" for name in _FILES]
        carrier, operstate, *counters = self._tree.read_many(paths, now)
        self._moving = self._moving or any(
            (file := self._tree.file(path)) is not None and file.content is None
            for path in paths[len(_FILES) - len(_COUNTERS) :]
        )
        word = operstate.strip() if isinstance(operstate, bytes) else b""
        return _Carrier(_is_up(carrier, word), word, tuple(counters))


def _is_up(carrier: bytes | ReadError, operstate: bytes) -> bool | None:
    """Judge as rtnetlink's flags would: enabled, with carrier, operational."""
    if operstate in _NOT_UP:
        return False
    if isinstance(carrier, bytes):
        return carrier.strip() == b"1"
    if carrier.errno != "ENOENT":  # EINVAL while it is switched off
        return False
    return True if operstate == b"up" else None
