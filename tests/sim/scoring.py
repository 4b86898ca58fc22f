"""Small truths, fleets and findings for the tests of the scorer."""

from __future__ import annotations

from typing import Any

from fabricmon.sim.score import RunScore, score
from fabricmon.sim.score_stories import Told, ToldEvidence, ToldSubject
from fabricmon.sim.truth import FaultTruth, FleetFile, FleetJob, Place, Truth

FLEET = FleetFile(
    nodes=("node00", "node01"),
    jobs=(FleetJob(id="train", nodes=("node00",), start=0, end=1000),),
)
DURATION = 1800.0


def fault(**changes: Any) -> FaultTruth:
    """Return a port that goes down at 300 s and is to be told within 15 s."""
    fields: dict[str, Any] = {
        "fault": "F10", "onset": 300, "end": None, "accept": ("port_down",),
        "deadline": 15, "node": "node00", "device": "mlx5_0", "port": 1,
        "signals": ("state",),
    }  # fmt: skip
    return FaultTruth(**(fields | changes))


def told(t: float = 310, *signals: str, **changes: Any) -> Told:
    """Return a finding about that port, to be acted on at once."""
    subject: dict[str, Any] = {"node": "node00", "device": "mlx5_0", "port": 1}
    subject |= changes.pop("subject", {})
    fields: dict[str, Any] = {
        "t": t, "kind": "port_down", "severity": "critical", "action": "drain_now",
        "evidence": tuple(ToldEvidence(signal=name) for name in signals or ("state",)),
    }  # fmt: skip
    return Told(subject=ToldSubject(**subject), **(fields | changes))


def truth(*faults: FaultTruth, **changes: Any) -> Truth:
    """Return a truth with these faults."""
    fields: dict[str, Any] = {"seed": 1000, "scenario": "small", "duration": DURATION}
    return Truth(faults=faults, **(fields | changes))


def run(
    what: Truth | FaultTruth | None = None, *records: Told, **options: bool
) -> RunScore:
    """Score records against a truth, or against one with this fault."""
    if isinstance(what, FaultTruth):
        what = truth(what)
    return score(what or truth(fault()), FLEET, records, **options)


def suffering(*victims: Place, **changes: Any) -> Truth:
    """Return a truth whose fault makes others suffer."""
    return truth(fault(**changes), victims=victims)
