"""Ask the kubelet which devices its pods have: one gRPC call over its socket.

A gRPC client library is ten times the size of this agent, for one call without
arguments. A unary call is a few HTTP/2 frames (RFC 9113): the preface, headers that need no
compression (RFC 7541, 6.2.2) and an empty message; of the answer only DATA counts, so
no header is ever decoded. Nothing is written to the kubelet but this question.
"""

from __future__ import annotations

import errno
import socket
import struct
import time

from fabricmon.host.live_files import failure
from fabricmon.host.protocol import ReadError

CALL = "/v1.PodResourcesLister/List"
"""The method; v1 since Kubernetes 1.20."""

MOST_BYTES = 16 << 20
"""What the kubelet's own clients take at most."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_ACK = END_STREAM = 1
_END_HEADERS = 4
_PADDED = 8
_INITIAL_WINDOW = 4  # the setting's number
_STREAM = 1
_FRAME_HEAD = 9
_MESSAGE_HEAD = 5  # compressed or not, and four bytes of length
_HEADER_FIELDS = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", CALL),
    (":authority", "localhost"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
)


def pod_resources(path: str, seconds: float) -> bytes | ReadError:
    """Return the answer's message, undecoded; ETIMEDOUT after ``seconds``.

    EPROTO where the kubelet refuses, or is no kubelet.
    """
    deadline = time.monotonic() + seconds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(seconds)
            link.connect(path)
            link.sendall(_question())
            return _Answer(link, deadline).message()
    except TimeoutError:
        return failure(errno.ETIMEDOUT)
    except OSError as error:
        return failure(error.errno or errno.EPROTO)  # a path too long has none
    except ValueError:  # no HTTP/2
        return failure(errno.EPROTO)


class _Answer:
    """Reads frames until the message is there."""

    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link = link
        self._deadline = deadline
        self._read = bytearray()

    def message(self) -> bytes | ReadError:
        body = bytearray()
        while True:
            kind, flags, stream, payload = self._frame()
            if kind == _DATA and stream == _STREAM:
                body += _unpadded(payload, flags)
                if len(body) > MOST_BYTES:
                    return failure(errno.EFBIG)
                whole = _message(body)
                if whole is not None:
                    return whole
                self._grant(len(payload))
            elif kind == _SETTINGS and not flags & _ACK:
                self._link.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _PING and not flags & _ACK:
                self._link.sendall(_frame(_PING, _ACK, 0, payload))
            elif kind in {_RESET, _GOAWAY}:
                return failure(errno.EPROTO)
            if kind in {_DATA, _HEADERS} and flags & END_STREAM:
                return failure(errno.EPROTO)  # refused: the reason is in the trailers

    def _grant(self, size: int) -> None:
        """Let the kubelet send as much again."""
        if size:
            grant = struct.pack(">I", size)
            both = _frame(_WINDOW, 0, 0, grant) + _frame(_WINDOW, 0, _STREAM, grant)
            self._link.sendall(both)

    def _frame(self) -> tuple[int, int, int, bytes]:
        head = self._take(_FRAME_HEAD)
        size = int.from_bytes(head[:3], "big")
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        return head[3], head[4], stream, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._link.settimeout(left)
            piece = self._link.recv(1 << 16)
            if not piece:
                raise ValueError("the connection ended early")
            self._read += piece
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken


def _question() -> bytes:
    fields = b"".join(
        b"\0" + _text(name) + _text(value) for name, value in _HEADER_FIELDS
    )
    window = struct.pack(">HI", _INITIAL_WINDOW, MOST_BYTES)
    return b"".join(
        (
            _PREFACE,
            _frame(_SETTINGS, 0, 0, window),
            _frame(_HEADERS, _END_HEADERS, _STREAM, fields),
            _frame(_DATA, END_STREAM, _STREAM, bytes(_MESSAGE_HEAD)),
        )
    )


def _text(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()  # all are shorter than 127 bytes


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def _unpadded(payload: bytes, flags: int) -> bytes:
    if not flags & _PADDED:
        return payload
    padding = payload[0] if payload else len(payload)
    if padding >= len(payload):
        raise ValueError("a frame that is shorter than its padding")
    return payload[1 : len(payload) - padding]


def _message(body: bytearray) -> bytes | None:
    """Return the one message once it is whole; ValueError if it is compressed."""
    if len(body) < _MESSAGE_HEAD:
        return None
    if body[0]:
        raise ValueError("a compressed message, which was not asked for")
    end = _MESSAGE_HEAD + int.from_bytes(body[1:_MESSAGE_HEAD], "big")
    return bytes(body[_MESSAGE_HEAD:end]) if len(body) >= end else None
