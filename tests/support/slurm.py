"""A real Slurm of one node: its controller and its daemon, which runs jobs as root."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import find, require
from tests.support.servers import LOOPBACK, Server, accepts, free_port

SECONDS = 30
"""For one command of Slurm; its daemons take turns on a busy machine."""

_TOOLS = ("sinfo", "scontrol", "sbatch")
_PLUGINS = ("auth/none", "cred/none")  # munge would be a third daemon


class Slurm:
    """One node that is up, and whose scripts are those that are given."""

    def __init__(
        self, folder: Path, node: str, scripts: Path, tools: Path, health: int
    ) -> None:
        """Prepare, or skip; in ``tools`` are Slurm's commands from then on.

        The health check runs every ``health`` seconds.
        """
        if os.geteuid() != 0:
            pytest.skip("slurmd runs as root")
        self._node = node
        self._folder = folder
        self._file = folder / "slurm.conf"
        self._ports = free_port(), free_port()
        for name in ("state", "spool"):
            (folder / name).mkdir()
        auth, cred = _PLUGINS
        self._file.write_text(
            "\n".join(
                (
                    "ClusterName=test",
                    "SlurmctldHost=localhost",
                    f"SlurmctldPort={self._ports[0]}",
                    f"SlurmdPort={self._ports[1]}",
                    f"AuthType={auth}",
                    f"CredType={cred}",
                    "SlurmUser=root",
                    "SlurmdUser=root",
                    f"StateSaveLocation={folder}/state",
                    f"SlurmdSpoolDir={folder}/spool",
                    f"SlurmctldPidFile={folder}/slurmctld.pid",
                    f"SlurmdPidFile={folder}/slurmd.pid",
                    f"SlurmdLogFile={folder}/slurmd.log",
                    f"SlurmctldLogFile={folder}/slurmctld.log",
                    "ProctrackType=proctrack/pgid",
                    "TaskPlugin=task/none",
                    "SelectType=select/linear",
                    "MailProg=/bin/true",
                    "ReturnToService=1",
                    f"HealthCheckProgram={scripts}/healthcheck.sh",
                    f"HealthCheckInterval={health}",
                    "HealthCheckNodeState=ANY,CYCLE",
                    f"Prolog={scripts}/prolog.sh",
                    "PrologFlags=Alloc",
                    f"Epilog={scripts}/epilog.sh",
                    f"NodeName={node} NodeHostname=localhost NodeAddr={LOOPBACK}",
                    f"PartitionName=all Nodes={node} Default=YES State=UP",
                    "",
                )
            )
        )
        for name in _TOOLS:
            tool = tools / name
            tool.write_text(
                f'#!/bin/sh\nSLURM_CONF={self._file} exec {require(name)} "$@"\n'
            )
            tool.chmod(0o755)
        self._tools = tools
        self._servers = [
            self._daemon("slurmctld", self._ports[0]),
            self._daemon("slurmd", self._ports[1], "-N", node),
        ]

    def _daemon(self, name: str, port: int, *words: str) -> Server:
        env = find("env") or "env"
        command = [env, f"SLURM_CONF={self._file}", require(name), "-D", *words]
        log = self._folder / f"{name}.out"
        return Server(command, port, log, lambda: accepts(port))

    def start(self) -> None:
        """Start both daemons."""
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        """End both."""
        for server in reversed(self._servers):
            server.stop()

    def node(self) -> tuple[str, str]:
        """Return state and reason of the node as Slurm has them."""
        said = self.run("sinfo", "--noheader", "--Node", "--format=%T|%E")
        state, _, reason = said.strip().partition("|")
        return state, reason

    def update(self, *words: str) -> None:
        """Change the node as an administrator does."""
        self.run("scontrol", "update", f"nodename={self._node}", *words)

    def submit(self, command: str) -> str:
        """Submit a job; return its number."""
        out = self._folder / "job.out"
        words = ("--parsable", f"--output={out}", f"--wrap={command}")
        return self.run("sbatch", *words).strip()

    def job(self, number: str) -> str:
        """Return what Slurm says of a job, empty where it has forgotten it."""
        return self.run("scontrol", "show", "job", number)

    def run(self, tool: str, *words: str) -> str:
        """Run a command of Slurm."""
        done = subprocess.run(
            [str(self._tools / tool), *words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout
