"""Every recorded text gives what its sidecar says."""

from typing import Any

import pytest

from fabricmon.cli.document import check_document
from fabricmon.model import Verdict
from tests.parse.cases import Case, load

CASES = load()
NO_LID = 65535
# Fields of a sidecar that the document has; the others describe the text.
FIELDS = (
    *("state", "phys_state", "link_layer", "rate_gbps", "width", "speed"),
    *("lid", "sm_lid", "guid", "node_guid", "fw", "hca_type", "netdev"),
)
SECTIONS = ("link", "module", "links", "unconnected", "summary", "all_ports", "fw")

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def document(case: Case) -> dict[str, Any]:
    """Return what `fabricmon parse` prints for a case."""
    return check_document(case.report()).content


def by_place(content: dict[str, Any]) -> dict[str, Any]:
    """Return the port objects by device and port."""
    return {f"{port['device']}/{port['port']}": port for port in content["ports"]}


def holds(expected: Any, found: Any) -> bool:
    """Compare as far as the sidecar goes: it may leave out keys."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            holds(value, found.get(key))
            for key, value in expected.items()
            if not key.endswith("_text")
        )
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(holds, expected, found))
    return bool(expected == found)


def test_there_are_cases_of_every_tool_that_has_been_recorded() -> None:
    """The corpus is there: an empty one would prove nothing."""
    assert len({case.kind for case in CASES}) >= 11


@each_case
def test_every_field_of_every_port_is_found(case: Case) -> None:
    """State, rate, LIDs, GUIDs, firmware and type are those in the text."""
    ports = by_place(document(case))
    for expected in case.expect.get("ports", ()):
        found = ports[f"{expected['device']}/{expected['port']}"]
        for name in FIELDS:
            if name in expected:
                value = None if expected[name] in {"", NO_LID} else expected[name]
                assert found[name] == value, name


@each_case
def test_no_port_is_made_up(case: Case) -> None:
    """Headers, globs and sums are no ports."""
    if "ports" in case.expect:
        expected = {f"{port['device']}/{port['port']}" for port in case.expect["ports"]}
        assert by_place(document(case)).keys() == expected


@each_case
def test_counters_keep_their_names_and_values(case: Case) -> None:
    """Nothing is scaled, rounded, left out or taken from elsewhere."""
    found = document(case).get("counters", {})
    expected = case.expect.get("counters", {})
    if case.kind == "mlxlink":
        found = {name: value for name, value in found.items() if value is not None}
    assert found == expected


@each_case
def test_counters_at_their_ceiling_are_named(case: Case) -> None:
    """A full counter is told from one that happens to stand still."""
    found = {
        f"{place}:{name}"
        for place, port in by_place(document(case)).items()
        for name in port["saturated"]
    }
    assert found == set(case.expect.get("saturated", ()))


@each_case
def test_sections_of_single_tools_are_complete(case: Case) -> None:
    """Links, modules, sums and summaries hold what the sidecar lists."""
    content = document(case)
    for section in SECTIONS:
        if section in case.expect:
            assert holds(case.expect[section], content.get(section, {})), section


@each_case
def test_what_could_not_be_read_is_said_and_nothing_else(case: Case) -> None:
    """Each expected error is there with device and errno; a whole text has none."""
    found = document(case)["errors"]
    expected = case.expect.get("errors", ())
    for error in expected:
        names = {key: error[key] for key in ("device", "errno") if key in error}
        assert any(names.items() <= item.items() for item in found)
    assert len(found) >= len(expected)
    assert bool(found) == (case.expect["parse"] != "ok")


@each_case
def test_ports_get_their_verdicts(case: Case) -> None:
    """Each port is judged as in the sidecar.

    Where that rests on lifetime counters, healthy is right too: one sample cannot
    tell whether an error is going on.
    """
    content = document(case)
    ports = by_place(content)
    unread = {error["device"] for error in content["errors"]}
    for place, verdict in case.sidecar["verdict"]["ports"].items():
        if place.partition("/")[0] in unread:
            assert verdict["verdict"] == "unknown"
            continue
        accepted = {verdict["verdict"]}
        if case.sidecar["verdict"]["basis"] == "lifetime":
            accepted.add("healthy")
        found = ports[place] if "/" in place else content
        assert found["verdict"] in accepted, place


@each_case
def test_the_node_gets_its_verdict(case: Case) -> None:
    """The node is its worst port, or unknown where something could not be read."""
    verdict = case.sidecar["verdict"]
    accepted = {verdict["node"], *verdict.get("also_acceptable", ())}
    assert document(case)["verdict"] in accepted


@each_case
def test_the_exit_status_tells_the_verdict(case: Case) -> None:
    """A script need not read the document."""
    found = check_document(case.report())
    words = ("healthy", "degraded", "down", "unknown")
    assert words[found.exit_status] == found.content["verdict"]
    assert Verdict[found.content["verdict"].upper()] is found.verdict
