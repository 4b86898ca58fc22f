"""Lifetime counters of recorded sysfs trees, judged as their sidecars say."""

from typing import Any

import pytest

from fabricmon.detect.sample import judge_port
from fabricmon.model import Verdict
from fabricmon.parse.report import CounterValue, PortReport
from fabricmon.parse.words import PortState
from tests.parse.cases import sidecars

Counters = dict[str, dict[str, int]]
# Ports whose verdict rests on what files outside the counters say.
ELSEWHERE = {("sysfs-dgx-netdev-down-flaps", "mlx5_6/1")}


def samples() -> list[tuple[str, str, dict[str, Any], Counters]]:
    """Return case, port, verdict and counters of every recorded ACTIVE port."""
    found = []
    for name, sidecar in sidecars("sysfs"):
        for place, counters in sidecar["expect"].get("counters", {}).items():
            verdict = sidecar["verdict"]["ports"][place]
            if verdict["verdict"] != "down" and (name, place) not in ELSEWHERE:
                found.append((name, place, verdict, counters))
    return found


def judge(counters: Counters) -> Verdict:
    """Judge an ACTIVE port with these counters."""

    def values(folder: str) -> tuple[CounterValue, ...]:
        return tuple(CounterValue(*item) for item in counters.get(folder, {}).items())

    return judge_port(
        PortReport(
            "a",
            1,
            PortState.ACTIVE,
            counters=values("counters"),
            hw_counters=values("hw_counters"),
        )
    ).verdict


@pytest.mark.parametrize(
    ("place", "counters"),
    [
        pytest.param(place, counters, id=f"{name}:{place}")
        for name, place, verdict, counters in samples()
        if verdict["verdict"] == "healthy"
    ],
)
def test_a_healthy_port_is_never_called_bad(place: str, counters: Counters) -> None:
    """Old, small, routine and equal-everywhere values are no faults."""
    assert judge(counters) is Verdict.HEALTHY, place


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ("sysfs-h100-ndr-bond", "mlx5_1/1"),  # link_downed at 255
        ("sysfs-roce-retrans-heavy", "mlx5_0/1"),  # counters/ is all clean
        ("sysfs-rxe-blackhole", "rxe0/1"),  # nothing comes back
        ("sysfs-ionic-down-and-lossy", "rocep213s0/1"),  # 16 lost in a million
    ],
)
def test_a_port_out_of_proportion_is_degraded(case: str, place: str) -> None:
    """Whatever the driver calls its counters."""
    (counters,) = (s[3] for s in samples() if s[:2] == (case, place))
    assert judge(counters) is Verdict.DEGRADED
