"""Which counters become series: bounded, and nothing that counts is lost in silence."""

from dataclasses import replace

import pytest

from fabricmon.catalogue import Directory
from fabricmon.config import Config, Devices, Metrics
from fabricmon.model import Snapshot
from fabricmon.parse.words import LinkLayer
from tests.sinks import nodes
from tests.sinks.scraping import DRIVER_VALUES, exposition, scrape, value, with_counters

IB, ETHERNET = LinkLayer.INFINIBAND, LinkLayer.ETHERNET
PRIORITY_3 = (
    'fabricmon_pause_frames_received_total{device="mlx5_0",port="1",priority="3"}'
)


class TestWhatIsShown:
    VL15 = 'fabricmon_infiniband_vl15_dropped_total{device="mlx5_0",port="1"}'

    def scrape(self, layer: LinkLayer, dropped: int) -> dict[str, str]:
        """Return the series of a port whose management packets were dropped."""
        port = with_counters({"VL15_dropped": dropped}, layer=layer)
        return scrape(exposition(nodes.node(port)))

    def test_mechanism_of_the_other_layer_is_spared_at_zero(self) -> None:
        """Ethernet has no virtual lane 15."""
        assert self.VL15 not in self.scrape(ETHERNET, 0)
        assert self.scrape(ETHERNET, 2)[self.VL15] == "2"
        assert self.scrape(IB, 0)[self.VL15] == "0"

    @pytest.mark.parametrize("layer", [None, LinkLayer.UNKNOWN])
    def test_unknown_layer_spares_nothing(self, layer: LinkLayer | None) -> None:
        """Old kernels and EFA do not say what runs below RDMA."""
        values = {"VL15_dropped": 0, "symbol_error": 0}
        found = scrape(exposition(nodes.node(with_counters(values, layer=layer))))
        assert found[self.VL15] == "0"
        assert any("symbol_error" in series for series in found)

    def test_zero_of_a_device_is_exported(self) -> None:
        """A fatal PCIe error must be seen to rise from 0 to 1."""
        port = nodes.full_port("mlx5_0", IB)
        series = 'pci_aer_uncorrectable_errors_total{device="mlx5_0",severity="fatal"}'
        assert value(nodes.node(port), series) == "0"

    def test_port_that_is_gone_leaves_its_room(self) -> None:
        """A device that comes back begins anew."""
        config = Config(metrics=Metrics(counted_series=1))
        many = {"rx_prio3_pause": 1, "tx_prio3_pause": 9}
        made = exposition(nodes.node(nodes.full_port("a", ETHERNET, many)), config)
        made.render()
        assert scrape(made)["fabricmon_series_withheld"] == "1"
        made.publish(nodes.node())
        made.render()
        assert "fabricmon_series_withheld" not in scrape(made)
        values = {"rx_prio3_pause": 1, "tx_prio3_pause": 0}
        made.publish(nodes.node(nodes.full_port("a", ETHERNET, values)))
        found = [series for series in scrape(made) if "pause_frames" in series]
        assert len(found) == 1
        assert "pause_frames_received" in found[0]

    def test_series_that_counted_stays_after_a_reset(self) -> None:
        """A counter that was cleared does not vanish from the graphs."""
        made = exposition(
            nodes.node(with_counters({"VL15_dropped": 2}, layer=ETHERNET))
        )
        made.render()
        made.publish(nodes.node(with_counters({"VL15_dropped": 0}, layer=ETHERNET)))
        assert scrape(made)[self.VL15] == "0"

    def test_only_used_priorities_are_there(self) -> None:
        """Seven of eight priorities are idle for ever."""
        port = nodes.full_port("mlx5_0", ETHERNET, DRIVER_VALUES)
        found = scrape(exposition(nodes.node(port)))
        held = [s for s in found if s.startswith("fabricmon_pause_received_seconds")]
        assert held == [PRIORITY_3.replace("frames_received", "received_seconds")]

    def test_priority_that_counts_for_the_first_time_appears(self) -> None:
        """Nobody tells the sink of a new layout then."""
        made = exposition(nodes.node(nodes.full_port("mlx5_0", ETHERNET, {})))
        assert not any("pause_frames" in series for series in scrape(made))
        port = nodes.full_port("mlx5_0", ETHERNET, {"rx_prio5_pause": 1})
        made.publish(nodes.node(port))
        assert any('priority="5"' in series for series in scrape(made))

    def test_port_has_room_for_few_and_says_so(self) -> None:
        """All priorities at once do not explode; what is left out is counted."""
        everything = {spec.file: 1 for spec in nodes.files(Directory.ETHTOOL)}
        port = nodes.full_port("mlx5_0", ETHERNET, everything)
        made = exposition(nodes.node(port), Config(metrics=Metrics(counted_series=3)))
        made.render()
        found = scrape(made)
        pauses = [series for series in found if "pause" in series]
        assert len(pauses) == 3
        assert all("pause_transmitted_seconds" in series for series in pauses)
        assert int(found["fabricmon_series_withheld"]) > 50

    def test_seconds_of_pause_take_the_room_of_lanes(self) -> None:
        """A storm must not be hidden by what error correction repairs every day."""
        config = Config(metrics=Metrics(counted_series=1))
        daily = {"rx_err_lane_0_phy": 900}
        made = exposition(
            nodes.node(nodes.full_port("mlx5_0", ETHERNET, daily)), config
        )
        made.render()
        storm = daily | {"tx_prio3_pause": 9, "tx_prio3_pause_duration": 500_000}
        made.publish(nodes.node(nodes.full_port("mlx5_0", ETHERNET, storm)))
        found = scrape(made)
        assert any("pause_transmitted_seconds" in series for series in found)
        assert not any("phy_lane_errors" in series for series in found)
        assert found["fabricmon_series_withheld"] == "2"

    def test_without_room_no_series_takes_the_place_of_another(self) -> None:
        """First come, first served: graphs do not change their meaning."""
        config = Config(metrics=Metrics(counted_series=1))
        port = nodes.full_port("mlx5_0", ETHERNET, {"rx_prio3_pause": 1})
        made = exposition(nodes.node(port), config)
        made.render()
        both = {"rx_prio3_pause": 2, "tx_prio3_pause": 9}
        made.publish(nodes.node(nodes.full_port("mlx5_0", ETHERNET, both)))
        found = [series for series in scrape(made) if "pause" in series]
        assert found == [PRIORITY_3]

    @pytest.mark.parametrize(
        ("layer", "statistics"),
        [
            (IB, None),
            (ETHERNET, DRIVER_VALUES),
            (ETHERNET, {spec.file: 1 for spec in nodes.files(Directory.ETHTOOL)}),
        ],
        ids=["InfiniBand", "RoCE", "RoCE, all statistics count"],
    )
    def test_default_series_of_eight_ports(
        self, layer: LinkLayer, statistics: dict[str, int] | None
    ) -> None:
        """At most 80 a port and 60 a node."""
        node = scrape(exposition(nodes.node()))
        found = scrape(exposition(nodes.eight(layer, statistics)))
        found.pop("fabricmon_series_withheld", None)  # a series of the node
        assert len(found) - len(node) <= 80 * 8
        assert len(node) <= 60 - 7  # the process and the listener have seven


class TestVirtualFunctions:
    def snapshot(self) -> Snapshot:
        """Return a node with one physical port and two virtual ones."""
        virtual = [nodes.port(f"mlx5_{number}") for number in (1, 2)]
        virtual = [
            replace(port, info=replace(port.info, is_vf=True)) for port in virtual
        ]
        return nodes.node(nodes.port(), *virtual)

    def test_are_folded_to_their_number_by_state(self) -> None:
        """Hundreds of them must not drown the ports that have a cable."""
        found = scrape(exposition(self.snapshot()))
        series = 'fabricmon_infiniband_virtual_functions{state="ACTIVE"}'
        assert found[series] == "2"
        assert not any('device="mlx5_1",port' in series for series in found)

    def test_are_exported_one_by_one_if_so_configured(self) -> None:
        """Who wants them has them."""
        config = Config(devices=Devices(virtual_functions="export"))
        series = 'infiniband_state_id{device="mlx5_1",port="1"}'
        assert value(self.snapshot(), series, config) == "4"
