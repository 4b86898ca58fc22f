"""Ten InfiniBand devices of 400 Gb/s, most of which fail, each in its own way.

The faults overlap, because most of their time is waiting. The agent has its default
configuration, and a time namespace in which the node booted two days ago: in a young
boot it would be patient, as links settle then.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from threading import Thread

from tests.vm.guest.lab import CLASS, Lab, get, install, shell, write

DEVICES = 10
NAMES = tuple(f"mlx5_{number}" for number in range(DEVICES))
LOG = Path("/run/agent.log")
CONFIG = "/etc/fabricmon/fabricmon.yaml"
UPTIME = 200_000
ERRORS_SECONDS = 5
"""How often the agent reads error counters."""
KNOBS = Path("/sys/module/fakeib/parameters/set")

DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
POLLING, DISABLED, LINK_UP = 2, 3, 5
HDR, NDR = 64, 128


def knob(number: int, name: str, value: str | int) -> None:
    """Set a counter or a property of a device; ``+N`` adds."""
    KNOBS.write_text(f"{number} 1 {name} {value}")


@contextmanager
def bit_errors(number: int, per_second: int) -> Iterator[None]:
    """Let a port's bit errors rise meanwhile."""
    stop = Flag()

    def rise() -> None:
        while not stop.wait(1):
            knob(number, "symbol_error", f"+{per_second}")

    thread = Thread(target=rise)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """Run the agent."""
    write(CONFIG, "run_folder: /run/fabricmon\nstate_folder: /run/fabricmon/state\n")
    Path("/run/fabricmon/state").mkdir(parents=True)
    old_node = ["unshare", "--time", "--boottime", str(UPTIME), "--fork"]
    with LOG.open("wb") as log:
        process = subprocess.Popen(
            [*old_node, "--kill-child", "fabricmon", "run"], stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Run the scenario; exit with a message if the agent cannot be started."""
    install()
    shell("modprobe -a ib_umad ib_uverbs")
    shell(f"insmod /share/fakeib.ko devices={DEVICES}")
    # As after weeks: these two counters can show nothing any more.
    knob(0, "link_downed", 255)
    knob(0, "symbol_error", 65535)
    for number in range(DEVICES):
        knob(number, "port_xmit_data", 10**12 + number)
        knob(number, "port_rcv_packets", 1000 + number)
        knob(number, "out_of_sequence", 7)
    knob(6, "link_downed", 3)
    lab = Lab(LOG)
    with agent() as process:
        lab.step("start", "start the agent on ten devices")
        if not lab.wait(("agent_ready", "", ""), seconds=90):
            sys.exit(f"the agent did not start:\n{LOG.read_text()[-2000:]}")
        lab.until(lambda: get("/readyz")["status"] == 200, 10)
        lab.look("start", alone=True)
        with bit_errors(5, per_second=50):
            break_all(lab)
            lab.wait(
                ("finding_update", "device_missing", "mlx5_6"),
                since="gone",
                seconds=110,
            )
            lab.look("broken", skip="mlx5_1")
        heal_all(lab)
        lab.look("healed")
        change_all(lab)
        reload(lab)
        lab.look("reloaded")
        end(lab, process)


def break_all(lab: Lab) -> None:
    """Give each device its fault."""
    steps: tuple[tuple[str, str, int, Callable[[], None]], ...] = (
        ("gone", "device goes away", 6, lambda: knob(6, "present", 0)),
        ("init", "port stuck in INIT", 4, lambda: knob(4, "state", INIT)),
        ("slower", "link trains anew, at 200 of 400 Gb/s", 3, lambda: train(3, HDR)),
        ("bit errors", "50 symbol errors a second", 5, lambda: None),
        ("hidden flap", "flap that only link_downed shows", 7, hidden_flap),
        ("failing", "counters EINVAL, hw_counters EIO", 2, lambda: knob(2, "fail", 1)),
        ("slow", "each read takes 3 s", 1, lambda: knob(1, "delay_ms", 3000)),
        (
            "saturated flap",
            "3 s outage, link_downed at its ceiling",
            0,
            lambda: train(0, NDR, seconds=3),
        ),
    )
    for name, what, number, act in steps:
        lab.step(name, what, f"mlx5_{number}")
        act()
        time.sleep(1)


def hidden_flap() -> None:
    """Let a link go down and up between two reads of its state."""
    knob(7, "link_downed", "+1")


def train(number: int, speed: int, seconds: float = 2) -> None:
    """Let a link go down and come back, perhaps at another speed."""
    knob(number, "state", DOWN)
    knob(number, "phys_state", POLLING)
    knob(number, "link_downed", "+1")
    time.sleep(seconds)
    knob(number, "speed", speed)
    knob(number, "phys_state", LINK_UP)
    knob(number, "state", ACTIVE)


def heal_all(lab: Lab) -> None:
    """Mend everything, and wait until that was noticed."""
    lab.step("back", "device comes back, its counters at 0", "mlx5_6")
    for counter in ("port_xmit_data", "port_rcv_packets", "out_of_sequence"):
        knob(6, counter, 0)
    knob(6, "link_downed", 0)
    knob(6, "present", 1)
    lab.step("active", "port is ACTIVE", "mlx5_4")
    knob(4, "state", ACTIVE)
    lab.step("full rate", "link trains anew, at 400 Gb/s", "mlx5_3")
    train(3, NDR)
    lab.step("readable", "reads succeed", "mlx5_2")
    knob(2, "fail", 0)
    lab.step("fast", "reads are fast", "mlx5_1")
    knob(1, "delay_ms", 0)
    lab.wait(
        ("finding_resolved", "device_missing", "mlx5_6"),
        ("finding_resolved", "port_not_active", "mlx5_4"),
        ("finding_resolved", "rate_degraded", "mlx5_3"),
        since="back",
        seconds=40,
    )
    lab.wait(("finding_resolved", "telemetry_stale", ""), since="fast", seconds=100)


def change_all(lab: Lab) -> None:
    """Go through states, count everything, and unplug a device that is being read."""
    lab.step("armed", "port stuck in ARMED", "mlx5_2")
    knob(2, "state", ARMED)
    time.sleep(3)  # together they would have one cause
    lab.step("polling", "port is DOWN, Polling", "mlx5_8")
    link(8, DOWN, POLLING)
    time.sleep(3)
    lab.step("disabled", "port is DOWN, Disabled", "mlx5_9")
    link(9, DOWN, DISABLED)
    counted = dict(count_all(7))
    lab.step("counted", "each counter grows, by another number", "mlx5_7", **counted)
    knob(5, "delay_ms", 1500)
    time.sleep(ERRORS_SECONDS)
    lab.step("unplugged", "device goes away while it is read", "mlx5_5")
    knob(5, "present", 0)
    lab.wait(
        ("finding_open", "port_not_active", "mlx5_2"),
        ("finding_open", "port_down", "mlx5_8"),
        ("finding_open", "port_down", "mlx5_9"),
        ("finding_open", "device_missing", "mlx5_5"),
        since="armed",
        seconds=50,
    )
    lab.look("changed")
    lab.step("plugged", "device comes back, quick", "mlx5_5")
    knob(5, "delay_ms", 0)
    knob(5, "present", 1)
    lab.step("all up", "all ports are ACTIVE", "mlx5_2", "mlx5_8", "mlx5_9")
    for number in (2, 8, 9):
        link(number, ACTIVE, LINK_UP)
    lab.wait(
        ("finding_resolved", "port_not_active", "mlx5_2"),
        ("finding_resolved", "port_down", "mlx5_8"),
        ("finding_resolved", "port_down", "mlx5_9"),
        ("finding_resolved", "device_missing", "mlx5_5"),
        since="plugged",
        seconds=20,
    )


def link(number: int, state: int, phys_state: int) -> None:
    """Put a link into a state; the event of it comes last."""
    knob(number, "phys_state", phys_state)
    knob(number, "state", state)


def count_all(number: int) -> Iterator[tuple[str, int]]:
    """Let every counter of a device grow, each by another number that fits it."""
    port = CLASS / f"mlx5_{number}" / "ports" / "1"
    paths = [
        path
        for folder in ("counters", "hw_counters")
        for path in sorted((port / folder).iterdir())
        if path.name != "lifespan"
    ]
    for growth, path in enumerate(paths, start=3):
        knob(number, path.name, f"+{growth}")
        yield path.name, growth


def reload(lab: Lab) -> None:
    """Unload the driver and load it again, as an update of it would."""
    lab.step("unload", "driver unloaded", *NAMES)
    shell("rmmod fakeib")
    time.sleep(6)
    left = [path.name for path in CLASS.iterdir()]
    lab.step("unloaded", "", left=left, healthz=get("/healthz")["status"])
    lab.step("load", "driver loaded again", *NAMES)
    shell(f"insmod /share/fakeib.ko devices={DEVICES}")
    lab.until(lambda: exports("mlx5_9"), 20)
    time.sleep(ERRORS_SECONDS + 1)


def exports(device: str) -> bool:
    """Tell whether the agent exports the traffic of a device, which it reads last."""
    return f'data_transmitted_bytes_total{{device="{device}"' in get("/metrics")["body"]


def end(lab: Lab, process: subprocess.Popen[bytes]) -> None:
    """Stop the agent while the kernel holds one of its reads."""
    lab.step("held", "each read takes 5 s", "mlx5_8")
    knob(8, "delay_ms", 5000)
    time.sleep(6)
    lab.step("stop", "SIGTERM while the kernel holds a read", "mlx5_8")
    began = time.monotonic()
    shell(f"pkill -TERM -P {process.pid}")
    process.wait(60)
    took = round(time.monotonic() - began, 2)
    lab.step("stopped", "the process is gone", took=took, status=process.returncode)


if __name__ == "__main__":
    main()
