"""What keeps the rules that compare nodes silent, and what they can do without.

Each case is one that fires, with one thing more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fabricmon.fleet.comparing import laid_out
from fabricmon.fleet.comparisons import groups
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import Recording
from tests.fleet.comparison_cases import cases
from tests.fleet.promtool import Case, check, series
from tests.fleet.small_cluster import JOB, NODES

FIRES = {str(case): case for case in cases()}
PORT = {"device": "mlx5_1", "port": 1}
ALWAYS = "1x200"


def _finding(node: str, kind: str, role: str = "culprit") -> dict[str, str]:
    name = "fabricmon_finding_open"
    labels = {"kind": kind, "severity": "warning", "role": role, "action": "none"}
    return {series(name, node=node, **PORT, **labels): ALWAYS}


def _on_all(metric: str, values: str, **labels: object) -> dict[str, str]:
    return {series(metric, node=node, **labels): values for node in NODES}


SILENT: Mapping[str, tuple[str, dict[str, str]]] = {
    "clocks are off": (
        "FabricCommonCause",
        _on_all("fabricmon_clock_error_seconds", "5x200"),
    ),
    "nobody keeps the clocks": (
        "FabricCommonCause",
        _on_all("fabricmon_clock_synchronized", "0x200"),
    ),
    "the nodes are being worked on": (
        "FabricCommonCause",
        _on_all("fabricmon_maintenance", ALWAYS),
    ),
    "the ports are being worked on": (
        "FabricLeafNotConfigured",
        _on_all("fabricmon_maintenance", ALWAYS, **PORT),
    ),
    "the clock of one that pauses is off": (
        "FabricPauseFirst",
        {series("fabricmon_clock_error_seconds", node="n2"): "5x200"},
    ),
    "the clock of the first is off": (
        "FabricPauseFollower",
        {series("fabricmon_clock_synchronized", node="n1"): "0x200"},
    ),
    "a second pauses at nearly the same time": (
        "FabricPauseFirst",
        {
            series(
                "fabricmon_port_pause_onset_timestamp_seconds", node="n4", **PORT
            ): "_x20 291x40"
        },
    ),
    "a host of the rail sends pause": (
        "FabricPauseTree",
        {
            series(
                "fabricmon_port_pause_onset_timestamp_seconds", node="n5", **PORT
            ): "300x200"
        },
    ),
    "a port shows why its rail is slow": (
        "FabricRailSlow",
        _finding("n2", "straggler_link"),
    ),
    "its device shows why a rail is slow": (
        "FabricRailSlow",
        {
            series(
                "fabricmon_finding_open",
                node="n2",
                device="mlx5_1",
                kind="pcie_degraded",
                severity="critical",
            ): ALWAYS
        },
    ),
    "a port receives from many": (
        "FabricLeafSlow",
        _finding("n5", "congestion", "observer"),
    ),
    "a port of the rail has a bad link": (
        "FabricCorruption",
        _finding("n4", "link_errors"),
    ),
    "a receiver of the sender has a bad link": (
        "FabricSenderLossy",
        _finding("n3", "link_errors"),
    ),
    "a peer is named, which explains timers": (
        "FabricStall",
        {series("fabricmon_peer_votes", node="n1", peer="n5"): "1x200"},
    ),
    "a port that is down explains timers": (
        "FabricStall",
        _finding("n3", "port_down"),
    ),
    "its own agent tells": (
        "FabricPeerUnexplained",
        {
            series(
                "fabricmon_finding_open",
                node="n5",
                **PORT,
                kind="port_down",
                severity="critical",
                role="culprit",
                action="inspect",
            ): ALWAYS
        },
    ),
    "somebody worked on it until its agent went": (
        "FabricPeerUnexplained",
        {series("fabricmon_maintenance", node="n5"): "1x10 stale"},
    ),
    "others name the same peers": (
        "FabricObserverSuspect",
        {series("fabricmon_peer_votes", node="n5", peer="n4"): "1x200"},
    ),
    "a port of the rank's node has a fault": (
        "FabricRankLate",
        _finding("n3", "link_errors"),
    ),
    "the links went down for moments": (
        "FabricControlChange between two scrapes",
        {
            series("fabricmon_port_last_down_timestamp_seconds", node=node,
                   device=f"mlx5_{rail}", port=1): "_x19 290x80"
            for node in ("n1", "n2", "n3") for rail in (1, 2)
        },
    ),
    "the links were down for long": (
        "FabricControlChange between two scrapes",
        {
            series("fabricmon_infiniband_state_id", node=node, device=f"mlx5_{rail}",
                   port=1): "1x18 4x80"
            for node in ("n1", "n2", "n3") for rail in (1, 2)
        },
    ),
    "a port of the rail is to blame for its jitter": (
        "FabricRailJitter",
        _finding("n2", "link_errors"),
    ),
    "one port of a leaf alone is not marked": (
        "FabricLeafUnmarked",
        {
            series("fabricmon_finding_open", node=node, **PORT, kind="config_mismatch",
                   severity="info", role="observer", action="none"): "_x80"
            for node in ("n2", "n3")
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", SILENT)
def test_a_comparison_is_silent_where_it_cannot_tell(why: str, tmp_path: Path) -> None:
    """What fires without it does not with it."""
    name, more = SILENT[why]
    case = FIRES[name]
    quiet = replace(case, series={**case.series, **more}, told=[])
    assert check(quiet, tmp_path) == ""


def test_a_place_that_changed_while_prometheus_was_away(tmp_path: Path) -> None:
    """A port with two places for some minutes does not end what is told of others."""
    case, of_rail = FIRES["FabricCommonCause"], FIRES["FabricCommonCause of a rail"]
    place = {"role": "compute", "link_layer": "InfiniBand", "rail": "1"}
    old = series("port:fabricmon_rail:info", **PORT, leaf="before", **place)
    doubled = replace(case, series={**case.series, old: ALWAYS}, told=of_rail.told)
    assert check(doubled, tmp_path) == ""


@pytest.mark.parametrize("seconds", [15, 60, 100, 120])
def test_no_window_is_empty_where_scrapes_are_rare(seconds: int) -> None:
    """Prometheus refuses the whole file for one."""
    pace = structs.replace(FleetOptions().pace, scrape_seconds=seconds)
    options = structs.replace(FleetOptions(), pace=pace)
    rules = [rule for group in groups(options) for rule in group.rules]
    assert rules
    assert [rule for rule in rules if re.search(r"\[[-0]", rule.expr)] == []


def test_an_address_that_moved_names_who_has_it_now(tmp_path: Path) -> None:
    """Whoever had it within the hour is innocent."""
    case = FIRES["FabricPeerSuspect"]
    before = series("fabricmon_node_address_info", node="n4", address="10.0.0.5")
    after = series("fabricmon_node_address_info", node="n5", address="10.0.0.5")
    moved = {**case.series, before: "1x4 stale", after: "_x6 1x60"}
    assert check(replace(case, series=moved), tmp_path) == ""


def test_an_address_that_two_nodes_have_names_none(tmp_path: Path) -> None:
    """It is told as it is."""
    case = FIRES["FabricPeerSuspect"]
    other = series("fabricmon_node_address_info", node="n4", address="10.0.0.5")
    (told,) = case.told
    labels = {name: each for name, each in told.labels.items() if name != "node"}
    by_address = replace(
        told,
        labels={**labels, "peer": "10.0.0.5"},
        summary=told.summary.replace("n5:", "10.0.0.5:"),
        dashboard=told.dashboard.replace("&var-node=n5", ""),
    )
    shared = {**case.series, other: ALWAYS}
    assert check(replace(case, series=shared, told=[by_address]), tmp_path) == ""


def _rails(jobs: Mapping[str, str]) -> Case:
    """Return the case of a slow rail with other news of jobs."""
    case = FIRES["FabricRailSlow"]
    kept = {
        name: values
        for name, values in case.series.items()
        if not name.startswith("fabricmon_port_job_info")
    }
    return replace(case, series={**kept, **jobs})


def test_an_agent_a_version_behind_is_compared(tmp_path: Path) -> None:
    """It only says which job is on the node."""
    jobs = _on_all("fabricmon_job_info", ALWAYS, job=JOB, rails="0,1,2,3")
    assert check(_rails(jobs), tmp_path) == ""


def test_an_agent_a_version_behind_with_two_jobs_is_not_compared(
    tmp_path: Path,
) -> None:
    """Nobody knows which rail is whose (N38)."""
    jobs = _on_all("fabricmon_job_info", ALWAYS, job=JOB, rails="0,1")
    jobs |= _on_all("fabricmon_job_info", ALWAYS, job="other", rails="2,3")
    assert check(replace(_rails(jobs), told=[]), tmp_path) == ""


def test_the_job_is_known_where_labels_are_not_honoured(tmp_path: Path) -> None:
    """Then it is in ``exported_job``, and ``job`` is the target's."""
    case = FIRES["FabricRailSlow"]
    renamed = {
        name.replace(f'job="{JOB}"', f'job="fabricmon",exported_job="{JOB}"'): values
        for name, values in case.series.items()
    }
    assert check(replace(case, series=renamed), tmp_path) == ""


def test_rails_of_two_jobs_are_not_compared(tmp_path: Path) -> None:
    """The busy rail is the other job's (N38)."""
    jobs = {
        series(
            "fabricmon_port_job_info",
            node=node,
            device=f"mlx5_{rail}",
            port=1,
            job="other" if rail == 1 else JOB,
        ): ALWAYS
        for node in NODES[:3]
        for rail in range(4)
    }
    assert check(replace(_rails(jobs), told=[]), tmp_path) == ""


def test_a_storage_port_is_no_rail(tmp_path: Path) -> None:
    """However busy it is (N12)."""
    case = FIRES["FabricRailSlow"]
    renamed = {
        name.replace('role="compute"', 'role="storage"')
        if 'device="mlx5_1"' in name
        else name: values
        for name, values in case.series.items()
    }
    assert check(replace(case, series=renamed, told=[]), tmp_path) == ""


def test_a_recording_reads_only_what_is_recorded_before() -> None:
    """A backfill takes one pass a level; a live group goes from top to bottom."""
    known: dict[str, int] = {}
    for group in groups(FleetOptions()):
        for rule in group.rules:
            if not isinstance(rule, Recording):
                continue
            read = {name: level for name, level in known.items() if name in rule.expr}
            assert all(level < rule.level for level in read.values()), rule.record
            known[rule.record] = rule.level


def test_lines_are_moved_in_by_their_parentheses() -> None:
    """Those within texts do not count."""
    text = 'a (\nlabel("(", b)\n) or (\nc\n)'
    assert laid_out(text) == 'a (\n  label("(", b)\n) or (\n  c\n)'
