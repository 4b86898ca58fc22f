"""What really happened in a simulated fleet; only a scorer reads it.

The documents are ``truth.json`` and ``fleet.json`` of the formats document, section 4.
"""

from __future__ import annotations

from msgspec import Struct, field


class FaultTruth(Struct, frozen=True, kw_only=True):
    """One fault: where, when, which kinds answer it, and how long they may take.

    ``onset`` is when its signature is complete and ``deadline`` seconds after it;
    ``begin`` is when its cause began: an answer between the two is early, not wrong.
    ``visible`` is False where the mask hides the signature: then only abstaining is
    right. ``signals`` names evidence that would be of the injected cause.
    """

    fault: str = field(name="class")
    onset: float
    end: float | None
    accept: tuple[str, ...]
    deadline: float
    visible: bool = True
    node: str | None = None
    device: str | None = None
    port: int | None = None
    rail: int | str | None = None
    leaf: str | None = None
    peer: str | None = None
    signals: tuple[str, ...] = ()
    by_vote: bool = False
    begin: float | None = None


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who only suffers."""

    node: str
    device: str | None = None
    port: int | None = None


class Forbidden(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must not be said; keys that are not given match anything.

    With ``begin`` it holds from then until ``end`` (None: for good), seconds: what is
    told within is wrong whoever is at fault, and answers nothing.
    """

    node: str | None = None
    device: str | None = None
    kind: str | None = None
    actionable: bool | None = None
    severity: str | None = None
    role: str | None = None
    begin: float | None = None
    end: float | None = None

    def holds_at(self, t: float) -> bool:
        """Tell whether the rule holds at a time."""
        if self.begin is None:
            return True
        return self.begin <= t and (self.end is None or t < self.end)


class Truth(Struct, frozen=True, kw_only=True):
    """``truth.json``."""

    seed: int
    scenario: str
    duration: float
    faults: tuple[FaultTruth, ...] = ()
    victims: tuple[Place, ...] = ()
    forbid: tuple[Forbidden, ...] = ()
    negative: bool = False
    tags: tuple[str, ...] = ()


class FleetJob(Struct, frozen=True, kw_only=True):
    """A job and when it ran on which nodes."""

    id: str
    nodes: tuple[str, ...]
    start: float
    end: float


class LeafPort(Struct, frozen=True, kw_only=True):
    """A port of a node that hangs on a leaf."""

    node: str
    device: str
    port: int


class FleetFile(Struct, frozen=True, kw_only=True):
    """``fleet.json``."""

    nodes: tuple[str, ...]
    jobs: tuple[FleetJob, ...] = ()
    leafs: dict[str, tuple[LeafPort, ...]] = field(default_factory=dict)
