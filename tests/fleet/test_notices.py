"""Who hears of a finding: page, ticket or information, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fabricmon.fleet.kind_alerts import NOTICED
from tests.fleet.kind_cases import FOUND, finding, identities
from tests.fleet.promtool import Query, ask, series

_PORT = {"device": "mlx5_3", "port": 1}
_JOB = series("fabricmon_port_job_info", **_PORT, job="train-1")
_ELSEWHERE = series("fabricmon_port_job_info", device="mlx5_0", port=1, job="train-1")
_ON_NODE = series("fabricmon_job_info", job="train-1", rails="3")
_NOBODY = {_JOB: "", _ON_NODE: ""}
_NODE_WORKED_ON = {series("fabricmon_maintenance"): "1x80"}
_PORT_WORKED_ON = {series("fabricmon_maintenance", **_PORT): "1x80"}
_CORDONED = {series("kube_node_spec_unschedulable"): "1x80"}
_FREE = {series("kube_node_spec_unschedulable"): "0x80"}


def fleet(kind: str, *changes: Mapping[str, str]) -> dict[str, str]:
    """Return a node with a finding; an empty value takes a series away."""
    shown = {**identities(), **finding(kind, FOUND[kind])}
    for change in changes:
        shown |= change
    return {name: values for name, values in shown.items() if values}


def heard(kind: str, notice: str, at: str = "6m") -> Query:
    """Expect one notice of a kind and no other."""
    expr = f"count by (kind, notice) ({NOTICED})"
    return Query(expr, at, {f'{{kind="{kind}", notice="{notice}"}}': 1})


def nothing(at: str) -> Query:
    """Expect that nobody hears anything."""
    return Query(NOTICED, at, {})


@pytest.mark.parametrize(
    ("kind", "changes", "notice"),
    [
        ("port_down", {}, "page"),
        ("port_down", {_JOB: "", _ELSEWHERE: "1x80"}, "ticket"),
        ("port_down", {_JOB: ""}, "page"),
        ("port_down", _NOBODY, "ticket"),
        ("port_down", _CORDONED, "ticket"),
        ("port_down", _FREE, "page"),
        ("port_down", _NODE_WORKED_ON, "info"),
        ("port_down", _PORT_WORKED_ON, "info"),
        ("device_missing", _PORT_WORKED_ON, "info"),
        ("device_missing", {_JOB: "", _ELSEWHERE: "1x80"}, "page"),
        ("device_missing", _NOBODY, "ticket"),
        ("link_unstable", {}, "ticket"),
        ("link_unstable", _CORDONED, "ticket"),
        ("transport_retries", {}, "info"),
        ("congestion", {}, "info"),
    ],
)
def test_who_hears(
    kind: str, changes: Mapping[str, str], notice: str, tmp_path: Path
) -> None:
    """A page needs a job on the port, on a node that is in service."""
    assert ask([heard(kind, notice)], fleet(kind, changes), tmp_path) == ""


def test_information_alone_is_for_nobody(tmp_path: Path) -> None:
    """What is only info is told of no kind but the quiet ones."""
    shown = {
        series(
            "fabricmon_finding_open",
            kind="port_flap",
            severity="info",
            role="observer",
            action="none",
            **_PORT,
        ): "1x80",
    }
    assert ask([nothing("5m")], shown, tmp_path) == ""


_INFO = {"severity": "info", "role": "observer", "action": "none"}


def info(kind: str, since: int, **where: object) -> dict[str, str]:
    """Return a finding that is only info, from 5 min on, since some second."""
    return {
        series("fabricmon_finding_open", kind=kind, **_INFO, **where): "_x20 1x80",
        series(
            "fabricmon_finding_onset_timestamp_seconds", kind=kind, **where
        ): f"_x20 {since}x80",
    }


def test_moments_are_for_nobody(tmp_path: Path) -> None:
    """A kind that is info for moments is told when it has gone on for three minutes."""
    shown = info("transport_retries", 295, **_PORT)
    asked = [nothing("7m45s"), heard("transport_retries", "info", "8m")]
    assert ask(asked, shown, tmp_path) == ""


def test_an_agent_that_tells_no_onset_is_heard_at_once(tmp_path: Path) -> None:
    """What is not known to be young counts as lasting."""
    shown = info("host_path_slow", 295)
    del shown[
        series("fabricmon_finding_onset_timestamp_seconds", kind="host_path_slow")
    ]
    assert ask([heard("host_path_slow", "info", "5m")], shown, tmp_path) == ""


def test_a_device_that_is_gone_is_told_while_it_may_be_back(tmp_path: Path) -> None:
    """It is told at once; after five minutes it would be more, were it a card."""
    shown = info("device_missing", 290, device="mlx5_3")
    asked = [heard("device_missing", "info", "5m"), nothing("10m")]
    assert ask(asked, shown, tmp_path) == ""


def test_a_function_that_went_to_a_container_is_for_nobody(tmp_path: Path) -> None:
    """Virtual functions come and go; a device that was a card is told."""
    port = {"device": "mlx5_3", "port": 1, "is_vf": "true"}
    was = {series("fabricmon_infiniband_port_info", **port): "1x19"}
    shown = info("device_missing", 290, device="mlx5_3") | was
    assert ask([nothing("5m"), nothing("9m")], shown, tmp_path) == ""


@pytest.mark.parametrize(
    "lacking",
    [
        series("fabricmon_finding_onset_timestamp_seconds", kind="port_down", **_PORT),
        series("fabricmon_node_info", rack="r1"),
        series(
            "fabricmon_infiniband_port_info",
            **_PORT,
            rail=3,
            leaf="l3",
            netdev="ib3",
            role="compute",
        ),
    ],
)
def test_an_older_agent_loses_no_alert(lacking: str, tmp_path: Path) -> None:
    """A metric that it does not export costs its label, not the alert."""
    shown = fleet("port_down")
    assert shown.pop(lacking)
    assert ask([heard("port_down", "page")], shown, tmp_path) == ""


def test_an_agent_that_is_scraped_twice_loses_no_alert(tmp_path: Path) -> None:
    """Two targets for one node, as in a move between pods, break no join."""
    shown = fleet("port_down")
    twice = {
        f'{name.removesuffix("}")},instance="{target}"}}': values
        for name, values in shown.items()
        for target in ("a", "b")
    }
    assert ask([heard("port_down", "page")], twice, tmp_path) == ""


def test_a_missed_scrape_is_no_repair(tmp_path: Path) -> None:
    """While nothing is known of the node, what was known stays for two minutes."""
    shown = {
        name: values.replace("x80", "x27").replace("1x60", "1x7").replace("0x60", "0x7")
        + (" stale _x30" if "onset" in name or "open" in name else "")
        for name, values in fleet("port_down").items()
    }
    for name, values in shown.items():
        if "x27" in values:
            shown[name] = "1x27 stale"
    queries = [heard("port_down", "page", "7m45s"), nothing("9m30s")]
    assert ask(queries, shown, tmp_path) == ""


def test_what_was_over_does_not_come_back_with_a_missed_scrape(tmp_path: Path) -> None:
    """The agent told of the repair and then ended: its last word counts."""
    shown = {
        name: f"{values.replace('x60', 'x3')} stale"
        if "finding" in name
        else "1x27 stale"
        for name, values in fleet("port_down").items()
    }
    queries = [heard("port_down", "page", "5m45s"), nothing("7m"), nothing("7m15s")]
    assert ask(queries, shown, tmp_path) == ""


def test_a_repair_is_told_at_once(tmp_path: Path) -> None:
    """A node that is scraped and has no finding has none."""
    shown = fleet("port_down")
    shown = {
        name: f"{values.replace('x60', 'x3')} stale" if "finding" in name else values
        for name, values in shown.items()
    }
    queries = [heard("port_down", "page", "5m45s"), nothing("6m15s")]
    assert ask(queries, shown, tmp_path) == ""


def test_a_page_that_becomes_a_ticket_is_one_alert(tmp_path: Path) -> None:
    """The milder finding takes the place of the graver; they are never both there."""
    place = {"kind": "port_down", "role": "culprit", **_PORT}
    grave = series(
        "fabricmon_finding_open", severity="critical", action="drain_now", **place
    )
    mild = series(
        "fabricmon_finding_open", severity="warning", action="inspect", **place
    )
    shown = {**identities(), grave: "1x20 stale", mild: "_x21 1x40"}
    queries = [
        heard("port_down", "page", "5m"),
        heard("port_down", "ticket", "5m15s"),
        heard("port_down", "ticket", "6m"),
    ]
    assert ask(queries, shown, tmp_path) == ""


def test_two_findings_of_a_kind_at_a_place_are_one_alert(tmp_path: Path) -> None:
    """With a page there, the ticket of the same kind is not told as well."""
    place = {"kind": "nccl_error", "role": "culprit", **_PORT}
    shown = {
        **identities(),
        series(
            "fabricmon_finding_open", severity="critical", action="inspect", **place
        ): "1x40",
        series(
            "fabricmon_finding_open", severity="warning", action="inspect", **place
        ): "1x40",
        series(
            "fabricmon_finding_open", severity="warning", action="none", **place
        ): "1x40",
    }
    assert ask([heard("nccl_error", "page", "5m")], shown, tmp_path) == ""


def test_a_job_that_the_fault_killed_was_on_the_port(tmp_path: Path) -> None:
    """The page stays for five minutes after its job."""
    gone = {_JOB: "1x21 stale", _ON_NODE: "1x21 stale"}
    queries = [heard("port_down", "page", "10m"), heard("port_down", "ticket", "11m")]
    assert ask(queries, fleet("port_down", gone), tmp_path) == ""
