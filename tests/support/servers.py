"""Start real server programs on the loopback interface, and end exactly those."""

import contextlib
import itertools
import os
import random
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.support.programs import require

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOOPBACK = "127.0.0.1"

# Below the range from which the kernel picks ports for outgoing connections, so
# that a port that was free stays free until the server has bound it.
_PORTS = itertools.count(random.SystemRandom().randrange(15_000, 29_000))


def free_port() -> int:
    """Return a TCP port on which nothing listens."""
    for port in _PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    raise AssertionError("unreachable: the count never ends")


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Return once the condition holds; fail when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def accepts(port: int) -> bool:
    """Tell whether something accepts TCP connections on a loopback port."""
    with contextlib.suppress(OSError):
        socket.create_connection((LOOPBACK, port), timeout=1).close()
        return True
    return False


def answers(url: str) -> bool:
    """Tell whether a GET of the URL succeeds."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as reply:
        return bool(reply.status == 200)
    return False


class Server:
    """One server program that can be started, stopped, killed and started again.

    Attributes:
        port: The loopback port that it serves.
        log: The file that holds what it printed, over all its starts.
    """

    def __init__(
        self, command: list[str], port: int, log: Path, ready: Callable[[], bool]
    ) -> None:
        # The kernel ends the child should the test process die before it can.
        setpriv = shutil.which("setpriv")
        guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        self.port = port
        self.log = log
        self._command = [*guard, *command]
        self._name = Path(command[0]).name
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of its web interface."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        """The process, which must be running."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait until it serves."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._serves, START_SECONDS, f"{self._name} serves")
        return self

    def _serves(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"{self._name} ended:\n{self.log.read_text()[-2000:]}")
        return self._ready()

    def stop(self) -> None:
        """Ask it to end, and insist if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def mosquitto(folder: Path, extra: str = "", port: int | None = None) -> Server:
    """Prepare an MQTT broker; `extra` is added to its configuration."""
    program = require("mosquitto")
    port = port or free_port()
    config = folder / f"mosquitto-{port}.conf"
    config.write_text(
        f"listener {port} {LOOPBACK}\nallow_anonymous true\npersistence false\n"
        f"log_dest stdout\n{extra}\n"
    )
    command = [program, "-c", os.fspath(config)]
    return Server(command, port, config.with_suffix(".log"), lambda: accepts(port))


def prometheus(folder: Path, config: str = "") -> Server:
    """Prepare a Prometheus with the given configuration and its own store."""
    program = require("prometheus")
    port = free_port()
    file = folder / f"prometheus-{port}.yml"
    file.write_text(config or "global: {}\n")
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / f'prometheus-{port}'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--web.enable-lifecycle",
        "--log.level=warn",
    ]
    url = f"http://{LOOPBACK}:{port}/-/ready"
    return Server(command, port, file.with_suffix(".log"), lambda: answers(url))


def alertmanager(folder: Path, config: str = "") -> Server:
    """Prepare an Alertmanager without cluster, with the given configuration."""
    program = require("prometheus-alertmanager")
    port = free_port()
    file = folder / f"alertmanager-{port}.yml"
    file.write_text(config or "route: {receiver: none}\nreceivers: [{name: none}]\n")
    command = [
        program,
        f"--config.file={file}",
        f"--storage.path={folder / f'alertmanager-{port}'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    url = f"http://{LOOPBACK}:{port}/-/ready"
    return Server(command, port, file.with_suffix(".log"), lambda: answers(url))
