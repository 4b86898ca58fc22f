"""ibstat beyond the recorded cases: forms, breaks and failures."""

from fabricmon.parse.ibstat import ibstat_report
from fabricmon.parse.words import LinkLayer, PortState
from tests.parse.cases import simulated

TWO_PORTS = """CA 'mlx4_0'
\tCA type: MT4099
\tNumber of ports: 2
\tNode GUID: 0x7814ed0300999ef0
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 56
"""


class TestForms:
    """The same facts in other clothes."""

    def test_one_port_without_indent(self) -> None:
        """``ibstat CA PORT`` prints ``CA: 'x'`` and no tabs."""
        (port,) = ibstat_report(simulated("healthy/ibstat_ibsim0_1.out")).ports
        assert (port.device, port.port, port.state) == ("ibsim0", 1, PortState.ACTIVE)

    def test_other_node_types_have_other_headers(self) -> None:
        """An iWARP device is not called CA."""
        text = "iWARP RNIC 'cxgb4_0'\n\tPort 1:\n\t\tState: Active\n"
        (port,) = ibstat_report(text).ports
        assert port.device == "cxgb4_0"

    def test_question_marks_say_nothing(self) -> None:
        """``???`` is printed for several states; the port is there all the same."""
        text = "CA 'x'\n\tPort 1:\n\t\tState: ???\n\t\tPhysical state: ???\n"
        (port,) = ibstat_report(text).ports
        assert port.state is None
        assert port.phys_state is None

    def test_an_unknown_line_is_passed_over(self) -> None:
        """New versions add lines in the middle."""
        text = "CA 'x'\n\tPort 1:\n\t\tMood: good\n\t\tState: Down\n"
        assert ibstat_report(text).ports[0].state is PortState.DOWN

    def test_a_missing_link_layer_file_means_infiniband(self) -> None:
        """The tool prints IB where the kernel has no such file."""
        text = "CA 'x'\n\tPort 1:\n\t\tLink layer: IB\n"
        assert ibstat_report(text).ports[0].link_layer is LinkLayer.INFINIBAND

    def test_both_streams_in_one_file(self) -> None:
        """A paste made with 2>&1 still tells of the failure."""
        text = (
            f"{TWO_PORTS}ibpanic: [7] main: stat of IB device 'x' failed: No such "
            "file or directory\n"
        )
        errors = ibstat_report(text).errors
        assert ("x", "ENOENT") in [(error.device, error.errno) for error in errors]


class TestBreaks:
    """Listings that are not whole."""

    def test_a_missing_port_is_said(self) -> None:
        """The header promises two ports, one is there."""
        report = ibstat_report(TWO_PORTS)
        assert [port.port for port in report.ports] == [1]
        assert [error.device for error in report.errors] == ["mlx4_0"]

    def test_what_came_after_a_panic_is_said_to_be_missing(self) -> None:
        """Old versions stop at the first device that fails."""
        stderr = "ibpanic: [1] main: stat of IB device 'a' failed: Invalid argument\n"
        (error, *_) = ibstat_report("", stderr, 255).errors
        assert "later devices are not listed" in error.message

    def test_a_status_without_words_is_an_error(self) -> None:
        """Nothing on stderr, and yet it failed."""
        (error, *_) = ibstat_report("", "", 1).errors
        assert "status 1" in error.message

    def test_a_tool_that_was_ended_says_so(self) -> None:
        """Status 124 is that of timeout(1)."""
        (error, *_) = ibstat_report("", "", 124).errors
        assert "in time" in error.message

    def test_debug_output_is_no_error(self) -> None:
        """With -d every ``ibwarn:`` line is talk."""
        whole = TWO_PORTS.replace("ports: 2", "ports: 1")
        stderr = "ibwarn: [5] umad_init: umad_init\nibwarn: [5] umad_get_cas_names:\n"
        assert not ibstat_report(whole, stderr, 0).errors
