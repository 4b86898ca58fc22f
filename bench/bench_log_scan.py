"""How fast a log is read: megabytes a second of CPU, memory, a long line, a storm.

INFO text of a seeded generator with one interesting line in a thousand, read in pieces
of a size that a follower uses. Give the size in megabytes (200 unless told). With the
rule table it goes through the whole of it and ten operator rows, else lines alone.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fabricmon.parse.log_lines import MOST_ANCHORS, START, Anchors, read_lines

MEGABYTE = 1_000_000
PIECE_OCTETS = 1 << 20
INTERESTING = 0.001
LEAST_SPEED = 200  # MB/s a core
LONG_LINE = 100 * MEGABYTE
STORM_LINES = 100_000
# What a table of rules would look for, where there is none yet.
LITERALS = (
    *(b"WARN", b"via NET/", b"NET/IB", b"async ", b"retrying", b"Watchdog"),
    *(b"Last error", b"ncclRemote", b"Init COMPLETE", b"version ", b"libfabric:"),
    *(b"RAS ", b"Proxy ", b"environment to", b"Got completion", b"ERROR"),
)
INFO = (
    "Channel {a:02}/0 : {b}[{c}] -> {d}[{c}] via P2P/CUMEM/read",
    "Trees [0] {a}/-1/-1->{b}->{d} [1] {a}/-1/-1->{b}->-1",
    "Channel {a:02}/{b} :    {c}   {d}   {b}   {a}   {c}",
    (
        "AllReduce: opCount {a:x} sendbuff 0x7f{b:x}a000000 recvbuff 0x7f{b:x}a000000 "
        "count {d} datatype 9 op 0 root 0 comm 0x55d{a:x} [nranks={b}] stream 0x5{c}"
    ),
    "Connected all trees",
    "threadThresholds 8/8/64 | {b}/8/64 | 512 | 512",
    "{b} coll channels, {c} collnet channels, 0 nvls channels, {a} p2p channels",
)
FAILURES = (
    "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_{c}:1 Got async event : port error",
    (
        "transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer "
        "10.0.{c}.{b}<{d}> with status=12 opcode=0 len=0 vendor err 129 (Recv) "
        "localGid ::ffff:10.1.0.{b} remoteGids::ffff:10.1.0.{a} hca mlx5_{c}"
    ),
    "misc/socket.cc:521 NCCL WARN Net : Connection closed by remote peer 10.0.0.{b}<{d}>",
)


class Lines:
    """Lines of a job of many processes, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        """Begin."""
        self.random = random.Random(seed)  # noqa: S311 - text to read, no secret

    def one(self, shapes: tuple[str, ...], head: str = "") -> str:
        """Return one line of some shapes."""
        below = self.random.randrange
        text = self.random.choice(shapes).format(
            a=below(32), b=below(256), c=below(8), d=1024 + below(60000)
        )
        process = f"gpu-node-{below(64):03}:{2000 + below(8)}:{3000 + below(90)}"
        return f"{process} [{below(8)}] {head}{text}\n"

    def block(self, octets: int) -> bytes:
        """Return about so much text."""
        parts: list[str] = []
        size = 0
        while size < octets:
            if self.random.random() < INTERESTING:
                part = self.one(FAILURES)
            else:
                part = self.one(INFO, "NCCL INFO ")
            parts.append(part)
            size += len(part)
        return "".join(parts).encode()


Read = Callable[[Iterator[bytes]], int]


def read_alone(pieces: Iterator[bytes]) -> int:
    """Read lines only, and return how many are wanted."""
    anchors = Anchors.of(LITERALS[:MOST_ANCHORS])
    carry, found = START, 0
    for piece in pieces:
        batch = read_lines(carry, piece, anchors)
        carry = batch.carry
        found += len(batch.lines)
    return found


def read_with_rules(pieces: Iterator[bytes]) -> int:
    """Read events with the full table and ten rows of an operator."""
    from fabricmon.config import LogRule  # noqa: PLC0415 - the table may be missing
    from fabricmon.parse.nccl import RuleTable  # noqa: PLC0415
    from fabricmon.parse.nccl_log import NEW_LOG, read_log  # noqa: PLC0415

    rows = [
        LogRule(
            id=f"site_{number}",
            anchor=f"gpu burn {number}",
            pattern=rf"gpu burn {number} failed on (?P<device>\w+)",
            kind="site_event",
            severity="warning",
        )
        for number in range(10)
    ]
    table, state, found = RuleTable.of(rows), NEW_LOG, 0
    for piece in pieces:
        batch = read_log(piece, state, "bench.log", table)
        state = batch.state
        found += len(batch.events)
    return found


def chosen() -> tuple[str, Read]:
    """Return the way that this version can go."""
    try:
        read_with_rules(iter((b"",)))
    except (ImportError, NotImplementedError):
        return "lines alone", read_alone
    return "lines, full table and ten operator rows", read_with_rules


def pieces_of(block: bytes, octets: int) -> Iterator[bytes]:
    """Return a block again and again in pieces that end anywhere."""
    for begin in range(0, octets, PIECE_OCTETS):
        at = begin % max(1, len(block) - PIECE_OCTETS)
        yield block[at : at + PIECE_OCTETS]


def measured(read: Read, pieces: Iterator[bytes]) -> tuple[int, float]:
    """Return what was found and the CPU seconds that it took."""
    begun = time.process_time()
    found = read(pieces)
    return found, time.process_time() - begun


def peak_mib(read: Read, pieces: Iterator[bytes]) -> float:
    """Return the most memory that reading takes beside what it is given."""
    tracemalloc.start()
    read(pieces)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (1 << 20)


def speed(read: Read, megabytes: int) -> float:
    """Return how many MB/s a core reads of made-up text."""
    block = Lines().block(min(megabytes, 40) * MEGABYTE)
    _, seconds = measured(read, pieces_of(block, megabytes * MEGABYTE))
    return megabytes / seconds


def main() -> None:
    """Measure and print."""
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 200) * MEGABYTE
    name, read = chosen()
    block = Lines().block(min(size, 40 * MEGABYTE))
    found, seconds = measured(read, pieces_of(block, size))
    speed = size / MEGABYTE / seconds
    print(f"{name}: {speed:.0f} MB/s, {found} found (bar: {LEAST_SPEED})")
    print(f"memory: {peak_mib(read, pieces_of(block, 8 * MEGABYTE)):.1f} MiB at most")
    line = b"x" * PIECE_OCTETS
    found, seconds = measured(read, (line for _ in range(LONG_LINE // PIECE_OCTETS)))
    print(f"one line of 100 MB: {seconds:.2f} s, {found} found")
    print(f"  memory: {peak_mib(read, (line for _ in range(8))):.1f} MiB at most")
    lines = Lines()
    storm = "".join(lines.one(FAILURES) for _ in range(STORM_LINES)).encode()
    found, seconds = measured(read, pieces_of(storm + block, len(storm)))
    print(f"a storm of {STORM_LINES:,} lines: {seconds:.2f} s, {found} found (bar: 1)")


if __name__ == "__main__":
    main()
