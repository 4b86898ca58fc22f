import json
from contextlib import suppress
from pathlib import Path

import pytest

from fabricmon.host.trace import (
    Header,
    TraceRecord,
)
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from tests.trace_keys import EVERY_KEY, RECORD
from tests.traces import START


class TestWriter:
    @pytest.mark.parametrize("name", ["a.trace.jsonl", "a.trace.jsonl.gz"])
    def test_reader_reads_what_it_writes(self, tmp_path: Path, name: str) -> None:
        """Header and records come back as they were."""
        header = Header(
            node="n", boot_id="b", start=START + 0.001, peers={"10.0.0.2": "m"}
        )
        with TraceWriter(tmp_path / name, header) as writer:
            writer.write(RECORD)
            writer.write(TraceRecord(t=13))
        with TraceReader(tmp_path / name) as reader:
            assert reader.header == header
            assert list(reader) == [RECORD, TraceRecord(t=13)]
        assert reader.problems == ()

    def test_lines_are_those_of_the_format(self, tmp_path: Path) -> None:
        """Only the format's own keys and forms appear, and only those that say something."""
        path = tmp_path / "a"
        with TraceWriter(path, Header(node="n", start=START)) as writer:
            writer.write(RECORD)
            writer.write(TraceRecord(t=13))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines == [
            {"fabricmon_trace": 1, "node": "n", "start": "2026-01-05T08:00:00Z"},
            EVERY_KEY,
            {"t": 13},
        ]

    def test_name_is_given_at_the_end(self, tmp_path: Path) -> None:
        """Whoever sees the name sees a whole trace; before, the part can be read."""
        path = tmp_path / "a.trace.jsonl.gz"
        writer = TraceWriter(path, Header(node="n"))
        writer.write(TraceRecord(t=1))
        writer.flush()
        part = tmp_path / "a.trace.jsonl.gz.part"
        with TraceReader(part) as reader:
            assert [record.t for record in reader] == [1]
        assert not path.exists()
        writer.close()
        writer.close()
        assert path.exists()
        assert not part.exists()

    def test_failure_leaves_the_old_trace(self, tmp_path: Path) -> None:
        """A trace that was not completed replaces nothing."""
        path = tmp_path / "a"
        path.write_text("old")
        with suppress(KeyError), TraceWriter(path, Header(node="n")) as writer:
            writer.write(TraceRecord(t=1))
            raise KeyError
        assert path.read_text() == "old"

    def test_time_is_rounded_to_microseconds(self, tmp_path: Path) -> None:
        """Digits that mean nothing are not kept."""
        path = tmp_path / "a"
        with TraceWriter(path, Header(node="n")) as writer:
            writer.write(TraceRecord(t=0.1 + 0.2))
        assert path.read_text().endswith('{"t":0.3}\n')

    def test_same_trace_gives_the_same_bytes(self, tmp_path: Path) -> None:
        """Also compressed, and under another name."""
        for name in ("a.gz", "b.gz"):
            with TraceWriter(tmp_path / name, Header(node="n")) as writer:
                writer.write(RECORD)
        assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
