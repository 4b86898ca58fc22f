"""The exposition: the same as the library's, whatever happens between scrapes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.catalogue import Directory, generic
from fabricmon.config import Config
from fabricmon.model import PortId
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.exposition import Exposition
from fabricmon.sinks.series import CounterSeries
from fabricmon.sinks.template import Fixed
from tests.sinks import nodes
from tests.sinks.scraping import (
    DRIVER_VALUES,
    PORT,
    exposition,
    lines,
    scrape,
    value,
    with_counters,
)

IB, ETHERNET = LinkLayer.INFINIBAND, LinkLayer.ETHERNET
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def assert_like_the_library(made: Exposition) -> None:
    """Compare with the library's own text: same lines, equal numbers."""
    slow = generate_latest(Fixed(made.metrics())).decode().split("\n")
    fast = made.render().body.decode().split("\n")
    assert len(slow) == len(fast)
    for theirs, ours in zip(slow, fast, strict=True):
        if theirs.startswith("#") or not theirs:
            assert theirs == ours
        else:
            (series, _, number), (same, _, own) = (
                theirs.rpartition(" "),
                ours.rpartition(" "),
            )
            assert series == same
            assert float(number) == float(own)


class _Hasty:
    """A collector in whose time a snapshot of other ports is published."""

    def __init__(self) -> None:
        self.made: Exposition | None = None
        self.calls = 0

    def collect(self) -> list[Metric]:
        """Publish on every other call, by turns."""
        self.calls += 1
        if self.made is not None:
            layer = IB if self.calls % 2 else ETHERNET
            self.made.publish(nodes.eight(layer, DRIVER_VALUES))
        return []


class TestTemplate:
    def test_a_snapshot_that_comes_meanwhile(self) -> None:
        """A scrape tells of one snapshot, whatever is published while it is made."""
        hasty = _Hasty()
        made = Exposition(Config(), (hasty,))
        made.publish(nodes.eight(IB, DRIVER_VALUES))
        hasty.made = made
        for _ in range(4):
            assert made.render().body

    @pytest.mark.parametrize("layer", [IB, ETHERNET])
    def test_text_is_that_of_the_library(self, layer: LinkLayer) -> None:
        """The fast way writes what the slow way does, on the first scrape."""
        assert_like_the_library(exposition(nodes.eight(layer, DRIVER_VALUES)))

    def test_text_stays_that_of_the_library_as_values_move(self) -> None:
        """Later scrapes fill new values into the old text."""
        made = exposition(nodes.eight(ETHERNET, DRIVER_VALUES))
        made.render()
        moved = {file: number + 5 for file, number in DRIVER_VALUES.items()}
        made.publish(nodes.eight(ETHERNET, moved))
        assert_like_the_library(made)

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from(
                    ["symbol_error", "port_rcv_data", "link_downed", "VL15_dropped"]
                ),
                st.none() | st.integers(0, 2**64 - 1),
            ),
            min_size=2,
            max_size=5,
        )
    )
    def test_values_that_come_and_go_are_noticed(
        self, steps: list[dict[str, int | None]]
    ) -> None:
        """Whatever was there at the last scrape, this one shows what is there now."""
        made = exposition(nodes.node())
        for step in steps:
            made.publish(nodes.node(with_counters(dict(step))))
            assert_like_the_library(made)

    def test_value_that_cannot_be_read_any_more_has_no_sample(self) -> None:
        """Also where nobody says that the layout changed."""
        made = exposition(nodes.node(with_counters({"symbol_error": 4})))
        series = 'fabricmon_infiniband_symbol_error_total{device="mlx5_0",port="1"}'
        assert scrape(made)[series] == "4"
        made.publish(nodes.node(with_counters({"symbol_error": None})))
        assert series not in scrape(made)
        made.publish(nodes.node(with_counters({"symbol_error": 0})))
        assert scrape(made)[series] == "0"

    def test_finding_that_opens_between_scrapes_is_there(self) -> None:
        """Findings come and go without a new layout."""
        made = exposition(nodes.node(nodes.port()))
        made.render()
        made.publish(nodes.node(nodes.port(), incidents=(nodes.incident(),)))
        assert any("finding_open" in series for series in scrape(made))
        assert_like_the_library(made)

    def test_finding_does_not_cost_the_text_of_the_counters(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A thousand ports are not written anew because one finding came."""
        made = exposition(nodes.eight(IB))
        made.render()
        monkeypatch.setattr(CounterSeries, "metrics", lambda *_: pytest.fail("anew"))
        made.publish(replace(nodes.eight(IB), incidents=(nodes.incident(),)))
        assert b"finding_open{" in made.render().body

    def test_finding_in_the_place_of_another_is_that_finding(self) -> None:
        """As many samples as before are not the same samples."""
        made = exposition(nodes.node(incidents=(nodes.incident("port_down"),)))
        made.render()
        made.publish(nodes.node(incidents=(nodes.incident("port_flap"),)))
        kinds = [series for series in scrape(made) if "finding_open" in series]
        assert len(kinds) == 1
        assert 'kind="port_flap"' in kinds[0]

    def test_snapshot_that_comes_amid_a_scrape_waits_for_the_next(self) -> None:
        """Also one with fewer ports, as after a reload while a device is away."""

        class Restless:
            def collect(self) -> list[Metric]:
                made.publish(nodes.node())
                return []

        made = Exposition(Config(), (Restless(),))
        made.publish(nodes.eight(IB, {}))
        assert b'device="mlx5_7"' in made.render().body
        assert b'device="mlx5_7"' not in made.render().body

    def test_openmetrics_is_served_to_who_prefers_it(self) -> None:
        """Prometheus asks for it first; it has the same samples."""
        made = exposition(nodes.eight(ETHERNET, DRIVER_VALUES))
        plain, other = made.render(), made.render(OPENMETRICS)
        assert plain.content_type.startswith("text/plain")
        assert other.content_type.startswith("application/openmetrics-text")
        assert dict(lines(other.body)) == dict(lines(plain.body))
        assert other.body.endswith(b"# EOF\n")

    def test_clients_cannot_make_it_keep_many_formats(self) -> None:
        """A version in the header is text of the client's."""
        made = exposition(nodes.node(nodes.port()))
        for version in range(20):
            made.render(f"application/openmetrics-text; version=1.0.{version}")
        assert len(made._ready) <= 4

    @pytest.mark.parametrize(
        "accept", ["nonsense", "*/*; q", ",;=", "text/plain;version=x"]
    )
    def test_header_that_says_nothing_gets_the_plain_format(self, accept: str) -> None:
        """Every client can read it."""
        made = exposition(nodes.node(nodes.port()))
        assert made.render(accept).content_type.startswith("text/plain; version=0.0.4")

    def test_version_that_is_none_is_no_error(self) -> None:
        """The library compares versions as they come."""
        made = exposition(nodes.node(nodes.port()))
        found = made.render("application/openmetrics-text; version=x.y")
        assert found.content_type.startswith("text/plain")

    def test_without_a_snapshot_only_the_process_is_there(self) -> None:
        """A scrape before the first poll is no error and no zeros."""
        made = Exposition(Config())
        assert not made.is_ready
        assert made.render().body == b""


class TestCounters:
    def test_words_become_octets_exactly(self) -> None:
        """Four times the words, to the last digit."""
        snapshot = nodes.node(with_counters({"port_rcv_data": 2**62 + 1}))
        series = 'infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"}'
        assert value(snapshot, series) == str(4 * (2**62 + 1))

    def test_microseconds_become_seconds(self) -> None:
        """Rounded once, not by a factor that is no binary fraction."""
        port = with_counters(
            {"rx_prio3_pause_duration": 8134}, Directory.ETHTOOL, ETHERNET
        )
        series = 'pause_received_seconds_total{device="mlx5_0",port="1",priority="3"}'
        assert value(nodes.node(port), series) == "0.008134"

    def test_counters_of_the_device_have_an_empty_port(self) -> None:
        """They belong to no port, and names of their own keep sums right."""
        spec = nodes.find(Directory.DEVICE_HW_COUNTERS, "num_cqovf", "mlx4_core")
        readings = (nodes.reading(PortId("mlx4_0", 0), [spec], other=3),)
        snapshot = nodes.node(nodes.port("mlx4_0", readings=readings))
        series = (
            "infiniband_device_completion_queue_overflows_total"
            '{device="mlx4_0",port=""}'
        )
        assert value(snapshot, series) == "3"

    def test_reading_that_two_ports_carry_is_exported_once(self) -> None:
        """Files of a device are its own, whichever port brings them."""
        spec = nodes.find(Directory.PCI, "aer_dev_correctable")
        readings = (nodes.reading(PortId("mlx5_0", 0), [spec], other=2),)
        ports = (nodes.port(readings=readings), nodes.port("mlx5_0", 2, IB, readings))
        series = 'pci_aer_correctable_errors_total{device="mlx5_0"}'
        assert value(nodes.node(*ports), series) == "2"

    def test_unknown_files_are_labels(self) -> None:
        """Names with quotes and commas are label values, never names."""
        spec = generic(Directory.HW_COUNTERS, 'od"d, name')
        port = nodes.port(readings=(nodes.reading(PORT, [spec], other=1),))
        families = text_string_to_metric_families(
            exposition(nodes.node(port)).render().body.decode()
        )
        samples = [s for f in families for s in f.samples if "hw_unknown" in s.name]
        assert [sample.labels["counter"] for sample in samples] == ['od"d, name']

    def test_zero_of_the_rdma_class_is_exported(self) -> None:
        """Zero is a value."""
        series = 'infiniband_link_downed_total{device="mlx5_0",port="1"}'
        assert value(nodes.node(with_counters({"link_downed": 0})), series) == "0"
