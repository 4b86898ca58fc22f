"""A host of the fabric: its RDMA class as files, refreshed as a kernel would."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.ibsim.fabric import Fabric
from tests.ibsim.netlist import Adapter, adapters_of
from tests.support.agent import Node, in_own_mounts

_COPY = """\
echo /sys/class/infiniband/* >/dev/null
unset LD_PRELOAD
cp -r "sys-$$/sys/class/infiniband/ibsim0" "$1"
exit
"""
"""The library shows a snapshot to each process that looks, in a folder of its own.

It says farewell when that process ends; bash would become the last command.
"""

_COUNTERS = {
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": "LinkErrorRecoveryCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
    "port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_constraint_errors": "PortXmitConstraintErrors",
    "port_rcv_constraint_errors": "PortRcvConstraintErrors",
    "local_link_integrity_errors": "LocalLinkIntegrityErrors",
    "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
    "VL15_dropped": "VL15Dropped",
}
_TRAFFIC = {
    "port_xmit_data": "PortXmitData",
    "port_rcv_data": "PortRcvData",
    "port_xmit_packets": "PortXmitPkts",
    "port_rcv_packets": "PortRcvPkts",
}
_QUERIES: dict[tuple[str, ...], dict[str, str]] = {(): _COUNTERS, ("-x",): _TRAFFIC}
_FIELD = re.compile(r"^(\w+):\.*(\d+)$", re.MULTILINE)
_CLASS = "infiniband"


class SimulatedHost:
    """Files of one host, by what the simulator says of its HCAs when asked to."""

    def __init__(self, fabric: Fabric, name: str, folder: Path) -> None:
        self.adapters = adapters_of(name)
        self.path = fabric.ibstat_of(*self.adapters)
        self._fabric = fabric
        folder.mkdir()
        self._folder = folder
        self._files = Node(folder, None)
        self.place.mkdir()
        for each in self.adapters:
            for file in (*_COUNTERS, *_TRAFFIC):
                self._put(each, f"ports/1/counters/{file}", "0")
        self.refresh()

    def refresh(self) -> None:
        """Let the files say what holds now; counters stay, they take longest."""
        for each in self.adapters:
            for file, text in self._port(each).items():
                self._put(each, file, text)

    def count(self, adapter: Adapter) -> None:
        """Let the counters of an HCA say what its port has counted."""
        for words, names in _QUERIES.items():
            done = self._fabric.run(adapter, "perfquery", *words)
            said = dict(_FIELD.findall(done.stdout))
            for file, name in names.items():
                self._put(adapter, f"ports/1/counters/{file}", said[name])

    @property
    def place(self) -> Path:
        """The folder that stands for /sys/class/infiniband."""
        return self._files.root / _CLASS

    def mounts(self) -> list[str]:
        """Return what runs a command that sees these files as the kernel's class.

        No folder can be made in sysfs, so that /sys/class is put together anew.
        """
        classes = self._folder / "classes"
        classes.mkdir()
        return in_own_mounts(
            f"""
            mount --rbind /sys/class {classes}
            mount -t tmpfs none /sys/class
            for each in {classes}/*; do
              mkdir "/sys/class/${{each##*/}}"
              mount --bind "$each" "/sys/class/${{each##*/}}"
            done
            mkdir -p /sys/class/{_CLASS}
            mount --bind {self.place} /sys/class/{_CLASS}"""
        )

    def _port(self, adapter: Adapter) -> dict[str, str]:
        """Return the files that the library shows, and two that every kernel has."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        done = self._fabric.run(adapter, "bash", "-c", _COPY, "bash", str(copy))
        assert copy.is_dir(), done.stderr
        shown = {
            str(path.relative_to(copy)): path.read_text().rstrip("\n")
            for path in copy.rglob("*")
            if path.is_file() and path.parent.name != "pkeys"
        }
        own = {"node_desc": adapter.name, "ports/1/link_layer": "InfiniBand"}
        return shown | own

    def _put(self, adapter: Adapter, file: str, text: str) -> None:
        path, content = f"{_CLASS}/{adapter.device}/{file}", f"{text}\n"
        known = self._files.root / path
        if not known.exists() or known.read_text() != content:
            self._files.put(path, content)
