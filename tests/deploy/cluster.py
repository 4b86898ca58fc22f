"""A node of a cluster as its scripts meet it: Slurm's commands, and fabricmon's.

The commands of Slurm are stand-ins that keep what they were asked; fabricmon is the
real command on a real tree of files, with an agent or without.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricmon.runtime.socket import NAME, AgentSocket
from tests.support.agent import FAST, Node, merged
from tests.support.programs import require

Json = dict[str, Any]

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
NODE_NAME = "gpu17"
LIMIT = 3.0

_SETTINGS = "/etc/fabricmon/slurm.conf"  # the one path that the scripts have built in
_SINFO = """\
[[ -e {folder}/sinfo.hangs ]] && sleep 60
echo "$*" >>{folder}/sinfo.calls
[[ -e {folder}/sinfo.fails ]] && exit 1
cat {folder}/state
"""
_SCONTROL = """\
printf '%s\\n' "$*" >>{folder}/scontrol.calls
for word in "$@"; do
  case $word in
    state=drain) echo "draining|${{@: -1}}" | sed 's/|reason=/|/' >{folder}/state ;;
    state=resume) echo 'idle|none' >{folder}/state ;;
  esac
done
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended."""

    status: int
    out: str
    err: str


class Cluster:
    """The node, its scripts, and what they asked of Slurm."""

    def __init__(self, folder: Path) -> None:
        self.node = Node(folder)
        self.folder = folder
        self.run_folder = folder / "run"
        self.jobs = self.run_folder / "jobs"
        self.jobs.mkdir(parents=True)
        self.config = folder / "check.yaml"
        self._bin = folder / "bin"
        self._bin.mkdir()
        self.configure({})
        own = f'exec {sys.executable} -m fabricmon "$@" --config {self.config}'
        limit = '[[ " $* " == *" --exit "* ]] && set -- "$@" --timeout '
        self.command("fabricmon", f"{limit}{LIMIT:g}\n{own}\n")
        self.command("sinfo", _SINFO.format(folder=folder))
        self.command("scontrol", _SCONTROL.format(folder=folder))
        self.command("logger", "true\n")
        self.stands("idle", "none")
        self._scripts()

    def configure(self, config: Json) -> None:
        """Write the configuration of the command."""
        base = {"root": str(self.node.root), "run_folder": str(self.run_folder)}
        self.config.write_text(json.dumps(merged(FAST, base, config)))

    def command(self, name: str, text: str) -> None:
        """Put a command on the path of the scripts."""
        path = self._bin / name
        path.write_text(f"#!/bin/bash\n{text}")
        path.chmod(0o755)

    def stands(self, state: str, reason: str) -> None:
        """Let Slurm hold this of the node."""
        (self.folder / "state").write_text(f"{state}|{reason}\n")

    def settings(self, text: str) -> None:
        """Write the site's settings."""
        (self.folder / "slurm.conf").write_text(text)

    @property
    def calls(self) -> list[str]:
        """What `scontrol` was asked so far."""
        path = self.folder / "scontrol.calls"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, script: str, **environment: str) -> Ran:
        """Run a script of Slurm as `slurmd` does."""
        return self.execute([str(self.folder / "slurm" / script)], **environment)

    def execute(self, command: list[str], **environment: str) -> Ran:
        """Run a command with the commands of this node first on the path."""
        path = f"{self._bin}:{os.environ['PATH']}"
        own = {"PATH": path, "SLURMD_NODENAME": NODE_NAME, "PYTHONSAFEPATH": "1"}
        result = subprocess.run(
            command,
            env=own | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ran(result.returncode, result.stdout, result.stderr)

    @contextmanager
    def agent(self, *findings: Json, **content: object) -> Iterator[None]:
        """Let an agent answer that has these findings."""
        document = {
            "schema": "fabricmon.check/1",
            "node": NODE_NAME,
            "source": "agent",
            "verdict": "degraded" if findings else "healthy",
            "ports": [],
            "findings": list(findings),
            "errors": [],
            "jobs": [],
        } | content
        with answering(self.run_folder, json.dumps(document).encode()):
            yield

    def _scripts(self) -> None:
        """Copy the scripts; their settings lie in this node's folder."""
        require("bash")
        shutil.copytree(DEPLOY / "slurm", self.folder / "slurm")
        common = self.folder / "slurm" / "common.sh"
        text = common.read_text()
        assert text.count(_SETTINGS) == 2
        own = text.replace(_SETTINGS, str(self.folder / "slurm.conf"))
        common.write_text(own)
        self.settings(f"jobs={self.jobs}\nslurm_limit=2\n")


@contextmanager
def answering(run_folder: Path, answer: bytes) -> Iterator[None]:
    """Answer at an agent's socket, always the same."""
    bound = AgentSocket.bind(str(run_folder / NAME))
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop, debug=False) as runner:
            runner.run(bound.serve(lambda _request: answer, stop))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        bound.remove()


def finding(**changes: object) -> Json:
    """Return a finding of a port that flaps and should be drained after the job."""
    subject: Json = {"node": NODE_NAME, "device": "mlx5_4", "port": 1}
    evidence = [
        {
            "signal": "flaps",
            "value": 3,
            "unit": "flaps",
            "source": "fabricmon",
            "threshold": 3,
            "window_seconds": 10800.0,
        },
        {"signal": "downtime_seconds", "value": 41.0, "unit": "s", "source": "sysfs"},
    ]
    found: Json = {
        "schema": "fabricmon.finding/1",
        "id": "0123456789abcdef",
        "seq": 1,
        "time": "2026-01-01T00:00:00.000Z",
        "onset": "2026-01-01T00:00:00.000Z",
        "state": "open",
        "kind": "port_flapping",
        "severity": "critical",
        "role": "culprit",
        "action": "drain_after_job",
        "subject": subject,
        "evidence": evidence,
        "summary": "mlx5_4/1 flapped 3 times",
        "runbook": "docs/runbooks/port_flapping.md",
        "confidence": 1.0,
        "dry_run": False,
    }
    return found | changes


def down(**changes: object) -> Json:
    """Return a finding of a port that is down now."""
    evidence = [
        {"signal": "state", "value": "DOWN", "unit": "", "source": "sysfs"},
        {"signal": "seconds_not_active", "value": 41, "unit": "s", "source": "sysfs"},
    ]
    same: Json = {"kind": "port_down", "action": "drain_now", "evidence": evidence}
    return finding(**(same | changes))
