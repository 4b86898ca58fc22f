"""The gate in the image, with the configuration and the mounts of the chart."""

import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.gate.gates import alert, notification
from tests.support import pod
from tests.support.chart import Chart, chart
from tests.support.chart_profiles import PROFILES, merged
from tests.support.image import Image
from tests.support.servers import LOOPBACK, free_port, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOKEN = "0123456789abcdef0123456789abcdef"
NAME = "fabricmon-gate"


class GatePod:
    """The gate's pod, as the chart describes it."""

    def __init__(self, helm: Chart, image: Image, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "log"
        values = merged(PROFILES["gate"], {"gate": {"port": self.port}})
        (self._container,) = helm.gate_pod(values)["containers"]
        config, token = folder / "config", folder / "token"
        self.journal, scratch = folder / "journal", folder / "tmp"
        for path in (config, token, self.journal, scratch):
            path.mkdir(mode=0o755)
        for path in (self.journal, scratch):
            shutil.chown(path, pod.USER, pod.USER)
        maps = {e["metadata"]["name"]: e["data"] for e in helm.all("ConfigMap", values)}
        (config / "gate.yaml").write_text(maps[NAME]["gate.yaml"])
        (token / "token").write_text(TOKEN + "\n")
        self._sources = {
            "config": config,
            "token": token,
            "journal": self.journal,
            "tmp": scratch,
        }
        self._root = folder / "root"
        shutil.copytree(image.root, self._root, symlinks=True)
        for mount in self._container["volumeMounts"]:  # as a runtime does
            (self._root / mount["mountPath"][1:]).mkdir(exist_ok=True)
        temporary = Path(tempfile.gettempdir())
        for path in (folder, *folder.parents):
            if temporary in path.parents:
                path.chmod(0o755)  # pytest keeps its folders from other users
        self._environment = dict(line.split("=", 1) for line in image.config["Env"])
        self._process: subprocess.Popen[bytes] | None = None

    def words(self, *command: str) -> list[str]:
        """Return what runs a command in such a pod."""
        reads: dict[str, Path] = {}
        writes: dict[str, Path] = {}
        for mount in self._container["volumeMounts"]:
            kind = reads if mount.get("readOnly") else writes
            kind[mount["mountPath"]] = self._sources[mount["name"]]
        return pod.command(self._root, command, reads, writes, self._environment)

    def start(self) -> None:
        """Start it as the kubelet does; wait until the probe succeeds."""
        command = (*self._container["command"], *self._container["args"])
        self._process = pod.start(self.words(*command), self.log)
        wait_until(self._is_ready, 30, "the gate is ready")

    def post(self, body: bytes, **headers: str) -> int:
        """Send a notification; return the status of the answer."""
        url = f"http://{LOOPBACK}:{self.port}/alerts"
        try:
            request = urllib.request.Request(url, body, headers)
            with urllib.request.urlopen(request, timeout=20) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def ask(self, *words: str) -> str:
        """Run a command in the pod, as `kubectl exec` does; return what it printed."""
        log = self.log.with_name("asked")
        log.unlink(missing_ok=True)
        assert pod.start(self.words("fabricmon", "gate", *words), log).wait(60) == 0
        return log.read_text()

    def stop(self) -> tuple[float, int]:
        """Send SIGTERM as a kubelet does; return the seconds it took, and its status."""
        assert self._process is not None
        began = time.monotonic()
        subprocess.run(["kill", "-TERM", str(self.pid)], check=True)
        status = self._process.wait(30)
        self._process = None
        return time.monotonic() - began, status

    @property
    def pid(self) -> int:
        """The gate's process, as this machine numbers it."""
        assert self._process is not None
        pids = [self._process.pid]
        for pid in pids:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            pids += map(int, children.split())
        return pids[-1]

    def close(self) -> None:
        """End whatever is left."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        url = f"http://{LOOPBACK}:{self.port}/readyz"
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as reply:
            return int(reply.status) == 200
        return False


@pytest.fixture
def running(image: Image, tmp_path: Path) -> Iterator[GatePod]:
    """Return a gate that is ready."""
    pod.require_pods(image.root)
    made = GatePod(chart(), image, tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_is_restricted(running: GatePod) -> None:
    """It runs without root, capability, new privilege, or a root to write to."""
    status = Path(f"/proc/{running.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())

    assert fields["Uid"].split() == [str(pod.USER)] * 4
    assert int(fields["CapEff"], 16) == 0
    assert fields["NoNewPrivs"].strip() == "1"


def test_takes_findings_and_keeps_them(running: GatePod) -> None:
    """Who has the token is heard; the journal is in its mount, for the next pod."""
    told = notification(alert())
    known = {"Authorization": f"Bearer {TOKEN}"}

    assert running.post(told) == 401
    assert running.post(told, **known) == 200
    first = running.ask("journal", "--format", "json").splitlines()
    running.stop()
    running.start()
    after = running.ask("journal", "--format", "json").splitlines()

    assert [json.loads(line)["what"] for line in first][:1] == ["taken"]
    assert after[: len(first)] == first
    assert (running.journal / "journal.sqlite").exists()


def test_ends_in_time(running: GatePod) -> None:
    """A pod that is deleted is gone within 2 s, with success, and without errors."""
    seconds, status = running.stop()
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]

    assert status == 0
    assert seconds < 2
    assert [x for x in lines if x["level"] in {"error", "critical"}] == []
