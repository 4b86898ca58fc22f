"""The container image, built from its recipe, and the agent run in it as in a pod."""

import json
import re
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

from tests.manifest import SYSFS, lay_out
from tests.support import pod
from tests.support.image import RECIPE, Image
from tests.support.servers import LOOPBACK, free_port, wait_until
from tools.package import elf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NODE = SYSFS / "sysfs-h100-ndr-bond.manifest"
MEBIBYTES = 80
"""How large the unpacked image may be; sixty of them are the agent's package."""


class TestImage:
    def test_is_not_root(self, image: Image) -> None:
        """The image names a user that is not root, by number, as Kubernetes wants."""
        assert image.config["User"] == f"{pod.USER}:{pod.USER}"

    def test_runs_the_agent(self, image: Image) -> None:
        """Without arguments it runs the agent, and ends on SIGTERM."""
        assert image.config["Entrypoint"] == ["fabricmon"]
        assert image.config["Cmd"] == ["run"]
        assert image.config["StopSignal"] == "SIGTERM"

    def test_has_little(self, image: Image) -> None:
        """There is no shell to break into, and no more than three programs."""
        programs = {
            path.name
            for folder in ("usr/bin", "usr/sbin")
            for path in (image.root / folder).iterdir()
        }

        assert programs == {"chown", "fabricmon", "ibstat"}

    def test_is_small(self, image: Image) -> None:
        """A node pulls little."""
        files = [p for p in image.root.rglob("*") if p.is_file() and not p.is_symlink()]

        assert sum(path.stat().st_size for path in files) < MEBIBYTES << 20

    def test_has_no_special_rights(self, image: Image) -> None:
        """No file gives rights to who runs it."""
        for path in image.root.rglob("*"):
            assert not path.lstat().st_mode & 0o6000, path

    def test_has_every_library(self, image: Image) -> None:
        """Every program and library finds what it is linked with."""
        there = {path.name for path in image.root.rglob("*.so*")}
        for path in elf.files(image.root):
            assert set(elf.needs(path).libraries) <= there, path

    def test_tells_scanners(self, image: Image) -> None:
        """What an image without dpkg holds is where scanners look for it."""
        status = image.root / "var/lib/dpkg/status.d"

        assert {path.name for path in status.iterdir()} >= {"libc6", "fabricmon"}
        for path in status.iterdir():
            assert f"Package: {path.name}\n" in path.read_text()

    def test_names_no_registry(self) -> None:
        """Where the base comes from is an argument, its default without a host."""
        text = (RECIPE / "Containerfile").read_text()
        bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)

        assert bases == ["${BASE}", "scratch"]
        assert re.search(r"^ARG BASE=debian:[a-z-]+$", text, re.MULTILINE)


class Pod:
    """The agent in the image, with the mounts of the chart's DaemonSet."""

    def __init__(self, image: Image, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "log"
        host, config = folder / "host", folder / "config"
        self.state, self.run = folder / "state", folder / "run"
        for path in (host, config, self.state, self.run):
            path.mkdir(mode=0o755)
        for path in (self.state, self.run):
            shutil.chown(path, pod.USER, pod.USER)
        temporary = Path(tempfile.gettempdir())
        for path in (folder, *folder.parents):
            if temporary in path.parents:
                path.chmod(0o755)  # pytest keeps its folders from other users
        lay_out(NODE, host)
        (config / "fabricmon.yaml").write_text(
            json.dumps({"root": "/host", "listen": {"page": None}})
        )
        self.reads = {"/host/sys": host / "sys", "/etc/fabricmon": config}
        self.writes = {"/var/lib/fabricmon": self.state, "/run/fabricmon": self.run}
        self.environment = {
            **dict(line.split("=", 1) for line in image.config["Env"]),
            "FABRICMON_NODE": "'node01'",
            "FABRICMON_LISTEN__METRICS": f"'[{LOOPBACK}]:{self.port}'",
        }
        self._image = image
        self._process: subprocess.Popen[bytes] | None = None

    def words(self, *command: str) -> list[str]:
        """Return what runs a command in such a pod."""
        return pod.command(
            self._image.root, command, self.reads, self.writes, self.environment
        )

    def start(self) -> None:
        """Start the agent as the chart does; wait until the probe succeeds."""
        command = ("fabricmon", "run", "--config", "/etc/fabricmon/fabricmon.yaml")
        self._process = pod.start(self.words(*command), self.log)
        wait_until(self.is_ready, 30, "the pod is ready")

    def is_ready(self) -> bool:
        """Ask as the readiness probe does."""
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        with suppress(OSError):
            return self.get("/readyz")[0] == 200
        return False

    def get(self, path: str) -> tuple[int, str]:
        """Return status and text of what it serves."""
        url = f"http://{LOOPBACK}:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()

    @property
    def agent(self) -> int:
        """The agent's process, as this machine numbers it."""
        assert self._process is not None
        pids = [self._process.pid]
        for pid in pids:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            pids += map(int, children.split())
        return pids[-1]

    def stop(self) -> tuple[float, int]:
        """Send SIGTERM as a kubelet does; return the seconds it took, and its status."""
        assert self._process is not None
        began = time.monotonic()
        subprocess.run(["kill", "-TERM", str(self.agent)], check=True)
        status = self._process.wait(30)
        self._process = None
        return time.monotonic() - began, status

    def close(self) -> None:
        """End whatever is left."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


@pytest.fixture
def prepared(image: Image, tmp_path: Path) -> Iterator[Pod]:
    """Prepare a pod."""
    pod.require_pods(image.root)
    made = Pod(image, tmp_path)
    yield made
    made.close()


@pytest.fixture
def running(prepared: Pod) -> Pod:
    """Return a pod that is ready."""
    prepared.start()
    return prepared


class TestPod:
    def test_is_restricted(self, running: Pod) -> None:
        """The test's sandbox is what the chart asks a runtime for."""
        status = Path(f"/proc/{running.agent}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines())

        assert fields["Uid"].split() == [str(pod.USER)] * 4
        for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
            assert int(fields[name], 16) == 0, name
        assert fields["NoNewPrivs"].strip() == "1"
        assert fields["Seccomp"].strip() == "2"

    def test_sees_the_node(self, running: Pod) -> None:
        """It exports the host's devices, of which it sees /sys alone."""

        def exported() -> bool:
            _, text = running.get("/metrics")
            return 'fabricmon_infiniband_state_id{device="mlx5_0"' in text

        wait_until(exported, 30, "the host's devices are exported")
        assert running.get("/healthz")[0] == 200

    def test_answers_check(self, running: Pod) -> None:
        """`kubectl exec POD -- fabricmon check` works, without a shell."""
        log = running.log.with_name("check")
        done = pod.start(running.words("fabricmon", "check", "--format", "json"), log)

        assert done.wait(60) in {0, 1, 2, 3}
        assert json.loads(log.read_text())["ports"]

    def test_keeps_state(self, running: Pod) -> None:
        """What it must remember is in the mount, and is taken up by the next pod."""
        state = running.state / "state.msgpack"
        wait_until(state.exists, 30, "the state is saved")
        running.stop()
        running.start()

        assert "state_ignored" not in running.log.read_text()
        assert "state_unsaved" not in running.log.read_text()

    def test_ends_in_time(self, running: Pod) -> None:
        """A pod that is deleted is gone within 2 s, with success."""
        seconds, status = running.stop()

        assert status == 0, running.log.read_text()
        assert seconds < 2

    def test_writes_nowhere_else(self, running: Pod) -> None:
        """Nothing failed for want of a place to write to."""
        running.stop()
        lines = [json.loads(line) for line in running.log.read_text().splitlines()]

        assert [x for x in lines if x["level"] in {"error", "critical"}] == []
        assert not [x for x in lines if "EROFS" in json.dumps(x)]

    def test_ibstat(self, prepared: Pod) -> None:
        """The one foreign program is found and runs."""
        log = prepared.log.with_name("ibstat")

        pod.start(prepared.words("ibstat", "-V"), log).wait(60)
        assert "BUILD VERSION" in log.read_text()
