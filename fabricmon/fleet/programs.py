"""Prometheus and promtool as child processes that end with whoever started them."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabricmon.errors import AbsentError, HostError

LOOPBACK = "127.0.0.1"
PACKAGE = "prometheus"
"""Debian package of both programs."""

START_SECONDS = 60.0
"""A data folder with many blocks takes a while on a busy machine."""
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.02
_LAST_OCTETS = 2000
_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/opt/prometheus")


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the two programs are."""

    prometheus: str
    promtool: str


def find_programs() -> Programs:
    """Return where the programs are; raises `AbsentError` where one is not."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    found = {name: shutil.which(name, path=path) for name in ("prometheus", "promtool")}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        raise AbsentError(
            f"{' and '.join(missing)} not installed (Debian: apt-get install {PACKAGE})"
        )
    return Programs(str(found["prometheus"]), str(found["promtool"]))


def create_blocks(programs: Programs, text: Path, data: Path) -> None:
    """Turn a file in OpenMetrics into blocks of a data folder; raises `HostError`."""
    command = [programs.promtool, "tsdb", "create-blocks-from", "--quiet"]
    command += ["openmetrics", os.fspath(text), os.fspath(data)]
    ended = subprocess.run(  # noqa: S603 - a fixed program, no shell
        _guarded(command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    )
    if ended.returncode != 0:
        said = " ".join((ended.stderr or ended.stdout).split())[-_LAST_OCTETS:]
        raise HostError(f"promtool does not take {text}: {said}")


@contextmanager
def prometheus(
    programs: Programs,
    data: Path,
    config: Path,
    lookback_seconds: float,
    consoles: Path,
) -> Iterator[int]:
    """Run a Prometheus on a data folder; yields its port on the loopback interface.

    It scrapes nothing and evaluates nothing by itself. Raises `HostError` where it
    does not start.
    """
    port = _free_port()
    log = config.with_suffix(".log")
    command = [
        programs.prometheus,
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",  # what is replayed may be old
        f"--query.lookback-delta={round(lookback_seconds * 1000)}ms",
        "--query.max-samples=500000000",
        "--query.timeout=10m",
        f"--web.listen-address={LOOPBACK}:{port}",
        f"--web.console.templates={consoles}",
        "--log.level=warn",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - a fixed program, no shell
            _guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(process, port, log)
        yield port
    finally:
        _end(process)


def _guarded(command: list[str]) -> list[str]:
    """Let the kernel end the child, should this process be killed."""
    guard = shutil.which("setpriv")
    return [guard, "--pdeathsig", "KILL", "--", *command] if guard else command


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not _is_ready(port):
        status = process.poll()
        if status is not None or time.monotonic() > end:
            said = log.read_text("utf-8", "replace").strip()[-_LAST_OCTETS:]
            what = "is not ready" if status is None else f"ended with {status}"
            raise HostError(f"prometheus {what}: {said}")
        time.sleep(_POLL_SECONDS)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
