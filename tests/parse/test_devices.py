"""ibv_devinfo, ibstatus, ethtool and mlxlink beyond the recorded cases."""

import pytest

from fabricmon.parse.ethtool import ethtool_report
from fabricmon.parse.ibstatus import ibstatus_report
from fabricmon.parse.ibv_devinfo import ibv_devinfo_report
from fabricmon.parse.mlxlink import mlxlink_report
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.parse.cases import simulated


class TestIbvDevinfo:
    """Verbs view of a device."""

    def test_width_and_speed_give_the_rate(self) -> None:
        """With -v both are printed, each with its code."""
        text = (
            "hca_id:\tmlx5_0\n\tport:\t1\n\t\tstate:\tPORT_ACTIVE (4)\n"
            "\t\tactive_width:\t4X (2)\n\t\tactive_speed:\t25.0 Gbps (32)\n"
            "\t\tphys_state:\tLINK_UP (5)\n"
        )
        (port,) = ibv_devinfo_report(text).ports
        assert port.rate == Rate(100, 4, "EDR")
        assert port.phys_state is PhysState.LINK_UP

    def test_a_device_that_cannot_be_opened_is_an_error(self) -> None:
        """The message does not name it."""
        report = ibv_devinfo_report("", "Failed to open device\n", 255)
        assert [error.device for error in report.errors] == [None]


class TestIbstatus:
    """The shell script over sysfs."""

    def test_tabs_and_blanks_both_indent(self) -> None:
        """Versions differ in how they line up the values."""
        report = ibstatus_report(simulated("degraded/host-ibstatus.out"))
        assert [port.rate.width for port in report.ports] == [1, 4]

    def test_unknown_is_none(self) -> None:
        """The script prints it for what it could not read."""
        text = (
            "Infiniband device 'a' port 1 status:\n\tdefault gid:\t unknown\n"
            "\tbase lid:\t unknown\n\tstate:\t\t unknown\n\trate:\t\t unknown\n"
        )
        (port,) = ibstatus_report(text).ports
        assert (port.state, port.lid, port.guid) == (None, None, None)
        assert port.rate == Rate()


class TestEthtool:
    """Driver statistics."""

    def test_the_last_colon_ends_a_name(self) -> None:
        """Some drivers number their queues in brackets."""
        (group,) = ethtool_report("     [0]: rx_ucast_packets: 5\n").groups or ()
        assert group.counters[0].name == "[0]: rx_ucast_packets"

    @pytest.mark.parametrize("line", ["NIC statistics:", "a: -5", "b: 1.5", ": 4"])
    def test_lines_without_a_count_are_passed_over(self, line: str) -> None:
        """Titles, negative values and fractions are no counters."""
        (group,) = ethtool_report(line).groups or ()
        assert not group.counters


class TestMlxlink:
    """Link, module and bit errors."""

    def test_colours_do_not_matter(self) -> None:
        """On a terminal the values are coloured."""
        text = (
            "Operational Info\n----------------\n"
            "State   : \x1b[32mActive\x1b[0m\nSpeed   : \x1b[32mIB-NDR\x1b[0m\n"
            "Width   : \x1b[32m4x\x1b[0m\n"
        )
        link = mlxlink_report(text).link
        assert link is not None
        assert (link.state, link.speed_gbps) == (PortState.ACTIVE, 400)

    def test_not_available_is_none(self) -> None:
        """N/A stands for numbers, lists and words alike."""
        text = (
            "Operational Info\n---\nState : N/A\nSpeed : N/A\nAuto Negotiation : N/A\n"
        )
        link = mlxlink_report(text).link
        assert link is not None
        assert (link.state, link.speed_gbps, link.autoneg) == (None, None, None)

    def test_the_status_of_the_tool_is_an_error(self) -> None:
        """Code 1 comes with a message and without sections."""
        text = '{"status": {"code": 1, "message": "Device is not supported"}}'
        (error,) = mlxlink_report(text).errors
        assert "Device is not supported" in error.message

    def test_half_a_json_text_is_an_error(self) -> None:
        """The tool was ended while it wrote."""
        (error,) = mlxlink_report('{"result": {"output"').errors
        assert "JSON" in error.message

    def test_an_error_line_is_an_error(self) -> None:
        """Text output marks it with -E-."""
        (error,) = mlxlink_report("-E- Unknown device mlx5_9\n").errors
        assert "mlx5_9" in error.message

    def test_a_lane_without_a_value_keeps_its_place(self) -> None:
        """The lanes behind it are not moved up."""
        text = "Module Info\n---\nRx Power Current [dBm] : 1.5,N/A,2 [-10..6]\n"
        module = mlxlink_report(text).module
        assert module is not None
        assert list(module.rx_dbm or ()) == [1.5, None, 2]
        assert module.rx_range == (-10, 6)
