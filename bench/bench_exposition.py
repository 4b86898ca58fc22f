"""What a scrape costs: the client library alone, the template, and over HTTP.

Eight ports of mlx5 with every file that a recent kernel has. Times are CPU times of
the best of many runs, to leave out what else the machine does.
"""

import gzip
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prometheus_client import generate_latest

sys.path.insert(0, str(Path(__file__).parent.parent))

from fabricmon.config import Config
from fabricmon.model import PortSnapshot
from fabricmon.parse.words import LinkLayer
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.exposition import Exposition
from fabricmon.sinks.http_message import Request
from fabricmon.sinks.prometheus import GZIP_LEVEL, PrometheusSink
from fabricmon.sinks.series import CounterSeries, Shown, readings_of
from fabricmon.sinks.template import Fixed, Template
from tests.sinks import nodes

RUNS = 200
MOST_PER_COUNTER = 0.3  # microseconds, the goal of the fast way
PLAIN_TEXT = Request("/metrics", "", "", "", "")
COMPRESSED = Request("/metrics", "", "", "gzip", "")


def best(work: Callable[[], object]) -> float:
    """Return the CPU time of the fastest run, in microseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return min(times) / 1000


def report(what: str, microseconds: float, samples: int) -> None:
    """Print one line."""
    each = microseconds / samples
    print(f"{what:38} {microseconds:9.1f} us {each:7.3f} us/sample")


def counters_alone(ports: tuple[PortSnapshot, ...]) -> tuple[float, int]:
    """Return the time to fill the counters alone into their template, and how many."""
    series = CounterSeries(ports, Shown(Config().metrics.counted_series))
    readings = readings_of(ports)
    template = Template((f"{'x' * 70} ",) * series.places + ("\n",))

    def fill() -> bytes:
        values = series.values(readings)
        assert values is not None
        return template.fill(values)

    return best(fill), series.places


def main() -> None:
    """Measure and print."""
    snapshot = nodes.eight(LinkLayer.INFINIBAND)
    exposition = Exposition(Config())
    exposition.publish(snapshot)
    body = exposition.render().body
    samples = sum(not line.startswith(b"#") for line in body.split(b"\n")) - 1
    print(f"{samples} samples, {len(body)} octets")
    report(
        "library alone",
        best(lambda: generate_latest(Fixed(exposition.metrics()))),
        samples,
    )
    report("template", best(exposition.render), samples)
    microseconds, counters = counters_alone(snapshot.ports)
    report("  of that the counters", microseconds, counters)
    assert microseconds / counters <= MOST_PER_COUNTER
    sink = PrometheusSink(Config(), "127.0.0.1:0", Heartbeat())
    sink.publish(snapshot, ())
    report(
        "with the process's metrics", best(lambda: sink.metrics(PLAIN_TEXT)), samples
    )
    report("the same, compressed", best(lambda: sink.metrics(COMPRESSED)), samples)
    for level in (1, 6, 9):
        packed = gzip.compress(body, level)
        chosen = ", as we do" if level == GZIP_LEVEL else ""
        what = f"gzip level {level}: {len(packed)} octets{chosen}"
        report(what, best(partial(gzip.compress, body, level)), samples)


if __name__ == "__main__":
    main()
