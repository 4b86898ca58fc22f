"""Twelve hours of simulated storm in one process: nothing of it piles up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabricmon.sim.profiles import PROFILES

BENCH = Path(__file__).parents[2] / "bench"
HOURS = 12
FULL = 6
"""Hours after which all that is bounded has reached its bound."""
RAILS = 3

# Everything is read as rarely as it takes to see it: an hour costs a second.
PERIODS = {
    **dict.fromkeys(("devices_seconds", "state_seconds", "outages_seconds"), 15),
    **dict.fromkeys(("errors_seconds", "hardware_seconds", "netdev_seconds"), 15),
    **dict.fromkeys(("nccl_log_seconds", "kmsg_seconds"), 15),
    "state_without_netdev_seconds": 15,
    **dict.fromkeys(("traffic_seconds", "driver_seconds", "pci_seconds"), 60),
    **dict.fromkeys(("maintenance_seconds", "boot_seconds", "jobs_seconds"), 60),
    **dict.fromkeys(("modules_seconds", "device_health_seconds"), 300),
    **dict.fromkeys(("identity_seconds", "link_events_seconds"), 300),
}


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, which is beside the package and not in it."""
    monkeypatch.syspath_prepend(str(BENCH))
    import soak_storm  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    usual = PROFILES[soak_storm.PROFILE]
    slots = tuple(
        replace(slot, device=f"mlx5_{number}")
        for number, slot in enumerate(usual.compute[:RAILS])
    )
    monkeypatch.setitem(PROFILES, "small", replace(usual, name="small", slots=slots))
    return soak_storm


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_nothing_piles_up(soak: Any) -> None:
    """Objects, bytes, open incidents and series are as many as hours before."""
    config = {"bursts": {"enabled": False}, "periods": PERIODS}
    with soak.small_memories():
        played = soak.Storm(HOURS, config, profile="small").play()
    assert len(played.kinds) > 8  # it was a storm
    assert sum(played.kinds.values()) > 10 * HOURS
    early, late = played.kept[FULL // 2 : FULL], played.kept[-FULL // 2 :]
    for name, value in soak.QUANTITIES[:-1]:  # resident memory is the simulator's too
        most, bound = max(map(value, late)), max(map(value, early))
        assert most <= bound * 1.02, name


@pytest.mark.parametrize("hours", [0.25, 0.5, 1.1])
def test_parts_of_an_hour(soak: Any, hours: float) -> None:
    """What would end after a short storm is left out, and the rest can be played."""
    made = soak.scenario(hours, "small")
    assert made.inject
    soak.Stage(made)


@pytest.mark.parametrize("hours", [0.3, 1.0])
def test_too_short_to_tell(
    soak: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    hours: float,
) -> None:
    """A storm that is over before the memories are full shows nothing, and says so."""
    small = partial(soak.Storm, config={"periods": PERIODS}, profile="small")
    monkeypatch.setattr(soak, "Storm", small)
    assert soak.storm(hours)
    assert "too short to tell" in capsys.readouterr().out


def test_the_scales_see_what_is_kept(soak: Any) -> None:
    """What an agent would pile up weighs, whatever it hangs on; the world does not."""
    root, outside = {"agent": [object()]}, [object()] * 100
    before, octets = soak.weigh((root,), (outside,))
    root["more"] = [{"kept": [str(number)]} for number in range(100)]
    root["outside"] = outside
    after, more = soak.weigh((root,), (outside,))
    assert 300 <= after - before <= 320
    assert more > octets + 100 * 100


def test_growth_is_told_from_noise(soak: Any) -> None:
    """A few objects an hour are seen in values that go up and down by more."""
    kept = [
        soak.Kept(float(hour), 8000 + 20 * hour + hour % 3 * 50, 0, 0, 0, 0.0)
        for hour in range(1, 40)
    ]
    grows, off = soak.growth(kept, lambda each: each.objects)
    assert grows - off < 20 < grows + off
    assert grows - off > 0
