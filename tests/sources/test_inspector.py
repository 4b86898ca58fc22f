"""Files of NCCL's Inspector, read on and folded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fabricmon.config import Config, Inspector
from fabricmon.model import CollectiveRate, CollectiveRates, Target
from fabricmon.sources.inspector import FILE_BYTES
from tests.fake_host import FakeHost
from tests.parse.test_inspector import PROM, TRANSFER
from tests.sources.polls import only, poll

FOLDER = "/var/log/nccl/nccl-inspector-4711"
FILE = f"{FOLDER}/node3-pid77.log"


class Node(FakeHost):
    """A node with an Inspector that writes."""

    def __init__(self) -> None:
        super().__init__()
        self.put("/proc/sys/kernel/hostname", "node3\n")
        self.carried: object = None

    def says(
        self,
        rank: int = 0,
        rate: float | str = 300.0,
        micros: float = 20_000,
        path: str = FILE,
        **more: Any,
    ) -> None:
        """Append a record of an AllReduce of 100 MiB."""
        record = {
            "header": {"id": "0xabc", "rank": rank, "n_ranks": 16, "nnodes": 2},
            "metadata": {
                "dump_timestamp_us": int(self.wall() * 1e6),
                "hostname": "node3",
            },
            "coll_perf": {
                "coll": "AllReduce",
                "coll_sn": 1,
                "coll_msg_size_bytes": 100 << 20,
                "coll_exec_time_us": micros,
                "coll_timing_source": "kernel_gpu",
                "coll_busbw_gbs": rate,
                **more,
            },
        }
        self.append(path, json.dumps(record) + "\n")

    def poll(self, config: Config | None = None) -> CollectiveRates:
        """Poll, going on from the last time."""
        target = Target(carried=self.carried)
        found = only(CollectiveRates, poll("inspector", self, target, config))
        self.carried = found.cursors
        return found


@pytest.fixture(name="node")
def _node() -> Node:
    return Node()


def rates(node: Node, config: Config | None = None) -> tuple[CollectiveRate, ...]:
    """Return what one poll gives."""
    return node.poll(config).rates


class TestFolding:
    def test_medians_of_a_class(self, node: Node) -> None:
        """One rank, collective and class of size: the medians, who, and whose job."""
        for rate, micros in ((290.0, 21e3), (300.0, 20e3), (500.0, 10e3)):
            node.says(rate=rate, micros=micros)
        assert rates(node) == (
            CollectiveRate(
                comm="0xabc",
                rank=0,
                collective="AllReduce",
                size_class="64MiB",
                operations=3,
                bus_bandwidth=300e9,
                seconds=0.020,
                ranks=16,
                nodes=2,
                job="4711",
            ),
        )

    def test_ranks_can_be_compared(self, node: Node) -> None:
        """The late rank waits least: its time is the shortest."""
        for rank in range(4):
            path = f"{FOLDER}/node3-pid{rank}.log"
            node.says(rank, micros=9e3 if rank == 2 else 20e3, path=path)
        found = {rate.rank: rate.seconds or 0 for rate in rates(node)}
        assert min(found, key=lambda rank: found[rank]) == 2

    def test_transfers_by_peer(self, node: Node) -> None:
        """Each peer of a rank is a series of its own."""
        for peer in (11, 12):
            record = json.loads(json.dumps(TRANSFER))
            record["p2p_perf"]["p2p_peer"] = peer
            record["metadata"]["dump_timestamp_us"] = int(node.wall() * 1e6)
            node.append(FILE, json.dumps(record) + "\n")
        assert [(r.collective, r.peer) for r in rates(node)] == [
            ("Send", 11),
            ("Send", 12),
        ]

    def test_no_number_is_no_rate(self, node: Node) -> None:
        """A bandwidth of nan leaves the time."""
        node.says(rate="nan")
        (rate,) = rates(node)
        assert rate.bus_bandwidth is None
        assert rate.seconds == pytest.approx(0.020)

    def test_metrics_files(self, node: Node) -> None:
        """They name GPUs, not ranks: their order stands for the rank. Read when new."""
        for number in range(2):
            name = f"{FOLDER}/nccl_inspector_metrics_GPU-{number}.prom"
            node.append(name, PROM)
        assert [(r.comm, r.rank) for r in rates(node)] == [("dp", 0), ("dp", 1)]
        node.now += 10
        assert {rate.operations for rate in rates(node)} == {1}

    def test_the_largest_are_kept(self, node: Node) -> None:
        """Of more series than the limit those with large messages: they show links."""
        for power in range(10, 20):
            node.says(coll_msg_size_bytes=1 << power)
        config = Config(inspector=Inspector(series=2))
        assert [r.size_class for r in rates(node, config)] == ["512KiB", "256KiB"]


class TestReading:
    def test_nothing_there(self, node: Node) -> None:
        """Without files nothing is told, at the price of a listing."""
        assert node.poll() == CollectiveRates(node.now, (), node.carried)
        assert not node.log_reads

    def test_reads_on(self, node: Node) -> None:
        """What was read is not read again, and counts until the window has passed."""
        node.says(rate=100.0)
        rates(node)
        node.now += 200
        node.says(rate=300.0)
        (rate,) = rates(node)
        assert (rate.operations, rate.bus_bandwidth) == (2, 200e9)
        node.now += 200
        (rate,) = rates(node)
        assert (rate.operations, rate.bus_bandwidth) == (1, 300e9)
        node.now += 200
        assert rates(node) == ()

    def test_a_poll_may_run_twice(self, node: Node) -> None:
        """What one poll hands to the next is never changed: a replay repeats polls."""
        node.says()
        node.poll()
        before = node.carried
        node.says()
        first = node.poll()
        node.carried = before
        assert node.poll().rates == first.rates

    def test_old_records(self, node: Node) -> None:
        """A file of yesterday says nothing of now."""
        node.says()
        node.now += 86_400
        assert rates(node) == ()

    def test_a_record_in_two_pieces(self, node: Node) -> None:
        """A line that is not whole waits for its end."""
        node.says()
        node.says()
        raw = node.read(FILE)
        assert isinstance(raw, bytes)
        node.truncate(FILE)
        node.append(FILE, raw[:-30])
        assert rates(node)[0].operations == 1
        node.append(FILE, raw[-30:])
        assert rates(node)[0].operations == 2

    def test_another_file_of_the_same_name(self, node: Node) -> None:
        """A file that was cut, or that is another one, is read from its beginning."""
        node.says()
        node.says()
        rates(node)
        node.truncate(FILE)
        node.says()
        assert rates(node)[0].operations == 3

    def test_only_ranks_of_this_node(self, node: Node) -> None:
        """The folder of a job may be shared: other nodes read their own files."""
        node.says(path=f"{FOLDER}/node4-pid77.log")
        assert rates(node) == ()
        assert not node.log_reads

    def test_a_file_that_is_far_ahead(self, node: Node) -> None:
        """Only its newest end is read: rates are samples."""
        node.says(rate=1.0)
        node.append(FILE, "x" * 200 + "\n")
        node.append(FILE, b"\n" * FILE_BYTES)
        node.says(rate=300.0)
        (rate,) = rates(node)
        assert (rate.operations, rate.bus_bandwidth) == (1, 300e9)

    def test_damage_is_said(self, node: Node) -> None:
        """How much of a file is no record, and which file."""
        node.append(FILE, "hello\nworld\n")
        node.says()
        found = node.poll()
        assert len(found.rates) == 1
        assert found.problems == (f"{FILE}: 2 records that cannot be understood",)
