"""Traces of small nodes on which something happens, for tests of whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests import traces
from tests.manifest import SYSFS

Json = dict[str, Any]

FIRST, SECOND = "mlx5_0", "mlx5_3"
"""The devices of the usual node; the first has lost its link once before."""

CLASS = "/sys/class/infiniband"
UPTIME = "8640000.00 8640000.00\n"


def beginning(case: str = "sysfs-flap-pair.t0") -> Json:
    """Return a recorded node at t = 0 that has been up for long."""
    record: Json = msgspec.to_builtins(traces.of_manifest(SYSFS / f"{case}.manifest"))
    record["set"]["/proc/uptime"] = UPTIME
    return record


def file(device: str, name: str) -> str:
    """Name a file of port 1 of a device."""
    return f"{CLASS}/{device}/ports/1/{name}"


def goes_down(device: str) -> Json:
    """Return what changes when a port loses its link."""
    state, phys = file(device, "state"), file(device, "phys_state")
    return {"set": {state: "1: DOWN\n", phys: "2: Polling\n"}}


def comes_up(device: str, downs: int) -> Json:
    """Return what changes when it is back, with its count of losses."""
    return {
        "set": {
            file(device, "state"): "4: ACTIVE\n",
            file(device, "phys_state"): "5: LinkUp\n",
            file(device, "counters/link_downed"): f"{downs}\n",
        }
    }


def trace(
    folder: Path, *events: tuple[float, Json], end: float, header: Json | None = None
) -> Path:
    """Write what happens to the usual node, up to ``end``; the folder is made."""
    folder.mkdir(exist_ok=True)
    lines = [beginning(), *({"t": t, **what} for t, what in events), {"t": end}]
    return traces.write(folder, lines, traces.HEADER | (header or {}))


def outage(folder: Path, header: Json | None = None) -> Path:
    """Write a trace: one port is down for a minute and a half, and stays well."""
    return trace(
        folder,
        (30, goes_down(FIRST)),
        (120, comes_up(FIRST, 2)),
        end=300,
        header=header,
    )
