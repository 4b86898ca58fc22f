"""The .deb, from its installation to its purge, on a node with two cables.

The state folder is a tmpfs, as on nodes without disks. A drop-in makes the node look
as if it had booted two days ago, and the watchdog quicker.
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.vm.guest.lab import Lab, check, get, shell, write

LOG = Path("/run/agent.log")
CONFIG = Path("/etc/fabricmon/fabricmon.yaml")
GATE = "http://127.0.0.1:9881/alerts"
FIRST, NEXT = sorted(Path("/share/debs").glob("*.deb"))
DROP_IN = """\
[Service]
BindReadOnlyPaths=/run/uptime:/proc/uptime
WatchdogSec=10
RestartSec=1
"""


def main() -> None:
    """Run the scenario; exit with a message if the agent does not start."""
    said = shell("rxe-up; mkdir /var/lib/fabricmon")
    shell("mount -t tmpfs -o mode=0755 tmpfs /var/lib/fabricmon")
    write("/etc/systemd/system/fabricmon.service.d/test.conf", DROP_IN)
    write("/run/uptime", "200000.00 300000.00\n")
    subprocess.Popen(
        ["/bin/sh", "-c", f"exec journalctl -qfu fabricmon -o cat -n all >{LOG}"]
    )
    lab = Lab(LOG)
    lab.step("install", "dpkg -i", rxe_up=said)
    installed = dpkg(f"-i {FIRST}")
    if not lab.wait(("agent_ready", "", ""), seconds=90):
        sys.exit(f"{installed}\n{shell('systemctl status fabricmon')}")
    lab.step("installed", "it is ready", said=installed, **service())
    fail(lab)
    configure(lab)
    hang(lab)
    gate(lab)
    replace(lab, "upgrade", NEXT)
    replace(lab, "rollback", FIRST)
    stop(lab)
    disable(lab)
    purge(lab)


def dpkg(words: str) -> str:
    """Run dpkg; return what it said, and its exit status at the end."""
    # The disk is thrown away, so that nothing needs to be safe on it.
    command = f"dpkg --force-unsafe-io {words}"
    return shell(f"DEBIAN_FRONTEND=noninteractive {command}; echo exit $?", 300)


def fail(lab: Lab) -> None:
    """Take a cable away, so that there is something to remember."""
    lab.step("down", "ip link set v2 down", "rxe2", "rxe3")
    shell("ip link set v2 down")
    lab.wait(
        ("finding_open", "port_down", "rxe2"),
        ("finding_open", "port_down", "rxe3"),
        seconds=30,
    )
    lab.step("found", "what is open", findings=findings())


def configure(lab: Lab) -> None:
    """Change the configuration, as an administrator does, and reload."""
    CONFIG.write_text(f"{CONFIG.read_text()}\nlink_state:\n  down_seconds: 11\n")
    lab.step("reload", "systemctl reload with a changed threshold", **service())
    shell("systemctl reload fabricmon")
    lab.wait(("configuration_loaded", "", ""), seconds=20)
    lab.step("reloaded", "afterwards", **service())


def hang(lab: Lab) -> None:
    """Stop the process as a hang would; the watchdog ends it."""
    lab.step("hang", "SIGSTOP", **service())
    shell("systemctl kill --kill-whom=main -s STOP fabricmon")
    lab.wait(("agent_ready", "", ""), seconds=60)
    lab.step("restarted", "afterwards", **service())


def gate(lab: Lab) -> None:
    """Look at the gate as it was installed, start it, and send it an alert."""
    lab.step("gate installed", "as dpkg left it", **gate_service())
    said = shell("systemctl start fabricmon-gate; echo exit $?", 60)
    lab.step(
        "gate started", "systemctl start", said=said, taken=tell(), **gate_service()
    )


def tell() -> str:
    """Send the gate a notification without alerts; return how it answers."""
    body = json.dumps({"version": "4", "status": "firing", "alerts": []}).encode()
    try:
        with urllib.request.urlopen(GATE, body, timeout=20) as reply:
            return str(reply.status)
    except OSError as error:
        return str(error)


def gate_service() -> dict[str, object]:
    """Return what systemd says about the gate's service, and what it keeps."""
    unit = "fabricmon-gate"
    return {
        "state": shell(f"systemctl show {unit} -P ActiveState").strip(),
        "enabled": shell(f"systemctl is-enabled {unit}").strip(),
        "pid": shell(f"systemctl show {unit} -P MainPID").strip(),
        "user": shell(f"systemctl show {unit} -P User").strip(),
        "owner": shell("stat -c '%U %a' /var/lib/fabricmon-gate 2>&1").strip(),
        "kept": shell("ls -A /var/lib/fabricmon-gate 2>/dev/null").split(),
        "exposure": shell(f"systemd-analyze security --no-pager {unit} | tail -1"),
    }


def replace(lab: Lab, name: str, package: Path) -> None:
    """Install another build over the one that runs."""
    lab.step(name, f"dpkg -i {package.name}", **service())
    said = dpkg(f"-i {package}")
    lab.wait(("agent_ready", "", ""), seconds=60)
    notes = {"said": said, "findings": findings(), **service()}
    notes["gate"] = gate_service()
    lab.step(f"{name} done", "afterwards", **notes)


def findings() -> list[str]:
    """Return the ids of what is open, as soon as the agent has looked around."""
    document = json.loads(check()["out"])
    return sorted(each["id"] for each in document["findings"])


def stop(lab: Lab) -> None:
    """Stop the service."""
    lab.step("stop", "systemctl stop fabricmon")
    began = time.monotonic()
    shell("systemctl stop fabricmon")
    took = round(time.monotonic() - began, 2)
    lab.wait(("agent_stopped", "", ""), since="stop", seconds=3)
    lab.step("stopped", "systemctl returned", took=took, result=show("Result"))


def disable(lab: Lab) -> None:
    """Disable the service; what an upgrade runs must leave it so."""
    shell("systemctl disable fabricmon")
    said = shell("sh /var/lib/dpkg/info/fabricmon.postinst configure 0.1.0-1")
    lab.step("disabled", "configured once more", said=said, **service())


def purge(lab: Lab) -> None:
    """Remove the package, then what it keeps."""
    said = dpkg("-r fabricmon")
    gone = gate_service()
    lab.step("removed", "dpkg -r", said=said, left=left(), gate=gone, **service())
    said = dpkg("-P fabricmon")
    journal = shell("journalctl -qu fabricmon -o short-unix --no-pager")
    lab.step("purged", "dpkg -P", said=said, left=left(), journal=journal, **service())


def left() -> list[str]:
    """Return what still lies around, without what the scenario put there."""
    places = "/etc /opt /run /usr /var"
    found = shell(
        f"find {places} -path '*fabricmon*' -not -path '/run/systemd/*' "
        "-not -path '*/fabricmon.service.d*' 2>/dev/null"
    )
    return sorted(found.splitlines())


def service() -> dict[str, object]:
    """Return what systemd, dpkg and the kernel say about the service."""
    pid = show("MainPID")
    maps = shell(f"cat /proc/{pid}/maps") if pid != "0" else ""
    return {
        "healthz": get("/healthz")["status"],
        "state": show("ActiveState"),
        "enabled": shell("systemctl is-enabled fabricmon").strip(),
        "restarts": show("NRestarts"),
        "pid": pid,
        "status": show("StatusText"),
        "user": shell(f"stat -c %U /proc/{pid}").strip(),
        "version": shell("dpkg-query -W -f '${Version}' fabricmon"),
        "files": sorted(set(re.findall(r"/\S+$", maps, re.MULTILINE))),
        "configured": "down_seconds: 11" in (shell(f"cat {CONFIG}")),
        "exposure": shell("systemd-analyze security --no-pager fabricmon | tail -1"),
        "state_files": shell("ls -A /var/lib/fabricmon").split(),
    }


def show(name: str) -> str:
    """Return a property of the unit."""
    return shell(f"systemctl show fabricmon -P {name}").strip()


if __name__ == "__main__":
    main()
