from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import Ramp, TraceRecord
from fabricmon.host.tree import Tree
from tests.manifest import SYSFS, lay_out
from tests.traces import of_manifest

ABSENT = ReadError("ENOENT")


def tree(*records: TraceRecord) -> Tree:
    """Make a tree of records that can be used whole."""
    made = Tree()
    for record in records:
        assert made.apply(record) == []
    return made


class TestFiles:
    def test_set_holds_the_exact_text(self) -> None:
        """No newline is added, and lone surrogates are the bytes they stand for."""
        made = tree(
            TraceRecord(t=0, set={"/a": "5", "/b": "x\udc80\udcff\n", "/c": ""})
        )
        assert made.read_many(["/a", "/b", "/c"], 9) == [b"5", b"x\x80\xff\n", b""]

    def test_surrogate_that_is_no_byte_is_refused(self) -> None:
        """A surrogate outside U+DC80 to U+DCFF leaves the file as it was."""
        made = tree(TraceRecord(t=0, set={"/a": "1"}))
        complaints = made.apply(TraceRecord(t=1, set={"/a": "\ud800", "/b": "2"}))
        assert len(complaints) == 1
        assert complaints[0].startswith("/a: holds a surrogate")
        assert made.read_many(["/a", "/b"], 1) == [b"1", b"2"]

    def test_file_never_mentioned_does_not_exist(self) -> None:
        """Reading, listing and following what no record names is ENOENT."""
        made = tree(TraceRecord(t=0, set={"/a/b": "1"}))
        assert made.read("/a/c", 0) == ABSENT
        assert made.names("/c") == ABSENT
        assert made.target("/a/c") is None

    def test_relative_path_is_refused(self) -> None:
        """Paths are absolute."""
        made = Tree()
        complaints = made.apply(TraceRecord(t=0, set={"a": "1", "": "2", "/": "3"}))
        assert [text.partition(",")[0] for text in complaints] == [
            "a: not an absolute path",
            ": not an absolute path",
            "/: that is the root",
        ]
        assert made.names("/") == ()


class TestRamps:
    @pytest.mark.parametrize(
        ("ramp", "seconds", "text"),
        [
            (Ramp(10, 2.5), 0, b"10\n"),
            (Ramp(10, 2.5), 1, b"12\n"),
            (Ramp(10, 2.5), 1.999, b"14\n"),
            (Ramp(10, 2.5, 13), 1, b"12\n"),
            (Ramp(10, 2.5, 13), 1000, b"13\n"),
            (Ramp(10, -1, 50), 0.5, b"9\n"),
            (Ramp(10, -1), 20, b"-10\n"),
            (Ramp(70, -0.5, 60), 0, b"60\n"),
            (Ramp(18446744073709551615, 0), 5, b"18446744073709551615\n"),
            (Ramp(9007199254740993, 1), 1, b"9007199254740994\n"),
        ],
    )
    def test_value(self, ramp: Ramp, seconds: float, text: bytes) -> None:
        """It reads value + floor(rate x time), at most the ceiling, and a newline."""
        made = tree(TraceRecord(t=7, ramp={"/a": ramp}))
        assert made.read("/a", 7 + seconds) == text
        assert made.read_many(["/a"], 7 + seconds) == [text]

    @pytest.mark.parametrize(
        "change",
        [
            TraceRecord(t=5, set={"/a": "x"}),
            TraceRecord(t=5, ramp={"/a": Ramp(3, 0)}),
            TraceRecord(t=5, err={"/a": "EIO"}),
            TraceRecord(t=5, deleted=["/a"]),
        ],
    )
    def test_ends(self, change: TraceRecord) -> None:
        """It moves until the next set, ramp, err or del of its path."""
        made = tree(TraceRecord(t=0, ramp={"/a": Ramp(0, 1)}))
        assert made.read("/a", 5) == b"5\n"
        made.apply(change)
        ended = made.read("/a", 5)
        assert ended != b"5\n"
        assert made.read("/a", 99) == ended

    def test_numbers_that_no_counter_holds_are_refused(self) -> None:
        """A rate or value beyond 64 bits cannot overflow anything later."""
        made = Tree()
        huge = {"/a": Ramp(1, 1e300), "/b": Ramp(1 << 70, 1), "/c": Ramp(1, 1, 1 << 70)}
        assert len(made.apply(TraceRecord(t=0, ramp=huge))) == 3
        assert made.names("/") == ()


class TestOrder:
    def test_within_a_record(self) -> None:
        """First del, then dir, link, set, ramp and err: each sees those before it."""
        made = tree(
            TraceRecord(t=0, set={"/d/old": "1", "/e": "1", "/f": "1"}),
            TraceRecord(
                t=1,
                deleted=["/d"],
                dir=["/d/new"],
                link={"/d/to": "new"},
                set={"/d/to/a": "2", "/d/b": "2", "/d/c": "2"},
                ramp={"/d/b": Ramp(3, 0)},
                err={"/d/c": "EIO"},
            ),
        )
        assert made.names("/d") == ("b", "c", "new", "to")
        assert made.names("/d/new") == ("a",)
        assert made.read("/d/b", 1) == b"3\n"
        assert made.read("/d/c", 1) == ReadError("EIO")


class TestErrors:
    def test_file_exists_and_fails(self) -> None:
        """A file of which only an error is known is listed, and reading it fails."""
        made = tree(TraceRecord(t=0, err={"/a/rate": "EINVAL"}))
        assert made.names("/a") == ("rate",)
        assert made.read("/a/rate", 0) == ReadError("EINVAL")
        assert made.target("/a/rate") == "/a/rate"

    @pytest.mark.parametrize(
        "change",
        [
            TraceRecord(t=1, set={"/a": "2\n"}),
            TraceRecord(t=1, ramp={"/a": Ramp(2, 0)}),
        ],
    )
    def test_ends(self, change: TraceRecord) -> None:
        """Set and ramp end an earlier error."""
        made = tree(TraceRecord(t=0, set={"/a": "1"}, err={"/a": "EIO"}), change)
        assert made.read("/a", 1) == b"2\n"

    def test_del_ends_it(self) -> None:
        """A file that comes back after a deletion no longer fails."""
        made = tree(
            TraceRecord(t=0, err={"/d": "EIO", "/d/a": "EIO"}),
            TraceRecord(t=1, deleted=["/d"]),
        )
        assert made.names("/d") == ABSENT
        made.apply(TraceRecord(t=2, set={"/d/a": "1"}))
        assert made.names("/d") == ("a",)
        assert made.read("/d/a", 2) == b"1"

    @pytest.mark.parametrize("late", [False, True])
    def test_folder_fails_to_list_and_its_files_read(self, late: bool) -> None:  # noqa: FBT001
        """An error of a folder is about listing it, before or after it has files."""
        content = TraceRecord(t=0, set={"/d/a": "1"})
        error = TraceRecord(t=0, err={"/d": "EACCES"})
        made = tree(*((content, error) if late else (error, content)))
        assert made.names("/d") == ReadError("EACCES")
        assert made.read("/d/a", 0) == b"1"
        assert made.names("/") == ("d",)

    def test_dir_lets_a_folder_be_listed_again(self) -> None:
        """Without it only the deletion of the folder would end such an error."""
        made = tree(
            TraceRecord(t=0, set={"/d/a": "1"}, err={"/d": "EACCES"}),
            TraceRecord(t=1, dir=["/d"]),
        )
        assert made.names("/d") == ("a",)

    def test_absent_by_error_is_a_dangling_name(self) -> None:
        """ENOENT as an error: the name is listed, and there is nothing behind it."""
        made = tree(TraceRecord(t=0, err={"/d/a": "ENOENT"}))
        assert made.names("/d") == ("a",)
        assert made.read("/d/a", 0) == ABSENT
        assert made.target("/d/a") is None

    def test_errors_of_the_kernel(self) -> None:
        """A folder cannot be read, a file not listed, and nothing lies in a file."""
        made = tree(TraceRecord(t=0, set={"/d/a": "1"}))
        assert made.read("/d", 0) == ReadError("EISDIR")
        assert made.names("/d/a") == ReadError("ENOTDIR")
        assert made.read("/d/a/b/c", 0) == ReadError("ENOTDIR")
        assert made.names("/d/a/b") == ReadError("ENOTDIR")


class TestFolders:
    def test_folder_exists_while_something_lies_in_it(self) -> None:
        """With its last file a folder goes, and so do those above that are empty."""
        made = tree(
            TraceRecord(t=0, set={"/a/b/c": "1", "/a/d": "1"}),
            TraceRecord(t=1, deleted=["/a/b/c"]),
        )
        assert made.names("/a") == ("d",)
        assert made.names("/a/b") == ABSENT
        made.apply(TraceRecord(t=2, deleted=["/a/d"]))
        assert made.names("/") == ()

    def test_dir_exists_while_empty(self) -> None:
        """A folder that was named stays when its last file goes, until it is deleted."""
        made = tree(
            TraceRecord(t=0, dir=["/a/b"], set={"/a/b/c": "1"}),
            TraceRecord(t=1, deleted=["/a/b/c"]),
        )
        assert made.names("/a/b") == ()
        made.apply(TraceRecord(t=2, deleted=["/a/b"]))
        assert made.names("/a") == ABSENT

    def test_del_takes_the_whole_folder(self) -> None:
        """Nothing below is left, also where it is named again later."""
        made = tree(
            TraceRecord(t=0, dir=["/d/e"], set={"/d/x/y": "1"}, link={"/d/l": "x"}),
            TraceRecord(t=1, deleted=["/d", "/d/x/y", "/never"]),
            TraceRecord(t=2, set={"/d/l/z": "2"}),
        )
        assert made.names("/d") == ("l",)
        assert made.names("/d/l") == ("z",)
        assert made.read("/d/x/y", 2) == ABSENT

    def test_file_in_the_way(self) -> None:
        """A file does not become a folder, nor a folder with files a file or link."""
        made = tree(TraceRecord(t=0, set={"/a": "1", "/d/x": "1"}, dir=["/e"]))
        complaints = made.apply(
            TraceRecord(t=1, set={"/a/b": "2", "/d": "2", "/e": "2"}, link={"/d": "e"})
        )
        assert len(complaints) == 3
        assert made.read_many(["/a", "/d/x", "/e"], 1) == [b"1", b"1", b"2"]

    def test_names_are_sorted(self) -> None:
        """Listing has one order, whatever the trace's."""
        made = tree(TraceRecord(t=0, set={"/9": "", "/10": "", "/B": "", "/a": ""}))
        assert made.names("/") == ("10", "9", "B", "a")


class TestRename:
    def test_file_keeps_its_identity(self) -> None:
        """The file under the new name is the old one, and the old name is free."""
        made = tree(TraceRecord(t=0, set={"/log": "1", "/log.1": "0"}))
        file = made.file("/log")
        made.rename("/log", "/log.1")
        assert made.file("/log.1") is file
        assert made.read_many(["/log", "/log.1"], 0) == [ABSENT, b"1"]
        assert made.names("/") == ("log.1",)

    def test_only_file_of_its_folder(self) -> None:
        """A folder goes with its last file and comes with its first."""
        made = tree(TraceRecord(t=0, set={"/a/x": "1"}))
        made.rename("/a/x", "/b/x")
        assert made.names("/") == ("b",)
        made.rename("/b/x", "/b/x")
        assert made.read("/b/x", 0) == b"1"


CASES = sorted(SYSFS.glob("*.manifest"))


@pytest.mark.parametrize("manifest", CASES, ids=lambda path: path.stem)
def test_recorded_tree_reads_as_the_kernel_reads_it(
    manifest: Path, tmp_path: Path
) -> None:
    """Listing, links and files of every recorded tree equal those of real files."""
    lay_out(manifest, tmp_path)
    made = tree(of_manifest(manifest))
    checked = 0
    for real in sorted(tmp_path.rglob("*")):
        path = f"/{real.relative_to(tmp_path)}"
        if real.is_dir():
            assert made.names(path) == tuple(
                sorted(each.name for each in real.iterdir())
            )
        elif real.is_file() and not real.resolve().is_relative_to("/proc"):
            checked += 1
            if real.resolve().is_relative_to(tmp_path):
                assert made.read(path, 0) == real.read_bytes()
            else:
                assert isinstance(made.read(path, 0), ReadError)
        if real.resolve().is_relative_to(tmp_path):
            assert made.target(path) == f"/{real.resolve().relative_to(tmp_path)}"
    assert checked or manifest.stem == "sysfs-no-class-dir"


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
targets = st.lists(names | st.just(".."), min_size=1, max_size=4).map("/".join)
records = st.builds(
    TraceRecord,
    t=st.just(0.0),
    deleted=st.lists(paths, max_size=2),
    dir=st.lists(paths, max_size=1),
    link=st.dictionaries(paths, targets, max_size=2),
    set=st.dictionaries(paths, st.sampled_from(["1", "2"]), max_size=3),
    ramp=st.dictionaries(paths, st.just(Ramp(0, 1)), max_size=1),
    err=st.dictionaries(paths, st.sampled_from(["EIO", "ENOENT"]), max_size=1),
)


@given(st.lists(records, max_size=8), st.lists(paths, max_size=8))
def test_what_is_remembered_is_never_old(
    changes: list[TraceRecord], asked: list[str]
) -> None:
    """A tree that was read all along answers as one that was not."""
    read_often, read_once = Tree(), Tree()
    for record in changes:
        read_often.apply(record)
        read_often.read_many(asked, 0)
        for path in asked:
            read_often.target(path)
    for record in changes:
        read_once.apply(record)
    assert read_often.read_many(asked, 3) == [read_once.read(p, 3) for p in asked]
    for path in asked:
        assert read_often.target(path) == read_once.target(path)
        assert read_often.names(path) == read_once.names(path)


@given(st.lists(records, max_size=10))
def test_every_listed_name_is_there(changes: list[TraceRecord]) -> None:
    """No folder is empty unless it was named, and every name is a file, folder, link."""
    made = Tree()
    for record in changes:
        made.apply(record)
    named = {made.place(path) for record in changes for path in record.dir}
    folders = ["/"]
    while folders:
        folder = folders.pop()
        listed = made.names(folder)
        if isinstance(listed, ReadError):
            continue
        assert listed or folder == "/" or folder in named
        for name in listed:
            path = f"{folder.rstrip('/')}/{name}"
            if made.is_link(path):
                continue
            if made.is_folder(path):
                folders.append(path)
            else:
                assert made.file(path) is not None
