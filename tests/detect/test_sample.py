"""Verdicts of one sample."""

import pytest

from fabricmon.detect.sample import judge_node, judge_port
from fabricmon.model import Verdict
from fabricmon.parse.report import (
    BitErrors,
    CounterGroup,
    CounterValue,
    FabricLink,
    FabricPort,
    LinkDetail,
    ModuleDetail,
    PortReport,
    Report,
    SweepSummary,
    ToolFailure,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate


def port(state: PortState | None, phys: PhysState | None = None) -> PortReport:
    """Return an InfiniBand port."""
    return PortReport("mlx5_0", 1, state, phys, LinkLayer.INFINIBAND)


class TestState:
    """The state decides first."""

    @pytest.mark.parametrize(
        ("state", "verdict"),
        [
            (PortState.ACTIVE, Verdict.HEALTHY),
            (PortState.DOWN, Verdict.DOWN),
            (PortState.INIT, Verdict.DOWN),
            (PortState.ARMED, Verdict.DOWN),
            (PortState.ACTIVE_DEFER, Verdict.DEGRADED),
            (PortState.NOP, Verdict.UNKNOWN),
            (None, Verdict.UNKNOWN),
        ],
    )
    def test_each_state_has_its_verdict(
        self, state: PortState | None, verdict: Verdict
    ) -> None:
        """Only ACTIVE carries traffic."""
        assert judge_port(port(state)).verdict is verdict

    def test_a_good_physical_link_does_not_make_a_port_healthy(self) -> None:
        """A virtual function is DOWN above a link that is up."""
        judged = judge_port(port(PortState.DOWN, PhysState.LINK_UP))
        assert judged.verdict is Verdict.DOWN
        assert "physical link is up" in judged.reasons[0]

    def test_an_active_port_needs_no_physical_state(self) -> None:
        """Devices of iWARP print NOP there."""
        assert judge_port(port(PortState.ACTIVE)).reasons == ()

    def test_init_points_to_the_subnet_manager(self) -> None:
        """It is not a cable fault."""
        assert "subnet manager" in judge_port(port(PortState.INIT)).reasons[0]

    def test_counters_are_enough_for_tools_without_states(self) -> None:
        """Clean counters speak for the port, none at all say nothing."""
        counted = PortReport("a", 1, counters=(CounterValue("link_downed", 0),))
        assert judge_port(counted, tells_state=False).verdict is Verdict.HEALTHY
        silent = judge_port(PortReport("a", 1), tells_state=False)
        assert silent.verdict is Verdict.UNKNOWN

    def test_bad_counters_of_a_port_without_state_are_known(self) -> None:
        """Degraded is worse than unknown and says more."""
        bad = PortReport("a", 1, counters=(CounterValue("link_downed", 255),))
        assert judge_port(bad).verdict is Verdict.DEGRADED


class TestWidth:
    """One lane where there should be more."""

    def active(self, layer: LinkLayer, rate: Rate) -> Verdict:
        """Judge an active port with this rate."""
        found = PortReport("a", 1, PortState.ACTIVE, link_layer=layer, rate=rate)
        return judge_port(found).verdict

    def test_one_lane_of_infiniband_is_degraded(self) -> None:
        """Its cables have two or four."""
        found = self.active(LinkLayer.INFINIBAND, Rate(50, 1, "HDR"))
        assert found is Verdict.DEGRADED

    def test_one_lane_of_ethernet_is_ordinary(self) -> None:
        """25 Gb/s is one lane there."""
        found = self.active(LinkLayer.ETHERNET, Rate(25, 1, "EDR"))
        assert found is Verdict.HEALTHY

    def test_software_devices_are_left_alone(self) -> None:
        """They claim one lane of the slowest speed."""
        found = self.active(LinkLayer.INFINIBAND, Rate(2.5, 1, "SDR"))
        assert found is Verdict.HEALTHY


class TestNode:
    """Everything that a text says."""

    def judge(self, report: Report) -> Verdict:
        """Judge a report as a whole."""
        ports = tuple(
            judge_port(item, tells_state=report.tells_state) for item in report.ports
        )
        return judge_node(report, ports).verdict

    def test_the_worst_port_decides(self) -> None:
        """One port down is a node with a port down."""
        ports = (port(PortState.ACTIVE), port(PortState.DOWN))
        assert self.judge(Report("ibstat", ports)) is Verdict.DOWN

    def test_something_unread_makes_a_healthy_node_unknown(self) -> None:
        """What was not listed may be broken."""
        errors = (ToolFailure("ibstat", "x"),)
        report = Report("ibstat", (port(PortState.ACTIVE),), errors)
        assert self.judge(report) is Verdict.UNKNOWN

    def test_nothing_found_is_unknown(self) -> None:
        """An empty node proves nothing."""
        assert self.judge(Report("ibstat")) is Verdict.UNKNOWN

    def test_a_sweep_without_bad_ports_is_healthy(self) -> None:
        """The tool prints bad ports only."""
        clean = Report("ibqueryerrors", summary=SweepSummary(4, 0, 40, 0))
        assert self.judge(clean) is Verdict.HEALTHY

    def test_bad_ports_that_were_cut_off_are_unknown(self) -> None:
        """The summary counts what the text does not hold."""
        cut = Report("ibcheckerrors", summary=SweepSummary(209, 0, 716, 103))
        assert self.judge(cut) is Verdict.UNKNOWN

    def test_sums_are_judged_where_there_are_no_ports(self) -> None:
        """A full counter among all ports is one of them."""
        sums = (CounterGroup("lid2", (CounterValue("LinkDownedCounter", 255),)),)
        report = Report("perfquery", tells_state=False, all_ports=sums)
        assert self.judge(report) is Verdict.DEGRADED


class TestCable:
    """Cables of a subnet."""

    def judge(self, **found: str) -> Verdict:
        """Judge one cable."""
        end = FabricPort("CA", 1, 1, "0x1", "a")
        report = Report("x", tells_state=False, links=(FabricLink(end, end, **found),))
        return judge_node(report, ()).verdict

    def test_a_speed_below_what_both_ends_can_is_degraded(self) -> None:
        """The tool says what it could be."""
        found = self.judge(width="4x", speed="EDR", could_be="12X, 53.125 Gbps")
        assert found is Verdict.DEGRADED

    def test_nobody_misses_twelve_lanes(self) -> None:
        """Ports claim it, cables do not have it."""
        found = self.judge(width="4x", speed="HDR", could_be="12X")
        assert found is Verdict.HEALTHY

    def test_missing_lanes_are_degraded(self) -> None:
        """A cable of four lanes runs on two."""
        found = self.judge(width="2x", speed="HDR", could_be="4X")
        assert found is Verdict.DEGRADED

    def test_one_lane_is_degraded_although_nobody_says_so(self) -> None:
        """The listing of ports has no hint."""
        assert self.judge(width="1x", speed="NDR") is Verdict.DEGRADED


class TestDetail:
    """Operational details, bit errors and module of one link."""

    def judge(
        self,
        link: LinkDetail | None = None,
        errors: BitErrors | None = None,
        module: ModuleDetail | None = None,
    ) -> Verdict:
        """Judge what mlxlink says."""
        report = Report(
            "mlxlink", tells_state=False, link=link, bit_errors=errors, module=module
        )
        return judge_node(report, ()).verdict

    def test_an_active_link_is_healthy(self) -> None:
        """Status 0 has no advice."""
        link = LinkDetail(PortState.ACTIVE, "Active", status_opcode=0)
        assert self.judge(link) is Verdict.HEALTHY

    def test_advice_from_the_firmware_is_degraded(self) -> None:
        """Bad signal integrity on a link that is up."""
        link = LinkDetail(PortState.ACTIVE, "Active", status_opcode=15)
        assert self.judge(link) is Verdict.DEGRADED

    def test_a_link_that_polls_is_down(self) -> None:
        """The word is none of the port states."""
        link = LinkDetail(None, "Polling", status_opcode=1024)
        assert self.judge(link) is Verdict.DOWN

    def test_a_link_without_state_is_unknown(self) -> None:
        """N/A says nothing."""
        assert self.judge(LinkDetail()) is Verdict.UNKNOWN

    def test_errors_before_correction_are_ordinary(self) -> None:
        """Correction is there for them."""
        errors = BitErrors(0, 1.5e-254, raw_ber=5e-10, raw_errors_per_lane=(10**7,))
        assert self.judge(errors=errors) is Verdict.HEALTHY

    def test_errors_after_correction_are_degraded(self) -> None:
        """They reach the packets."""
        assert self.judge(errors=BitErrors(5000, 1e-10)) is Verdict.DEGRADED

    def test_a_link_that_went_down_often_is_degraded(self) -> None:
        """The counter remembers what the state does not show."""
        assert self.judge(errors=BitErrors(link_down=200)) is Verdict.DEGRADED

    def test_a_hot_module_is_degraded(self) -> None:
        """Its own limit counts."""
        module = ModuleDetail(temperature_c=81, temperature_range=(-10, 80))
        assert self.judge(module=module) is Verdict.DEGRADED

    def test_weak_light_is_degraded(self) -> None:
        """One lane below the module's limit."""
        module = ModuleDetail(rx_dbm=(1.5, -12.0), rx_range=(-10.4, 6))
        assert self.judge(module=module) is Verdict.DEGRADED

    def test_a_dark_lane_is_not_used(self) -> None:
        """No light at all is a lane without a fibre."""
        module = ModuleDetail(rx_dbm=(1.5, -40.0), rx_range=(-10.4, 6))
        assert self.judge(module=module) is Verdict.HEALTHY
