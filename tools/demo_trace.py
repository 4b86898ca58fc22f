"""Write the trace of the embedded node that ``fabricmon demo`` plays.

A GPU node with eight InfiniBand rails, two storage ports and one for management. A
job runs on the rails and saves its state now and then. A cable flaps, a transceiver
damages bits for a while, a link comes back from an outage at half its rate, and with
it the whole job slows down; each heals. The same bytes come out every time.

Run ``python tools/demo_trace.py``; another place than the package can be named.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricmon.host.trace import Header, Ramp, TraceRecord
from fabricmon.host.trace_write import TraceWriter

PLACE = Path(__file__).parent.parent / "fabricmon" / "demo.trace.jsonl.gz"
HEADER = Header(node="demo-gpu-01", boot_id="d0d0", start=1767600000.0)

END = 2250
"""Seconds; 75 at the usual speed of the demo."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which something is not as it should be."""

    begin: float
    end: float

    def __contains__(self, t: float) -> bool:
        """Tell whether it is so at ``t``."""
        return self.begin <= t < self.end


FLAP = Span(150, 156)
ERRORS = Span(300, 540)
OUTAGE = Span(720, 760)
HALF_RATE = Span(760, 1240)
RETRAINING = Span(1240, 1244)
STALLS = (FLAP, OUTAGE, RETRAINING)
"""A collective waits for its slowest link: with one rail down, all are silent."""

SYMBOLS_PER_SECOND = 3.4
PACKETS_PER_SECOND = 0.3

PHASE_SECONDS = 15
"""The load of the job changes this often."""

CHECKPOINT_PHASES = 12
"""The last phase of so many writes a checkpoint: storage works, the rails pause."""

HALF_RATE_LOAD = 0.22
"""What the rails carry while one of them has half the rate."""

WORDS_PER_PACKET = 1024
"""A full packet of 4 KiB."""

PACKETS_PER_REQUEST = 16

ERROR_FILES = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
    "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
    "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped",
    "port_xmit_wait",
)  # fmt: skip
DATA_FILES = ("port_xmit_data", "port_rcv_data")
PACKET_FILES = (
    "port_xmit_packets", "port_rcv_packets", "unicast_xmit_packets",
    "unicast_rcv_packets",
)  # fmt: skip
MULTICAST_FILES = ("multicast_xmit_packets", "multicast_rcv_packets")
HARDWARE_FILES = (
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err",
    "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error",
    "req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request",
    "req_transport_retries_exceeded", "resp_cqe_error", "resp_cqe_flush_error",
    "resp_local_length_error", "resp_remote_access_errors", "rnr_nak_retry_err",
    "rx_atomic_requests", "rx_dct_connect", "rx_read_requests", "rx_write_requests",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """What all devices of one rate have in common."""

    gbps: int
    layer: str
    speed: str
    type: str
    board: str

    @property
    def words_per_second(self) -> float:
        """Line rate in words of four octets, in which data is counted."""
        return self.gbps * 1e9 / 32


@dataclass(frozen=True, slots=True)
class Nic:
    """One RDMA device of the node."""

    name: str
    netdev: str
    bus: int
    numa: int
    model: Model
    gpu: bool = False

    @property
    def root(self) -> str:
        """Folder of the bridge above the device."""
        return f"/sys/devices/pci0000:{self.bus:02x}/0000:{self.bus:02x}:01.0"

    @property
    def address(self) -> str:
        """PCI address of the device."""
        return f"0000:{self.bus + 1:02x}:00.0"

    @property
    def gpu_address(self) -> str:
        """PCI address of the GPU beside the device, if it has one."""
        return f"0000:{self.bus + 2:02x}:00.0"

    @property
    def folder(self) -> str:
        """Folder of the PCI function."""
        return f"{self.root}/{self.address}"

    @property
    def port(self) -> str:
        """Folder of the port."""
        return f"{self.folder}/infiniband/{self.name}/ports/1"

    @property
    def net(self) -> str:
        """Folder of the network device."""
        return f"{self.folder}/net/{self.netdev}"

    @property
    def rate(self) -> str:
        """What ``rate`` says of a sound link."""
        return f"{self.model.gbps} Gb/sec (4X {self.model.speed})"


RAIL = Model(400, "InfiniBand", "NDR", "MT4129", "MT_0000000838")
DISK = Model(200, "Ethernet", "HDR", "MT4123", "MT_0000000223")
SERVICE = Model(100, "Ethernet", "EDR", "MT4123", "MT_0000000359")
RAILS = tuple(
    Nic(f"mlx5_{rail}", f"ib{rail}", 0x10 * (rail + 1), rail // 4, RAIL, gpu=True)
    for rail in range(8)
)
STORAGE = tuple(
    Nic(f"mlx5_{8 + number}", f"eth{number}", 0x90 + 0x10 * number, number, DISK)
    for number in range(2)
)
MANAGEMENT = Nic("mlx5_10", "eth2", 0xB0, 0, SERVICE)
NICS = (*RAILS, *STORAGE, MANAGEMENT)
FLAPPING, DAMAGED, SLOW = RAILS[3], RAILS[5], RAILS[6]


def write(path: Path) -> None:
    """Write the trace to ``path``."""
    with TraceWriter(path, HEADER) as writer:
        for record in story():
            writer.write(record)


def story() -> list[TraceRecord]:
    """Return all that happens, in order of time."""
    half = f"{SLOW.model.gbps // 2} Gb/sec (2X {SLOW.model.speed})"
    events = [
        build(),
        *traffic(),
        down(FLAPPING, FLAP.begin, 1),
        up(FLAPPING, FLAP.end, 1, FLAPPING.rate),
        *bit_errors(DAMAGED),
        down(SLOW, OUTAGE.begin, 1),
        up(SLOW, OUTAGE.end, 1, half),
        down(SLOW, RETRAINING.begin, 2),
        up(SLOW, RETRAINING.end, 2, SLOW.rate),
        TraceRecord(t=END),
    ]
    return sorted(events, key=lambda record: record.t)


# The node


def build() -> TraceRecord:
    """Return the node as it stands at the start: up for ten days."""
    files = {
        "/proc/uptime": "864000.00 6912000.00\n",
        "/sys/class/dmi/id/product_name": "Example 8-rail GPU node\n",
    }
    links: dict[str, str] = {}
    for nic in NICS:
        files |= _files(identity(nic) | counters(nic))
        links |= placement(nic)
    return TraceRecord(t=0, link=links, set=files)


def placement(nic: Nic) -> dict[str, str]:
    """Return the links that tie a device to its place on PCIe."""
    bridge = f"../../..{nic.root.removeprefix('/sys')}"
    above = f"{bridge.removeprefix('../')}/{nic.address}"
    links = {
        f"/sys/class/infiniband/{nic.name}": f"{above}/infiniband/{nic.name}",
        f"/sys/class/net/{nic.netdev}": f"{above}/net/{nic.netdev}",
        f"/sys/bus/pci/devices/{nic.address}": f"{bridge}/{nic.address}",
        f"{nic.folder}/infiniband/{nic.name}/device": f"../../../{nic.address}",
        f"{nic.net}/device": f"../../../{nic.address}",
        f"{nic.folder}/driver": "../../../../bus/pci/drivers/mlx5_core",
    }
    if nic.gpu:
        gpu = f"/sys/bus/pci/devices/{nic.gpu_address}"
        links[gpu] = f"{bridge}/{nic.gpu_address}"
    return links


def identity(nic: Nic) -> dict[str, dict[str, str]]:
    """Return the files that tell what a device is, by folder."""
    model = nic.model
    infiniband = model.layer == "InfiniBand"
    guid = f"a088:c203:00{nic.bus:02x}:0001"
    slot = {
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }
    kind = "0x020700" if infiniband else "0x020000"
    folders = {
        nic.root: slot,
        nic.folder: {**slot, "class": kind, "numa_node": str(nic.numa)},
        f"{nic.folder}/infiniband/{nic.name}": {
            "node_guid": guid,
            "sys_image_guid": guid,
            "fw_ver": "28.41.1000",
            "hca_type": model.type,
            "board_id": model.board,
            "node_type": "1: CA",
        },
        nic.port: {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": nic.rate,
            "link_layer": model.layer,
            "lid": f"0x{nic.bus:x}" if infiniband else "0x0",
            "sm_lid": "0x1" if infiniband else "0x0",
            "gid_attrs/ndevs/0": nic.netdev,
            "gids/0": f"fe80:0000:0000:0000:{guid}",
        },
    }
    if nic.gpu:
        folders[f"{nic.root}/{nic.gpu_address}"] = {"class": "0x030200"}
    return folders


def counters(nic: Nic) -> dict[str, dict[str, str]]:
    """Return the counters of a device and its network device, by folder."""
    counted = (*ERROR_FILES, *DATA_FILES, *PACKET_FILES, *MULTICAST_FILES)
    return {
        f"{nic.port}/counters": dict.fromkeys(counted, "0"),
        f"{nic.port}/hw_counters": {
            "lifespan": "10",
            **dict.fromkeys(HARDWARE_FILES, "0"),
        },
        nic.net: {"dev_port": "0", **carrier(ups=1, downs=0)},
    }


def carrier(ups: int, downs: int) -> dict[str, str]:
    """Return what a network device says whose link came and went so often."""
    return {
        "operstate": "up" if ups > downs else "down",
        "carrier": "1" if ups > downs else "0",
        "carrier_changes": f"{ups + downs}",
        "carrier_up_count": f"{ups}",
        "carrier_down_count": f"{downs}",
    }


# Its traffic


class Meter:
    """What one device has carried; its load changes from time to time."""

    def __init__(self, nic: Nic) -> None:
        """Start with nothing carried."""
        self._nic = nic
        self._words = self._per_second = self._since = 0.0

    def change(self, t: float, share: float) -> dict[str, Ramp]:
        """Carry this share of the line rate from ``t`` on; return what counts it."""
        self._words += self._per_second * (t - self._since)
        self._since, self._per_second = t, share * self._nic.model.words_per_second
        packets = 1 / WORDS_PER_PACKET
        requests = packets / PACKETS_PER_REQUEST
        return {
            **{f"counters/{name}": self._ramp(1) for name in DATA_FILES},
            **{f"counters/{name}": self._ramp(packets) for name in PACKET_FILES},
            "hw_counters/rx_write_requests": self._ramp(requests),
        }

    def _ramp(self, factor: float) -> Ramp:
        return Ramp(int(self._words * factor), round(self._per_second * factor, 3))


def traffic() -> Iterator[TraceRecord]:
    """Yield the load of all devices whenever it changes."""
    chance = random.Random(7)
    phases = range(0, END, PHASE_SECONDS)
    job = {t: chance.uniform(0.45, 0.75) for t in phases}
    meters = {nic: Meter(nic) for nic in NICS}
    edges = {edge for stall in STALLS for edge in (stall.begin, stall.end)}
    for t in sorted({*phases, *edges}):
        phase = int(t // PHASE_SECONDS) * PHASE_SECONDS
        ramps: dict[str, Ramp] = {}
        for nic in NICS if t == phase else RAILS:
            share = load(nic, t, job[phase]) * chance.uniform(0.98, 1.02)
            for name, ramp in meters[nic].change(t, share).items():
                ramps[f"{nic.port}/{name}"] = ramp
        yield TraceRecord(t=t, ramp=ramps)


def load(nic: Nic, t: float, job: float) -> float:
    """Return the share of its line rate that a device carries at ``t``."""
    saving = int(t // PHASE_SECONDS) % CHECKPOINT_PHASES == CHECKPOINT_PHASES - 1
    if nic is MANAGEMENT:
        return 0.002
    if nic in STORAGE:
        return 0.6 if saving else 0.01
    if any(t in stall for stall in STALLS):
        return 0.0
    share = 0.02 if saving else job
    return min(share, HALF_RATE_LOAD) if t in HALF_RATE else share


# Its faults


def bit_errors(nic: Nic) -> list[TraceRecord]:
    """Return a transceiver that damages bits for a while, at any load."""
    per_second = {
        f"{nic.port}/counters/symbol_error": SYMBOLS_PER_SECOND,
        f"{nic.port}/counters/port_rcv_errors": PACKETS_PER_SECOND,
        f"{nic.port}/hw_counters/out_of_sequence": PACKETS_PER_SECOND,
    }
    seconds = ERRORS.end - ERRORS.begin
    ramps = {path: Ramp(0, rate) for path, rate in per_second.items()}
    last = {path: f"{int(seconds * rate)}\n" for path, rate in per_second.items()}
    return [
        TraceRecord(t=ERRORS.begin, ramp=ramps),
        TraceRecord(t=ERRORS.end, set=last),
    ]


def down(nic: Nic, t: float, times: int) -> TraceRecord:
    """Return the moment in which a link is lost for the n-th time."""
    port = {
        "state": "1: DOWN",
        "phys_state": "2: Polling",
        "counters/link_downed": f"{times}",
    }
    return _edge(nic, t, port, ups=times, downs=times)


def up(nic: Nic, t: float, times: int, rate: str) -> TraceRecord:
    """Return the moment in which a link is back for the n-th time."""
    port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": rate}
    return _edge(nic, t, port, ups=times + 1, downs=times)


def _edge(
    nic: Nic, t: float, port: dict[str, str], *, ups: int, downs: int
) -> TraceRecord:
    return TraceRecord(t=t, set=_files({nic.port: port, nic.net: carrier(ups, downs)}))


def _files(folders: dict[str, dict[str, str]]) -> dict[str, str]:
    return {
        f"{folder}/{name}": f"{text}\n"
        for folder, files in folders.items()
        for name, text in files.items()
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE)
