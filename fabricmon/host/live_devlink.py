"""Health reporters of PCI devices, as the kernel gives them (``devlink health``).

Generic netlink, unprivileged, of our own network namespace only. The kernel answers
from memory and asks no firmware, but takes the lock of the device: while a driver
recovers a device, the question waits.
"""

from __future__ import annotations

import errno
import socket
import struct

from fabricmon.host.netlink_message import HEADER, attributes, messages, packed
from fabricmon.model import HealthReporter

# From <linux/netlink.h>, <linux/genetlink.h> and <linux/devlink.h>.
_NETLINK_GENERIC = 16
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_GENL_ID_CTRL = 16
_CTRL_CMD_GETFAMILY = 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_CMD_HEALTH_REPORTER_GET = 52
_ATTR_BUS_NAME, _ATTR_DEV_NAME = 1, 2
_ATTR_HEALTH_REPORTER = 114
_ATTR_REPORTER_NAME, _ATTR_REPORTER_STATE = 115, 116

_GENERIC = struct.Struct("=BBH")  # command, version, reserved
_ERROR = struct.Struct("=i")
_FAMILY = struct.Struct("=H")

_BUS = b"pci"
_STATES = ("healthy", "error")  # enum devlink_health_reporter_state
_MOST_BYTES = 64 * 1024
_MOST_ANSWERS = 256  # datagrams of one dump: a device has some ten reporters
_ANSWER_SECONDS = 5.0
"""The kernel answers before the request returns; only a lost answer is waited for."""


def family_request(sequence: int) -> bytes:
    """Return the question for the number of the devlink family."""
    name = packed(_CTRL_ATTR_FAMILY_NAME, b"devlink\0")
    return _message(_GENL_ID_CTRL, _NLM_F_REQUEST, _CTRL_CMD_GETFAMILY, name, sequence)


def health_request(family: int, address: str, sequence: int) -> bytes:
    """Return the question for the reporters of a PCI device.

    Kernels before 6.6 give those of every device.
    """
    body = packed(_ATTR_BUS_NAME, _BUS + b"\0")
    body += packed(_ATTR_DEV_NAME, address.encode("ascii", "replace") + b"\0")
    flags = _NLM_F_REQUEST | _NLM_F_DUMP
    return _message(family, flags, _CMD_HEALTH_REPORTER_GET, body, sequence)


def _message(kind: int, flags: int, command: int, body: bytes, sequence: int) -> bytes:
    body = _GENERIC.pack(command, 1, 0) + body
    return HEADER.pack(HEADER.size + len(body), kind, flags, sequence, 0) + body


class Answers:
    """Collects the answer to one question out of datagrams."""

    def __init__(self, sequence: int) -> None:
        """Wait for the answer to this question."""
        self._sequence = sequence
        self.bodies: list[bytes] = []
        self.is_whole = False

    def take(self, datagram: bytes, *, is_dump: bool) -> None:
        """Take a datagram; raises OSError with the kernel's number if it refuses."""
        for message in messages(datagram):
            kind, body = message.kind, message.body
            if message.sequence != self._sequence:
                continue
            if kind == _NLMSG_ERROR and len(body) >= _ERROR.size:
                raise OSError(-_ERROR.unpack_from(body)[0], "the kernel refuses")
            if kind == _NLMSG_DONE:
                self.is_whole = True
            else:
                self.bodies.append(body[_GENERIC.size :])
                self.is_whole = self.is_whole or not is_dump


def family_of(bodies: list[bytes]) -> int | None:
    """Return the number of the family, None where the kernel has no devlink."""
    for body in bodies:
        value = dict(attributes(body)).get(_CTRL_ATTR_FAMILY_ID, b"")
        if len(value) >= _FAMILY.size:
            number: int = _FAMILY.unpack_from(value)[0]
            return number
    return None


def reporters_of(bodies: list[bytes], address: str) -> tuple[HealthReporter, ...]:
    """Return the reporters of one PCI device; of equal names the one in error.

    A port's reporters (``tx``, ``rx``) are told with those of the device.
    """
    found: dict[str, str] = {}
    for body in bodies:
        said = dict(attributes(body))
        place = said.get(_ATTR_BUS_NAME, b""), said.get(_ATTR_DEV_NAME, b"")
        if place != (_BUS + b"\0", address.encode("ascii", "replace") + b"\0"):
            continue
        reporter = dict(attributes(said.get(_ATTR_HEALTH_REPORTER, b"")))
        name = reporter.get(_ATTR_REPORTER_NAME, b"").rstrip(b"\0")
        state = reporter.get(_ATTR_REPORTER_STATE, b"")[:1]
        if name and state and state[0] < len(_STATES):
            text = name.decode("ascii", "replace")
            if found.get(text) != _STATES[1]:
                found[text] = _STATES[state[0]]
    return tuple(HealthReporter(name, state) for name, state in found.items())


class Reporters:
    """Asks the kernel; one thread may use it at a time."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._socket: socket.socket | None = None
        self._sequence = 0
        self._family: int | None = None
        self._has_none = False

    def read(self, address: str) -> tuple[HealthReporter, ...]:
        """Return a device's reporters; none where kernel or driver have none."""
        if self._has_none:
            return ()
        try:
            if self._family is None:
                self._family = self._find_family()
            if self._family is None:
                return ()
            sequence = self._next()
            question = health_request(self._family, address, sequence)
            return reporters_of(self._ask(question, sequence, is_dump=True), address)
        except OSError:
            self.close()  # a late answer to this question is none to the next
            return ()

    def _find_family(self) -> int | None:
        sequence = self._next()
        try:
            bodies = self._ask(family_request(sequence), sequence, is_dump=False)
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._has_none = True  # the kernel was built without it
            raise
        return family_of(bodies)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _ask(self, question: bytes, sequence: int, *, is_dump: bool) -> list[bytes]:
        if self._socket is None:
            kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
            self._socket = socket.socket(socket.AF_NETLINK, kind, _NETLINK_GENERIC)
            self._socket.settimeout(_ANSWER_SECONDS)
            self._socket.bind((0, 0))
        self._socket.send(question)
        answers = Answers(sequence)
        for _ in range(_MOST_ANSWERS):
            answers.take(self._socket.recv(_MOST_BYTES), is_dump=is_dump)
            if answers.is_whole:
                return answers.bodies
        raise OSError(errno.EMSGSIZE, "an answer without end")

    def close(self) -> None:
        """Close the socket; the next question opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
