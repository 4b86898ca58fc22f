"""perfquery, ibqueryerrors, iblinkinfo, ibnetdiscover on a simulated subnet."""

import pytest

from fabricmon.parse.counter_names import file_name, is_saturated
from fabricmon.parse.ibcheckerrors import ibcheckerrors_report
from fabricmon.parse.iblinkinfo import iblinkinfo_report
from fabricmon.parse.ibnetdiscover import ibnetdiscover_report
from fabricmon.parse.ibqueryerrors import ibqueryerrors_report
from fabricmon.parse.perfquery import perfquery_report
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.parse.cases import simulated


class TestPerfquery:
    """Blocks of counters."""

    def test_all_ports_of_a_switch_are_ports(self) -> None:
        """-l -a prints a block for each."""
        report = perfquery_report(simulated("errors/perfquery_-l_-a_2.out"))
        assert [port.port for port in report.ports] == list(range(10))

    def test_the_sum_over_a_switch_is_no_port(self) -> None:
        """Port 255 asks for all ports at once."""
        report = perfquery_report(simulated("errors/perfquery_-a_2.out"))
        assert not report.ports
        assert report.all_ports is not None
        assert report.all_ports[0].key == "lid2"

    def test_a_full_64_bit_counter_is_saturated(self) -> None:
        """The extended set has wider fields, with their own ceiling."""
        (port,) = perfquery_report(simulated("errors/perfquery_-x_2_1.out")).ports
        assert port.saturated == ("PortXmitData",)

    def test_a_query_that_timed_out_is_an_error(self) -> None:
        """Both streams tell of it."""
        stdout = simulated("madloss/perfquery_2_1.out")
        stderr = simulated("madloss/perfquery_2_1.err")
        report = perfquery_report(stdout, stderr, 255)
        assert not report.ports
        assert len(report.errors) == 2


class TestIbqueryerrors:
    """Ports above a threshold."""

    def test_traffic_beside_the_errors_is_read(self) -> None:
        """--data adds counters with figures in brackets that are rounded."""
        report = ibqueryerrors_report(simulated("errors/ibqueryerrors_--data.out"))
        values = {item.name: item.value for item in report.ports[1].counters}
        assert values["PortRcvData"] == 1234567891635

    def test_an_incomplete_sweep_is_an_error(self) -> None:
        """The summary counts ports that did not answer."""
        report = ibqueryerrors_report(simulated("madloss/ibqueryerrors.out"))
        assert any("incomplete" in error.message for error in report.errors)

    @pytest.mark.parametrize(
        "line",
        ["GUID x port 1: [A == 1]", "GUID 0x1 port x: [A == 1]"],
    )
    def test_a_line_without_guid_or_port_is_passed_over(self, line: str) -> None:
        """It belongs to nothing."""
        assert not ibqueryerrors_report(line).ports


class TestIbcheckerrors:
    """The script of old releases."""

    def test_the_sum_over_a_switch_is_no_port(self) -> None:
        """``port all`` is checked before the ports."""
        line = "#warn: counter RcvErrors = 9 (threshold 10) lid 3 port all"
        report = ibcheckerrors_report(line)
        assert not report.ports
        assert report.all_ports is not None
        assert report.all_ports[0].key == "lid3"

    def test_a_warning_without_numbers_is_passed_over(self) -> None:
        """It says that a query failed."""
        line = "#warn: counter RcvErrors = ? (threshold 10) lid x port y"
        assert not ibcheckerrors_report(line).ports


class TestIblinkinfo:
    """Ports and cables of a subnet."""

    def test_lane_rate_on_the_wire_gives_the_speed(self) -> None:
        """53.125 Gb/s a lane is HDR: 200 Gb/s with four lanes."""
        report = iblinkinfo_report(simulated("degraded/iblinkinfo.out"))
        assert report.ports[0].rate == Rate(200, 4, "HDR")

    def test_both_forms_give_the_same_ports(self) -> None:
        """-l puts everything on one line."""
        short = iblinkinfo_report(simulated("degraded/iblinkinfo.out"))
        long = iblinkinfo_report(simulated("degraded/iblinkinfo_-l.out"))
        assert set(short.ports) == set(long.ports)

    def test_a_cable_is_listed_once(self) -> None:
        """Both ends print it."""
        report = iblinkinfo_report(simulated("degraded/iblinkinfo.out"))
        assert len(report.ports) == 2 * len(report.links or ())

    def test_a_link_that_is_down_has_no_rate(self) -> None:
        """Width and speed are left blank."""
        report = iblinkinfo_report(simulated("linkdown/iblinkinfo.out"))
        down = [port for port in report.ports if port.state is PortState.DOWN]
        assert {port.phys_state for port in down} == {PhysState.POLLING}
        assert {port.rate for port in down} == {Rate()}

    def test_cables_are_told_apart_before_a_subnet_manager_came(self) -> None:
        """All LIDs are 0 then."""
        report = iblinkinfo_report(simulated("nosm/iblinkinfo.out"))
        assert len(report.links or ()) == len(report.ports) // 2
        assert {port.state for port in report.ports} == {PortState.INIT}

    def test_what_a_link_could_be_is_kept(self) -> None:
        """It marks a link below what both ends can do."""
        report = iblinkinfo_report(simulated("degraded/iblinkinfo.out"))
        better = [link.could_be for link in report.links or ()]
        assert "12X, 53.125 Gbps" in better


class TestIbnetdiscover:
    """Cables by both ends."""

    def test_a_cable_is_listed_once(self) -> None:
        """19 cables make 38 lines."""
        report = ibnetdiscover_report(simulated("degraded/ibnetdiscover_-p.out"))
        assert len(report.links or ()) == 19

    def test_names_may_hold_dashes(self) -> None:
        """The separator has quotes around it."""
        line = "CA 1 1 0x1 4x NDR - SW 2 9 0x2 ( 'a - b' - 'leaf' )"
        (link,) = ibnetdiscover_report(line).links or ()
        assert (link.a.name, link.b.name) == ("a - b", "leaf")

    def test_a_far_end_without_guid_is_no_cable(self) -> None:
        """The line was cut off."""
        report = ibnetdiscover_report("CA 1 1 0x1 4x NDR - SW 2 9\n")
        assert not report.links


class TestCounterNames:
    """One counter, three names."""

    def test_all_names_lead_to_the_file(self) -> None:
        """Old and new tools mean the same file."""
        names = ("SymbolErrors", "SymbolErrorCounter", "symbol_error")
        assert {file_name(name) for name in names} == {"symbol_error"}

    def test_an_unknown_name_stays_as_it_is(self) -> None:
        """Counters of drivers are not in this table."""
        assert file_name("RNR sent") == "RNR sent"

    def test_ceilings_of_wider_fields_count_too(self) -> None:
        """Some devices report errors with 32 bits."""
        assert is_saturated("symbol_error", 65535)
        assert is_saturated("SymbolErrors", 2**32 - 1)
        assert not is_saturated("symbol_error", 65536)

    def test_counters_that_wrap_have_no_ceiling(self) -> None:
        """255 means nothing on a driver's counter."""
        assert not is_saturated("local_ack_timeout_err", 255)
