"""What goes over one connection of the HTTP server: each step is bounded in time."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from fabricmon.sinks.http_message import END_OF_HEAD, MOST_OCTETS

_SHORTEST_SECONDS = 1e-6  # a time-out of 0 would mean something else
_CHUNK_OCTETS = 65536


def read_head(connection: socket.socket, seconds: float) -> bytes:
    """Read up to the empty line or the longest length; nothing if nothing was sent.

    Raises OSError when it does not come in time.
    """
    end = time.monotonic() + seconds
    head = b""
    while len(head) <= MOST_OCTETS and not any(mark in head for mark in END_OF_HEAD):
        connection.settimeout(max(end - time.monotonic(), _SHORTEST_SECONDS))
        received = connection.recv(MOST_OCTETS)
        if not received and head:
            message = "the client ended before its request did"
            raise ConnectionError(message)
        if not received:
            return head
        head += received
    return head


def read_body(
    connection: socket.socket, begun: bytes, length: int, seconds: float
) -> bytes:
    """Read up to a length; raises OSError when that does not come in time."""
    end = time.monotonic() + seconds
    body = bytearray(begun[:length])
    while len(body) < length:
        connection.settimeout(max(end - time.monotonic(), _SHORTEST_SECONDS))
        received = connection.recv(min(_CHUNK_OCTETS, length - len(body)))
        if not received:
            message = "the client ended before its body did"
            raise ConnectionError(message)
        body += received
    return bytes(body)


def send_all(connection: socket.socket, answer: bytes, seconds: float) -> None:
    """Send an answer whole; raises OSError when it is not taken in time.

    `sendall` of an encrypted connection would begin the time anew with every piece.
    """
    end = time.monotonic() + seconds
    left = memoryview(answer)
    while left:
        connection.settimeout(max(end - time.monotonic(), _SHORTEST_SECONDS))
        left = left[connection.send(left) :]


def take_leave(connection: socket.socket, seconds: float) -> None:
    """Close so that the answer arrives even where a body was sent that nobody read."""
    if not isinstance(connection, ssl.SSLSocket):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(seconds)
        with contextlib.suppress(OSError):
            connection.recv(MOST_OCTETS)
