"""The sink as Prometheus and probes meet it: over HTTP, and checked by promtool."""

import gzip
import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.catalogue import Directory
from fabricmon.cli.demo import TRACE
from fabricmon.config import Config, Listen
from fabricmon.errors import HostError
from fabricmon.parse.words import LinkLayer
from fabricmon.replaying import Replay
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.prometheus import PrometheusSink, make
from tests.manifest import SYSFS
from tests.sinks import golden, nodes, trees
from tests.sinks.scraping import DRIVER_VALUES, exposition
from tests.support.programs import require
from tests.support.servers import Server, wait_until

StartServer = Callable[..., Server]

OLD_HEARTBEAT = 40.0


class Beat(Heartbeat):
    """A heartbeat whose age a test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.age = 0.0

    @property
    def age_seconds(self) -> float:
        """Return the age that was set."""
        return self.age


@pytest.fixture
def beat() -> Beat:
    """Return the heartbeat of the agent."""
    return Beat()


@pytest.fixture
def sink(beat: Beat) -> Iterator[PrometheusSink]:
    """Return a sink that serves on a free port."""
    made = PrometheusSink(Config(), "127.0.0.1:0", beat)
    made.open()
    yield made
    made.close()


def ask(url: str, query: str) -> float | None:
    """Return the one value of a query, None if there is none."""
    quoted = urllib.parse.quote(query)
    with urllib.request.urlopen(f"{url}/api/v1/query?query={quoted}") as reply:
        result = json.load(reply)["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def get(sink: PrometheusSink, path: str, **headers: str) -> tuple[int, bytes, str]:
    """Return status, body and type of what the sink answers."""
    url = f"http://127.0.0.1:{sink.listener.port}{path}"
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            body, kind = reply.read(), reply.headers["Content-Type"]
            if reply.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            return reply.status, body, kind
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers["Content-Type"]


class TestMetrics:
    def test_newest_snapshot_is_served(self, sink: PrometheusSink) -> None:
        """With the process beside it."""
        sink.publish(nodes.eight(LinkLayer.INFINIBAND), ())
        status, body, kind = get(sink, "/metrics")
        assert status == 200
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        names = {f.name for f in text_string_to_metric_families(body.decode())}
        assert "fabricmon_infiniband_link_downed" in names
        assert "process_resident_memory_bytes" in names
        assert "fabricmon_http_failures" in names

    def test_compressed_for_who_accepts_it(self, sink: PrometheusSink) -> None:
        """A tenth of the octets, the same text but for what moves with time."""
        sink.publish(nodes.eight(LinkLayer.INFINIBAND), ())
        plain = get(sink, "/metrics")[1].decode().split("\n")
        small = get(sink, "/metrics", **{"Accept-Encoding": "gzip"})[1]
        other = small.decode().split("\n")
        assert len(plain) == len(other)
        same = [a for a, b in zip(plain, other, strict=True) if a == b]
        assert len(same) > len(plain) - 40

    def test_openmetrics_when_preferred(self, sink: PrometheusSink) -> None:
        """As Prometheus asks for it."""
        sink.publish(nodes.node(nodes.port()), ())
        accept = "application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
        _, body, kind = get(sink, "/metrics", Accept=accept)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert body.endswith(b"# EOF\n")

    def test_before_the_first_poll_there_is_no_port(self, sink: PrometheusSink) -> None:
        """No zeros for what has not been looked at."""
        status, body, _ = get(sink, "/metrics")
        assert status == 200
        assert b"fabricmon_infiniband" not in body


@pytest.mark.slow
@pytest.mark.server
class TestRealPrometheus:
    def test_scrape_is_stored_whole(
        self, sink: PrometheusSink, start_prometheus: StartServer
    ) -> None:
        """The real server takes every sample that was sent, and none twice."""
        port = nodes.full_port("mlx5_0", LinkLayer.ETHERNET, DRIVER_VALUES)
        sink.publish(nodes.node(port, incidents=(nodes.incident(),)), ())
        server = start_prometheus(
            f"""
            scrape_configs:
              - job_name: fabricmon
                scrape_interval: 100ms
                scrape_timeout: 100ms
                static_configs: [{{targets: ["127.0.0.1:{sink.listener.port}"]}}]
            """
        )
        wait_until(lambda: ask(server.url, "up") == 1, 20, "the sink is scraped")
        _, body, _ = get(sink, "/metrics")
        lines = body.split(b"\n")
        sent = sum(bool(line) and line[:1] != b"#" for line in lines)
        assert ask(server.url, "scrape_samples_scraped") == sent
        assert ask(server.url, "scrape_samples_post_metric_relabeling") == sent
        octets = "fabricmon_infiniband_port_data_received_bytes_total"
        assert ask(server.url, octets) == float(4 << 60)


class TestProbes:
    def test_healthy_while_the_loop_turns(self, sink: PrometheusSink) -> None:
        """A liveness probe is content."""
        assert get(sink, "/healthz")[:2] == (200, b"ok\n")

    def test_unhealthy_when_the_loop_hangs(
        self, sink: PrometheusSink, beat: Beat
    ) -> None:
        """The answer comes from a thread of its own, and says for how long."""
        beat.age = OLD_HEARTBEAT
        status, body, _ = get(sink, "/healthz")
        assert status == 503
        assert b"40 s" in body

    def test_limit_of_health_is_configured(self, beat: Beat) -> None:
        """Who polls rarely may set it higher."""
        config = Config(listen=Listen(healthy_seconds=60))
        sink = PrometheusSink(config, "127.0.0.1:0", beat)
        beat.age = OLD_HEARTBEAT
        sink.open()
        try:
            assert get(sink, "/healthz")[0] == 200
        finally:
            sink.close()

    def test_ready_after_the_first_poll(self, sink: PrometheusSink, beat: Beat) -> None:
        """Not before there is a snapshot, nor before the agent says so."""
        assert get(sink, "/readyz")[0] == 503
        sink.publish(nodes.node(), ())
        assert get(sink, "/readyz")[0] == 503
        beat.ready = True
        assert get(sink, "/readyz")[:2] == (200, b"ready\n")

    def test_other_paths_do_not_exist(self, sink: PrometheusSink) -> None:
        """The page has a listener of its own."""
        assert get(sink, "/")[0] == 404


class TestMake:
    def test_no_address_means_no_sink(self, beat: Beat) -> None:
        """Null turns it off."""
        config = Config(listen=Listen(metrics=None))
        assert make(config, beat, None) is None  # type: ignore[arg-type]

    def test_certificate_that_is_missing_is_one_clear_error(self, beat: Beat) -> None:
        """Before anything listens in the clear."""
        listen = Listen(tls_certificate="/nowhere.pem", tls_key="/nowhere.key")
        with pytest.raises(HostError, match=r"/nowhere\.pem"):
            make(Config(listen=listen), beat, None)  # type: ignore[arg-type]


class TestDemo:
    def test_series_of_the_node(self, sink: PrometheusSink) -> None:
        """At most 60 have no device: a cluster pays for them on every node."""
        replay = Replay(Path(str(files("fabricmon"))) / TRACE)
        list(replay.changes())
        sink.publish(replay.pipeline.snapshot, ())
        lines = get(sink, "/metrics")[1].decode().splitlines()
        samples = [line for line in lines if not line.startswith("#")]
        assert any("device=" in line for line in samples)
        assert sum("device=" not in line for line in samples) <= 60


TREES = sorted(path.stem for path in SYSFS.glob("*.manifest"))


class TestRecordedTrees:
    @pytest.fixture
    def text(self, tree: str, tmp_path: Path) -> bytes:
        """Return what is exported of a recorded tree."""
        return exposition(trees.of_tree(tree, tmp_path)).render().body

    @pytest.mark.parametrize("tree", TREES)
    def test_exposition_is_golden(
        self, tree: str, text: bytes, request: pytest.FixtureRequest
    ) -> None:
        """Any change of what is exported is seen in review."""
        golden.check(f"metrics/{tree}.prom", golden.steady(text.decode()))

    @pytest.mark.parametrize("tree", TREES)
    def test_promtool_has_no_complaint(self, tree: str, text: bytes) -> None:
        """Names, types and help are as Prometheus wants them."""
        assert complaints(text) == set()

    @pytest.mark.parametrize("tree", TREES)
    def test_every_expected_counter_is_exported_exactly(
        self, tree: str, tmp_path: Path
    ) -> None:
        """The octets that a human worked out from the case are the octets exported."""
        case = tree.removesuffix(".t0").removesuffix(".t1")
        expected = json.loads((SYSFS / f"{case}.expect.json").read_text())["expect"]
        text = exposition(trees.of_tree(tree, tmp_path)).render().body.decode()
        numbers = {
            line.rpartition(" ")[2]
            for line in text.split("\n")
            if "_bytes_total" in line and not line.startswith("#")
        }
        for octets in expected.get("bytes", {}).values():
            assert {str(value) for value in octets.values()} <= numbers


class TestPromtool:
    @pytest.mark.parametrize("layer", [LinkLayer.INFINIBAND, LinkLayer.ETHERNET])
    def test_full_node(self, layer: LinkLayer) -> None:
        """Eight ports with all that mlx5 has, findings and errors."""
        everything = {spec.file: 3 for spec in nodes.files(Directory.ETHTOOL)}
        snapshot = nodes.eight(layer, {**everything, **DRIVER_VALUES})
        assert complaints(exposition(snapshot).render().body) == set()


def complaints(text: bytes) -> set[str]:
    """Return what promtool has to say about an exposition."""
    result = subprocess.run(
        [require("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        check=False,
    )
    said = (result.stdout + result.stderr).decode().split("\n")
    return {line for line in said if line}
