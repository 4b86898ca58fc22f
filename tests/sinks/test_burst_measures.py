from tests.sinks import nodes, pages
from tests.sinks.scraping import exposition, scrape


class TestSeries:
    def test_a_window_becomes_four_series_a_direction(self) -> None:
        """Busy ratio, rate at its quantile, mean and pauses."""
        burst = nodes.burst("mlx5_0", busy=0.25, p99=4e10, mean=1e10, idle_gaps=2)
        found = scrape(exposition(nodes.node(nodes.port(), bursts=(burst,))))
        place = 'device="mlx5_0",direction="received",port="1"'
        assert found[f"fabricmon_port_busy_ratio{{{place}}}"] == "0.25"
        rate = f'fabricmon_port_burst_rate_bytes_per_second{{{place},quantile="0.99"}}'
        assert float(found[rate]) == 4e10
        mean = f"fabricmon_port_burst_mean_bytes_per_second{{{place}}}"
        assert float(found[mean]) == 1e10
        assert float(found[f"fabricmon_port_burst_idle_gaps{{{place}}}"]) == 2

    def test_no_window_no_series(self) -> None:
        """A port that was never sampled is not idle."""
        found = scrape(exposition(nodes.node(nodes.port())))
        assert not any("busy" in series or "burst" in series for series in found)


class TestPage:
    def test_the_busier_direction_is_shown(self) -> None:
        """With its rate, which a mean cannot tell."""
        bursts = (
            nodes.burst("mlx5_0", busy=0.25, p99=4.9e10),
            nodes.burst("mlx5_0", "transmitted", busy=0.5, p99=2.5e10),
        )
        snapshot = nodes.node(nodes.port(), bursts=bursts)
        shown = pages.words(pages.row(snapshot))
        assert "busy 50 % \N{UPWARDS ARROW} 200 Gb/s" in shown

    def test_an_idle_port(self) -> None:
        """It says so instead of numbers."""
        snapshot = nodes.node(nodes.port(), bursts=(nodes.burst("mlx5_0", busy=0),))
        assert "idle" in pages.words(pages.row(snapshot))

    def test_a_port_without_windows(self) -> None:
        """Nothing is said of it."""
        shown = pages.words(pages.row(nodes.node(nodes.port())))
        assert "idle" not in shown
        assert "busy" not in shown
