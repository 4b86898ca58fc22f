"""A node of mlx5 ports as files, and a writer that moves its counters."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ERRORS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_constraint_errors",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "symbol_error",
)
TRAFFIC = (
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_rcv_data",
    "port_rcv_packets",
    "port_xmit_data",
    "port_xmit_packets",
    "unicast_rcv_packets",
    "unicast_xmit_packets",
)
HARDWARE = (
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_cqe_flush_error",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "req_rnr_retries_exceeded",
    "req_transport_retries_exceeded",
    "resp_cqe_error",
    "resp_cqe_flush_error",
    "resp_local_length_error",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_atomic_requests",
    "rx_dct_connect",
    "rx_icrc_encapsulated",
    "rx_read_requests",
    "rx_write_requests",
)
WORDS_PER_SECOND = 7_000_000_000
NOT_MEASURED = "N/A (no PMA)"
"""What a virtual function's error counters say: they are the physical port's."""

_DEVICES_OF_A_DOMAIN = 8
_FUNCTIONS_OF_A_SLOT = 8


class Node:
    """Files of one node below a folder."""

    def __init__(self, root: Path, devices: int = 8, functions: int = 0) -> None:
        """Write every file; ``functions`` are virtual ones of each device."""
        self._root = root
        self._traffic: list[Path] = []
        for index in range(devices):
            self._write(_place(index, 0), f"mlx5_{index}", f"ib{index}")
            for number in range(1, functions + 1):
                self._write(_place(index, number), f"mlx5_{index}v{number}", None)

    def move(self, step: int) -> None:
        """Let traffic go on; errors stay as they are, as on most days."""
        for path in self._traffic:
            words = "data" in path.name
            per_second = WORDS_PER_SECOND if words else WORDS_PER_SECOND // 1024
            descriptor = os.open(path, os.O_WRONLY)  # in place: never seen empty
            os.write(descriptor, f"{step * per_second}\n".encode())
            os.close(descriptor)

    def keep_moving(self, seconds: float, stop: threading.Event) -> None:
        """Move every so many seconds until told to stop."""
        step = 0
        while not stop.wait(seconds):
            step += 1
            self.move(step)

    @contextmanager
    def moving(self, seconds: float = 1.0) -> Iterator[None]:
        """Move every so many seconds while the caller does something."""
        stop = threading.Event()
        mover = threading.Thread(target=self.keep_moving, args=(seconds, stop))
        mover.start()
        try:
            yield
        finally:
            stop.set()
            mover.join()

    def _write(self, place: _Place, name: str, netdev: str | None) -> None:
        """Write a function; one without a network device is a virtual one."""
        function = f"{place.slot}/{place.address}"
        device = f"{function}/infiniband/{name}"
        port = f"{device}/ports/1"
        pci = {
            "current_link_speed": "32.0 GT/s PCIe",
            "current_link_width": "16",
            "max_link_speed": "32.0 GT/s PCIe",
            "max_link_width": "16",
            "class": "0x020700",
        }
        self._files(place.slot, pci)
        self._files(function, pci)
        guid = f"a088:c203:{place.number:04x}:0001"
        about = {"node_guid": guid, "sys_image_guid": guid, "fw_ver": "28.41.1000"}
        about |= {"hca_type": "MT4129", "board_id": "MT_0000000838"}
        self._files(device, about | {"node_type": "1: CA"})
        state = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "400 Gb/sec (4X NDR)",
            "link_layer": "InfiniBand",
            "lid": f"0x{place.number:x}",
            "sm_lid": "0x1",
        }
        self._files(port, state)
        errors = dict.fromkeys(ERRORS, "0" if netdev else NOT_MEASURED)
        self._files(f"{port}/counters", errors | dict.fromkeys(TRAFFIC, "0"))
        self._files(f"{port}/hw_counters", dict.fromkeys(HARDWARE, "0"))
        links = {
            f"sys/class/infiniband/{name}": f"../../../{device}",
            f"{device}/device": f"../../../{place.address}",
            f"{function}/driver": "../../../../bus/pci/drivers/mlx5_core",
        }
        if netdev is None:
            links[f"{function}/physfn"] = f"../{place.owner}"
        else:
            self._netdev(port, function, netdev)
            links[f"sys/class/net/{netdev}"] = f"../../../{function}/net/{netdev}"
            self._traffic += [self._root / port / "counters" / name for name in TRAFFIC]
        for link, target in links.items():
            path = self._root / link
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

    def _netdev(self, port: str, function: str, name: str) -> None:
        self._files(port, {"gid_attrs/ndevs/0": name})
        net = {"operstate": "up", "carrier": "1", "dev_port": "0"}
        changes = ("carrier_changes", "carrier_up_count", "carrier_down_count")
        self._files(f"{function}/net/{name}", net | dict.fromkeys(changes, "0"))

    def _files(self, folder: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self._root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", "ascii")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a function sits on PCIe; ``owner`` is the physical function's address."""

    number: int
    slot: str
    address: str
    owner: str


def _place(device: int, function: int) -> _Place:
    domain, bus = divmod(device, _DEVICES_OF_A_DOMAIN)
    root, bus = f"{domain:04x}", 0x10 * (bus + 1)
    below = f"{root}:{bus + 1:02x}"
    slot, digit = divmod(function, _FUNCTIONS_OF_A_SLOT)
    return _Place(
        number=0x10 * (device + 1) + function,
        slot=f"sys/devices/pci{root}:{bus:02x}/{root}:{bus:02x}:01.0",
        address=f"{below}:{slot:02x}.{digit}",
        owner=f"{below}:00.0",
    )
