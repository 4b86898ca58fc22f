"""A day in the life of a node, in an hour: files that move, jobs, faults, hot-plug.

What happens is drawn from a seed and told by the second, so that two runs are alike.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tree import TRAFFIC, WORDS_PER_SECOND, Node

HOST = "soak01"
DEVICES = 8
PROCESSES = 8
JOB_SECONDS = 420
"""A job lives so long; the next one begins a minute after it."""

PAUSE_SECONDS = 60
FLAP_EVERY = 97
ERRORS_EVERY = 41
PLUG_EVERY = 301
RELOAD_EVERY = 241
BROKER_EVERY = 503
BROKER_AWAY = 75
STORM_EVERY = 601
STORM_LINES = 40_000
LINES_PER_SECOND = 20
KEPT_JOBS = 3
_PACKET_WORDS = 1024
_COMM = (
    "ncclCommInitRankConfig comm 0x55d0c0ff{pid:x} rank {rank} nranks 64 cudaDev {gpu} "
    "nvmlDev {gpu} busId 1b000 commId 0x{ident:x} - Init"
)
_PROLOGUE = (
    "Bootstrap: Using eth0:10.0.0.1<0>",
    "NCCL version 2.27.3+cuda12.9",
    "NCCL_IB_TIMEOUT set by environment to 22.",
    "NET/IB : Using {devices} [RO]; OOB eth0:10.0.0.1<0>",
    "Using network IB",
    f"{_COMM} START",
    "Channel 00/0 : {rank}[{gpu}] -> 8[{gpu}] [send] via NET/IB/{gpu}/GDRDMA",
    "Connected all rings, use ring PXN 0 GDR 1",
    f"{_COMM} COMPLETE",
)


class Values:
    """Files with a number each, changed in place: as in sysfs, never seen empty."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[int, int]] = {}

    def add(self, path: Path, amount: int) -> None:
        """Let a number grow."""
        descriptor, value = self._open.get(path) or (os.open(path, os.O_WRONLY), 0)
        value += amount
        self._open[path] = descriptor, value
        os.pwrite(descriptor, f"{value}\n".encode(), 0)

    def close(self) -> None:
        """Close all."""
        for descriptor, _ in self._open.values():
            os.close(descriptor)
        self._open.clear()


@dataclass(slots=True)
class Job:
    """A training job: its log, and until when it runs."""

    number: int
    log: Path
    ends: int
    busy: float = 0.0
    descriptor: int = field(default=-1)


class SoakNode:
    """The files of a node, and `second`, which lets one second of its life pass."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.root = root
        self._tree = Node(root, DEVICES)
        self._draw = random.Random(seed)  # noqa: S311 - two runs are alike
        self._values = Values()
        self._job: Job | None = None
        self._jobs: list[Job] = []
        self._down: dict[int, int] = {}  # device: until when
        self._gone: dict[int, int] = {}
        self.counts = {"jobs": 0, "flaps": 0, "unplugged": 0, "storms": 0, "errors": 0}
        self._logs = root / "var/log/nccl"
        self._logs.mkdir(parents=True)
        (root / "run/fabricmon/jobs").mkdir(parents=True)

    def second(self, now: int) -> Iterator[str]:
        """Let a second pass; yield what is to be done to others than the node."""
        self._run_jobs(now)
        self._move()
        if now % ERRORS_EVERY == ERRORS_EVERY - 1:
            self._errors()
        if now % FLAP_EVERY == FLAP_EVERY - 1:
            self._cut(now)
        if now % PLUG_EVERY == PLUG_EVERY - 1:
            self._unplug(now)
        if now % STORM_EVERY == STORM_EVERY - 1:
            self._storm()
        self._restore(now)
        if now % RELOAD_EVERY == RELOAD_EVERY - 1:
            yield "reload"
        if now % BROKER_EVERY == BROKER_EVERY - 1:
            yield "broker goes"
        if now > BROKER_EVERY and now % BROKER_EVERY == BROKER_AWAY:
            yield "broker comes"

    def close(self) -> None:
        """Close what is open."""
        self._values.close()
        for job in self._jobs:
            _close(job)

    # Traffic and errors

    def _move(self) -> None:
        share = self._draw.uniform(0.55, 0.85) if self._job is not None else 0.0
        if share == 0.0:
            return
        for index in range(DEVICES):
            if index in self._down or index in self._gone:
                continue
            words = int(share * WORDS_PER_SECOND * self._draw.uniform(0.98, 1.02))
            for name in TRAFFIC:
                amount = words if "data" in name else words // _PACKET_WORDS
                self._values.add(self._port(index) / "counters" / name, amount)

    def _errors(self) -> None:
        self.counts["errors"] += 1
        port = self._port(self._draw.randrange(DEVICES))
        self._values.add(port / "counters/symbol_error", self._draw.randrange(1, 400))
        name = self._draw.choice(("packet_seq_err", "out_of_sequence", "np_cnp_sent"))
        self._values.add(port / "hw_counters" / name, self._draw.randrange(1, 5000))

    # Links and devices

    def _cut(self, now: int) -> None:
        index = self._draw.randrange(DEVICES)
        if index in self._gone:
            return
        self.counts["flaps"] += 1
        self._down[index] = now + self._draw.choice((3, 8, 25, 60))
        self._set_link(index, up=False)
        if self._job is not None:
            self._write(self._job, self._warnings(index, 4))

    def _set_link(self, index: int, *, up: bool) -> None:
        port, net = self._port(index), self._net(index)
        (port / "phys_state").write_text("5: LinkUp\n" if up else "2: Polling\n")
        (port / "state").write_text("4: ACTIVE\n" if up else "1: DOWN\n")
        (net / "operstate").write_text("up\n" if up else "down\n")
        (net / "carrier").write_text("1\n" if up else "0\n")
        self._values.add(net / "carrier_changes", 1)
        way = "carrier_up_count" if up else "carrier_down_count"
        self._values.add(net / way, 1)
        if not up:
            self._values.add(port / "counters/link_downed", 1)

    def _unplug(self, now: int) -> None:
        index = self._draw.randrange(DEVICES)
        if index in self._down or index in self._gone:
            return
        self.counts["unplugged"] += 1
        self._gone[index] = now + self._draw.choice((20, 45, 90))
        for link in self._links(index):
            link.rename(self.root / link.name)

    def _restore(self, now: int) -> None:
        for index in [i for i, until in self._down.items() if until <= now]:
            del self._down[index]
            self._set_link(index, up=True)
        for index in [i for i, until in self._gone.items() if until <= now]:
            del self._gone[index]
            for link in self._links(index):
                (self.root / link.name).rename(link)

    # Jobs and their logs

    def _run_jobs(self, now: int) -> None:
        job = self._job
        if job is not None and now >= job.ends:
            self._end(job)
        if self._job is None and now % (JOB_SECONDS + PAUSE_SECONDS) == 0:
            self._begin(now)
        if self._job is not None:
            self._write(self._job, self._chatter(now))

    def _begin(self, now: int) -> None:
        self.counts["jobs"] += 1
        number = 4000 + self.counts["jobs"]
        log = self._logs / f"{number}.log"
        job = Job(number, log, now + JOB_SECONDS)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        job.descriptor = os.open(log, flags, 0o644)
        self._job = job
        self._jobs.append(job)
        drop = {"job": str(number), "logs": [f"/var/log/nccl/{log.name}"]}
        drop["settings"] = {"NCCL_IB_TIMEOUT": "22"}
        place = self.root / f"run/fabricmon/jobs/{number}.json"
        place.write_text(json.dumps([drop]))
        self._write(job, self._prologue(number))
        for old in self._jobs[:-KEPT_JOBS]:
            old.log.unlink()
            self._jobs.remove(old)

    def _end(self, job: Job) -> None:
        self._write(job, "".join(_info(g, "comm - Destroy COMPLETE") for g in range(8)))
        (self.root / f"run/fabricmon/jobs/{job.number}.json").unlink()
        _close(job)
        self._job = None

    def _prologue(self, number: int) -> str:
        devices = " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(DEVICES))
        lines = []
        for gpu in range(PROCESSES):
            for text in _PROLOGUE:
                words = text.format(
                    devices=devices,
                    gpu=gpu,
                    rank=gpu,
                    pid=gpu,
                    ident=number * 2**24,
                )
                lines.append(_info(gpu, words))
        return "".join(lines)

    def _chatter(self, now: int) -> str:
        return "".join(
            f"step {now} loss 1.{n:03d} throughput 41{n} tokens/s\n"
            for n in range(LINES_PER_SECOND)
        )

    def _warnings(self, index: int, number: int) -> str:
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        lines = []
        for n in range(number):
            pid = 21000 + n % PROCESSES
            lines.append(
                f"\n[{at}] {HOST}:{pid}:{pid + 400} [{n % PROCESSES}] "
                "transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer "
                f"10.0.{n % 7}.{2 + n % 200}<{40000 + n % 5000}> with status=12 opcode=0 "
                f"len=0 vendor err 129 (Send) hca mlx5_{index}\n"
            )
        return "".join(lines)

    def _storm(self) -> None:
        if self._job is None:
            return
        self.counts["storms"] += 1
        index = self._draw.randrange(DEVICES)
        self._write(self._job, self._warnings(index, STORM_LINES))

    def _write(self, job: Job, text: str) -> None:
        os.write(job.descriptor, text.encode())

    # Places

    def _port(self, index: int) -> Path:
        return self._function(index) / f"infiniband/mlx5_{index}/ports/1"

    def _net(self, index: int) -> Path:
        return self._function(index) / f"net/ib{index}"

    def _function(self, index: int) -> Path:
        bus = 0x10 * (index + 1)
        slot = f"sys/devices/pci0000:{bus:02x}/0000:{bus:02x}:01.0"
        return self.root / slot / f"0000:{bus + 1:02x}:00.0"

    def _links(self, index: int) -> tuple[Path, Path]:
        kinds = self.root / "sys/class"
        return kinds / f"infiniband/mlx5_{index}", kinds / f"net/ib{index}"


def _info(gpu: int, text: str) -> str:
    pid = 21000 + gpu
    return f"{HOST}:{pid}:{pid + 400} [{gpu}] NCCL INFO {text}\n"


def _close(job: Job) -> None:
    if job.descriptor >= 0:
        os.close(job.descriptor)
        job.descriptor = -1
