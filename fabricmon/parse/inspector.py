"""What NCCL's Inspector writes: one JSON object for each collective, or Prometheus text.

Files are written by a job: every value in them is hostile until it was checked. A
record may be printed over several lines; numbers may be ``nan``, quoted or not.
"""

from __future__ import annotations

import re
from math import isfinite

import msgspec

from fabricmon.parse.text import decimal, decode, number
from fabricmon.value import Value

KERNEL_TIMING = "kernel_gpu"
"""The only timing that is worth comparing: others hold waits of the processor."""

MAX_RECORD = 64 * 1024
"""Bytes of one record; with its events of every channel it has some thousand."""

MAX_NAME = 64
MAX_SIZE = 1 << 50  # of a message, in bytes
MAX_COUNT = 1 << 31  # ranks and nodes

BUS_BANDWIDTH = frozenset({"nccl_bus_bandwidth_gbs", "nccl_p2p_bus_bandwidth_gbs"})
EXECUTION = frozenset(
    {
        "nccl_collective_exec_time_microseconds",
        "nccl_p2p_exec_time_microseconds",
    }
)

_GIGA, _MICRO = 1e9, 1e6
_BARE = re.compile(rb":\s{0,8}-?(?:nan|inf)\b")
_SIZE = re.compile(r"(\d{1,15})(?:-\d{1,15})?\s?([KMGT]?)i?B")
_LABEL = re.compile(r'([a-zA-Z_]\w{0,63})="([^"\\]{0,256})"')
_UNITS = ("", "K", "M", "G", "T")


class Operation(Value, frozen=True):
    """One collective or transfer of one rank; bytes, bytes per second, seconds.

    ``comm`` is the communicator's hash, the same on all ranks. ``at`` is the Unix time
    of the dump. What the file does not hold is None.
    """

    comm: str
    rank: int | None
    collective: str
    size: int
    seconds: float | None
    bus_bandwidth: float | None
    peer: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    at: float | None = None
    host: str | None = None


class Operations(Value, frozen=True):
    """What a piece of a file holds, what of it is no record, and what is not whole yet."""

    found: tuple[Operation, ...] = ()
    wrong: int = 0
    rest: bytes = b""


class _Header(msgspec.Struct):
    id: str
    rank: int
    n_ranks: int | None = None
    nnodes: int | None = None


class _Metadata(msgspec.Struct):
    dump_timestamp_us: int | None = None
    hostname: str | None = None


class _Collective(msgspec.Struct):
    coll: str
    coll_msg_size_bytes: int
    coll_exec_time_us: float | str | None = None
    coll_timing_source: str | None = None
    coll_busbw_gbs: float | str | None = None


class _Transfer(msgspec.Struct):
    p2p: str
    p2p_peer: int
    p2p_msg_size_bytes: int
    p2p_exec_time_us: float | str | None = None
    p2p_timing_source: str | None = None
    p2p_busbw_gbs: float | str | None = None


class _Record(msgspec.Struct):
    header: _Header
    metadata: _Metadata | None = None
    coll_perf: _Collective | None = None
    p2p_perf: _Transfer | None = None


_decode = msgspec.json.Decoder(_Record).decode
_FLAWS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def parse_operations(data: bytes) -> Operations:
    """Read whole records; the last one, if not whole, is left for the next piece."""
    found: list[Operation] = []
    wrong = 0
    *lines, rest = data.split(b"\n")
    pending: list[bytes] = []
    held = 0
    for line in lines:
        if line.startswith(b"{") and pending:  # the one before never ended
            wrong, pending, held = wrong + 1, [], 0
        pending.append(line)
        held += len(line) + 1
        if _goes_on(pending) and held <= MAX_RECORD:
            continue
        text, pending, held = b"\n".join(pending), [], 0
        if text.strip():
            operation = _operation(text)
            if isinstance(operation, Operation):
                found.append(operation)
            wrong += operation is None
    rest = b"\n".join([*pending, rest])
    if len(rest) > MAX_RECORD:
        wrong, rest = wrong + 1, b""
    return Operations(tuple(found), wrong, rest)


def _goes_on(lines: list[bytes]) -> bool:
    """Tell whether a record is printed over several lines and has not ended.

    Those end with a brace at the beginning of a line.
    """
    first, last = lines[0].rstrip(), lines[-1]
    if not first.startswith(b"{") or (len(lines) == 1 and first.endswith(b"}")):
        return False
    return len(lines) == 1 or not last.startswith(b"}")


def _operation(text: bytes) -> Operation | bool | None:
    """Return what a record tells; True if nothing to compare, None if it is none."""
    try:
        record = _decode(text)
    except _FLAWS:
        try:
            record = _decode(_BARE.sub(b":null", text))
        except _FLAWS:
            return None
    head, meta = record.header, record.metadata or _Metadata()
    each, transfer = record.coll_perf, record.p2p_perf
    if each is not None:
        source, name, size = (
            each.coll_timing_source,
            each.coll,
            each.coll_msg_size_bytes,
        )
        seconds, rate, peer = each.coll_exec_time_us, each.coll_busbw_gbs, None
    elif transfer is not None:
        source, name = transfer.p2p_timing_source, transfer.p2p
        size, peer = transfer.p2p_msg_size_bytes, transfer.p2p_peer
        seconds, rate = transfer.p2p_exec_time_us, transfer.p2p_busbw_gbs
    else:
        return True
    if not _is_sane(head, name, size, peer):
        return None
    if source != KERNEL_TIMING:
        return True
    stamp = meta.dump_timestamp_us
    return Operation(
        comm=head.id,
        rank=head.rank,
        collective=name,
        size=size,
        seconds=_seconds(seconds),
        bus_bandwidth=_scaled(rate, _GIGA),
        peer=peer,
        ranks=_count(head.n_ranks),
        nodes=_count(head.nnodes),
        at=None if stamp is None else stamp / _MICRO,
        host=meta.hostname,
    )


def _is_sane(head: _Header, name: str, size: int, peer: int | None) -> bool:
    names = all(
        0 < len(text) <= MAX_NAME and text.isascii() for text in (head.id, name)
    )
    numbers = 0 <= head.rank < MAX_COUNT and 0 <= size <= MAX_SIZE
    return names and numbers and (peer is None or 0 <= peer < MAX_COUNT)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 < value < MAX_COUNT else None


def _scaled(value: float | str | None, factor: float) -> float | None:
    """Return a positive, finite number; ``nan`` and what is no number are None."""
    if isinstance(value, str):
        value = number(value.strip())
    if value is None or not isfinite(value) or value <= 0:
        return None
    return value * factor


def _seconds(micros: float | str | None) -> float | None:
    value = _scaled(micros, 1)
    return None if value is None else value / _MICRO


def parse_prometheus(data: bytes, rank: int) -> Operations:
    """Read a file of Prometheus text; it names GPUs, so ``rank`` is given from outside.

    Both metrics of one series make one operation.
    """
    found: dict[tuple[str, str, int], Operation] = {}
    wrong = 0
    for line in decode(data).split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        sample = _sample(line, rank)
        if sample is None:
            wrong += 1
            continue
        key = sample.comm, sample.collective, sample.size
        known = found.get(key, sample)
        found[key] = Operation(
            sample.comm, rank, sample.collective, sample.size,
            known.seconds or sample.seconds,
            known.bus_bandwidth or sample.bus_bandwidth,
            ranks=sample.ranks, nodes=sample.nodes, host=sample.host,
        )  # fmt: skip
    kept = (op for op in found.values() if op.seconds or op.bus_bandwidth)
    return Operations(tuple(kept), wrong)


def _sample(line: str, rank: int) -> Operation | None:
    """Return one sample; metrics that say nothing here have neither value."""
    name, brace, tail = line.partition("{")
    inside, closing, rest = tail.rpartition("}")
    words = rest.split()
    if not (brace and closing and words):
        return None
    labels = dict(_LABEL.findall(inside))
    value = _scaled(words[0], 1)
    size = _bucket(labels.get("message_size", ""))
    what = labels.get("collective") or labels.get("p2p_operation")
    if size is None or not what or len(what) > MAX_NAME:
        return None
    comm = (labels.get("comm_name") or "unnamed")[:MAX_NAME]
    return Operation(
        comm, rank, what, size,
        value / _MICRO if value and name.strip() in EXECUTION else None,
        value * _GIGA if value and name.strip() in BUS_BANDWIDTH else None,
        ranks=_count(decimal(labels.get("nranks", ""))),
        nodes=_count(decimal(labels.get("n_nodes", ""))),
        host=labels.get("node"),
    )  # fmt: skip


def _bucket(text: str) -> int | None:
    """Return the lower end of ``4-5GB`` in bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    size = int(match[1]) << 10 * _UNITS.index(match[2])
    return size if size <= MAX_SIZE else None


def size_class(size: int) -> str:
    """Return the power of two that a size reaches, as ``64MiB``."""
    power = max(size, 1).bit_length() - 1
    unit = min(power // 10, len(_UNITS) - 1)
    suffix = f"{_UNITS[unit]}iB" if unit else "B"
    return f"{1 << (power - 10 * unit)}{suffix}"
