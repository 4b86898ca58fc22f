"""Everything that a machine's agent says at one moment is one story."""

from __future__ import annotations

import pytest

from tests.vm.outcome import Outcome, Sample

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(1800)]

SAMPLES = (
    *(("rxe", name) for name in ("start", "lossy", "down", "renamed", "restarted")),
    *(
        ("fakeib", name)
        for name in ("start", "broken", "healed", "changed", "reloaded")
    ),
)
STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
VERDICTS = {"healthy": 0, "unknown": 1, "degraded": 2, "down": 3}


@pytest.fixture(params=SAMPLES, ids="-".join)
def sample(request: pytest.FixtureRequest, rxe: Outcome, fakeib: Outcome) -> Sample:
    """Return what everything showed at one moment of one machine."""
    machine, name = request.param
    return {"rxe": rxe, "fakeib": fakeib}[machine].sample(name)


def test_states(sample: Sample) -> None:
    """State, rate and verdict of each port are exported as `check` says them."""
    assert sample.ports
    for device, port in sample.ports.items():
        assert sample.value("infiniband_state_id", device) == STATES[port["state"]]
        rate = sample.value("infiniband_rate_bytes_per_second", device)
        assert rate == port["rate_gbps"] * 1e9 / 8
    verdict, told = sample.value("node_verdict"), VERDICTS[sample.check["verdict"]]
    assert verdict is not None
    # `check` also judges what was there before the agent.
    before = any(port["saturated"] for port in sample.ports.values())
    assert verdict <= told if before else verdict == told


def test_findings(sample: Sample) -> None:
    """What is open in `check` is open in the metrics, and nothing else."""
    expected = {
        (finding["kind"], finding["subject"].get("device") or "")
        for finding in sample.check["findings"]
    }
    assert sample.open_findings() == expected


def test_kernel(sample: Sample) -> None:
    """Every device of the kernel is told of, each in the state that its files say."""
    kernel = {path.partition("/")[0] for path in sample.content["sysfs"]}
    assert kernel <= set(sample.ports)
    for device in kernel:
        assert sample.kernel(device)["state"] == (
            f"{STATES[sample.ports[device]['state']]}: {sample.ports[device]['state']}"
        )


def test_second_opinion(sample: Sample) -> None:
    """The real ibstat of the machine ran in the agent's sandbox and says the same."""
    assert sample.value("source_success", source="ibstat") == 1
    notes = [
        finding["summary"]
        for finding in sample.check["findings"]
        if finding["kind"] == "telemetry_stale"
    ]
    assert not [note for note in notes if "ibstat" in note]
