"""Real agents on trees of files: `fabricmon run` as a process, from start to end."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest

from fabricmon.runtime.socket import NAME, ask
from tests.manifest import SYSFS, lay_out
from tests.support.programs import MISSING, require
from tests.support.servers import LOOPBACK, free_port, wait_until

Json = dict[str, Any]

START_SECONDS = 60.0
STOP_SECONDS = 10.0
NODE = SYSFS / "sysfs-h100-ndr-bond.manifest"
CLASS = "sys/class/infiniband"
POLL_SECONDS = 0.2

# Everything is read five times a second, and nothing is waited for: what takes a
# minute on a node takes a second here.
FAST: Json = {
    "periods": dict.fromkeys(
        (
            *("devices_seconds", "identity_seconds", "boot_seconds", "pci_seconds"),
            *("state_seconds", "state_without_netdev_seconds", "link_detail_seconds"),
            *("errors_seconds", "traffic_seconds", "hardware_seconds"),
            "outages_seconds",
            *("netdev_seconds", "maintenance_seconds", "link_events_seconds"),
        ),
        POLL_SECONDS,
    ),
    "deadlines": {"read_seconds": 1.0},
    "link_state": {
        "down_seconds": 0.3,
        "reload_seconds": 0,
        "boot_down_seconds": 0,
        "boot_grace_seconds": 0,
        "driver_grace_seconds": 0,
        "flap_merge_seconds": 0.1,
        "settling_seconds": 0,
    },
}


def merged(*trees: Json) -> Json:
    """Return one configuration of several, key by key, the last one wins."""
    whole: Json = {}
    for tree in trees:
        for key, value in tree.items():
            known = whole.get(key)
            both = isinstance(known, dict) and isinstance(value, dict)
            whole[key] = merged(known or {}, value) if both else value
    return whole


class Node:
    """A tree of files that stands for a node; its files change whole, as in sysfs."""

    def __init__(self, folder: Path, manifest: Path | None = NODE) -> None:
        self.root = folder / "root"
        self._spare = folder / "spare"
        self._spare.mkdir()
        self.root.mkdir()
        if manifest is not None:
            lay_out(manifest, self.root)
        if manifest == NODE:  # one of its counters stands at its ceiling
            self.put(self.port("mlx5_1", "counters/link_downed"), "0\n")
        self.put("proc/uptime", "8640000.00 8640000.00\n")
        self.put("proc/sys/kernel/random/boot_id", "b0071d\n")

    def port(self, device: str, file: str) -> str:
        """Name a file of port 1 of a device."""
        return f"{CLASS}/{device}/ports/1/{file}"

    def put(self, path: str, text: str) -> None:
        """Let a file hold this from now on."""
        new = self._spare / "new"
        new.write_text(text, encoding="utf-8")
        self._replace(path, new)

    def link(self, path: str, target: str) -> None:
        """Put a link in a file's place: reads of it go to, and fail as, its target."""
        new = self._spare / "new"
        new.symlink_to(target)
        self._replace(path, new)

    def hang(self, path: str) -> None:
        """Let whoever opens a file hang: it is a pipe that nobody writes to."""
        new = self._spare / "new"
        os.mkfifo(new)
        self._replace(path, new)

    def release(self, path: str) -> None:
        """Let whoever hangs in a file go on, with an empty read."""
        os.close(os.open(self.root / path, os.O_WRONLY | os.O_NONBLOCK))

    def remove(self, path: str) -> None:
        """Take a file, a link or a folder away."""
        place = self.root / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def state(self, device: str, text: str, phys_state: str = "5: LinkUp") -> None:
        """Let port 1 of a device be in this state, such as ``1: DOWN``."""
        self.put(self.port(device, "phys_state"), f"{phys_state}\n")
        self.put(self.port(device, "state"), f"{text}\n")

    def _replace(self, path: str, new: Path) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        new.replace(place)


class Supervisor:
    """The end of `NOTIFY_SOCKET`: keeps each message with the time it came."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "notify.sock")
        self.messages: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def times(self, start: str) -> list[float]:
        """Return when messages came that begin so."""
        return [at for at, text in tuple(self.messages) if text.startswith(start)]

    def close(self) -> None:
        """Stop listening."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.path)
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while message := self._socket.recv(4096):
            self.messages.append((time.monotonic(), message.decode()))


class AgentProcess:
    """`fabricmon run` on the node in a folder.

    ``prefix`` is a command that runs another one, such as `setpriv`; ``name`` tells
    several agents of one node apart.
    """

    def __init__(
        self,
        folder: Path,
        config: Json | None = None,
        prefix: Sequence[str] = (),
        name: str = "agent",
    ) -> None:
        own = folder / name
        own.mkdir()
        self.root = folder / "root"
        self.config_file = own / "fabricmon.yaml"
        self.run_folder = own / "run"
        self.state_folder = own / "state"
        self.log_file = own / "log"
        self.port = free_port()
        self.started = 0.0
        self.supervisor = Supervisor(own)
        self._prefix = list(prefix)
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}
        self.run_folder.mkdir(exist_ok=True)
        self.configure(config or {})

    # Its life

    def configure(self, config: Json) -> None:
        """Write the configuration; the agent takes it at its start or on SIGHUP."""
        base = {
            "node": "node01",
            "root": str(self.root),
            "run_folder": str(self.run_folder),
            "state_folder": str(self.state_folder),
            "listen": {"metrics": f"{LOOPBACK}:{self.port}", "page": None},
        }
        tree = merged(FAST, base, config)
        self.config_file.write_text(json.dumps(tree, indent=1), encoding="utf-8")

    def start(self, *, ready: bool = True, **environment: str) -> Self:
        """Start it; wait until it says that it is ready."""
        # The kernel ends the child should the test process die before it can.
        setpriv = shutil.which("setpriv")
        guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        own = [sys.executable, "-m", "fabricmon", "run", "--config"]
        command = [*guard, *self._prefix, *own, str(self.config_file)]
        notify = {"NOTIFY_SOCKET": self.supervisor.path}
        readies = len(self.supervisor.times("READY=1"))
        self.started = time.monotonic()
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | notify | environment,
            )
        if ready:
            wait_until(
                lambda: (
                    self._lives() and len(self.supervisor.times("READY=1")) > readies
                ),
                START_SECONDS,
                "the agent is ready",
            )
        return self

    @property
    def pid(self) -> int:
        """The process, which must have been started."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> float:
        """Ask it to end; return how long that took. Fails on any status but 0."""
        begun = time.monotonic()
        self.signal(signal.SIGTERM)
        status = self.wait(STOP_SECONDS)
        assert status == 0, self.log_file.read_text()[-2000:]
        return time.monotonic() - begun

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.signal(signal.SIGKILL)
        self.wait(STOP_SECONDS)

    def wait(self, seconds: float) -> int:
        """Wait for its end and return its exit status."""
        assert self._process is not None
        status = self._process.wait(seconds)
        self._process = None
        return status

    def close(self) -> None:
        """End whatever is left."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        self.supervisor.close()

    def _lives(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"it ended:\n{self.log_file.read_text()[-2000:]}")
        return True

    # What it says

    def get(self, path: str) -> str:
        """Return what it serves at a path; raises `OSError` for an error status."""
        url = f"http://{LOOPBACK}:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            text: bytes = reply.read()
        return text.decode()

    def metrics(self) -> dict[str, float]:
        """Return every series by its text without the prefix of the name."""
        lines = self.get("/metrics").splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {
            series.removeprefix("fabricmon_"): float(value)
            for series, _, value in samples
        }

    def metric(self, series: str) -> float | None:
        """Return the value of one series, None if there is no such."""
        return self.metrics().get(series)

    def check(self) -> Json:
        """Return what it answers `fabricmon check`."""
        answer = ask(f"{self.run_folder}/{NAME}", {"ask": "check"}, 10)
        assert answer is not None, self.log_file.read_text()[-2000:]
        document: Json = json.loads(answer)
        return document

    def port_object(self, device: str) -> Json:
        """Return what it answers about port 1 of a device."""
        return next(p for p in self.check()["ports"] if p["device"] == device)

    def findings(self, kind: str) -> list[Json]:
        """Return the open findings of a kind."""
        return [f for f in self.check()["findings"] if f["kind"] == kind]

    def lines(self, event: str | None = None) -> list[Json]:
        """Return what it logged, or the lines of one event; each is an object."""
        found: list[Json] = [
            json.loads(line) for line in self.log_file.read_bytes().splitlines()
        ]
        return [line for line in found if event is None or line["event"] == event]

    def until(
        self, condition: Callable[[], object], what: str, seconds: float = 30.0
    ) -> None:
        """Wait until a condition holds, as long as the agent lives."""
        wait_until(lambda: self._lives() and bool(condition()), seconds, what)


def without_privileges() -> list[str]:
    """Return what runs a command so that a folder's mode counts, also for root."""
    return [require("setpriv"), "--bounding-set=-dac_override,-dac_read_search", "--"]


def on_own_disk(mount: str, folder: Path) -> list[str]:
    """Return the same for a script that mounts something at ``{}``, and may fill it."""
    script = mount.replace("{}", str(folder)).replace("full", "full 2>&- || true")
    return in_own_mounts(script)


def in_own_mounts(script: str) -> list[str]:
    """Return what runs a command after a script in a mount namespace of its own.

    What the script mounts is gone with the command. Skips where that is forbidden.
    """
    own = [require("unshare"), "--mount"]
    if os.geteuid() != 0:
        own += ["--user", "--map-root-user"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"{MISSING}right to make a mount namespace")
    return [*own, "sh", "-c", f'set -e; {script}; exec "$@"', "sh"]
