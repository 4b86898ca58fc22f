"""Head and foot of the status page: verdict, notices, sources, blind spots."""

from dataclasses import replace

import pytest

from fabricmon.model import (
    Blindness,
    BootInfo,
    Health,
    MaintenanceWindow,
    ReadFailure,
    Severity,
    Snapshot,
    Verdict,
)
from tests.sinks import nodes, pages
from tests.sinks.pages import incident, words

FAILURE = ReadFailure("mlx5_9", 1, "ports/1/state", "EIO", "cannot be read")


def header(snapshot: Snapshot) -> str:
    """Return the head of the page."""
    return words(pages.tree(snapshot).find("header"))


def notices(snapshot: Snapshot, silent: float = 0) -> list[str]:
    """Return what stands between the head and the findings."""
    found = pages.tree(snapshot, silent).findall("p")
    return [f"{each.attrib['class']}: {words(each)}" for each in found]


def sources(*health: Health, **changes: object) -> str:
    """Return what the page says of these sources."""
    return words(pages.section(nodes.node(health=health, **changes), "sources"))


class TestHeader:
    def test_healthy(self) -> None:
        """A healthy node says so in one line."""
        boot = BootInfo(nodes.NOW, "b", 864_000.0)
        shown = header(nodes.node(nodes.port(), boot=boot))
        assert shown.startswith(
            "n1 healthy 1 port, all healthy \u00b7 nothing is open as of 08:00:00Z"
        )
        assert "watched for 60 s \u00b7 node up 10 d" in shown

    def test_counts(self) -> None:
        """How many ports are how bad, and how many findings."""
        ports = [nodes.port(f"mlx5_{number}") for number in range(4)]
        ports[1] = replace(ports[1], verdict=Verdict.DEGRADED)
        ports[2] = replace(ports[2], verdict=Verdict.DOWN)
        found = nodes.node(
            *ports,
            verdict=Verdict.DOWN,
            incidents=(
                incident("port_down"),
                incident("port_flap", Severity.WARNING),
                incident("counter_reset", Severity.INFO),
            ),
        )
        shown = header(found)
        assert "down 1 down and 1 degraded of 4 ports" in shown
        assert "open: 1 critical, 1 warning and 1 info" in shown

    def test_verdict_is_announced(self) -> None:
        """Screen readers hear a change of the verdict without being asked."""
        found = pages.tree(nodes.node(verdict=Verdict.UNKNOWN)).find(
            "header/p[@role='status']"
        )
        assert words(found).startswith("unknown no port")

    def test_title(self) -> None:
        """The tab of the browser tells the verdict."""
        found = pages.tree(nodes.node(verdict=Verdict.DOWN))
        assert found.attrib["data-title"] == "down - n1"
        icons = {
            pages.tree(nodes.node(verdict=verdict)).attrib["data-icon"]
            for verdict in Verdict
        }
        assert len(icons) == len(Verdict)


class TestNotices:
    def test_none(self) -> None:
        """A node without trouble has none."""
        assert notices(nodes.node(nodes.port())) == []

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (
                "ENOENT",
                "No RDMA driver is loaded: /sys/class/infiniband does not exist",
            ),
            ("EACCES", "/sys/class/infiniband cannot be read (EACCES)"),
        ],
    )
    def test_class_error(self, error: str, said: str) -> None:
        """That there is no driver is another thing than that one may not look."""
        (notice,) = notices(nodes.node(class_error=error))
        assert notice.startswith(f"notice bad: {said}")
        assert notice.endswith("Nothing about RDMA can be judged.")

    def test_agent_that_hangs(self) -> None:
        """The page of an agent whose loop stands still does not look fresh."""
        (notice,) = notices(nodes.node(nodes.port()), silent=95.0)
        assert "has not looked at the node for 95 s" in notice

    def test_maintenance(self) -> None:
        """Windows say of what, until when and why."""
        windows = (
            MaintenanceWindow(nodes.WALL + 5400, ("mlx5_0/1", "mlx5_1/1"), "cables"),
            MaintenanceWindow(nodes.WALL + 600),
        )
        named, whole = notices(nodes.node(maintenance=windows))
        assert named == (
            "notice info: Maintenance of mlx5_0/1 and mlx5_1/1 for 90 min more, "
            "until 09:30:00Z : cables"
        )
        assert whole.startswith("notice info: Maintenance of the whole node for 10 min")

    def test_what_is_ignored_or_lost(self) -> None:
        """A maintenance file with mistakes and a full disk are no secret."""
        found = nodes.node(
            maintenance_error="entry 2: no time", unsaved=FAILURE, unrecorded=FAILURE
        )
        ignored, lost, unkept = notices(found)
        assert ignored == "notice warning: Of the maintenance file: entry 2: no time"
        assert lost.startswith("notice warning: What must survive a restart")
        assert lost.endswith("cannot be saved: cannot be read")
        assert unkept.endswith("minutes are kept no longer: cannot be read")


class TestSources:
    def test_all_well(self) -> None:
        """What works takes one line, with the details folded away."""
        shown = sources(
            nodes.health("errors", "mlx5_0", last_success=nodes.NOW - 4),
            nodes.health("errors", "mlx5_1", duration_seconds=0.025),
            nodes.health("devices"),
        )
        assert "3 of 3 sources answer" in shown
        assert "errors 5 s 2 4 s 25.0 ms" in shown
        assert "devices 5 s 1 1 s 10.0 ms" in shown

    def test_single_files_that_fail(self) -> None:
        """A source that answers may still have files that cannot be read."""
        failing = nodes.failing("errors", "mlx5_0", ("EINVAL", 1200), ("EIO", 3))
        shown = sources(replace(failing, ok=True))
        assert "1 of 1 source answer" in shown
        assert "EINVAL 1,200, EIO 3" in shown

    def test_failing(self) -> None:
        """A source that fails is named with its unit, its error and its age."""
        bad = nodes.failing("errors", "mlx5_0", ("EIO", 12))
        shown = sources(
            replace(bad, last_success=nodes.NOW - 240), nodes.health("boot")
        )
        assert (
            "errors of mlx5_0: every read fails; EIO 12; last answer 4 min ago" in shown
        )
        assert "1 of 2 sources answer" in shown

    def test_hung(self) -> None:
        """A read that hangs is told with its age."""
        hung = nodes.health("state", "mlx5_0", in_flight_since=nodes.NOW - 180)
        assert (
            "state of mlx5_0: a read hangs for 3 min; last answer 1 s ago"
            in sources(hung)
        )

    def test_never_answered(self) -> None:
        """A source that never answered has no age."""
        bad = nodes.health("boot", ok=False, last_success=None)
        assert "boot of the node: every read fails; never answered" in sources(bad)

    def test_read_rarely(self) -> None:
        """A group of files that only fails is read rarely, and that is said."""
        spared = nodes.health("driver", "mlx5_0", quarantined="every file: EINVAL")
        assert "driver of mlx5_0: read rarely: every file: EINVAL" in sources(spared)

    def test_what_cannot_be_read_at_all(self) -> None:
        """Devices and folders that fail as a whole are listed."""
        shown = sources(failures=(FAILURE,))
        assert "Cannot be read: ports/1/state cannot be read EIO" in shown


class TestBlindSpots:
    def test_listed_by_reason(self) -> None:
        """What cannot be judged is named once for each reason."""
        blind = (
            Blindness("link_errors", "no counter"),
            Blindness("rate_degraded", "no rate"),
            Blindness("link_unstable", "no counter"),
        )
        found = pages.section(nodes.node(blind=blind), "blind")
        counters, rates = map(words, found.findall(".//li"))
        assert counters == (
            "Bit errors on the link (link_errors) and Link retrains (link_unstable): "
            "no counter"
        )
        assert rates == "Link rate below expectation (rate_degraded): no rate"

    def test_none(self) -> None:
        """An agent that can judge everything claims no blind spot."""
        assert pages.tree(nodes.node(blind=())).find("section[@id='blind']") is None


def test_footer() -> None:
    """The page tells what the agent costs, and which configuration it has."""
    shown = words(pages.tree(nodes.node(firmware_reads=2400)).find("footer"))
    assert "configuration c0ffee" in shown
    assert "2,400 reads reached firmware (40 a second)" in shown


def test_footer_of_the_first_second() -> None:
    """Nothing is divided by a time that has not passed."""
    found = nodes.node(started=nodes.WALL)
    assert "a second" not in words(pages.tree(found).find("footer"))
