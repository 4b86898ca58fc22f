import gzip
import json
from pathlib import Path

import pytest

from fabricmon.errors import TraceError
from fabricmon.host import trace_read
from fabricmon.host.trace import (
    Header,
    Module,
    Ramp,
    TraceProblem,
    TraceRecord,
)
from fabricmon.host.trace_read import TraceReader
from tests.trace_keys import EVERY_KEY, RECORD
from tests.traces import HEADER, START, read_all, write

WEEK = 7 * 86400.0


class TestRecords:
    def test_every_key_of_the_format(self, tmp_path: Path) -> None:
        """Each key is read into its place."""
        assert read_all(write(tmp_path, [EVERY_KEY])) == ([RECORD], [])

    def test_every_key_is_in_the_test(self) -> None:
        """A key that is added to the records is added here, too."""
        names = {item.encode_name for item in trace_read._FIELDS}
        assert names == set(EVERY_KEY)

    def test_unknown_keys_are_ignored(self, tmp_path: Path) -> None:
        """The format grows by adding keys: an old reader takes what it knows."""
        line = {"t": 1, "weather": [1], "set": {"/a": "1"}}
        module = {"t": 2, "module": {"a/1": {"vendor": "V", "new": 1}}}
        records, problems = read_all(write(tmp_path, [line, module]))
        assert records == [
            TraceRecord(t=1, set={"/a": "1"}),
            TraceRecord(t=2, module={"a/1": Module(vendor="V")}),
        ]
        assert problems == []

    def test_blank_lines_are_no_records(self, tmp_path: Path) -> None:
        """Blank lines and zeros after a power cut are passed over."""
        path = write(tmp_path, ["", " \t\r", '{"t": 1}\r'])
        path.write_bytes(path.read_bytes() + b"\0" * 5000 + b'{"t": 2}\n' + b"\0\0")
        assert read_all(path) == ([TraceRecord(t=1), TraceRecord(t=2)], [])

    @pytest.mark.parametrize("name", ["a.trace.jsonl", "a.trace.jsonl.gz", "a"])
    def test_compression_shows_in_the_content(self, tmp_path: Path, name: str) -> None:
        """A compressed trace is read whatever its name."""
        plain = write(tmp_path, [EVERY_KEY]).read_bytes()
        path = tmp_path / name
        path.write_bytes(gzip.compress(plain))
        assert read_all(path) == ([RECORD], [])

    def test_raw_bytes(self, tmp_path: Path) -> None:
        """Escaped, encoded or raw, a byte that is not UTF-8 is a lone surrogate."""
        path = write(tmp_path, ['{"t": 1, "set": {"/a": "\\udc80\\uDCFF"}}'])
        with path.open("ab") as file:
            file.write(b'{"t": 2, "set": {"/a": "\xed\xb2\x80\xed\xb3\xbf"}}\n')
            file.write(b'{"t": 3, "set": {"/a": "\x80\xff"}}\n')
            file.write(b'{"t": 4, "set": {"/a": "\xc3\xa4"}}\n')
        records, problems = read_all(path)
        assert [record.set["/a"] for record in records] == ["\udc80\udcff"] * 3 + ["ä"]
        assert problems == []

    def test_records_come_one_by_one(self, tmp_path: Path) -> None:
        """A line is read when it is asked for: a trace may be larger than memory."""
        reader = TraceReader(write(tmp_path, [{"t": 1}, {"t": 2}, "broken"]))
        assert next(reader).t == 1
        assert (reader.line, reader.problems) == (2, ())
        assert [record.t for record in reader] == [2]
        assert reader.problem_count == 1


class TestDamage:
    def test_surrogates_where_no_text_is_wanted(self, tmp_path: Path) -> None:
        """Half a character in the place of an object or a number costs its key."""
        lines = [
            '{"t": 1, "dcb": "\\udcff"}',
            '{"t": 2, "link": "\\udcff"}',
            '{"t": 3, "gap": "\\udcff"}',
            '{"t": "\\udcff"}',
            '{"t": 4}',
        ]
        records, problems = read_all(write(tmp_path, lines))
        assert [record.t for record in records] == [1, 2, 3, 4]
        told = {int(problem.partition(":")[0]) for problem in problems}
        assert told == {2, 3, 4, 5}

    def test_broken_lines(self, tmp_path: Path) -> None:
        """Each is said with its number, and the rest is read."""
        lines = [
            '{"t": 1}',
            "{",
            "[1]",
            '"text"',
            '{"set": {"/a": "1"}}',
            '{"t": "2"}',
            '{"t": true}',
            '{"t": 1e999}',
            '{"t": NaN}',
            '{"t": 2, "set": {"/a": "\x01"}}',
            "[" * 100_000,
            '{"t": ' + "9" * 5000 + "}",
            json.dumps(HEADER),
            '{"t": 3}',
        ]
        records, problems = read_all(write(tmp_path, lines))
        assert [record.t for record in records] == [1, 3]
        told = {int(problem.partition(":")[0]) for problem in problems}
        assert told == set(range(3, 15))
        assert problems[-1] == "14: a second header"

    def test_only_what_is_wrong_is_left_out(self, tmp_path: Path) -> None:
        """A wrong entry goes, its neighbours and the other keys stay."""
        line = {
            "t": 1,
            "set": {"/a": 5, "/b": "1", "/c": None},
            "ramp": {"/d": [1.0, 2], "/e": [1.5, 2], "/f": [1], "/g": [1, 2, 3, 4]},
            "dir": ["/h", 7],
            "del": "/i",
            "ethtool": {"eth0": {"x": "1", "y": 2.0, "z": [1.0, 1]}, "eth1": 5},
            "slow": 5,
            "gap": "long",
            "kmsg": ["a", None, "b"],
        }
        records, problems = read_all(write(tmp_path, [line]))
        assert records == [
            TraceRecord(
                t=1,
                set={"/b": "1"},
                ramp={"/d": Ramp(1, 2)},
                dir=["/h"],
                ethtool={"eth0": {"y": 2, "z": Ramp(1, 1)}},
                kmsg=["a", "b"],
            )
        ]
        places = [problem.split(" Expected")[0] for problem in problems]
        assert places == [
            "2: del:",
            "2: dir: 1:",
            "2: set: /a:",
            "2: set: /c:",
            "2: ramp: /e:",
            "2: ramp: /f:",
            "2: ramp: /g:",
            "2: ethtool: eth0: x:",
            "2: ethtool: eth1:",
            "2: slow:",
            "2: kmsg: 1:",
            "2: gap:",
        ]

    def test_key_that_appears_twice(self, tmp_path: Path) -> None:
        """The last one holds, and it is said."""
        line = '{"t": 1, "set": {"/a": "1"}, "set": {"/b": "2"}}'
        records, problems = read_all(write(tmp_path, [line]))
        assert records == [TraceRecord(t=1, set={"/b": "2"})]
        assert problems == ["2: 'set' appears twice, the last one holds"]

    def test_key_within_a_text_is_no_key(self, tmp_path: Path) -> None:
        """A log line that looks like a record is not taken for one."""
        line = {"t": 1, "append": {"/a": '{"t": 5, "append": {"t": 1}}'}}
        records, problems = read_all(write(tmp_path, [line]))
        assert records[0].append == line["append"]
        assert problems == []

    def test_time_that_runs_back(self, tmp_path: Path) -> None:
        """Such a record counts at the time of the one before."""
        lines = [{"t": -1}, {"t": 5}, {"t": 3, "set": {"/a": "1"}}, {"t": 6}]
        records, problems = read_all(write(tmp_path, lines))
        assert [record.t for record in records] == [0, 5, 5, 6]
        assert records[2].set == {"/a": "1"}
        assert problems == [
            "2: t: -1 is before 0, taken as that",
            "4: t: 3 is before 5, taken as that",
        ]

    @pytest.mark.parametrize("far", [1e12, WEEK + 1.5])
    def test_time_beyond_reason(self, tmp_path: Path, far: float) -> None:
        """A damaged digit does not make a replay last for days: the line is left out."""
        records, problems = read_all(write(tmp_path, [{"t": 1}, {"t": far}, {"t": 2}]))
        assert [record.t for record in records] == [1, 2]
        (problem,) = problems
        assert problem.startswith(f"3: t: {far:.6g} is {far - 1:.6g} s after")
        assert "more than 7 days: not used" in problem

    def test_longest_silence(self, tmp_path: Path) -> None:
        """A week without a record is believed."""
        records, problems = read_all(write(tmp_path, [{"t": 1}, {"t": 1 + WEEK}]))
        assert [record.t for record in records] == [1, 1 + WEEK]
        assert problems == []

    def test_all_that_follows_is_far(self, tmp_path: Path) -> None:
        """Records that are all too far away are told once and counted."""
        lines = [{"t": 1}, *({"t": 9e8 + n} for n in range(5))]
        with TraceReader(write(tmp_path, lines)) as reader:
            assert [record.t for record in reader] == [1]
            assert len(reader.problems) == 1
            assert reader.problem_count == 5

    def test_agent_that_did_not_run(self, tmp_path: Path) -> None:
        """What a gap takes is not played, so it may be long."""
        year = 52 * WEEK
        lines = [{"t": 1, "gap": year}, {"t": 5 + year}, {"t": 6 + 3 * year}]
        records, problems = read_all(write(tmp_path, lines))
        assert [record.t for record in records] == [1, 5 + year]
        assert len(problems) == 1

    def test_torn_last_line(self, tmp_path: Path) -> None:
        """It is said to be that; without its newline alone a line is whole."""
        path = write(tmp_path, ['{"t": 1}', '{"t": 2, "set": {"/a'])
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        records, problems = read_all(path)
        assert [record.t for record in records] == [1]
        assert problems[0].startswith("3: the last line, perhaps torn: not JSON")
        path.write_bytes(path.read_bytes() + b'": "1"}}')
        assert read_all(path)[0][-1] == TraceRecord(t=2, set={"/a": "1"})

    @pytest.mark.parametrize("damage", ["cut", "flipped", "trailing"])
    def test_damaged_compression(self, tmp_path: Path, damage: str) -> None:
        """What comes before the damage is read."""
        lines = [{"t": t, "set": {"/a": f"{t * 7919}"}} for t in range(5000)]
        packed = gzip.compress(write(tmp_path, lines).read_bytes())
        if damage == "cut":
            packed = packed[: len(packed) // 2]
        elif damage == "flipped":
            middle = len(packed) // 2
            packed = packed[:middle] + b"\xff" * 64 + packed[middle + 64 :]
        else:
            packed += b"no gzip"
        path = tmp_path / "x.gz"
        path.write_bytes(packed)
        records, problems = read_all(path)
        assert 1000 < len(records) <= 5000
        assert "cannot read on, the trace ends here" in problems[-1]

    def test_huge_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is skipped without being held in memory, and the next one is read."""
        monkeypatch.setattr(trace_read, "MAX_LINE_BYTES", 1000)
        lines = [{"t": 1}, {"t": 2, "kmsg": ["x" * 5500]}, {"t": 3}]
        records, problems = read_all(write(tmp_path, lines))
        assert [record.t for record in records] == [1, 3]
        assert problems == ["3: longer than 1000 bytes, skipped"]

    def test_problems_are_bounded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All are counted, the first are kept."""
        monkeypatch.setattr(trace_read, "MAX_PROBLEMS", 3)
        with TraceReader(write(tmp_path, ["x"] * 10)) as reader:
            assert list(reader) == []
        assert (len(reader.problems), reader.problem_count) == (3, 10)

    def test_problem_prints_as_a_place(self) -> None:
        """As compilers write it."""
        assert str(TraceProblem("a.jsonl", 3, "no time")) == "a.jsonl:3: no time"


class TestHeader:
    def test_all_fields(self, tmp_path: Path) -> None:
        """Start is Unix time, whatever its offset; the rest is as it stands."""
        header = {
            **HEADER,
            "start": "2026-01-05T09:00:00.250+01:00",
            "topology": {"rack": "r1", "ports": {}},
            "config": {"expected_devices": ["mlx5_0"]},
            "peers": {"10.0.0.2": "node02"},
            "unknown": 1,
        }
        with TraceReader(write(tmp_path, [], header)) as reader:
            assert reader.header == Header(
                node="node01",
                boot_id="b0071d",
                start=START + 0.25,
                topology={"rack": "r1", "ports": {}},
                config={"expected_devices": ["mlx5_0"]},
                peers={"10.0.0.2": "node02"},
            )
        assert reader.problems == ()

    def test_byte_order_mark(self, tmp_path: Path) -> None:
        """An editor's mark at the start does not matter."""
        path = write(tmp_path, [{"t": 1}])
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert read_all(path) == ([TraceRecord(t=1)], [])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "no header: the file is empty"),
            (b"\n\n", "no header: the file is empty"),
            (b"{", "the header is not JSON"),
            (b"[" * 100_000, "the header is not JSON"),
            (b'{"t": 0}', "the first line is no trace header"),
            (b"[1]", "the first line is no trace header"),
            (b'{"fabricmon_trace": 2}', "version 2 of the format is not known, only 1"),
            (b'{"fabricmon_trace": true}', "version True of the format is not known"),
            (b"\xff\xfe{\0}\0", "the header is not JSON"),
            (b"\x1f\x8b\x08\x00", "no header: cannot read on"),
            (b"\x1f\x8bxx", "no header: cannot read on"),
        ],
    )
    def test_unusable(self, tmp_path: Path, content: bytes, message: str) -> None:
        """Without a header there is no trace: one error that names file and line."""
        path = tmp_path / "x"
        path.write_bytes(content)
        with pytest.raises(TraceError) as caught:
            TraceReader(path)
        assert str(caught.value).startswith(f"{path}:")
        assert message in str(caught.value)

    @pytest.mark.parametrize("name", ["absent", ".", "a\0b"])
    def test_file_that_cannot_be_opened(self, tmp_path: Path, name: str) -> None:
        """It is the same error."""
        with pytest.raises(TraceError, match="cannot be read"):
            TraceReader(tmp_path / name)

    def test_sparse_header_is_used(self, tmp_path: Path) -> None:
        """The node is named after the file, the clock starts in 1970, and it is said."""
        header = {"fabricmon_trace": 1, "start": 5, "boot_id": 7, "config": [1]}
        with TraceReader(write(tmp_path, [], header)) as reader:
            assert reader.header == Header(node="node01")
        assert [problem.message.partition(":")[0] for problem in reader.problems] == [
            "start",
            "boot_id",
            "config",
            "node",
        ]
