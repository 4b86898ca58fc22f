"""What people hear of alerts, beside a real Alertmanager that gets the same ones."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from fabricmon.fleet.firing import Firing, Heard
from fabricmon.fleet.inhibiting import Inhibitor, labels_of
from fabricmon.fleet.notices import Grouping, hear
from fabricmon.fleet.rule import Inhibition, Matcher
from tests.fleet.firings import firing
from tests.fleet.webhook import Webhook, webhook
from tests.support.servers import Server, wait_until

StartServer = Callable[..., Server]

RULES = (
    Inhibition(
        "cause over members",
        (Matcher("kind", "common_cause"),),
        (Matcher("kind", "port_.*|rail_slow"),),
        ("cluster", "leaf"),
    ),
    Inhibition(
        "worse over milder",
        (Matcher("severity", "critical"),),
        (Matcher("severity", "warning|critical"),),
        ("node", "device"),
    ),
    Inhibition(
        "whatever has no leaf",
        (Matcher("kind", "node_down"), Matcher("leaf", "")),
        (Matcher("node", "n.+"),),
        ("cluster",),
    ),
)


def chance_alerts(seed: int, count: int) -> list[Firing]:
    """Return alerts with labels as chance has them, often absent."""
    chance = random.Random(seed)
    words = {
        "kind": ("common_cause", "port_down", "rail_slow", "port", "node_down"),
        "severity": ("critical", "warning", "info"),
        "cluster": ("c1", "c2", "c3", ""),
        "leaf": ("l1", "l2", ""),
        "node": ("n1", "n2", "n", ""),
        "device": ("d1", ""),
    }
    return [
        firing(f"A{n}", more=drawn)
        for n, drawn in enumerate(
            {name: chance.choice(some) for name, some in words.items()}
            for _ in range(count)
        )
    ]


def configuration(rules: Iterable[Inhibition], **route: Any) -> str:
    """Return a configuration of Alertmanager with inhibitions and one route."""
    return yaml.safe_dump(
        {
            "route": {"receiver": "r", **route.pop("route", {})},
            "receivers": [{"name": "r", **route}],
            "inhibit_rules": [
                {
                    "source_matchers": [f'{m.label}=~"{m.pattern}"' for m in r.source],
                    "target_matchers": [f'{m.label}=~"{m.pattern}"' for m in r.target],
                    "equal": list(r.equal),
                }
                for r in rules
            ],
        }
    )


def post(server: Server, alerts: Iterable[dict[str, Any]]) -> None:
    """Send alerts as Prometheus does."""
    request = urllib.request.Request(
        f"{server.url}/api/v2/alerts",
        json.dumps(list(alerts)).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=10).close()


def seen(server: Server) -> list[dict[str, Any]]:
    """Return the alerts that it has."""
    with urllib.request.urlopen(f"{server.url}/api/v2/alerts", timeout=10) as reply:
        found: list[dict[str, Any]] = json.load(reply)
    return found


@pytest.mark.server
def test_inhibited_as_by_alertmanager(start_alertmanager: StartServer) -> None:
    """The same of many alerts are inhibited; absent labels are equal."""
    server = start_alertmanager(configuration(RULES))
    alerts = chance_alerts(7, 60)
    post(server, ({"labels": labels_of(each)} for each in alerts))
    wait_until(lambda: len(seen(server)) == len(alerts), 10, "all alerts are known")
    theirs = {
        a["labels"]["alertname"] for a in seen(server) if a["status"]["inhibitedBy"]
    }
    inhibitor = Inhibitor(RULES, alerts)
    ours = {
        each.label("alertname")
        for each in alerts
        if inhibitor.reason(labels_of(each), 1)
    }
    assert ours == theirs
    assert 10 < len(ours) < 50


STORY = (
    firing("Plain", 0, 4.6, node="a"),
    firing("Short", 0.2, 0.7, node="b"),
    firing("Held", 0.1, None, node="c", kind="port_down", cluster="c1"),
    firing("Cause", 0.1, 2.0, kind="common_cause", cluster="c1"),
    firing("Late", 0.9, 1.6, node="d"),
)
QUICK = Grouping(wait_seconds=1, interval_seconds=2)


def played(server: Server, story: Iterable[Firing], seconds: float) -> None:
    """Post each alert when it fires, and again with its end when it ends."""
    moments: list[tuple[float, Firing]] = []
    for each in story:
        moments.append((each.life.fired, each))
        if each.life.ended is not None:
            moments.append((each.life.ended, each))
    begun = time.time()
    for moment, each in sorted(moments, key=lambda pair: pair[0]):
        time.sleep(max(0.0, begun + moment - time.time()))
        alert: dict[str, Any] = {
            "labels": labels_of(each),
            "startsAt": stamp(begun + each.life.fired),
            "endsAt": stamp(begun + 600),
        }
        if moment == each.life.ended:
            alert["endsAt"] = stamp(begun + moment)
        post(server, [alert])
    time.sleep(max(0.0, begun + seconds - time.time()))


def stamp(unix: float) -> str:
    """Return a time as the API has it."""
    return datetime.fromtimestamp(unix, UTC).isoformat()


def story_of(heard: Iterable[Heard]) -> dict[str, list[str]]:
    """Return the states in which people heard of each alert."""
    found: dict[str, list[str]] = {}
    for each in heard:
        states = [
            state
            for state, at in (("firing", each.told), ("resolved", each.resolved))
            if at is not None
        ]
        if states:
            found.setdefault(each.firing.label("alertname"), []).extend(states)
    return found


@pytest.mark.slow
@pytest.mark.server
def test_told_as_by_alertmanager(start_alertmanager: StartServer) -> None:
    """One is told and resolved, one is too short, one waits for its cause to end."""
    with webhook() as hook:
        route = {
            "group_by": ["..."],
            "group_wait": "1s",
            "group_interval": "2s",
        }
        urls = [{"url": hook.url("/"), "send_resolved": True}]
        server = start_alertmanager(
            configuration(RULES, route=route, webhook_configs=urls)
        )
        played(server, STORY, 6.5)
        theirs = told_by(hook)
    ours = story_of(hear(STORY, RULES, QUICK, until=6.5))
    assert ours == theirs
    assert set(ours) == {"Plain", "Held", "Cause"}


def told_by(hook: Webhook) -> dict[str, list[str]]:
    """Return the states that came in, by alert."""
    found: dict[str, list[str]] = {}
    for _, body in hook.received:
        for alert in body["alerts"]:
            found.setdefault(alert["labels"]["alertname"], []).append(alert["status"])
    return found


LONG = Grouping(30, 300)


def only(heard: tuple[Heard, ...]) -> Heard:
    """Return the one that there is."""
    (one,) = heard
    return one


def test_told_when_the_group_has_waited() -> None:
    """And resolved at the flush after its end."""
    one = only(hear([firing("A", 100, 200)], (), LONG, 900))
    assert (one.told, one.resolved) == (130, 430)


def test_over_before_the_flush() -> None:
    """Nobody hears of it."""
    one = only(hear([firing("A", 100, 120)], (), LONG, 900))
    assert (one.told, one.resolved, one.silenced) == (None, None, None)


def test_end_of_the_replay() -> None:
    """The first flush is made, another beyond the end is not."""
    one = only(hear([firing("A", 100, 130.5)], (), LONG, 120))
    assert (one.told, one.resolved) == (130, None)


def test_comes_back_before_the_next_flush() -> None:
    """It has not been away for who hears only flushes."""
    heard = hear([firing("A", 0, 50), firing("A", 100, 700)], (), LONG, 2000)
    assert [(each.told, each.resolved) for each in heard] == [(30, 930)]


def test_comes_back_after_the_flush() -> None:
    """It is another story, in a new group."""
    heard = hear([firing("A", 0, 50), firing("A", 400, 500)], (), LONG, 2000)
    assert [(each.told, each.resolved) for each in heard] == [(30, 330), (430, 730)]


def test_group_waits_for_its_flush() -> None:
    """A second alert of a group is told with the next flush, not after its own wait."""
    by_node = Grouping(30, 300, by=("node",))
    alerts = [firing("A", 0, node="n"), firing("B", 40, node="n")]
    assert [each.told for each in hear(alerts, (), by_node, 900)] == [30, 330]


def test_inhibited_until_the_source_is_over() -> None:
    """It is told at the first flush at which nothing inhibits it."""
    source = firing("S", 0, 100, kind="common_cause", leaf="l")
    target = firing("T", 5, None, kind="port_down", leaf="l")
    heard = {e.firing.alert.name: e for e in hear([source, target], RULES, LONG, 900)}
    assert heard["T"].told == 335
    assert heard["T"].silenced == "cause over members"


def test_source_that_comes_too_late() -> None:
    """What was told is told."""
    source = firing("S", 40, None, kind="common_cause", leaf="l")
    target = firing("T", 5, None, kind="port_down", leaf="l")
    heard = {e.firing.alert.name: e for e in hear([source, target], RULES, LONG, 900)}
    assert heard["T"].told == 35
