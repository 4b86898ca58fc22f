"""``rdma link`` and ``rdma statistic`` beyond the recorded cases."""

from fabricmon.parse.rdma_link import rdma_link_report, split_link
from fabricmon.parse.rdma_statistic import rdma_statistic_report
from fabricmon.parse.words import LinkLayer, PhysState, PortState


class TestLink:
    """One line for each link."""

    def test_a_colon_behind_the_port_is_no_index(self) -> None:
        """Versions in between print ``link mlx5_0/1: state``."""
        link = split_link("link mlx5_0/1: state ACTIVE physical_state LINK_UP ")
        assert link is not None
        assert (link.device, link.port, link.indexed) == ("mlx5_0", 1, False)

    def test_columns_may_be_padded(self) -> None:
        """Any number of blanks parts two words."""
        text = "link  mlx5_0/1   state   INIT   physical_state  LINK_UP\n"
        (port,) = rdma_link_report(text).ports
        assert port.state is PortState.INIT
        assert port.phys_state is PhysState.LINK_UP

    def test_a_lid_proves_infiniband_although_a_netdev_is_named(self) -> None:
        """IPoIB has a network device too."""
        text = "link mlx5_0/1 lid 7 sm_lid 1 lmc 0 state ACTIVE netdev ib0\n"
        assert rdma_link_report(text).ports[0].link_layer is LinkLayer.INFINIBAND

    def test_lines_without_a_link_are_passed_over(self) -> None:
        """With -d the capabilities follow on lines of their own."""
        text = "link a/1 state ACTIVE netdev x \n    caps: <CM, IP_BASED_GIDS> \n"
        assert len(rdma_link_report(text).ports) == 1

    def test_json_gives_the_same(self) -> None:
        """-j names the same things."""
        text = (
            '[{"ifindex":0,"ifname":"a","port":1,"state":"ACTIVE",'
            '"physical_state":"LINK_UP","netdev":"x","netdev_index":2}]'
        )
        line = "link a/1 state ACTIVE physical_state LINK_UP netdev x \n"
        assert rdma_link_report(text).ports == rdma_link_report(line).ports


class TestStatistic:
    """Counters of a link, in both layouts."""

    def test_both_layouts_give_the_same(self) -> None:
        """-p only breaks the line."""
        flat = rdma_statistic_report("link a/1 RNR sent 7 RxUDP 5 \n")
        pretty = rdma_statistic_report("link a/1\n    RNR sent 7\n    RxUDP 5\n")
        assert flat.ports == pretty.ports

    def test_several_links_are_kept_apart(self) -> None:
        """A new link line ends the one before."""
        report = rdma_statistic_report("link a/1 x 1\nlink b/1 x 2\n")
        assert [port.hw_counters[0].value for port in report.ports] == [1, 2]

    def test_json_gives_the_same(self) -> None:
        """Names with blanks need no guessing there."""
        text = '[{"ifindex":0,"ifname":"a","port":1,"RNR sent":7,"RxUDP":5}]'
        line = rdma_statistic_report("link a/1 RNR sent 7 RxUDP 5\n")
        assert rdma_statistic_report(text).ports == line.ports

    def test_half_a_json_text_has_no_links(self) -> None:
        """It is said that nothing was found."""
        report = rdma_statistic_report('[{"ifname":"a"')
        assert not report.ports
        assert report.errors
