"""Driver statistics of network devices, as ``ethtool -S`` shows them.

Each call takes the kernel's RTNL lock. It answers for our own network namespace.
"""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from array import array
from collections.abc import Callable

from fabricmon.host.live_files import failure
from fabricmon.host.protocol import ReadError, Statistic

# From <linux/sockios.h> and <linux/ethtool.h>.
_SIOCETHTOOL = 0x8946
_GSTRINGS = 0x1B
_GSTATS = 0x1D
_GSSET_INFO = 0x37
_SS_STATS = 1
_NAME_BYTES = 32
_VALUE_BYTES = 8

_IFREQ = struct.Struct("=16sQ16x")  # name, address of the command's buffer
_SET_INFO = struct.Struct("=IIQI")  # command, reserved, mask of string sets, count
_STRINGS = struct.Struct("=III")  # command, string set, count; names follow
_STATISTICS = struct.Struct("=II")  # command, count; values follow

MOST_STATISTICS = 65_536
"""More is no device: the largest have about 10,000."""

_LONGEST_NAME = 15

# Kernels write as many as there are now, most of them whatever was asked for: room
# for queues that are added between asking how many and asking for them.
_SPARE_STATISTICS = 8_192


class DriverStatistics:
    """Asks drivers for their statistics; one thread may use it at a time.

    The names of a device are asked for once, and again when their number changes;
    devices with equal names share them.
    """

    def __init__(self, call: Callable[[str, array[int]], None] | None = None) -> None:
        """Use ``call(netdev, buffer)`` in place of the kernel, for tests."""
        self._call = call or _Ioctl()
        self._names: dict[str, tuple[str, ...]] = {}

    def read(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Return all statistics of a device, in the driver's order.

        EOPNOTSUPP: the driver has none. ENODEV: no such device. EFBIG: too many.
        EAGAIN: their number changed meanwhile.
        """
        try:
            count = self._count(netdev)
            if count > MOST_STATISTICS:
                return failure(errno.EFBIG)
            names = self._names.get(netdev, ())
            if len(names) != count:
                names = self._names[netdev] = self._share(
                    self._ask_names(netdev, count)
                )
            values = self._ask_values(netdev, count)
        except OSError as error:
            self._names.pop(netdev, None)
            return failure(error.errno)
        if len(values) != len(names):
            del self._names[netdev]
            return failure(errno.EAGAIN)
        return tuple(map(Statistic, names, values))

    def forget(self, netdev: str) -> None:
        """Drop the names of a device that is gone."""
        self._names.pop(netdev, None)

    def close(self) -> None:
        """Let go of the kernel."""
        if isinstance(self._call, _Ioctl):
            self._call.close()

    def _share(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return next((known for known in self._names.values() if known == names), names)

    def _count(self, netdev: str) -> int:
        buffer = array("B", _SET_INFO.pack(_GSSET_INFO, 0, 1 << _SS_STATS, 0))
        self._call(netdev, buffer)
        _, _, mask, count = _SET_INFO.unpack(buffer)
        if not mask & 1 << _SS_STATS:
            raise OSError(errno.EOPNOTSUPP, "no driver statistics")
        return int(count)

    def _ask_names(self, netdev: str, count: int) -> tuple[str, ...]:
        buffer = _room(_STRINGS.pack(_GSTRINGS, _SS_STATS, count), _NAME_BYTES, count)
        self._call(netdev, buffer)
        _, _, told = _STRINGS.unpack_from(buffer)
        packed = buffer.tobytes()[_STRINGS.size :]
        ends = range(_NAME_BYTES, (min(told, count) + 1) * _NAME_BYTES, _NAME_BYTES)
        return tuple(_text(packed[end - _NAME_BYTES : end]) for end in ends)

    def _ask_values(self, netdev: str, count: int) -> array[int]:
        buffer = _room(_STATISTICS.pack(_GSTATS, count), _VALUE_BYTES, count)
        self._call(netdev, buffer)
        _, told = _STATISTICS.unpack_from(buffer)
        end = _STATISTICS.size + min(told, count) * _VALUE_BYTES
        return array("Q", buffer[_STATISTICS.size : end].tobytes())


def _room(head: bytes, size: int, count: int) -> array[int]:
    return array("B", head + bytes(size * (count + _SPARE_STATISTICS)))


def _text(name: bytes) -> str:
    """Return a name up to its zero byte; drivers may write any byte."""
    return name.partition(b"\0")[0].decode("latin-1").strip()


class _Ioctl:
    """The kernel's door for ethtool commands."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def __call__(self, netdev: str, buffer: array[int]) -> None:
        name = netdev.encode("utf-8", "surrogateescape")
        if len(name) > _LONGEST_NAME or not name or b"\0" in name:
            raise OSError(errno.ENODEV, "no such network device")
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        request = _IFREQ.pack(name, buffer.buffer_info()[0])
        fcntl.ioctl(self._socket, _SIOCETHTOOL, request)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
