"""Four Soft-RoCE devices on two cables, watched by the agent as a systemd service.

The service is the one that is shipped. A drop-in makes the node look as if it had
booted two days ago, since in a young boot the agent is patient with flaps, and makes
the watchdog quicker.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

from tests.vm.guest.lab import Lab, get, install, shell, write

LOG = Path("/run/agent.log")
CONFIG = Path("/etc/fabricmon/fabricmon.yaml")
DROP_IN = """\
[Service]
BindReadOnlyPaths=/run/uptime:/proc/uptime
WatchdogSec=10
RestartSec=1
"""
HARDWARE_SECONDS = 5
"""How often the agent reads hw_counters."""


def main() -> None:
    """Run the scenario; exit with a message if the agent cannot be started."""
    said = shell("rxe-up")
    install_service()
    follower = subprocess.Popen(
        ["/bin/sh", "-c", f"exec journalctl -qfu fabricmon -o cat -n all >{LOG}"]
    )
    lab = Lab(LOG)
    lab.step("start", "systemctl start fabricmon", rxe_up=said)
    began = time.monotonic()
    said = shell("systemctl start fabricmon; systemctl status fabricmon")
    lab.step("started", "systemctl returned", took=time.monotonic() - began, said=said)
    if not lab.wait(("agent_ready", "", ""), since="start", seconds=90):
        sys.exit(f"the agent did not start:\n{LOG.read_text()[-2000:]}")
    lab.look("start")
    lose_packets(lab)
    lab.look("lossy")
    break_links(lab)
    lab.look("down")
    mend_links(lab)
    change_devices(lab)
    lab.look("renamed")
    misconfigure(lab)
    hang(lab)
    lab.look("restarted")
    stop(lab)
    follower.terminate()


def install_service() -> None:
    """Install what a package would: unit, user, configuration."""
    install()
    write("/etc/systemd/system/fabricmon.service.d/test.conf", DROP_IN)
    write("/run/uptime", "200000.00 300000.00\n")
    shell("cp /share/systemd/fabricmon.service /etc/systemd/system/")
    shell("cp /share/systemd/fabricmon.sysusers /usr/lib/sysusers.d/fabricmon.conf")
    shell("systemd-sysusers fabricmon.conf; systemctl daemon-reload")
    write(str(CONFIG), Path("/share/systemd/fabricmon.yaml").read_text())


def wait_for_listener() -> None:
    """Wait until somebody listens at the tool's port, 18515 (0x4853)."""
    for _ in range(150):
        lines = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        if re.search(r":4853 \S+ 0A ", lines):
            return
        time.sleep(0.2)


def traffic(words: str) -> str:
    """Send messages between rxe0 and rxe1, both ways; return what the tool said."""
    command = f"timeout 60 ibv_rc_pingpong -g 1 {words}"
    with subprocess.Popen(["/bin/sh", "-c", f"exec {command} -d rxe1 >/dev/null"]):
        wait_for_listener()
        return shell(f"{command} -d rxe0 127.0.0.1; echo exit $?")


def lose_packets(lab: Lab) -> None:
    """Lose some of the packets that rxe0 sends, while there is traffic."""
    lab.step("loss", "2 % of the packets of rxe0 are lost", "rxe0", "rxe1")
    shell("tc qdisc add dev v0 root netem loss 2%")
    said = traffic("-n 100 -s 65536")
    lost = shell("tc -s qdisc show dev v0; tc qdisc del dev v0 root")
    lab.step("no loss", "the loss ends", "rxe0", "rxe1", traffic=said, netem=lost)
    time.sleep(HARDWARE_SECONDS + 1.5)


def break_links(lab: Lab) -> None:
    """Take one cable away for good, the other for a moment."""
    lab.step("down", "ip link set v0 down", "rxe0", "rxe1")
    shell("ip link set v0 down")
    time.sleep(3)  # together they would have one cause
    lab.step("blink", "v2 is down for 100 ms", "rxe2", "rxe3")
    shell("ip link set v2 down; sleep 0.1; ip link set v2 up")
    lab.wait(
        ("finding_open", "port_down", "rxe0"),
        ("finding_open", "port_down", "rxe1"),
        ("finding_open", "port_flap", "rxe2"),
        ("finding_open", "port_flap", "rxe3"),
        since="down",
        seconds=30,
    )


def mend_links(lab: Lab) -> None:
    """Give a device another name while its port is down, then plug the cable in."""
    lab.step("rename down", "rdma dev set rxe1 name roce1", "rxe1", "roce1")
    shell("rdma dev set rxe1 name roce1")
    lab.until(lambda: exports("roce1"), 15)
    lab.step("up", "ip link set v0 up", "rxe0", "rxe1", "roce1")
    shell("ip link set v0 up; rxe-wire")
    lab.wait(
        ("finding_resolved", "port_down", "rxe0"),
        ("finding_open", "port_flap", "rxe0"),
        ("finding_resolved", "port_down", "rxe1"),
        seconds=20,
    )


def change_devices(lab: Lab) -> None:
    """Give a device another name; take another one away for a moment."""
    lab.step("rename", "rdma dev set rxe2 name mlx5_7", "rxe2", "mlx5_7")
    shell("rdma dev set rxe2 name mlx5_7")
    lab.step("delete", "rdma link delete rxe3", "rxe3")
    shell("rdma link delete rxe3")
    lab.wait(("finding_open", "device_missing", "rxe3"), seconds=20)
    lab.step("add", "rdma link add rxe3", "rxe3")
    shell("rdma link add rxe3 type rxe netdev v3")
    lab.until(lambda: exports("rxe3") and exports("mlx5_7"), 15)
    time.sleep(HARDWARE_SECONDS + 1.5)


def exports(device: str) -> bool:
    """Tell whether the agent exports the state of a device."""
    return f'state_id{{device="{device}"' in get("/metrics")["body"]


def misconfigure(lab: Lab) -> None:
    """Reload with a configuration that is wrong, then with one that is right."""
    right = CONFIG.read_text()
    lab.step("wrong reload", "systemctl reload with a misspelt key")
    CONFIG.write_text(f"{right}\nlink_state:\n  down_secnds: 3\n")
    shell("systemctl reload fabricmon")
    lab.wait(("configuration_refused", "", ""), seconds=10)
    lab.step("refused", "afterwards", **healthy())
    CONFIG.write_text(f"{right}\nlink_state:\n  down_seconds: 11\n")
    lab.step("right reload", "systemctl reload with a changed threshold")
    shell("systemctl reload fabricmon")
    lab.wait(("configuration_loaded", "", ""), seconds=10)
    lab.step("taken", "afterwards", **healthy())


def hang(lab: Lab) -> None:
    """Stop the process as a hang would; the watchdog ends it."""
    lab.step("hang", "SIGSTOP", pid=show("MainPID"))
    shell("systemctl kill --kill-whom=main -s STOP fabricmon")
    lab.wait(("agent_ready", "", ""), seconds=60)
    lab.step("restarted", "afterwards", **healthy())
    time.sleep(HARDWARE_SECONDS + 1.5)


def stop(lab: Lab) -> None:
    """Stop the service."""
    lab.step("stop", "systemctl stop fabricmon")
    began = time.monotonic()
    shell("systemctl stop fabricmon")
    took = round(time.monotonic() - began, 2)
    lab.step("stopped", "systemctl returned", took=took, result=show("Result"))
    lab.wait(("agent_stopped", "", ""), since="stop", seconds=3)
    journal = shell("journalctl -qu fabricmon -o short-unix --no-pager")
    lab.step("end", "", journal=journal)


def healthy() -> dict[str, object]:
    """Return what systemd and the agent say about the agent."""
    return {
        "healthz": get("/healthz")["status"],
        "state": show("ActiveState"),
        "restarts": show("NRestarts"),
        "pid": show("MainPID"),
        "status": show("StatusText"),
    }


def show(name: str) -> str:
    """Return a property of the unit."""
    return shell(f"systemctl show fabricmon -P {name}").strip()


if __name__ == "__main__":
    main()
