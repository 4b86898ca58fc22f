"""The rows of ports on the status page."""

from dataclasses import replace

import pytest

from fabricmon.model import (
    Absence,
    LinkStatus,
    MaintenanceWindow,
    PortId,
    PortSnapshot,
    Role,
    Severity,
    Snapshot,
    Verdict,
)
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.sinks import nodes, pages
from tests.sinks.pages import cell, row, words

WORDS = {Verdict.UNKNOWN: "?", Verdict.DEGRADED: "!", Verdict.DOWN: "\u00d7"}
HUNG = nodes.health("state", "mlx5_0", in_flight_since=nodes.NOW - 180)


def port(name: str = "mlx5_0", **changes: object) -> PortSnapshot:
    """Return a healthy port with some of its fields or its identity's changed."""
    made = nodes.port(name)
    about = {key for key in changes if hasattr(made.info, key)}
    info = replace(made.info, **{key: changes.pop(key) for key in about})  # type: ignore[arg-type]
    return replace(made, info=info, **changes)  # type: ignore[arg-type]


def status(
    state: PortState | None, at: float = nodes.NOW, **more: object
) -> LinkStatus:
    """Return a state of mlx5_0/1 as its files said it."""
    return LinkStatus(PortId("mlx5_0", 1), at, state, **more)  # type: ignore[arg-type]


def order(snapshot: Snapshot) -> list[str]:
    """Return the ports in the order of their rows."""
    rows = pages.section(snapshot, "ports").findall(".//tbody/tr")
    return [each.attrib["data-port"] for each in rows]


class TestRow:
    def test_healthy_port(self) -> None:
        """A row says name, rail, role, state and rate."""
        shown = words(row(nodes.node(port())))
        assert "mlx5_0/1 net_mlx5_0 healthy" in shown
        assert "rail 0 compute ACTIVE LinkUp 400 Gb/s 4X NDR" in shown

    @pytest.mark.parametrize("verdict", WORDS)
    def test_verdict_is_a_word_and_a_sign(self, verdict: Verdict) -> None:
        """Who sees no colours sees what is wrong."""
        made = row(nodes.node(port(verdict=verdict)))
        assert verdict.word in made.attrib["class"]
        assert words(made).startswith(f"{WORDS[verdict]} mlx5_0/1 net_mlx5_0 ")
        assert words(made.find(".//span[@class='word " + verdict.word + "']"))

    def test_identity_is_folded_away(self) -> None:
        """What one tells the network team is a click away."""
        shown = words(row(nodes.node(port(leaf="leaf-3"))).find(".//details/dl"))
        assert "GUID 0x0011223344556677" in shown
        assert "leaf leaf-3" in shown
        assert "LID" not in shown  # not known

    def test_rail_of_a_label(self) -> None:
        """A topology may give rails names."""
        assert cell(port(rail="blue"), "rail") == "rail blue compute"

    def test_port_without_a_role(self) -> None:
        """That nothing is known of a port's role is said."""
        assert cell(port(rail=None, role=Role.UNKNOWN), "rail") == "role unknown"

    def test_virtual_function(self) -> None:
        """A virtual function is called one."""
        made = port(rail=None, is_vf=True, pf="0000:1a:00.0")
        assert cell(made, "rail") == "virtual function"


class TestOrder:
    def test_rails_come_first_and_in_order(self) -> None:
        """Ports stand as people count them, not as texts sort."""
        storage = port("mlx5_2", rail=None, role=Role.STORAGE)
        unknown = port("mlx5_1", rail=None, role=Role.UNKNOWN)
        virtual = port("mlx5_0", rail=None, is_vf=True)
        rails = [port(f"mlx5_{number}", rail=number) for number in (10, 9, 11)]
        found = order(nodes.node(unknown, virtual, storage, *rails))
        assert found == [
            "mlx5_9/1", "mlx5_10/1", "mlx5_11/1", "mlx5_2/1", "mlx5_1/1", "mlx5_0/1",
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["", "mlx5_", "\u0663", "9" * 400, "a1b2c3"])
    def test_any_name_has_a_place(self, name: str) -> None:
        """A strange name stops no page."""
        assert order(nodes.node(port(name), port("mlx5_0")))


class TestState:
    def test_down(self) -> None:
        """A port that is down is so in so many words."""
        down = status(PortState.DOWN, phys_state=PhysState.POLLING)
        made = row(nodes.node(port(status=down, verdict=Verdict.DOWN)))
        assert words(made.find(".//td[@class='state']")) == "DOWN Polling"
        assert words(made.find(".//td[@class='state']/b[@class='bad']")) == "DOWN"

    def test_not_in_use(self) -> None:
        """A port that nobody uses is no alarm."""
        made = port(status=status(PortState.DOWN), reasons=("DOWN: not in use",))
        found = row(nodes.node(made))
        assert found.find(".//b[@class='bad']") is None
        assert "DOWN: not in use" in words(found)

    def test_unreadable_state_is_no_state(self) -> None:
        """The reason stands where the value would."""
        lost = status(None, absent=(Absence("state", "EIO"),))
        assert cell(port(status=lost), "state") == "cannot be read EIO"

    def test_never_read(self) -> None:
        """A port of which nothing is known has a row all the same."""
        assert cell(port(status=None), "state") == "cannot be read"

    def test_old_state_has_its_age(self) -> None:
        """A state from before a read hung does not pass for new."""
        old = status(PortState.ACTIVE, nodes.NOW - 200)
        assert cell(port(status=old), "state") == "ACTIVE 3 min ago"


class TestRate:
    def test_below_expectation(self) -> None:
        """A slow link shows what it should be."""
        slow = status(PortState.ACTIVE, rate=Rate(200.0, 2, "NDR"))
        assert cell(port(status=slow), "rate") == "200 Gb/s of 400 2X NDR"

    def test_unreadable(self) -> None:
        """No rate is not rate 0."""
        lost = status(PortState.ACTIVE, absent=(Absence("rate", "EINVAL"),))
        assert cell(port(status=lost), "rate") == "\u2013 EINVAL"


class TestErrors:
    @pytest.mark.parametrize(
        ("errors", "shown"), [(None, "\u2013"), (0.0, "0"), (1110.0, "1,110")]
    )
    def test_unread_is_not_zero(self, errors: float | None, shown: str) -> None:
        """A port without readable counters has no errors per hour, not none."""
        assert cell(port(errors_per_hour=errors), "errors") == f"{shown} errors/h"

    def test_flaps_with_the_last_one(self) -> None:
        """When it last went down is what one asks next."""
        made = port(flaps=2, last_down=nodes.WALL - 60)
        assert cell(made, "flaps") == "2 flaps last 07:59:00Z"

    def test_counter_at_its_ceiling(self) -> None:
        """A counter that can show nothing more is named."""
        made = port(saturated=("symbol_error",))
        assert "symbol_error at ceiling" in cell(made, "port")


class TestNotes:
    def test_findings_are_linked(self) -> None:
        """From the row of a port one jumps to its findings, the worst first."""
        found = nodes.node(
            port(verdict=Verdict.DOWN, reasons=("a long summary",)),
            incidents=(
                pages.incident("port_flap", Severity.WARNING),
                pages.incident("port_down"),
                pages.incident("link_errors", device="mlx5_1"),
            ),
        )
        links = row(found).findall(".//a")
        assert [each.attrib["href"] for each in links] == [
            "#finding-port_down-mlx5_0",
            "#finding-port_flap-mlx5_0",
        ]
        targets = {each.attrib.get("id") for each in pages.tree(found).iter()}
        assert {each.attrib["href"][1:] for each in links} <= targets
        assert "a long summary" not in words(row(found))  # its card has it

    def test_reasons_without_a_finding(self) -> None:
        """What no finding explains is explained in the row."""
        made = port(verdict=Verdict.UNKNOWN, reasons=("values are old",))
        assert "values are old" in cell(made, "port")

    def test_hung_device(self) -> None:
        """A read that does not return shows in the rows of its device."""
        found = nodes.node(port(), port("mlx5_1"), health=(HUNG,))
        assert "a read hangs for 3 min" in words(row(found))
        assert "hangs" not in words(row(found, "mlx5_1/1"))

    def test_read_in_flight_for_a_moment(self) -> None:
        """A read that is on its way is no alarm."""
        read = replace(HUNG, in_flight_since=nodes.NOW - 0.1)
        assert "hangs" not in cell(port(), "port", health=(read,))

    def test_port_under_maintenance(self) -> None:
        """Who works on a port sees it marked, and that one alone."""
        window = MaintenanceWindow(nodes.WALL + 60, ("mlx5_0/1",))
        found = nodes.node(port(), port("mlx5_1"), maintenance=(window,))
        assert "maintenance" in words(row(found))
        assert "maintenance" not in words(row(found, "mlx5_1/1"))

    def test_node_under_maintenance(self) -> None:
        """A window of the whole node is told once, not at every port."""
        window = MaintenanceWindow(nodes.WALL + 60)
        assert "maintenance" not in cell(port(), "port", maintenance=(window,))


class TestTraffic:
    def test_last_values(self) -> None:
        """The newest traffic stands beside the drawing, as link rates are told."""
        made = port(traffic_received=(0.0, 25e9), traffic_transmitted=(0.0, 1e6))
        assert cell(made, "traffic") == "\u2193 200 Gb/s \u2191 8 Mb/s"

    def test_drawing_is_in_scale_with_the_link(self) -> None:
        """Half of the line rate is half of the height, on each side of the line."""
        made = port(traffic_received=(0.0, 25e9), traffic_transmitted=(50e9, 0.0))
        paths = row(nodes.node(made)).findall(".//path")
        assert [path.attrib["d"] for path in paths] == [
            "M58 20v0l1 -10V20z",
            "M58 20v20l1 -20V20z",
        ]

    def test_more_than_the_link_can_carry_stays_inside(self) -> None:
        """A counter that leaps does not draw over other rows."""
        made = port(traffic_received=(1e18,), traffic_transmitted=(1e18,))
        paths = row(nodes.node(made)).findall(".//path")
        assert [path.attrib["d"] for path in paths] == [
            "M59 20v-20V20z", "M59 20v20V20z",
        ]  # fmt: skip

    def test_no_rate_and_no_traffic(self) -> None:
        """Where nothing is known nothing is divided by it."""
        made = port(
            status=None,
            expected_rate_gbps=None,
            traffic_received=(0.0,),
            traffic_transmitted=(0.0,),
        )
        assert cell(made, "traffic") == "\u2193 0 b/s \u2191 0 b/s"

    def test_unknown_traffic(self) -> None:
        """Before two readings there is no traffic to show."""
        assert cell(port(), "traffic") == "\u2013"

    def test_how_far_back(self) -> None:
        """The head says what time the drawing covers."""
        source = nodes.health("traffic", "mlx5_0", due_seconds=15.0)
        found = pages.section(nodes.node(port(), health=(source,)), "ports")
        assert "traffic, 15 min" in words(found.find(".//thead"))


class TestNone:
    def test_no_device(self) -> None:
        """A node without devices says so."""
        shown = words(pages.section(nodes.node(), "ports"))
        assert "no RDMA device that is watched" in shown

    def test_not_looked_yet(self) -> None:
        """A node that is starting does not claim to have no devices."""
        found = nodes.node(health=(nodes.health("devices", last_success=None),))
        assert "not been looked at yet" in words(pages.section(found, "ports"))

    def test_no_class(self) -> None:
        """Where the class cannot be seen no claim about devices is made."""
        shown = words(pages.section(nodes.node(class_error="EACCES"), "ports"))
        assert "No RDMA port can be seen" in shown

    def test_note_on_roles(self) -> None:
        """Why ports have no role is said below them."""
        shown = pages.section(nodes.node(port(), note="too few equal ports"), "ports")
        assert "too few equal ports" in words(shown)


class TestMap:
    def test_many_ports_have_a_map(self) -> None:
        """On a node of 64 ports the bad ones are found without scrolling."""
        ports = [port(f"mlx5_{number}", rail=number) for number in range(64)]
        ports[17] = replace(ports[17], verdict=Verdict.DOWN)
        found = pages.section(nodes.node(*ports), "ports")
        squares = found.findall(".//nav//a")
        assert len(squares) == 64
        (bad,) = [each for each in squares if "healthy" not in each.attrib["class"]]
        assert words(bad) == "\u00d7 mlx5_17/1 down"
        target = found.find(f".//tr[@id='{bad.attrib['href'][1:]}']")
        assert target is not None
        assert target.attrib["data-port"] == "mlx5_17/1"

    def test_few_ports_need_none(self) -> None:
        """Sixteen rows are seen at once."""
        ports = [port(f"mlx5_{number}", rail=number) for number in range(16)]
        assert pages.section(nodes.node(*ports), "ports").find(".//nav") is None
