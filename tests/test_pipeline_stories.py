"""Whatever happens to a node: nothing crashes, and every finding keeps its contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.cli.answers import from_pipeline
from fabricmon.cli.document import dump
from fabricmon.replaying import Replay
from fabricmon.sinks.exposition import Exposition
from tests import traces
from tests.findings import check_stream, documents
from tests.manifest import SYSFS

Json = dict[str, Any]

CLASS = "/sys/class/infiniband"
MANIFEST = SYSFS / "sysfs-flap-pair.t0.manifest"
DEVICES = ("mlx5_0", "mlx5_3")
STATES = ("4: ACTIVE\n", "1: DOWN\n", "2: INIT\n", "3: ARMED\n", "", "9: ODD\n", "\0")
PHYS = ("5: LinkUp\n", "2: Polling\n", "3: Disabled\n", "4: ?\n")
RATES = ("400 Gb/sec (4X NDR)\n", "100 Gb/sec (1X NDR)\n", "nonsense\n")
ERRNOS = ("EINVAL", "EIO", "ENODEV", "EACCES", "ENOENT")
COUNTERS = ("link_downed", "symbol_error", "link_error_recovery", "port_rcv_data")
NUMBERS = st.sampled_from([0, 1, 3, 15, 255, 65535, 2**32 - 1, 2**63, 2**64 - 1])


def in_port(*files: str) -> st.SearchStrategy[str]:
    """Return paths of files of a port."""
    return st.builds(
        lambda device, file: f"{CLASS}/{device}/ports/1/{file}",
        st.sampled_from(DEVICES),
        st.sampled_from(files),
    )


COUNTER_PATHS = in_port(*(f"counters/{name}" for name in COUNTERS))
PATHS = st.one_of(
    COUNTER_PATHS,
    in_port("state", "phys_state", "rate", "lid", "counters", "hw_counters"),
    st.sampled_from([CLASS, "/proc/uptime", *(f"{CLASS}/{d}" for d in DEVICES)]),
)
MAINTENANCE = st.sampled_from(
    [
        '[{"until": "2026-01-05T08:03:00Z", "ports": ["mlx5_0/1"]}]',
        '[{"until": "2026-01-05T08:05:00Z"}]',
        "nonsense",
    ]
)


def one(key: str, keys: Any, values: Any) -> st.SearchStrategy[Json]:
    """Return records with one entry under a key."""
    return st.builds(lambda k, v: {key: {k: v}}, keys, values)


EVENTS: st.SearchStrategy[Json] = st.one_of(
    one("set", in_port("state"), st.sampled_from(STATES)),
    one("set", in_port("phys_state"), st.sampled_from(PHYS)),
    one("set", in_port("rate"), st.sampled_from(RATES)),
    one("set", COUNTER_PATHS, NUMBERS.map("{}\n".format)),
    one("set", COUNTER_PATHS, st.text(max_size=5)),
    one(
        "set",
        st.just("/run/fabricmon/maintenance.json"),
        MAINTENANCE,
    ),
    one(
        "ramp",
        COUNTER_PATHS,
        st.tuples(NUMBERS, st.sampled_from([0.01, 1, 100, 1e6])).map(list),
    ),
    one("err", PATHS, st.sampled_from(ERRNOS)),
    one("hang", PATHS, st.sampled_from([3, 30, 1000])),
    one("slow", PATHS, st.sampled_from([0.1, 7, 0])),
    st.builds(lambda path: {"del": [path]}, PATHS),
    st.builds(lambda s, r: {"gap": s, "restart": r}, st.integers(1, 90), st.booleans()),
    st.builds(lambda s: {"wall_step": s}, st.sampled_from([-3600.0, -5, 5, 1e6])),
    st.builds(lambda b: {"boot_id": b}, st.sampled_from(["b1", "b2"])),
)
STORIES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 1, 4, 11, 40]), EVENTS),
    min_size=1,
    max_size=25,
)


@pytest.fixture(scope="module")
def beginning() -> Json:
    """Return the node at t = 0, up for long."""
    record: Json = msgspec.to_builtins(traces.of_manifest(MANIFEST))
    record["set"]["/proc/uptime"] = "8640000.00 8640000.00\n"
    return record


def trace_of(folder: Path, beginning: Json, story: list[tuple[float, Json]]) -> Path:
    """Write a story as a trace that goes on for a while after its last event."""
    t = 20.0
    lines: list[Json] = [beginning]
    for seconds, event in story:
        t += seconds
        lines.append({"t": t, **event})
    return traces.write(folder, [*lines, {"t": t + 120}])


@given(story=STORIES)
@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_story(
    story: list[tuple[float, Json]], beginning: Json, tmp_path: Path
) -> None:
    """Files that vanish, fail, hang and lie; clocks that jump; agents that restart."""
    path = trace_of(tmp_path, beginning, story)
    replay = Replay(path)
    found = documents(replay.changes())
    check_stream(found)
    assert documents(Replay(path).changes()) == found, "the same story twice"
    check = json.loads(dump(from_pipeline(replay.pipeline)))
    assert check["verdict"] in {"healthy", "unknown", "degraded", "down"}
    shown = Exposition(replay.pipeline.config, clock=replay.host.monotonic)
    shown.publish(replay.pipeline.snapshot)
    assert shown.render().body == shown.render().body


def test_the_rules_can_fail() -> None:
    """A stream that breaks the contract is found: the rules above are no decoration."""
    broken: list[Json] = [{"schema": "fabricmon.finding/1"}]
    with pytest.raises(AssertionError):
        check_stream(broken)
