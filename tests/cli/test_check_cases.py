"""Every recorded node and every recorded ibstat, through `check`.

With the texts of other tools (tests/parse) and the pairs (test_replay_cases), this is
the whole corpus: every field, every verdict.
"""

from __future__ import annotations

import errno
import json
import os
import re
from typing import Any

import pytest

from tests.cli.recorded import (
    PAIRS,
    SINGLE,
    TEXTS,
    Case,
    Outcome,
    assert_counters,
    assert_fields,
    assert_no_port_is_made_up,
    check_root,
    check_text,
    unseen,
)
from tests.parse import cases as parsed

Json = dict[str, Any]

EXIT = ("healthy", "degraded", "down", "unknown")
WORDS = {"rate": "rate_gbps", "fw_ver": "fw"}  # files by the field read from them


@pytest.fixture(scope="module", params=[*SINGLE, *TEXTS], ids=lambda case: case.name)
def outcome(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """Return what `check` says of a case."""
    case: Case = request.param
    if case in TEXTS:
        return check_text(case)
    folder = tmp_path_factory.mktemp("case")
    return check_root(case, case.input("manifest"), folder)


def test_the_corpus_is_there() -> None:
    """An empty one would prove nothing."""
    assert (len(SINGLE), len(TEXTS), len(PAIRS)) == (14, 17, 2)
    elsewhere = [case for case in parsed.load() if case.kind != "ibstat"]
    assert len(SINGLE) + len(TEXTS) + len(PAIRS) + len(elsewhere) == 56


def test_every_field(outcome: Outcome) -> None:
    """State, rate, LIDs, GUIDs, firmware and type are as recorded; absent is null."""
    assert_fields(outcome)


def test_no_port_is_made_up(outcome: Outcome) -> None:
    """Only devices that could not be read may have a port of their own."""
    assert_no_port_is_made_up(outcome)


def test_every_counter(outcome: Outcome) -> None:
    """As read, unscaled."""
    if outcome.case in SINGLE:
        assert_counters(outcome, outcome.case.expect.get("counters", {}))


def test_marks(outcome: Outcome) -> None:
    """Counters at their ceiling, and files without a number, are named."""
    expect = outcome.case.expect
    full: dict[str, set[str]] = {
        place: set() for place in expect.get("counters", {}) if "/" in place
    }
    for item in expect.get("saturated", []):
        place, _, path = item.partition(":")
        full.setdefault(place, set()).add(path.rpartition("/")[2])
    for place, names in full.items():
        port = outcome.port(place)
        assert port is not None
        assert set(port["saturated"]) == names, place
    for item in expect.get("unavailable", []):
        place, _, path = item.partition(":")
        folder, _, name = path.rpartition("/")
        port = outcome.port(place)
        assert port is not None
        assert port["unavailable"][name], item
        assert port.get(folder, {}).get(name) is None, item


def complaints(content: Json) -> list[str]:
    """Return one text for each thing that could not be read."""
    found = [json.dumps(error) for error in content["errors"]]
    for port in content["ports"]:
        for name, why in port["unavailable"].items():
            found.append(f"{port['device']} {name} {why}")
    return found


def test_what_could_not_be_read(outcome: Outcome) -> None:
    """It is said with device, file and errno; a whole input has no complaint."""
    expect, found = outcome.case.expect, complaints(outcome.content)
    for error in expect.get("errors", []):
        assert any(names(text, error) for text in found), error
    if expect["parse"] != "ok":
        assert found
    elif outcome.case in TEXTS and not expect.get("errors"):
        assert outcome.content["errors"] == []


def names(text: str, error: Json) -> bool:
    """Tell whether a complaint names device, file and errno of an expected error."""
    file = str(error.get("file") or "").rpartition("/")[2]
    number = error.get("errno") or errno.errorcode.get(error.get("status", 0))
    wanted = [{error["device"]}] if error.get("device") else []
    wanted += [{file, WORDS.get(file, file)}] if file else []
    if number:
        wanted.append({number, os.strerror(getattr(errno, number)).lower()})
    return all(any(w in text or w in text.lower() for w in some) for some in wanted)


def test_devices_that_are_missing(outcome: Outcome) -> None:
    """A device that should be there, or should not, is named."""
    content = outcome.content
    reasons = [port["reasons"] for port in content["ports"]]
    said = json.dumps([content["findings"], content["errors"], reasons])
    expect = outcome.case.expect
    for key in ("missing_devices", "unexpected_devices"):
        for device in expect.get(key, []):
            assert re.search(rf"(?<![\w.-]){re.escape(device)}(?![\w-])", said)


def test_verdicts(outcome: Outcome) -> None:
    """Every port and the node are judged as the sidecar says; the status tells it."""
    case, content = outcome.case, outcome.content
    for place in case.ports:
        accepted = case.accepted(place)
        device = place.partition("/")[0]
        port = outcome.port(place) if "/" in place else content
        if port is None:
            assert place in unseen(case)
            assert "unknown" in accepted
            assert any(device in text for text in complaints(content))
        else:
            assert port["verdict"] in accepted, place
    assert content["verdict"] in case.accepted_of_node()
    assert EXIT[outcome.status] == content["verdict"]
    assert content["schema"] == "fabricmon.check/1"
