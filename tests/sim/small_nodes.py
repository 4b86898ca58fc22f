"""Traces of a node with eight fabric ports and a storage port, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import traces

Json = dict[str, Any]

RAILS = 8
WORDS_PER_SECOND = 3_000_000_000  # 96 Gb/s each way
COUNTERS = (
    "counters/link_downed", "counters/symbol_error", "counters/link_error_recovery",
    "counters/port_rcv_errors", "counters/port_xmit_discards",
    "hw_counters/local_ack_timeout_err",
)  # fmt: skip


def port(device: str, name: str) -> str:
    """Name a file of port 1 of a device."""
    return f"/sys/class/infiniband/{device}/ports/1/{name}"


def down(device: str) -> Json:
    """Return what changes when a port loses its link."""
    state, phys = port(device, "state"), port(device, "phys_state")
    return {"set": {state: "1: DOWN\n", phys: "2: Polling\n"}}


def up(device: str, downs: int = 1) -> Json:
    """Return what changes when it is back."""
    return {
        "set": {
            port(device, "state"): "4: ACTIVE\n",
            port(device, "phys_state"): "5: LinkUp\n",
            port(device, "counters/link_downed"): f"{downs}\n",
        }
    }


def kernel(text: str) -> Json:
    """Return a line of the kernel log."""
    return {"kmsg": [text]}


def trace(
    folder: Path,
    *events: tuple[float, Json],
    end: float,
    layer: str = "InfiniBand",
    node: str = "node01",
) -> Path:
    """Write what happens to the node, up to ``end``; the folder is made."""
    folder.mkdir(exist_ok=True, parents=True)
    lines = [_beginning(layer), *({"t": t, **what} for t, what in events), {"t": end}]
    return traces.write(folder, lines, traces.HEADER | {"node": node})


def _beginning(layer: str) -> Json:
    record: Json = {"t": 0, "link": {}, "set": {}, "ramp": {}}
    record["set"]["/proc/uptime"] = "8640000.00 8640000.00\n"
    for number in range(RAILS):
        _add(record, number, layer, "400 Gb/sec (4X NDR)", "MT_0001")
    _add(record, RAILS, "Ethernet", "200 Gb/sec (4X HDR)", "MT_0002")
    return record


def _add(record: Json, number: int, layer: str, rate: str, board: str) -> None:
    device, address = f"mlx5_{number}", f"0000:{0x10 + number:02x}:00.0"
    function = f"/sys/devices/pci0000:00/{address}"
    record["link"] |= {
        f"/sys/class/infiniband/{device}": (
            f"../../devices/pci0000:00/{address}/infiniband/{device}"
        ),
        f"{function}/infiniband/{device}/device": f"../../../{address}",
        f"/sys/class/net/ib{number}": f"../../devices/pci0000:00/{address}/net/ib{number}",
    }
    record["set"] |= {
        f"/sys/class/infiniband/{device}/board_id": f"{board}\n",
        port(device, "state"): "4: ACTIVE\n",
        port(device, "phys_state"): "5: LinkUp\n",
        port(device, "rate"): f"{rate}\n",
        port(device, "link_layer"): f"{layer}\n",
        f"{function}/current_link_width": "16\n",
        f"{function}/max_link_width": "16\n",
        f"{function}/net/ib{number}/carrier_changes": "2\n",
        f"{function}/net/ib{number}/carrier_down_count": "1\n",
        **{port(device, name): "0\n" for name in COUNTERS},
    }
    record["ramp"] |= {
        port(device, f"counters/port_{way}_data"): [0, WORDS_PER_SECOND]
        for way in ("xmit", "rcv")
    }
