"""Aliases with node_exporter's names, held against the real program on the same files."""

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.catalogue import Directory
from fabricmon.config import Config, Devices, Metrics
from fabricmon.model import Snapshot
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.exposition import Exposition
from fabricmon.sinks.node_exporter_names import ALIASES, PREFIX
from tests.manifest import DATA, SYSFS, entries, lay_out
from tests.sinks import nodes, scraping, trees
from tests.sinks.test_prometheus import complaints
from tests.support.programs import require
from tests.support.servers import LOOPBACK, Server, answers, free_port

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

ON = Metrics(node_exporter_names=True)
TREES = sorted(path.stem for path in SYSFS.glob("*.manifest"))
# Its physical state is "4: ACTIVE", which no kernel writes: number and word disagree.
# node_exporter believes the number, fabricmon neither.
REFUSED = {"sysfs-mlx4-dual-mlx5-1x": {("node_infiniband_physical_state_id", "mlx5_0")}}
# As of the commit that the tables are made after: every name of its collector.
UPSTREAM = DATA / "node_exporter" / "infiniband-names.txt"


def aliases(text: str) -> Samples:
    """Return the samples of an exposition that have node_exporter's prefix."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    }


def exported(snapshot: Snapshot, metrics: Metrics = ON) -> str:
    """Return the exposition; virtual functions one by one, as node_exporter has them."""
    devices = Devices(virtual_functions="export")
    config = Config(metrics=metrics, devices=devices)
    return scraping.exposition(snapshot, config).render().body.decode()


def watched(tree: str, folder: Path) -> Snapshot:
    """Return what an agent with these names saw of a recorded tree."""
    config = {"metrics": {"node_exporter_names": True}}
    return trees.of_tree(tree, folder, config=config)


@pytest.fixture
def of_node_exporter(tmp_path: Path) -> Callable[[Path], Samples]:
    """Scrape a node_exporter that looks at the files below a folder."""

    def scrape(root: Path) -> Samples:
        port = free_port()
        command = [
            require("prometheus-node-exporter"),
            "--collector.disable-defaults",
            "--collector.infiniband",
            f"--path.sysfs={root}/sys",
            f"--web.listen-address={LOOPBACK}:{port}",
        ]
        url = f"http://{LOOPBACK}:{port}/metrics"
        log = tmp_path / "node_exporter.log"
        server = Server(command, port, log, lambda: answers(url)).start()
        try:
            with urllib.request.urlopen(url) as reply:
                return aliases(reply.read().decode())
        finally:
            server.stop()

    return scrape


@pytest.mark.server
class TestRealNodeExporter:
    @pytest.mark.parametrize("tree", TREES)
    def test_everything_it_exports_is_there_with_equal_value(
        self, tree: str, tmp_path: Path, of_node_exporter: Callable[[Path], Samples]
    ) -> None:
        """Names, labels and values of one recorded node, sample by sample."""
        root = tmp_path / "root"
        root.mkdir()
        lay_out(SYSFS / f"{tree}.manifest", root)
        theirs = of_node_exporter(root)
        ours = aliases(exported(watched(tree, tmp_path)))
        missing = {
            (name, dict(labels)["device"])
            for name, labels in theirs
            if (name, labels) not in ours
        }
        other = {
            key: (value, ours[key])
            for key, value in theirs.items()
            if key in ours and ours[key] != value
        }
        assert missing == REFUSED.get(tree, set())
        assert other == {}

    def test_it_exports_something(
        self, tmp_path: Path, of_node_exporter: Callable[[Path], Samples]
    ) -> None:
        """Else the comparison says nothing: 8 ports with states and counters."""
        root = tmp_path / "root"
        root.mkdir()
        lay_out(SYSFS / "sysfs-h100-ndr-bond.manifest", root)
        assert len(of_node_exporter(root)) > 80


@pytest.mark.parametrize("tree", TREES)
def test_every_file_that_newer_ones_export(tree: str, tmp_path: Path) -> None:
    """Also those of hardware, which the program of the distribution does not know."""
    ours = aliases(exported(watched(tree, tmp_path)))
    for entry in entries(SYSFS / f"{tree}.manifest"):
        _, _, place = entry.path.rpartition("sys/class/infiniband/")
        parts = place.split("/")
        if len(parts) != 5 or not entry.text.strip().isdecimal():
            continue
        device, _, port, folder, file = parts
        alias = {f"{d}/{f}": a for (d, f), a in ALIASES.items()}.get(f"{folder}/{file}")
        value = int(entry.text)
        if alias is None or value == (1 << 64) - 1:  # which no counter reaches
            continue
        labels = frozenset({("device", device), ("port", port)})
        wanted = int(value * alias.factor)
        assert ours[alias.metric, labels] == wanted, entry.path


class TestNames:
    def test_tables_have_every_name_of_the_collector(self) -> None:
        """A name that was forgotten would leave a panel empty."""
        names = set(UPSTREAM.read_text().split())
        families = {"info", "state_id", "physical_state_id", "rate_bytes_per_second"}
        counters = {alias.metric.removeprefix(PREFIX) for alias in ALIASES.values()}
        assert counters | families == names

    def test_a_counter_that_we_spare_is_there(self) -> None:
        """Ours hides on Ethernet what only InfiniBand has; node_exporter does not."""
        port = scraping.with_counters({"VL15_dropped": 0}, layer=LinkLayer.ETHERNET)
        text = exported(nodes.node(port))
        assert "fabricmon_infiniband_vl15_dropped_total{" not in text
        assert 'node_infiniband_vl15_dropped_total{device="mlx5_0",port="1"} 0' in text

    def test_octets_beyond_a_double_are_exact(self) -> None:
        """The text is a whole number, as that of ours."""
        value = (1 << 61) + 1
        text = exported(nodes.node(scraping.with_counters({"port_rcv_data": value})))
        name = "node_infiniband_port_data_received_bytes_total"
        assert f'{name}{{device="mlx5_0",port="1"}} {value * 4}' in text

    def test_lifespan_is_cut_to_seconds(self) -> None:
        """As they have it, which is 0 for the kernel's 10 ms."""
        port = scraping.with_counters(
            {"lifespan": 10_999}, directory=Directory.HW_COUNTERS
        )
        text = exported(nodes.node(port))
        assert 'node_infiniband_lifespan_seconds{device="mlx5_0",port="1"} 10\n' in text

    def test_another_driver_s_file_of_equal_name(self) -> None:
        """It goes by the file's name alone, whatever it means to us."""
        spec = nodes.find(Directory.HW_COUNTERS, "duplicate_request", "rxe")
        readings = (nodes.reading(scraping.PORT, [spec], {spec.file: 7}),)
        text = exported(nodes.node(nodes.port(readings=readings)))
        name = "node_infiniband_duplicate_requests_packets_total"
        assert f'{name}{{device="mlx5_0",port="1"}} 7' in text


class TestSwitch:
    def test_the_setting_is_read_for_who_wants_it_only(self, tmp_path: Path) -> None:
        """A file that nobody asks for is not opened."""

        def files(snapshot: Snapshot) -> set[str]:
            readings = (r for port in snapshot.ports for r in port.readings)
            return {spec.file for reading in readings for spec in reading.specs}

        tree = "sysfs-rxe-blackhole"
        assert "lifespan" in files(watched(tree, tmp_path))
        assert "lifespan" not in files(trees.of_tree(tree, tmp_path))

    def test_off_by_default(self) -> None:
        """Nobody pays twice for what he did not ask for."""
        text = exported(nodes.eight(LinkLayer.INFINIBAND), Metrics())
        assert PREFIX not in text

    @pytest.mark.parametrize("layer", [LinkLayer.INFINIBAND, LinkLayer.ETHERNET])
    def test_promtool_has_no_complaint(self, layer: LinkLayer) -> None:
        """Types, help and names are as Prometheus wants them."""
        text = exported(nodes.eight(layer, scraping.DRIVER_VALUES))
        assert complaints(text.encode()) == set()

    def test_what_it_costs_in_series(self) -> None:
        """As the configuration says: so many on a port of mlx5, and one a device."""
        found = aliases(exported(nodes.eight(LinkLayer.INFINIBAND)))
        of_port = [labels for _, labels in found if ("port", "1") in labels]
        assert len(of_port) / 8 <= 56
        assert len(found) - len(of_port) == 8

    def test_later_scrapes_are_filled_into_the_same_text(self) -> None:
        """A new value of a counter needs no new template."""
        config = Config(metrics=ON)
        first = nodes.node(scraping.with_counters({"port_rcv_data": 1}))
        made = Exposition(config, clock=scraping.Clock())
        made.publish(first)
        made.render()
        ready = dict(made._ready)
        made.publish(nodes.node(scraping.with_counters({"port_rcv_data": 3})))
        assert b"node_infiniband_port_data_received_bytes_total" in made.render().body
        assert (
            scraping.scrape(made)[
                'node_infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"}'
            ]
            == "12"
        )
        assert made._ready == ready
