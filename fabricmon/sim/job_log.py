"""What the processes of a job print: NCCL 2.27, and aws-ofi-nccl on EFA.

Wording and order follow the sources of those versions. INFO lines of the default
subsystems, as with ``NCCL_DEBUG=INFO``; warnings carry a time stamp.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from fabricmon.sim.effects import SimPort
from fabricmon.sim.happenings import RetriesExceeded
from fabricmon.sim.job_terms import PROCESSES, JobTerms
from fabricmon.sim.plan import FleetPlan, neighbours
from fabricmon.sim.profiles import Family

FOLDER = "/var/log/nccl"
DROP_FOLDER = "/run/fabricmon/jobs"
VERSION = "2.27.3+cuda12.9"

_FIRST_PID = 21000
_THREAD = 400
_WARNING_LINE = "transport/net_ib.cc:2244"
_ASYNC_LINE = "transport/net_ib.cc:130"


class JobLog:
    """The lines of one node's processes of a job."""

    def __init__(
        self, plan: FleetPlan, terms: JobTerms, node: int, start: float
    ) -> None:
        self._plan = plan
        self._terms = terms
        self._node = node
        self._start = start  # Unix seconds of t = 0
        self._name = plan.node_name(node)
        self._is_efa = plan.profile.compute[0].card.family is Family.EFA
        self.path = f"{FOLDER}/{terms.id}.log"
        self.drop_path = f"{DROP_FOLDER}/{terms.id}.json"

    def drop(self) -> str:
        """Return the drop file with which a scheduler tells of a job."""
        settings = {
            "NCCL_IB_TIMEOUT": str(self._terms.plan.timeout),
            "NCCL_IB_RETRY_CNT": str(self._terms.plan.retries),
        }
        entry = {"job": self._terms.id, "logs": [self.path], "settings": settings}
        return f"{json.dumps([entry])}\n"

    def begins(self, run: int, members: tuple[int, ...]) -> str:
        """Return what is printed while the communicator is made."""
        return "".join(
            line for gpu in range(PROCESSES) for line in self._init(gpu, run, members)
        )

    def connected(self, run: int, members: tuple[int, ...]) -> str:
        """Return what is printed when the first step can begin."""
        lines = []
        for gpu in range(PROCESSES):
            lines.append(self._info(gpu, "Connected all rings, use ring PXN 0 GDR 1"))
            state = f"{self._comm(gpu, run, members)} - Init COMPLETE"
            lines.append(self._info(gpu, f"ncclCommInitRankConfig {state}"))
        return "".join(lines)

    def port_event(self, t: float, port: SimPort, event: str) -> str:
        """Return the asynchronous event of a port, as every process tells it."""
        if self._is_efa:
            return ""
        text = f"NET/IB : {port.device}:{port.port} Got async error event: {event}"
        return "".join(
            self._warning(t, gpu, _ASYNC_LINE, text) for gpu in range(PROCESSES)
        )

    def gives_up(self, end: RetriesExceeded, members: tuple[int, ...]) -> str:
        """Return the completions with error of this node's queue pairs on a rail."""
        gpu = end.rail * PROCESSES // self._plan.rails
        own = self._plan.rail(self._node, end.rail)
        if own == end.silent:
            peers = dict.fromkeys(neighbours(self._terms, members, self._node))
        else:
            peers = {end.silent.node: None}
        return "".join(self._lost(end.t, gpu, own, peer) for peer in peers)

    def aborts(self, run: int, members: tuple[int, ...]) -> str:
        """Return what is printed when the processes tear the communicator down."""
        lines = [
            self._info(gpu, f"{self._comm(gpu, run, members)} - Abort COMPLETE")
            for gpu in range(PROCESSES)
        ]
        return "".join(lines)

    def ends(self, run: int, members: tuple[int, ...]) -> str:
        """Return what is printed at a planned end."""
        lines = [
            self._info(gpu, f"{self._comm(gpu, run, members)} - Destroy COMPLETE")
            for gpu in range(PROCESSES)
        ]
        return "".join(lines)

    def _init(self, gpu: int, run: int, members: tuple[int, ...]) -> list[str]:
        terms, address = self._terms, self._plan.address(self._node)
        texts = [f"Bootstrap: Using eth0:{address}<0>", f"NCCL version {VERSION}"]
        if self._is_efa:
            texts.append("NET/OFI Initializing aws-ofi-nccl 1.15.0")
            texts.append("Using network AWS Libfabric")
        else:
            texts += [
                f"NCCL_IB_TIMEOUT set by environment to {terms.plan.timeout}.",
                f"NCCL_IB_RETRY_CNT set by environment to {terms.plan.retries}.",
                f"NET/IB : Using {self._devices()} [RO]; OOB eth0:{address}<0>",
                "Using network IB",
            ]
        texts.append(
            f"ncclCommInitRankConfig {self._comm(gpu, run, members)} - Init START"
        )
        if len(members) > 1:
            rank = members.index(self._node) * PROCESSES + gpu
            other = (rank + PROCESSES) % (len(members) * PROCESSES)
            net = "AWS Libfabric" if self._is_efa else "IB"
            texts.append(
                f"Channel 00/0 : {rank}[{gpu}] -> {other}[{gpu}] [send] via "
                f"NET/{net}/{gpu}/GDRDMA"
            )
        return [self._info(gpu, text) for text in texts]

    def _devices(self) -> str:
        ports = (self._plan.rail(self._node, rail) for rail in self._terms.rails)
        layer = "IB" if self._plan.is_infiniband else "RoCE"
        return " ".join(
            f"[{number}]{port.device}:{port.port}/{layer}"
            for number, port in enumerate(ports)
        )

    def _comm(self, gpu: int, run: int, members: tuple[int, ...]) -> str:
        rank = members.index(self._node) * PROCESSES + gpu
        handle = 0x55D0_C0FF_0000 + 0x1000 * run + gpu
        number = sum(self._terms.id.encode()) * 0x9E37_79B9_7F4A_7C15
        ident = (number + run) & ((1 << 64) - 1)
        return (
            f"comm 0x{handle:x} rank {rank} nranks {len(members) * PROCESSES} "
            f"cudaDev {gpu} nvmlDev {gpu} busId {0x1B + 0x10 * gpu:x}000 "
            f"commId 0x{ident:x}"
        )

    def _lost(self, t: float, gpu: int, port: SimPort, peer: int) -> str:
        address = self._plan.address(peer)
        if self._is_efa:
            text = (
                "NET/OFI Request 0x7f10a0 (send) completed with error: err: 113, "
                f"flags: 0, prov_errno: 14, strerror: Unresponsive receiver {address}"
            )
            return self._warning(t, gpu, "process_completions:162", text)
        gids = ""
        if not self._plan.is_infiniband:
            gids = (
                f" localGid {_gid(self._plan, port)} remoteGids"
                f"{_gid(self._plan, SimPort(peer, port.device, port.port))}"
            )
        text = (
            f"NET/IB: Got completion from peer {address}<{40000 + gpu}> with status=12 "
            f"opcode=0 len=0 vendor err 129 (Send){gids} hca {port.device}"
        )
        return self._warning(t, gpu, _WARNING_LINE, text)

    def _info(self, gpu: int, text: str) -> str:
        pid = _FIRST_PID + gpu
        return f"{self._name}:{pid}:{pid + _THREAD} [{gpu}] NCCL INFO {text}\n"

    def _warning(self, t: float, gpu: int, place: str, text: str) -> str:
        pid = _FIRST_PID + gpu
        at = datetime.fromtimestamp(self._start + t, UTC).strftime("%Y-%m-%d %H:%M:%S")
        head = f"[{at}] {self._name}:{pid}:{pid + _THREAD} [{gpu}] {place}"
        return f"\n{head} NCCL WARN {text}\n"


def _gid(plan: FleetPlan, port: SimPort) -> str:
    bus = plan.place(port.device).bus
    return f"::ffff:10.{bus}.{(port.node + 1) >> 8}.{(port.node + 1) & 255}"
