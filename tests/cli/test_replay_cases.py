"""Two samples of one node: what happened in between, found by `replay`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from tests import traces
from tests.cli.recorded import (
    PAIRS,
    Case,
    assert_counters,
    assert_fields,
    assert_no_port_is_made_up,
    check_root,
    name_of,
    worst,
)
from tests.findings import check_stream
from tests.manifest import Entry, entries

Json = dict[str, Any]

DOWN_KINDS = {"port_down", "port_not_active", "device_missing"}
SETTLED = (0, 5, 10, 60, 300)  # seconds after the second sample at which it still holds


def holds(entry: Entry) -> tuple[str, str]:
    """Return under which key a trace says what a path is, and what it says."""
    if entry.link is not None:
        return "link", entry.link
    if entry.errno is not None:
        return "err", entry.errno
    return "set", entry.text


def record(found: Sequence[Entry]) -> Json:
    """Return the record of a trace that makes these paths be so."""
    made: Json = {}
    for entry in found:
        if entry.is_folder:
            made.setdefault("dir", []).append(f"/{entry.path}")
        else:
            key, value = holds(entry)
            made.setdefault(key, {})[f"/{entry.path}"] = value
    return made


def growth(before: Entry, after: Entry) -> tuple[int, int] | None:
    """Return both values of a counter that grew."""
    texts = [before.text.strip(), after.text.strip()]
    if holds(before)[0] != "set" or not all(text.isdecimal() for text in texts):
        return None
    first, last = map(int, texts)
    return (first, last) if first < last else None


def story(case: Case) -> Iterator[Json]:
    """Yield the trace of a pair: counters grow evenly, all else changes at the end.

    At once it would be more traffic than a link can carry. The node was up for long.
    """
    before = {entry.path: entry for entry in entries(case.input("t0"))}
    after = {entry.path: entry for entry in entries(case.input("t1"))}
    seconds = float(case.data["inputs"]["interval_s"])
    changed = [e for path, e in after.items() if before.get(path) != e]
    grown = {
        f"/{e.path}": [pair[0], (pair[1] - pair[0]) / seconds, pair[1]]
        for e in changed
        if e.path in before and (pair := growth(before[e.path], e)) is not None
    }
    start = record([e for path, e in before.items() if f"/{path}" not in grown])
    start["set"].setdefault("/proc/uptime", "8640000.00 8640000.00\n")
    end = record(changed)
    end["del"] = [f"/{path}" for path in before if path not in after]
    yield {"t": 0, **start, "ramp": grown}
    for later in SETTLED:
        yield {"t": seconds + later, **end}


@dataclass(frozen=True)
class Pair:
    """Two samples, and the findings of a replay from one to the other."""

    case: Case
    found: list[Json]


@pytest.fixture(scope="module", params=PAIRS, ids=lambda case: case.name)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    """Replay a pair."""
    case: Case = request.param
    folder = tmp_path_factory.mktemp("pair")
    header = traces.HEADER | ({"config": case.config} if case.config else {})
    path = traces.write(folder, story(case), header)
    out = folder / "out.jsonl"
    assert main(["replay", str(path), "--findings", str(out)]) == 0
    findings = [json.loads(line) for line in out.read_bytes().splitlines()]
    check_stream(findings)
    return Pair(case, findings)


def test_both_samples_are_read_whole(pair: Pair, tmp_path: Path) -> None:
    """Counters of the first, and everything of the second."""
    for key in ("t0", "t1"):
        outcome = check_root(pair.case, pair.case.input(key), tmp_path / key)
        assert_counters(outcome, pair.case.expect[f"counters_{key}"])
    assert_fields(outcome)
    assert_no_port_is_made_up(outcome)


def test_resets(pair: Pair) -> None:
    """Exactly the ports whose counters fell are told to have been reset."""
    told = {name_of(f["subject"]) for f in pair.found if f["kind"] == "counter_reset"}
    assert told == set(pair.case.expect.get("resets", []))


def test_devices_that_went(pair: Pair) -> None:
    """Each is missed."""
    gone = {f["subject"]["device"] for f in pair.found if f["kind"] == "device_missing"}
    assert gone >= set(pair.case.expect.get("disappeared", []))


def test_verdicts_from_findings(pair: Pair) -> None:
    """What was found about a port says of it what the sidecar says."""
    for place in pair.case.ports:
        device, _, port = place.partition("/")
        mine = [
            each
            for each in pair.found
            if each["subject"].get("device") == device
            and str(each["subject"].get("port") or port) == port
        ]
        assert verdict_of(mine) in pair.case.accepted(place), place
    assert verdict_of(pair.found) in pair.case.accepted_of_node()


def test_alarms_rest_on_what_grew(pair: Pair) -> None:
    """Evidence names a counter that grew; a fall is never taken for growth."""
    for place, paths in pair.case.expect.get("deltas", {}).items():
        if pair.case.ports[place]["verdict"] != "degraded":
            continue
        names = {path.rpartition("/")[2] for path in paths}
        names = {n for n in names if not re.search(r"(data|packets|bytes)$", n)}
        evidence = [
            item
            for each in pair.found
            if each["severity"] != "info"
            and name_of({"port": None, **each["subject"]}) == place
            for item in each["evidence"]
        ]
        signals = " ".join(f"{e['signal']} {e['source']}" for e in evidence)
        assert not names or any(name in signals for name in names), place
        values = [e["value"] for e in evidence if isinstance(e["value"], int)]
        assert all(0 <= value < 2**31 for value in values), place


def verdict_of(found: Sequence[Json]) -> str:
    """Return what findings say of whatever they are about."""
    alarms = [each for each in found if each["severity"] != "info"]
    kinds = [each["kind"] for each in alarms]
    return worst(["down" if kind in DOWN_KINDS else "degraded" for kind in kinds])
