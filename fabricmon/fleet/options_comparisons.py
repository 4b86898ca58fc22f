"""Thresholds of the rules that compare nodes, with the reason for each."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fabricmon.config import Count, Pause, Ratio, Seconds, Section

Factor = Annotated[float, Meta(ge=1)]


class Rails(Section, frozen=True):
    """Rails of a job against each other, on each node and then over nodes.

    ``health-systems`` A5. Nodes take their windows at different moments of a job's
    step, so only rails of one node are compared; nodes then vote.
    """

    window_seconds: Seconds = 300
    """Ten windows of bursts, which agents take every 30 s."""
    odd_ratio: Ratio = 0.6
    """Share of the judged time in which a rail must be odd: 6 of 10 windows (A5)."""
    judged_ratio: Ratio = 0.5
    """Share of the window in which there was something to judge: less is too little."""
    score: Annotated[float, Meta(gt=0)] = 4
    """Deviations from the median rail: A5 had no false flag in 10,000 at 5 % noise."""
    spread_floor: Ratio = 0.05
    """Least deviation as a share of the median: equal rails have none (A5)."""
    busy_ratio: Factor = 1.3
    """Duty against the median rail (A5; NVRx has 1 / 0.75)."""
    busy_least_ratio: Ratio = 0.1
    """Duty of the median rail below which nothing is judged: two samples of 15."""
    busy_step_ratio: Ratio = 0.12
    """Least difference of duty: two samples of 15, for a phase ends within one."""
    rate_ratio: Ratio = 0.75
    """99th percentile of the rate against the median rail (A5, NVRx)."""
    least_rails: Annotated[int, Meta(ge=3)] = 3
    """Rails of a job on a node: of two nobody knows which one is odd."""
    split_ratio: Ratio = 0.25
    """Share of a job's rails that may be slow at once: more are two groups of rails."""
    nodes_ratio: Ratio = 0.5
    """Share of a job's nodes that must agree: a slow hop paces the whole rail."""
    least_nodes: Annotated[int, Meta(ge=2)] = 2
    """Fewest nodes that must agree: what one sees alone, its own agent tells."""
    compared_nodes: Annotated[int, Meta(ge=3)] = 4
    """Nodes of a job that are held against each other: of two nobody is odd."""
    slow_rails_ratio: Ratio = 0.5
    """Share of a node's rails that are slower than elsewhere: then it is the node."""
    node_hold_seconds: Pause = 300
    """Another window: jobs start and end on their nodes at different times."""
    lasting_seconds: Pause = 1800
    """After so long a slow rail is a ticket: checkpoints and evaluations are over, and
    the whole job goes on at its pace."""
    leaf_ports: Annotated[int, Meta(ge=2)] = 4
    """Fewest ports of a leaf that wait or are paused: behind a slow hop few do."""
    leaf_ratio: Ratio = 0.6
    """Share of the job's ports of that leaf: a slow hop makes its senders wait only."""
    hold_seconds: Pause = 0
    """The window is long enough to be sure."""


class Causes(Section, frozen=True):
    """Ports that fall together (``health-systems`` A10)."""

    ports: Annotated[int, Meta(ge=2)] = 4
    """Fewest ports that fall together."""
    ports_ratio: Ratio = 0.5
    """Share of the ports of the leaf, rail or rack."""
    together_seconds: Pause = 2
    """Ports that went down within so long of the median of them fell together."""
    recent_seconds: Seconds = 600
    """How long it is one event after the fall, and while members are down (A10)."""
    left_ratio: Ratio = 0.25
    """Share of those that fell: when no more are down, each has its own story again."""
    nodes: Annotated[int, Meta(ge=1)] = 3
    """Fewest nodes: all ports of one or two are those nodes, which tell it themselves."""
    control_seconds: Pause = 30
    """A leaf in INIT for so long is not served: after training it takes 0.1 to 5 s."""
    control_ratio: Ratio = 0.05
    """Share of a cluster's ports in INIT at once: a subnet manager changes over."""
    interrupted_seconds: Seconds = 1
    """Time within the window in which a port was not ACTIVE although its link was up."""
    interrupted_window_seconds: Seconds = 60
    """Window of that: four scrapes, so that ports that changed at once are counted
    together although each is scraped at a time of its own."""
    stall_ratio: Ratio = 0.5
    """Share of a job's nodes whose acknowledge timers ran out on several rails."""
    stall_timeouts: Count = 1
    """Timers of a port that ran out within a minute: one a day is normal, and alone."""
    stall_rails: Annotated[int, Meta(ge=2)] = 2
    """Fewest rails that are hit at once: one alone is a link, a leaf or a peer."""


class Pauses(Section, frozen=True):
    """Who holds the network up (``health-systems`` A8)."""

    window_seconds: Seconds = 60
    """Window of the shares: four scrapes."""
    victim_ratio: Ratio = 0.25
    """Share of time in which a port is held: far above a fabric that lives with pause
    (below 5 %, ``faults`` 3)."""
    sender_ratio: Ratio = 0.01
    """Share of time from which a port that sends pause may be the origin."""
    ports: Annotated[int, Meta(ge=2)] = 4
    """Fewest ports that are held while none sends."""
    ports_ratio: Ratio = 0.5
    """Share of the ports of the leaf or rail."""
    apart_seconds: Pause = 2
    """Onsets closer than this have no order: twice the error that clocks may have."""
    hold_seconds: Pause = 0
    """Storms are over in minutes."""
    unmarked_ports: Annotated[int, Meta(ge=2)] = 2
    """Fewest ports of a leaf that are paused and never marked: one alone may be its
    host, and its agent has compared it with its other rails for minutes."""
    unmarked_ratio: Ratio = 0.5
    """Share of the ports of that leaf: marking is a setting of the whole switch."""


class Votes(Section, frozen=True):
    """Who is named by others (``health-systems`` A9)."""

    observers: Annotated[int, Meta(ge=2)] = 3
    """Nodes that name the same peer (A9)."""
    observers_ratio: Ratio = 0.5
    """Share of the nodes of its job that complain of anybody (A9)."""
    silent_observers: Count = 2
    """The same where the peer's own agent fell silent: in a ring only two talk to it."""
    targets: Annotated[int, Meta(ge=2)] = 3
    """Peers that one node names, and nobody else does: the node itself is suspect."""
    alone_seconds: Pause = 240
    """After so long a ticket, where nothing of the peer itself is told: its agent has
    confirmed by then what it sees, and votes stand for 300 s after the last sign."""


class Losses(Section, frozen=True):
    """Packets that get lost inside the fabric (``faults`` F02 and F38)."""

    window_seconds: Seconds = 300
    """Window of the counts: a loss of 1e-7 is some tens of packets at 400 Gb/s."""
    packets: Count = 20
    """Packets lost within the window: a healthy port has none or a few."""
    share: Ratio = 0.8
    """Share of a rail's losses from which one sender is the place (F02)."""
    receivers: Annotated[int, Meta(ge=2)] = 2
    """Fewest receivers with gaps: one alone has a bad link of its own."""
    leafs: Annotated[int, Meta(ge=2)] = 2
    """Fewest leafs of these receivers: behind one, it is that leaf (F38)."""
    receiver_share: Ratio = 0.7
    """Share of the gaps that one receiver may have: more is its own bad link."""
    hold_seconds: Pause = 30
    """Two scrapes agree."""


class Stalls(Section, frozen=True):
    """A leaf in which nothing moves (``faults`` F41)."""

    window_seconds: Seconds = 120
    """Window of the signs: a switch drops what waited for too long within seconds."""
    moving_bytes_per_second: Annotated[float, Meta(gt=0)] = 25e6
    """A port that sends less stands still: 0.1 % of 200 Gb/s."""
    quiet_seconds: Seconds = 45
    """How long nothing moves at least: three scrapes."""
    before_seconds: Seconds = 300
    """The port carried traffic so long ago at most: else it is just idle."""
    ports: Annotated[int, Meta(ge=2)] = 4
    """Fewest ports of the leaf that stand still and wait."""
    ports_ratio: Ratio = 0.5
    """Share of the ports of the leaf."""
    hold_seconds: Pause = 30
    """Two evaluations agree."""


class Drift(Section, frozen=True):
    """Devices that differ from their like in the cluster (``faults`` F29, N29)."""

    least_nodes: Annotated[int, Meta(ge=3)] = 3
    """Nodes with equal boards: of two nobody knows which one is odd."""
    single_nodes: Count = 2
    """So many nodes that differ are told one by one, whatever share they are."""
    single_ratio: Ratio = 0.1
    """The same as a share of the nodes with that board; more are one story."""
    update_seconds: Seconds = 86400
    """After a change of firmware anywhere, a difference is an update under way."""
    rate_ratio: Ratio = 0.9
    """Rate or PCIe width against the median of equal boards: less is a lower step."""
    hold_seconds: Pause = 60
    """Identity is read seldom: an agent that starts knows it at once."""
    width_seconds: Pause = 1800
    """Power saving takes lanes away from an idle device, and gives them back."""


class Priorities(Section, frozen=True):
    """Nodes that handle priorities of RoCE otherwise than most (``faults`` F36, F37)."""

    least_nodes: Annotated[int, Meta(ge=3)] = 4
    """Nodes with equal boards: one against three is the least clear majority."""
    minority_ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    """A value is odd where at most so many nodes have it for one with the usual."""
    ports_ratio: Ratio = 0.5
    """Share of a node's ports: one rail beside its like is told by its own agent."""
    single_nodes: Count = 2
    """So many nodes that differ are told one by one, whatever share they are."""
    single_ratio: Ratio = 0.1
    """The same as a share of the nodes with that board; more are one story."""
    hold_seconds: Pause = 900
    """A script sets it after boot, and agents look every 300 s
    (``periods.host_path_seconds``): three times that."""


class Ranks(Section, frozen=True):
    """Ranks of a communicator against each other."""

    window_seconds: Seconds = 300
    """Window of the mean: a checkpoint or an evaluation disturbs single operations."""
    ratio: Ratio = 0.75
    """Time in a collective against the median rank: who comes late waits for nobody,
    and is in it for the shortest time (NVRx has 0.75)."""
    score: Annotated[float, Meta(gt=0)] = 4
    """Deviations from the median rank, as of rails."""
    spread_floor: Ratio = 0.05
    """Least deviation as a share of the median, as of rails."""
    least_ranks: Annotated[int, Meta(ge=3)] = 4
    """Ranks that are known of a communicator."""
    hold_seconds: Pause = 60
    """Four scrapes agree."""


class Comparisons(Section, frozen=True):
    """What nodes are compared by."""

    rails: Rails = Rails()
    causes: Causes = Causes()
    pauses: Pauses = Pauses()
    votes: Votes = Votes()
    losses: Losses = Losses()
    stalls: Stalls = Stalls()
    drift: Drift = Drift()
    priorities: Priorities = Priorities()
    ranks: Ranks = Ranks()
