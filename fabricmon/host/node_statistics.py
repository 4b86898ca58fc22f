"""Driver statistics of a traced node's network devices, as ``ethtool -S``."""

from __future__ import annotations

from fabricmon.host.carrier import NETDEVS
from fabricmon.host.protocol import ReadError, Statistic
from fabricmon.host.trace import ETHTOOL, MAX_NUMBER, Ramp, TraceRecord
from fabricmon.host.tree import ImpossibleError, Tree, attempt


class _Moving:
    """A number that moves since ``since``; a new record only when it has moved."""

    __slots__ = ("_ramp", "_seen", "_since")

    def __init__(self, name: str, ramp: Ramp, since: float) -> None:
        self._ramp = ramp
        self._since = since
        self._seen = Statistic(name, ramp.value)

    def at(self, now: float) -> Statistic:
        value = self._ramp.value_after(now - self._since)
        if value != self._seen.value:
            self._seen = Statistic(self._seen.name, value)
        return self._seen


class DriverStatistics:
    """Statistics by network device, in the order in which they were first named."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._netdevs: dict[str, dict[str, Statistic | _Moving]] = {}

    def apply(self, record: TraceRecord) -> list[str]:
        """Change what a record names; return what could not be used."""
        complaints: list[str] = []
        for netdev, figures in record.ethtool.items():
            if figures is None:
                self._netdevs.pop(netdev, None)
                continue
            self._netdevs.setdefault(netdev, {})
            changes = ((n, netdev, f, record.t) for n, f in figures.items())
            complaints += attempt(self._put, changes)
        return complaints

    def read(self, netdev: str, now: float) -> tuple[Statistic, ...] | ReadError:
        """Return all statistics of a device as they are at ``now``.

        EOPNOTSUPP: it has none. ENODEV: no such device. Else what ``err`` says.
        """
        error = self._tree.error(ETHTOOL + netdev)
        if error is not None:
            return error
        figures = self._netdevs.get(netdev)
        if figures is None:
            exists = self._tree.is_folder(f"{NETDEVS}/{netdev}")
            return ReadError("EOPNOTSUPP" if exists else "ENODEV")
        return tuple(
            figure if isinstance(figure, Statistic) else figure.at(now)
            for figure in figures.values()
        )

    def whole(self, now: float) -> dict[str, dict[str, int | Ramp] | None]:
        """Return all statistics of all devices as they are at ``now``."""
        return {
            netdev: {
                name: (
                    figure if isinstance(figure, Statistic) else figure.at(now)
                ).value
                for name, figure in figures.items()
            }
            for netdev, figures in self._netdevs.items()
        }

    def _put(self, name: str, netdev: str, figure: int | Ramp, at: float) -> None:
        if isinstance(figure, int):
            if abs(figure) > MAX_NUMBER:
                raise ImpossibleError("a number that no counter can hold")
            self._netdevs[netdev][name] = Statistic(name, figure)
            return
        if not figure.is_possible:
            raise ImpossibleError("numbers that no counter can hold")
        self._netdevs[netdev][name] = _Moving(name, figure, at)
