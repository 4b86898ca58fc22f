"""What a scenario file says: nodes, jobs, what breaks, and what is known of it.

A scenario is YAML that a person reads and writes. Where a magnitude is asked for, one
number means just that, and two (``[low, high]``) a draw between them, uniform in the
logarithm. Node numbers count from 0, rails too; times are seconds from the start.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Magnitude = float | tuple[float, float]
"""A number, or two between which one is drawn."""

Sight = Literal[
    "sysfs", "ethtool", "kmsg", "nccl_log", "module", "pcie", "dcb", "peers"
]
"""A part of the node that the agent may read; what is not named is not written.

``peers`` is none: it says that what the nodes export is joined (fleet rules), without
which a class that only several nodes together can tell is not visible.
"""

EVERYTHING: tuple[Sight, ...] = (
    "sysfs", "ethtool", "kmsg", "nccl_log", "module", "pcie", "dcb", "peers",
)  # fmt: skip


class Part(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A closed group of keys."""


class JobPlan(Part, frozen=True):
    """A synchronous job: steps of compute and communication over all its nodes."""

    id: str = "train"
    """Names the job and its log."""
    nodes: tuple[int, ...] | None = None
    """Its nodes; null: all."""
    rails: tuple[int, ...] | None = None
    """Its rails; null: all. Two jobs may share a node by rails."""
    start: float = 30
    """When it is started."""
    end: float | None = None
    """When it ends; null: it outlives the scenario."""
    step: Magnitude = (3, 6)
    """Length of a healthy step, seconds."""
    communication: Magnitude = (0.25, 0.5)
    """Share of a healthy step in which it communicates."""
    load: Magnitude = (0.7, 0.95)
    """Share of the line rate that a healthy rail carries meanwhile."""
    pattern: Literal["ring", "all_to_all"] = "ring"
    """Who talks to whom on a rail: neighbours, or all in bursts."""
    init: Magnitude = (30, 60)
    """Seconds of connecting with little traffic before the first step."""
    checkpoint_every: Magnitude | None = None
    """Seconds between checkpoints; null: none."""
    checkpoint: Magnitude = (30, 60)
    """Length of a checkpoint: the rails pause, storage ports work."""
    checkpoint_on_rails: bool = False
    """Storage traffic goes over the compute rails."""
    pauses_every: Magnitude | None = None
    """Seconds between evaluations, in which nothing is sent."""
    pause: Magnitude = (10, 30)
    """Length of an evaluation."""
    timeout: int = 20
    """NCCL_IB_TIMEOUT."""
    retries: int = 7
    """NCCL_IB_RETRY_CNT."""
    restarts: bool = True
    """Whether it starts again after a failure, 60 to 120 s later."""


class Injection(Part, frozen=True):
    """One thing that happens: a fault class or a negative of the catalogue.

    Which of node, rail, device, leaf and peer are needed is up to the class; what is
    left out is drawn. ``parameters`` are the class's own magnitudes by name.
    """

    what: str
    """Class of the catalogue: ``F01`` to ``F57``, ``N01`` to ``N50``."""
    node: int | None = None
    """The node that is hit."""
    nodes: tuple[int, ...] | None = None
    """The nodes, of a class that hits several; null: all, or as the class has it."""
    rail: int | None = None
    """The rail whose port is hit."""
    device: str | None = None
    """The device that is hit, in place of a rail."""
    leaf: str | None = None
    """The leaf that is hit; null: that of the port."""
    peer: int | None = None
    """The node at the other end, of a class that hits a pair."""
    onset: Magnitude = (300, 600)
    """When it begins."""
    end: Magnitude | None = None
    """When it is over; null: as the class has it, or never."""
    parameters: dict[str, Magnitude | str | bool] = field(default_factory=dict)
    """The class's own magnitudes, switches and words, by name."""


class Scenario(Part, frozen=True):
    """One scenario file."""

    name: str
    """Name of the file without its ending; the random numbers hang on it."""
    summary: str
    """What happens, in a sentence."""
    profile: str = "H100-IB-NDR-8x400"
    """The machines."""
    nodes: Annotated[int, Meta(ge=1, le=1024)] = 4
    """How many nodes."""
    nodes_per_leaf: Annotated[int, Meta(ge=1)] = 32
    """Nodes whose same rail goes to the same leaf (rail-optimised)."""
    duration: float = 1800
    """Length, seconds."""
    jobs: tuple[JobPlan, ...] = (JobPlan(),)
    """What runs; an empty list: nothing."""
    inject: tuple[Injection, ...] = ()
    """What happens."""
    sights: tuple[Sight, ...] = EVERYTHING
    """What the agent may read: a visibility mask."""
    noise: Annotated[float, Meta(ge=0)] = 1
    """Scales the background of healthy life; 0: none."""
    boot: float = 86400
    """Up-time of the nodes at the start, seconds."""
    negative: bool = False
    """Nothing here may be told at warning or above."""
    tags: tuple[str, ...] = ()
    """``pair:NAME`` for one of two that look alike, ``compound``, ``hidden`` where a
    fault is not visible, ``outside`` for those written without knowledge of the
    detectors."""
