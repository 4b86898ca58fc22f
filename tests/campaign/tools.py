"""A tool of the node that hangs, is not there, lies, or never stops talking."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene
from tests.support.agent import AgentProcess, Json, in_own_mounts

COMMANDS = "host/live_command.py"
LEAN_MIB = 110  # what an agent of four ports takes, and room for 40 MiB
GROUND = """mkdir -p ROOT/kept
mount --bind ROOT/sys ROOT/kept
mount --rbind /sys ROOT/sys
for part in class devices bus; do
  if [ -d ROOT/kept/$part ]; then mount --bind ROOT/kept/$part ROOT/sys/$part; fi
done
for known in /usr/sbin/ibstat /sbin/ibstat /usr/bin/ibstat; do
  if [ -x $known ]; then mount --bind /dev/null $known; fi
done"""
"""The tree below a /sys of the kernel's: the agent takes it for this very node."""


def _start(scene: Scene, script: str | None, seconds: float = 1) -> AgentProcess:
    """Start an agent that may run tools so long, with this one in place of ibstat."""
    folder = scene.folder / "bin"
    folder.mkdir()
    if script is not None:
        tool = folder / "ibstat"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    config: Json = {
        "deadlines": {"command_seconds": seconds, "command_retry_seconds": 1},
        "periods": {"ibstat_seconds": 2, "kmsg_seconds": 60},
    }
    ground = GROUND.replace("ROOT", str(scene.node.root))
    agent = scene.make(config, in_own_mounts(ground))
    return scene.begin(agent, PATH=f"{folder}:/usr/bin:/bin")


def _told(scene: Scene, errno: str) -> None:
    """Wait for an error of the tool; ports are what the files say they are."""

    def found() -> bool:
        errors = scene.agent.check()["errors"]
        return any(e.get("tool") == "ibstat" and e["errno"] == errno for e in errors)

    scene.until(found, f"{errno} is told")
    scene.verdict("mlx5_1", "healthy")


def _counted(scene: Scene) -> None:
    """Wait until what the tool said is counted as wrong."""
    scene.above('read_errors_total{errno="other",source="ibstat"}', 0)
    scene.verdict("mlx5_1", "healthy")


def hung(scene: Scene) -> None:
    """Let the tool and a child of it sleep for ever."""
    mark = scene.folder / "child"
    _start(scene, f"sleep 987 & echo $! >>{mark}; wait")
    _told(scene, "ETIMEDOUT")
    child = mark.read_text().split()[0]
    scene.until(lambda: not Path(f"/proc/{child}").exists(), "its child is ended")


def absent(scene: Scene) -> None:
    agent = _start(scene, None)
    scene.polls_on()
    scene.value('source_success{source="ibstat"}', None)
    assert [e for e in agent.check()["errors"] if "ibstat" in str(e)] == []


def garbage(scene: Scene) -> None:
    _start(scene, "head -c 20000 /dev/urandom; head -c 100 /dev/zero >&2")
    _counted(scene)


def endless(scene: Scene) -> None:
    """Let the tool print as fast as it can until it is ended, some seconds later."""
    scene.memory_mib = LEAN_MIB
    _start(scene, "exec cat /dev/zero", seconds=5)
    _told(scene, "ETIMEDOUT")


def liar(scene: Scene) -> None:
    """Let the tool list devices with names and numbers that none have."""
    text = (
        "CA '../../etc/passwd'\\n\\tNumber of ports: 99999999999999999999\\n"
        "\\tPort 99999999999999999999:\\n\\t\\tState: \\033[2JActive\\n"
        "CA 'mlx5_0'\\n\\tNumber of ports: 2\\n\\tPort 1:\\n\\t\\tState: Active\\n"
    )
    _start(scene, f'printf "{text}"')
    _counted(scene)


def failing(scene: Scene) -> None:
    _start(scene, "echo 'ibpanic: [1] main: stat of IB device failed' >&2; exit 255")
    _counted(scene)


FAULTS = (
    Fault(
        "tool-hangs",
        "ibstat and its child never end",
        "ETIMEDOUT told, both ended, ports as the files say",
        Guard(
            COMMANDS,
            "        os.killpg(process.pid, signal.SIGKILL)",
            "        os.kill(process.pid, signal.SIGKILL)",
        ),
        hung,
    ),
    Fault(
        "tool-absent",
        "there is no ibstat",
        "no error: the files say it all",
        Guard(
            "sources/ibstat.py",
            "return () if output.errno in MISSING else",
            "return () if not output.errno else",
        ),
        absent,
    ),
    Fault(
        "tool-garbage",
        "ibstat prints random octets",
        "told as an answer without a port, no crash",
        Guard(
            "parse/ibstat.py",
            "    if not ports and not errors:\n",
            "    if ports and not errors:\n",
        ),
        garbage,
    ),
    Fault(
        "tool-endless",
        "ibstat prints without end",
        "ETIMEDOUT told, no more than 1 MiB of it kept",
        Guard(
            COMMANDS,
            "        self.kept += chunk[:room]\n",
            "        self.kept += chunk\n",
        ),
        endless,
    ),
    Fault(
        "tool-lies",
        "ibstat lists devices, ports and states that cannot be",
        "told as incomplete, ports as the files say",
        Guard(
            "parse/ibstat.py",
            "        if promised is not None and listed < promised:\n",
            "        if promised is not None and listed < 0:\n",
        ),
        liar,
    ),
    Fault(
        "tool-fails",
        "ibstat ends with status 255 and a message",
        "the message is told, ports as the files say",
        Guard(
            "sources/ibstat.py",
            "        return () if driverless else errors\n",
            "        return ()\n",
        ),
        failing,
    ),
)
