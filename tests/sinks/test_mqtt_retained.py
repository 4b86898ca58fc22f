"""What the broker should hold: worked out from snapshots, one payload a topic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fabricmon.config import Redaction
from fabricmon.config_load import build
from fabricmon.model import Snapshot, Verdict
from fabricmon.redaction import Redactor
from fabricmon.sinks.mqtt_retained import NOTHING, Retained
from tests.sinks import nodes

ROOT = "fabricmon/v1/c/n/"
PORT = f"{ROOT}port/mlx5_0/1"
SEEN = nodes.node(nodes.port())


def retained(**mqtt: Any) -> Retained:
    """Return what wants nothing yet."""
    config = build({"mqtt": mqtt}, (), ()).config
    return Retained(config, Redactor(Redaction(), b"k" * 16), ROOT)


def later(snapshot: Snapshot, seconds: float, **changes: Any) -> Snapshot:
    """Return a snapshot of the same node some time later."""
    return replace(snapshot, now=snapshot.now + seconds, **changes)


def told(wanted: Retained, topic: str) -> Any:
    """Return a payload as others read it."""
    return json.loads(wanted.wanted[topic])


def test_nothing_new() -> None:
    """The same node a moment later is the same payloads."""
    wanted = retained()
    wanted.update(SEEN)
    before = dict(wanted.wanted)
    wanted.update(later(SEEN, 1))
    assert wanted.wanted == before


def test_summary_is_refreshed() -> None:
    """Its time tells that it is true, so it is sent again though nothing changed."""
    wanted = retained(refresh_seconds=60)
    wanted.update(SEEN)
    wanted.update(later(SEEN, 61, wall=SEEN.wall + 61))
    summary = told(wanted, f"{ROOT}summary")
    assert summary["time"] == "2026-01-05T08:01:01.000Z"
    assert summary["ports"] == {"healthy": 1}


def test_virtual_functions() -> None:
    """Those that are folded have no topics; a node has hundreds."""
    port = nodes.port()
    virtual = replace(port, info=replace(port.info, is_vf=True))
    wanted = retained()
    wanted.update(nodes.node(virtual))
    assert set(wanted.wanted) == {f"{ROOT}summary"}


def test_a_class_that_cannot_be_read() -> None:
    """While the devices cannot be listed none of them is gone for good."""
    wanted = retained(gone_seconds=10)
    wanted.update(SEEN)
    for seconds in (5, 50, 500):
        blind = later(SEEN, seconds, ports=(), class_error="EACCES")
        wanted.update(blind)
    assert told(wanted, PORT)["verdict"] == "unknown"
    wanted.update(later(SEEN, 509, ports=()))
    assert wanted.wanted[PORT] != NOTHING
    wanted.update(later(SEEN, 511, ports=()))
    assert wanted.wanted[PORT] == NOTHING


def test_back_again() -> None:
    """A device that was away a moment is told as it is, not as it was told last."""
    wanted = retained(gone_seconds=10)
    wanted.update(SEEN)
    whole = wanted.wanted[PORT]
    wanted.update(later(SEEN, 1, ports=()))
    assert told(wanted, PORT)["state"] is None
    assert told(wanted, f"{ROOT}summary")["ports"] == {"unknown": 1}
    wanted.update(later(SEEN, 2))
    assert wanted.wanted[PORT] == whole


def test_a_verdict_that_changes() -> None:
    """Verdict and counts follow the snapshot."""
    wanted = retained()
    wanted.update(SEEN)
    down = replace(SEEN.ports[0], verdict=Verdict.DOWN, reasons=("no light",))
    wanted.update(later(SEEN, 1, ports=(down,)))
    assert told(wanted, PORT)["reasons"] == ["no light"]
    assert told(wanted, f"{ROOT}summary")["ports"] == {"down": 1}


def test_left_by_an_earlier_run() -> None:
    """Its own status and summary are written over, strange topics are cleared."""
    wanted = retained()
    strange = "fabricmon/v1/other/n/status"
    wanted.remember([f"{ROOT}status", f"{ROOT}summary", strange, f"{ROOT}port/x/y"])
    assert set(wanted.wanted) == {strange, f"{ROOT}port/x/y"}
    wanted.forget(strange)
    assert strange not in wanted.wanted
