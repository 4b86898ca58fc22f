from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import Ramp, TraceRecord
from fabricmon.host.tree import Tree

ABSENT = ReadError("ENOENT")


def tree(*records: TraceRecord) -> Tree:
    """Make a tree of records that can be used whole."""
    made = Tree()
    for record in records:
        assert made.apply(record) == []
    return made


class TestLinks:
    def test_target_is_relative_to_the_folder_of_the_link(self) -> None:
        """Also where that folder is reached through another link, as in sysfs."""
        made = tree(
            TraceRecord(
                t=0,
                link={
                    "/sys/class/net/ib0": "../../devices/0000:1a:00.0/net/ib0",
                    "/sys/class/net/ib0/device": "../../../0000:1a:00.0",
                    "/abs": "/sys/class/net",
                },
                set={"/sys/class/net/ib0/device/vendor": "0x15b3\n"},
            )
        )
        function = "/sys/devices/0000:1a:00.0"
        assert made.target("/sys/class/net/ib0/device") == function
        assert (
            made.target("/abs/ib0/../../net/ib0/device/./vendor")
            == f"{function}/vendor"
        )
        assert made.read(f"{function}/vendor", 0) == b"0x15b3\n"
        assert made.names(function) == ("net", "vendor")
        assert made.names("/abs/") == ("ib0",)

    def test_paths_resolve_before_they_apply(self) -> None:
        """A set, ramp or err through a link changes the file that it leads to."""
        made = tree(
            TraceRecord(t=0, link={"/l": "d", "/d/m": "x"}, set={"/d/x": "1"}),
            TraceRecord(t=1, set={"/l/m": "2"}),
        )
        assert made.read("/d/x", 1) == b"2"
        made.apply(TraceRecord(t=2, err={"/l/m": "EIO"}))
        assert made.read("/d/x", 2) == ReadError("EIO")
        made.apply(TraceRecord(t=3, ramp={"/l/x": Ramp(3, 0)}))
        assert made.read("/d/m", 3) == b"3\n"

    def test_new_link_leads_elsewhere_at_once(self) -> None:
        """What was read through the old link is not remembered."""
        made = tree(TraceRecord(t=0, link={"/l": "a"}, set={"/a/x": "1", "/b/x": "2"}))
        assert made.read("/l/x", 0) == b"1"
        made.apply(TraceRecord(t=1, link={"/l": "b"}))
        assert made.read("/l/x", 1) == b"2"
        assert made.names("/") == ("a", "b", "l")

    def test_del_of_a_link_leaves_what_it_leads_to(self) -> None:
        """As `rm -r` does."""
        made = tree(
            TraceRecord(t=0, link={"/l": "a"}, set={"/a/x": "1"}),
            TraceRecord(t=1, deleted=["/l"]),
        )
        assert made.names("/") == ("a",)
        assert made.read_many(["/l/x", "/a/x"], 1) == [ABSENT, b"1"]

    def test_del_through_a_link(self) -> None:
        """Links on the way to what is deleted are followed."""
        made = tree(
            TraceRecord(t=0, link={"/l": "a"}, set={"/a/x/y": "1", "/a/z": "1"}),
            TraceRecord(t=1, deleted=["/l/x"]),
        )
        assert made.names("/a") == ("z",)

    def test_dangling_link(self) -> None:
        """It is listed and leads nowhere; a set through it makes its target."""
        made = tree(TraceRecord(t=0, link={"/d/l": "gone"}))
        assert made.names("/d") == ("l",)
        assert made.target("/d/l") is None
        assert made.read("/d/l", 0) == ABSENT
        made.apply(TraceRecord(t=1, set={"/d/l": "1"}))
        assert made.names("/d") == ("gone", "l")
        assert made.read("/d/l", 1) == b"1"

    def test_circle(self) -> None:
        """Links that lead in a circle fail with ELOOP and cannot be changed through."""
        made = tree(TraceRecord(t=0, link={"/a": "b", "/b": "a", "/c": "c/c/c/c"}))
        assert made.read_many(["/a", "/c/x"], 0) == [ReadError("ELOOP")] * 2
        assert made.names("/a/b") == ReadError("ELOOP")
        assert made.target("/c") is None
        assert len(made.apply(TraceRecord(t=1, set={"/a": "1"}, deleted=["/a/x"]))) == 2
        assert made.apply(TraceRecord(t=2, deleted=["/a"], set={"/b": "1"})) == []
        assert made.read("/b", 2) == b"1"

    def test_long_paths_fail(self) -> None:
        """A path beyond the kernel's limit is an error, not a burden."""
        made = Tree()
        path = "/a" * 3000
        assert made.read(path, 0) == ReadError("ENAMETOOLONG")
        assert len(
            made.apply(TraceRecord(t=0, set={path: ""}, link={"/l": "x" * 5000}))
        )
        assert made.names("/") == ()
