"""What NCCL's Inspector writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.inspector import (
    MAX_RECORD,
    Operation,
    parse_operations,
    parse_prometheus,
    size_class,
)

# As the README of the plugin shows it (2.28), on one line and printed nicely.
RECORD: dict[str, Any] = {
    "header": {"id": "0x9e7a479f95a66c", "rank": 31, "n_ranks": 32, "nnodes": 4},
    "metadata": {
        "inspector_output_format_version": "v4.0",
        "git_rev": "9019a1912-dirty",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": 1748030377748202,
        "hostname": "nvl72033-T08",
        "pid": 1639453,
    },
    "coll_perf": {
        "coll": "AllReduce",
        "coll_sn": 1407,
        "coll_msg_size_bytes": 17179869184,
        "coll_exec_time_us": 61974,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 277.210914,
        "coll_busbw_gbs": 537.096146,
    },
}
TRANSFER: dict[str, Any] = {
    "header": {"id": "0x9e7a", "rank": 3, "n_ranks": 16, "nnodes": 2},
    "metadata": {"dump_timestamp_us": 1748030377748202, "hostname": "node3"},
    "p2p_perf": {
        "p2p": "Send",
        "p2p_sn": 12,
        "p2p_peer": 11,
        "p2p_msg_size_bytes": 8388608,
        "p2p_exec_time_us": 250.5,
        "p2p_timing_source": "kernel_gpu",
        "p2p_algobw_gbs": 33.5,
        "p2p_busbw_gbs": 33.5,
    },
}
WHOLE = Operation(
    comm="0x9e7a479f95a66c",
    rank=31,
    collective="AllReduce",
    size=17179869184,
    seconds=0.061974,
    bus_bandwidth=537.096146e9,
    ranks=32,
    nodes=4,
    at=1748030377.748202,
    host="nvl72033-T08",
)
PROM = """\
# HELP nccl_bus_bandwidth_gbs NCCL bus bandwidth in GB/s
# TYPE nccl_bus_bandwidth_gbs gauge
nccl_bus_bandwidth_gbs{version="v5.0",slurm_job_id="4711",node="node3",gpu="GPU-1",\
comm_name="dp",n_nodes="4",nranks="32",collective="AllReduce",message_size="4-5GB",\
algo_proto="RING_SIMPLE"} 371.5
nccl_collective_exec_time_microseconds{version="v5.0",slurm_job_id="4711",\
node="node3",gpu="GPU-1",comm_name="dp",n_nodes="4",nranks="32",\
collective="AllReduce",message_size="4-5GB",algo_proto="RING_SIMPLE"} 22000
"""


def line(record: dict[str, Any], **changes: object) -> bytes:
    """Return a record on one line, values of its collective changed."""
    changed = {**record, "coll_perf": {**record.get("coll_perf", {}), **changes}}
    return json.dumps(changed).encode() + b"\n"


class TestRecords:
    def test_one_a_line(self) -> None:
        """Bytes a second and seconds, who it was and when."""
        told = parse_operations(line(RECORD) * 2)
        assert told.found == (WHOLE, WHOLE)
        assert (told.wrong, told.rest) == (0, b"")

    def test_printed_nicely(self) -> None:
        """The same record over many lines, as the plugin's documentation has it."""
        nice = json.dumps(RECORD, indent=2).encode() + b"\n"
        assert parse_operations(nice * 2 + line(RECORD)).found == (WHOLE,) * 3

    def test_a_transfer_names_its_peer(self) -> None:
        """From 2.30 on: one peer, so one link."""
        (told,) = parse_operations(json.dumps(TRANSFER).encode() + b"\n").found
        assert (told.collective, told.peer, told.rank) == ("Send", 11, 3)
        assert told.seconds == pytest.approx(250.5e-6)
        assert told.bus_bandwidth == pytest.approx(33.5e9)

    @pytest.mark.parametrize("text", [b'"nan"', b"nan", b"-nan", b"inf", b"0", b"null"])
    def test_no_number(self, text: bytes) -> None:
        """A rate that could not be computed is unknown, its record is none the less."""
        raw = line(RECORD).replace(b"537.096146", text)
        (told,) = parse_operations(raw).found
        assert told.bus_bandwidth is None
        assert told.seconds == WHOLE.seconds

    @pytest.mark.parametrize("source", ["kernel_cpu", "collective_cpu"])
    def test_other_timing(self, source: str) -> None:
        """What holds waits of the processor is left out, and is no damage."""
        told = parse_operations(line(RECORD, coll_timing_source=source))
        assert (told.found, told.wrong) == ((), 0)

    @pytest.mark.parametrize(
        "raw",
        [
            b"{}\n",
            b"[1]\n",
            b"NCCL INFO hello\n",
            b'{"header": {"id": "", "rank": 0}}\n',
            line(RECORD, coll_msg_size_bytes=-1),
            line(RECORD, coll="x" * 65),
            line(RECORD, coll_msg_size_bytes=1 << 60),
            line(RECORD)[:80] + b"}\n",
        ],
    )
    def test_wrong_lines_are_counted(self, raw: bytes) -> None:
        """One of them costs only itself."""
        told = parse_operations(raw + line(RECORD))
        if b'"id": ""' in raw:  # no measurement in it: nothing is lost
            assert told.wrong == 0
        else:
            assert told.wrong == 1
        assert told.found == (WHOLE,)

    def test_a_record_that_never_ends(self) -> None:
        """It is given up, and what follows it is read."""
        told = parse_operations(b'{"header":\n' + b" x\n" * MAX_RECORD + line(RECORD))
        assert told.found == (WHOLE,)
        assert told.wrong >= 1

    @given(cut=st.integers(0, 4000), nicely=st.booleans())
    def test_in_pieces(self, cut: int, *, nicely: bool) -> None:
        """Where a read ends says nothing."""
        raw = json.dumps(RECORD, indent=2 if nicely else None).encode() + b"\n"
        raw *= 3
        first = parse_operations(raw[:cut])
        second = parse_operations(first.rest + raw[cut:])
        assert (*first.found, *second.found) == (WHOLE,) * 3
        assert first.wrong == second.wrong == 0

    @given(st.binary(max_size=400))
    def test_noise(self, noise: bytes) -> None:
        """Whatever a job writes is read without complaint, and what follows it, too."""
        told = parse_operations(noise)
        assert len(told.rest) <= MAX_RECORD
        again = parse_operations(told.rest + b"\n}\n" + line(RECORD))
        assert again.found[-1:] == (WHOLE,)


class TestPrometheus:
    def test_both_metrics_of_a_series(self) -> None:
        """They are one operation of the class of size that the bucket begins at."""
        (told,) = parse_prometheus(PROM.encode(), 2).found
        assert (told.comm, told.rank, told.collective) == ("dp", 2, "AllReduce")
        assert told.size == 4 << 30
        assert told.bus_bandwidth == pytest.approx(371.5e9)
        assert told.seconds == pytest.approx(0.022)
        assert (told.ranks, told.nodes, told.host) == (32, 4, "node3")

    def test_other_metrics_and_damage(self) -> None:
        """What is not compared says nothing; lines that are no samples are counted."""
        other = PROM.replace("nccl_bus_bandwidth_gbs{", "nccl_algorithm_bandwidth_gbs{")
        (told,) = parse_prometheus(other.encode(), 0).found
        assert told.bus_bandwidth is None
        assert parse_prometheus(b"x\ny{} 1\n", 0).wrong == 2

    @given(st.text(max_size=300))
    def test_noise(self, noise: str) -> None:
        """Whatever is in the file."""
        parse_prometheus(noise.encode("utf-8", "surrogatepass"), 0)


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (0, "1B"),
        (1023, "512B"),
        (1024, "1KiB"),
        (100 << 20, "64MiB"),
        (1 << 34, "16GiB"),
    ],
)
def test_classes_of_size(size: int, name: str) -> None:
    """The power of two that a size reaches."""
    assert size_class(size) == name
