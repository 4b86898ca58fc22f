"""The gate as a process, with a script that writes down how it was called."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from tests.support.agent import merged
from tests.support.servers import LOOPBACK, free_port, wait_until

Json = dict[str, Any]

SCRIPT = """\
#!/bin/bash
printf '%s\\0' "$@" >>{folder}/calls
printf '\\n' >>{folder}/calls
cat >>{folder}/inputs
{more}
"""

# Nothing is waited for; one action a node and hour, four nodes at a time.
QUICK: Json = {
    "caution": {"settle_seconds": 0, "budget_nodes": 4, "common_nodes": 100},
    "log": {"format": "json"},
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the gate answered."""

    status: int
    text: str


class GateProcess:
    """A gate on free ports with a state folder of its own; ends with the test."""

    def __init__(self, folder: Path, more: str = "", **config: Any) -> None:
        self.folder = folder
        self.port = free_port()
        self.file = folder / "gate.yaml"
        self.log = folder / "gate.log"
        self.script = folder / "script"
        self.write_script(more)
        self._base = merged(
            QUICK,
            {
                "listen": {"address": f"{LOOPBACK}:{self.port}"},
                "script": {"path": str(self.script)},
                "journal": {"folder": str(folder / "state")},
            },
        )
        self.context: ssl.SSLContext | None = None  # of clients, where it speaks TLS
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(**config)

    def write_script(self, more: str = "") -> None:
        """Write what the gate calls."""
        self.script.write_text(SCRIPT.format(folder=self.folder, more=more))
        self.script.chmod(0o755)

    def configure(self, **config: Any) -> None:
        """Write the configuration; ``config`` wins."""
        self.file.write_text(yaml.safe_dump(merged(self._base, config)))

    def start(self) -> Self:
        """Start it and wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command("run")],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        wait_until(self._serves, 30, "the gate is ready")
        return self

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.said()
        with suppress(OSError):
            return self.get("/readyz").status == 200
        return False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def ended(self, seconds: float = 10) -> int:
        """Return its status, once it has ended."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def url(self, path: str) -> str:
        """Return where it serves."""
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://{LOOPBACK}:{self.port}{path}"

    def get(self, path: str) -> Reply:
        """Ask it for a page."""
        return self._open(urllib.request.Request(self.url(path)))

    def post(self, body: bytes, **headers: str) -> Reply:
        """Send it a notification."""
        return self._open(urllib.request.Request(self.url("/alerts"), body, headers))

    def _open(self, request: urllib.request.Request) -> Reply:
        try:
            with urllib.request.urlopen(
                request, timeout=20, context=self.context
            ) as reply:
                return Reply(reply.status, reply.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.read().decode())

    def metric(self, name: str, labels: str = "") -> float | None:
        """Return a metric of its own."""
        text = self.get("/metrics").text
        start = f"fabricmon_gate_{name}{labels} "
        found = [line for line in text.splitlines() if line.startswith(start)]
        return float(found[0].removeprefix(start)) if found else None

    def until_metric(self, name: str, value: float, labels: str = "") -> None:
        """Wait until a metric has a value."""
        wait_until(
            lambda: self.metric(name, labels) == value,
            15,
            f"{name}{labels} is {value}, not {self.metric(name, labels)}",
        )

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command of it."""
        return subprocess.run(
            self._command(*words), capture_output=True, text=True, check=False
        )

    def journal(self) -> list[Json]:
        """Return its journal."""
        ran = self.ask("journal", "--format", "json")
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def lines(self, what: str) -> list[Json]:
        """Return the lines of the journal about something."""
        return [each for each in self.journal() if each["what"] == what]

    @property
    def calls(self) -> list[list[str]]:
        """How the script was called so far."""
        with suppress(FileNotFoundError):
            text = (self.folder / "calls").read_text()
            return [line.split("\0")[:-1] for line in text.split("\n")[:-1]]
        return []

    @property
    def inputs(self) -> list[Json]:
        """What the script was given."""
        lines = (self.folder / "inputs").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def until_calls(self, number: int) -> None:
        """Wait until the script was called so often."""
        wait_until(lambda: len(self.calls) >= number, 15, f"{number} calls")

    def said(self) -> str:
        """Return what it logged."""
        return self.log.read_text() if self.log.exists() else ""

    def _command(self, *words: str) -> list[str]:
        first, *rest = words
        start = [sys.executable, "-m", "fabricmon", "gate", first]
        return [*start, "--config", os.fspath(self.file), *rest]
