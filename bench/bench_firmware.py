"""Reads a second that reach the firmware of a node at rest, at default periods.

Eight mlx5 InfiniBand ports play for an hour without an event; the host counts. With
IPoIB network devices the kernel tells of link changes; without, state is polled for
them, or the counter of outages where it can be trusted.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tree import Node

from fabricmon.replaying import Replay

SECONDS = 3600
PORTS = 8
HEADER = {
    "fabricmon_trace": 1,
    "node": "node01",
    "boot_id": "b0071d",
    "start": "2026-01-05T08:00:00Z",
}
UPTIME = "8640000.00 8640000.00\n"


def main() -> None:
    """Print both figures."""
    for netdevs in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            trace = _write_trace(Path(folder), netdevs=netdevs)
            replay = Replay(trace)
            found = [change.incident.finding.kind for change in replay.changes()]
        rate = replay.host.firmware_reads / SECONDS
        assert len(replay.pipeline.snapshot.ports) == PORTS
        which = "with network devices (bar 40)" if netdevs else "without"
        print(f"{which}: {rate:.1f} firmware reads/s, findings: {found or 'none'}")


def _write_trace(folder: Path, *, netdevs: bool) -> Path:
    root = folder / "node"
    Node(root, PORTS)
    links: dict[str, str] = {}
    texts = {"/proc/uptime": UPTIME}
    for path in sorted(root.rglob("*")):
        name = f"/{path.relative_to(root)}"
        if not netdevs and ("/net/" in name or name.endswith("/ndevs/0")):
            continue
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_file():
            texts[name] = path.read_text("ascii")
    record = {"t": 0, "link": links, "set": texts}
    trace = folder / "node01.trace.jsonl"
    lines = (HEADER, record, {"t": SECONDS})
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return trace


if __name__ == "__main__":
    main()
