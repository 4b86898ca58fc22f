"""The host's side from a recorded node to its findings: kernel log, PCIe, modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabricmon.model import Incident, IncidentState, Severity
from fabricmon.replaying import Replay
from tests import traces
from tests.manifest import SYSFS

Json = dict[str, Any]

CARD = "/sys/devices/pci0000:18/0000:18:01.0/0000:1a:00.0"
SLOT = CARD.rpartition("/")[0]
ADDRESS = "0000:1a:00.0"
DRIVER = f"mlx5_core {ADDRESS}: "
FULL = {
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}


def replay(
    folder: Path, *events: tuple[float, Json], end: float, mute: bool = False
) -> list[Incident]:
    """Return what is told of a node of twelve HCAs, the first of them on PCIe."""
    record = traces.of_manifest(SYSFS / "sysfs-h100-ndr-bond.manifest")
    files = {**record.set, "/proc/uptime": "8640000.00 8640000.00\n"}
    for place in (CARD, SLOT):
        files |= {f"{place}/{file}": f"{text}\n" for file, text in FULL.items()}
    refused = {"/dev/kmsg": "EPERM"} if mute else {}
    start = {
        "t": 0, "dir": record.dir, "link": record.link, "set": files,
        "err": {**record.err, **refused},
    }  # fmt: skip
    lines = [start, *({"t": t, **what} for t, what in events), {"t": end}]
    run = Replay(traces.write(folder, lines))
    return [change.incident for change in run.changes()]


def opened(told: list[Incident]) -> list[tuple[str, str | None]]:
    """Return kind and device of what opened at warning or above."""
    return [
        (each.finding.kind, each.finding.subject.device)
        for each in told
        if each.state is IncidentState.OPEN
        and each.finding.severity >= Severity.WARNING
    ]


def test_port_that_goes_down_with_a_line(tmp_path: Path) -> None:
    """What the kernel said of the link and its module stands beside the outage."""
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    down = {f"{port}/state": "1: DOWN\n", f"{port}/phys_state": "2: Polling\n"}
    plug = "Port module event: module 0, Cable unplugged"
    told = replay(
        tmp_path,
        (10, {"kmsg": [f"{DRIVER}Port module event: module 0, Cable plugged"]}),
        (20, {"kmsg": ["mlx5_core 0000:5e:00.0: Link down"]}),
        (118, {"kmsg": [DRIVER + plug, f"{DRIVER}Link down"]}),
        (120, {"set": down}),
        end=200,
    )
    (finding,) = (
        each.finding
        for each in told
        if each.finding.kind == "port_down" and each.state is IncidentState.OPEN
    )
    kernel = [each.value for each in finding.evidence if each.signal == "kmsg"]
    assert kernel == ["module_unplugged", "link_down"]


def test_a_quiet_node(tmp_path: Path) -> None:
    """The recorded node, with full links, has nothing of all this."""
    assert opened(replay(tmp_path, end=300)) == []


def test_lost_lanes(tmp_path: Path) -> None:
    """F20: within two minutes, with the kernel's line beside it."""
    line = (
        "252.048 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at "
        "0000:18:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
    )
    change = {"set": {f"{CARD}/current_link_width": "8\n"}, "kmsg": [DRIVER + line]}
    told = replay(tmp_path, (60, change), end=180)
    assert opened(told) == [("pcie_degraded", "mlx5_0")]
    signals = [each.signal for each in told[-1].finding.evidence]
    assert signals[:2] == ["current_link_width", "current_link_speed"]
    assert "kmsg" in signals


def test_power_and_firmware(tmp_path: Path) -> None:
    """F26 and F25: what the kernel says, and what devlink adds."""
    power = "mlx5_pcie_event:301:(pid 7): Detected insufficient power on the PCIe slot "
    stuck = "poll_health:825:(pid 0): device's health compromised - reached miss count"
    told = replay(
        tmp_path,
        (60, {"kmsg": [f"{DRIVER}{power}(27W)."]}),
        (90, {"kmsg": [DRIVER + stuck], "devlink": {ADDRESS: {"fw_fatal": "error"}}}),
        end=200,
    )
    assert opened(told) == [("nic_power", "mlx5_0"), ("device_stuck", "mlx5_0")]
    worst = max(each.finding.severity for each in told)
    assert worst is Severity.CRITICAL


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    """Then nothing is heard of it, however much it says."""
    power = "mlx5_pcie_event:301:(pid 7): Detected insufficient power on the PCIe slot "
    event = (60, {"kmsg": [f"{DRIVER}{power}(27W)."]})
    assert opened(replay(tmp_path, event, end=200, mute=True)) == []


def test_heat_and_light(tmp_path: Path) -> None:
    """F12 and F13: from the diagnostics of a trace."""
    hot = {"module": {"mlx5_0/1": {"temperature_c": 74.5, "rx_power_dbm": [-2, -8.5]}}}
    told = replay(tmp_path, (60, hot), end=200)
    assert sorted(opened(told)) == [("module_hot", "mlx5_0"), ("optics_weak", "mlx5_0")]
