"""Tell systemd about readiness, reloads, liveness and the end (`sd_notify`).

Every message is one datagram. A message that does not arrive costs nothing but
itself: the daemon must not fail because its supervisor does not listen.
"""

import os
import socket
import time
from collections.abc import Mapping

_MICROSECONDS = 1_000_000


class Notifier:
    """Sends states to the supervisor, or does nothing where there is none.

    Each method returns whether the message was delivered, and never raises.

    Args:
        environ: Where systemd says how to reach it: `NOTIFY_SOCKET`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # "@" stands for the zero byte of Linux's abstract name space.
        self._address = "\0" + address[1:] if address[:1] == "@" else address

    def ready(self) -> bool:
        """Say that start-up or a reload is complete."""
        return self._send("READY=1")

    def reloading(self) -> bool:
        """Say that a reload has begun; `ready` ends it."""
        return self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> bool:
        """Say that the end has begun."""
        return self._send("STOPPING=1")

    def alive(self) -> bool:
        """Feed the watchdog."""
        return self._send("WATCHDOG=1")

    def status(self, text: str) -> bool:
        """Show one line of text in `systemctl status`."""
        return self._send("STATUS=" + " ".join(text.splitlines()))

    def _send(self, message: str) -> bool:
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)  # a full queue must not stop the loop
                channel.connect(self._address)
                channel.sendall(message.encode())
        except (OSError, ValueError):  # ValueError: a name with a zero byte in it
            return False
        return True


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return how many seconds may pass between two signs of life.

    That is half of what systemd allows. None: no watchdog, or not for this process.
    """
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        limit = int(environ.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return limit / _MICROSECONDS / 2 if limit > 0 else None
