"""Notifications of Alertmanager as findings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import ParseError
from fabricmon.gate.alerts import MOST_ALERTS, read_notification
from fabricmon.gate.settings import Alerts
from tests.gate.gates import alert, notification

LABELS = Alerts()


def test_a_finding_of_a_node() -> None:
    """Labels make the finding, its place and its identity."""
    told = alert(leaf="l1", rail="3", rack="r1", training="t1")
    (report,) = read_notification(notification(told), LABELS).reports
    subject = report.finding.subject

    assert report.id == f"alert:{told['fingerprint']}"
    assert (report.cluster, report.node, report.rack) == ("c1", "n1", "r1")
    assert (report.origin, report.noticed, report.is_open) == ("node", True, True)
    assert (subject.device, subject.port, subject.rail) == ("mlx5_0", 1, 3)
    assert (subject.leaf, subject.job) == ("l1", "t1")
    assert report.finding.kind == "port_down"
    assert report.finding.action == "drain_now"


def test_its_end() -> None:
    """A resolved alert is a resolved finding."""
    told = alert() | {"status": "resolved"}
    (report,) = read_notification(notification(told), LABELS).reports

    assert not report.is_open


def test_other_labels() -> None:
    """The site says which labels name the node and the cluster."""
    told = alert(instance="x7", site="s1")
    names = Alerts(node_label="instance", cluster_label="site")
    (report,) = read_notification(notification(told), names).reports

    assert (report.node, report.cluster) == ("x7", "s1")


@pytest.mark.parametrize("notice", ["info", "", "PAGE"])
def test_nobody_is_told(notice: str) -> None:
    """What is information only, as under maintenance, is no notice."""
    told = alert(notice=notice)
    (report,) = read_notification(notification(told), LABELS).reports

    assert not report.noticed


@pytest.mark.parametrize("origin", ["fleet", "", "Node"])
def test_origin_must_be_said(origin: str) -> None:
    """Only an alert that says so stands for what a node proved itself."""
    told = alert(origin=origin)
    (report,) = read_notification(notification(told), LABELS).reports

    assert report.origin == "fleet"


def test_alerts_of_others() -> None:
    """Alerts that are not about findings are counted and left out."""
    other = alert()
    del other["labels"]["kind"]
    batch = read_notification(notification(other, alert()), LABELS)

    assert len(batch.reports) == 1
    assert batch.unusable == 1


def test_what_was_left_out_is_known() -> None:
    """Alertmanager, and the gate itself, may cut a notification short."""
    cut = notification(alert(), truncatedAlerts=3)
    many = notification(*([alert()] * (MOST_ALERTS + 1)))

    assert read_notification(cut, LABELS).cut
    assert read_notification(many, LABELS).cut
    assert not read_notification(notification(alert()), LABELS).cut


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": "3", "alerts": []}',
        b'{"version": "4"}',
        b'{"version": "4", "alerts": [{}]}',
        notification(alert() | {"fingerprint": "../../etc"}),
        notification(alert() | {"fingerprint": "x'; DROP TABLE entries; --"}),
        notification(alert() | {"status": "maybe"}),
        notification(alert() | {"labels": {"kind": 7}}),
        b'{"version": "4", "alerts": [], "truncatedAlerts": -1}',
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_no_notification(body: bytes) -> None:
    """What is none is refused whole, with a reason of one line."""
    with pytest.raises(ParseError) as error:
        read_notification(body, LABELS)

    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


@given(st.binary(max_size=300))
def test_any_octets(body: bytes) -> None:
    """Nothing that anybody may send does more than be refused."""
    try:
        read_notification(body, LABELS)
    except ParseError as error:
        assert str(error).isprintable()  # noqa: PT017 - either is right


_TEXTS = st.text(max_size=20)


@given(st.dictionaries(st.sampled_from(list(alert()["labels"])), _TEXTS))
def test_any_labels(labels: dict[str, Any]) -> None:
    """Whatever labels say is bounded text in which nothing acts."""
    body = notification(alert() | {"labels": alert()["labels"] | labels})
    try:
        batch = read_notification(body, LABELS)
    except ParseError:
        assert any("\ud800" <= c <= "\udfff" for c in json.dumps(labels))
        return
    for report in batch.reports:
        shown = f"{report.node}{report.cluster}{report.rack}{report.finding.kind}"
        assert shown.isprintable()
