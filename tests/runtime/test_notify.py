import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricmon.runtime.notify import Notifier, watchdog_seconds


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """Listen where systemd would, under a name in the file system."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(os.fspath(tmp_path / "notify"))
        listener.settimeout(5)
        yield listener


@pytest.fixture
def notifier(systemd: socket.socket) -> Notifier:
    """Return a notifier that was told where to send."""
    return Notifier({"NOTIFY_SOCKET": systemd.getsockname()})


class TestNotifier:
    def test_ready(self, systemd: socket.socket, notifier: Notifier) -> None:
        """Readiness is one datagram."""
        assert notifier.ready()

        assert systemd.recv(100) == b"READY=1"

    def test_reloading(self, systemd: socket.socket, notifier: Notifier) -> None:
        """A reload carries the monotonic time that systemd compares with."""
        before = time.monotonic_ns() // 1000

        assert notifier.reloading()

        state, stamp = systemd.recv(100).decode().split("\n")
        assert state == "RELOADING=1"
        name, value = stamp.split("=")
        assert name == "MONOTONIC_USEC"
        assert before <= int(value) <= time.monotonic_ns() // 1000

    def test_stopping(self, systemd: socket.socket, notifier: Notifier) -> None:
        """The end is announced."""
        assert notifier.stopping()

        assert systemd.recv(100) == b"STOPPING=1"

    def test_alive(self, systemd: socket.socket, notifier: Notifier) -> None:
        """The watchdog is fed."""
        assert notifier.alive()

        assert systemd.recv(100) == b"WATCHDOG=1"

    def test_status_is_one_line(
        self, systemd: socket.socket, notifier: Notifier
    ) -> None:
        """A line break in a status cannot smuggle in another message."""
        assert notifier.status("8 ports\nSTOPPING=1")

        assert systemd.recv(100) == b"STATUS=8 ports STOPPING=1"

    def test_abstract_name(self) -> None:
        """A name that starts with @ is in the abstract name space."""
        name = f"fabricmon-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(f"\0{name}")
            listener.settimeout(5)

            assert Notifier({"NOTIFY_SOCKET": f"@{name}"}).ready()

            assert listener.recv(100) == b"READY=1"

    @pytest.mark.parametrize(
        "environ",
        [
            {},
            {"NOTIFY_SOCKET": ""},
            {"NOTIFY_SOCKET": "/nonexistent/notify"},
            {"NOTIFY_SOCKET": "vsock:2:1234"},
            {"NOTIFY_SOCKET": "/a\0b"},
            {"NOTIFY_SOCKET": "/" + "x" * 200},
        ],
    )
    def test_nobody_listens(self, environ: dict[str, str]) -> None:
        """Without a supervisor to reach, a message is dropped and nothing raised."""
        assert not Notifier(environ).ready()

    def test_full_queue(self, systemd: socket.socket, notifier: Notifier) -> None:
        """A supervisor that does not read never blocks the daemon."""
        assert not all(notifier.alive() for _ in range(10_000))

        assert systemd.recv(100) == b"WATCHDOG=1"


class TestWatchdogSeconds:
    def test_half_of_the_limit(self) -> None:
        """A sign of life is due after half of the time that systemd allows."""
        assert watchdog_seconds({"WATCHDOG_USEC": "30000000"}) == 15.0

    def test_own_process(self) -> None:
        """The watchdog applies to the process that it names."""
        environ = {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}

        assert watchdog_seconds(environ) == 1.0

    @pytest.mark.parametrize(
        "environ",
        [
            {},
            {"WATCHDOG_USEC": "0"},
            {"WATCHDOG_USEC": "-5"},
            {"WATCHDOG_USEC": "soon"},
            {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"},
        ],
    )
    def test_no_watchdog(self, environ: dict[str, str]) -> None:
        """No usable limit, or one for another process, means no watchdog."""
        assert watchdog_seconds(environ) is None
