"""Thresholds of the detectors of traffic: bursts, retries, congestion, stragglers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fabricmon.config.words import Count, Pause, Ratio, Seconds, Section


class Bursts(Section, frozen=True):
    """Fast samples of the bytes of compute ports: how busy they are, and how fast."""

    enabled: bool = True
    """Take bursts: without them a straggler cannot be seen."""
    every_seconds: Seconds = 30
    """Between the beginnings of two windows: ten windows in five minutes."""
    window_seconds: Seconds = 3
    """Length of a window: most steps of a job are shorter or fill it."""
    lag_seconds: Pause = 1
    """A window begins so long after the other polls, which ask the firmware as well."""
    busy_ratio: Ratio = 0.05
    """Share of the line rate above which a sample counts as busy."""
    suspicion_seconds: Pause = 300
    """Windows follow each other without pause for so long after something is found, and
    twice as long at most for a rail that is odd and is not told."""
    slow_read_milliseconds: Seconds = 50
    """A sample that takes longer than this is a load for the device: it rests."""
    slow_rest_seconds: Pause = 300
    """How long a device rests after that."""
    job_grace_seconds: Pause = 60
    """Nothing is sampled so long after a job began: firmware is busy connecting it."""

    @property
    def patience_seconds(self) -> float:
        """For how long a window says something of now: two were missed, or a rest."""
        return 2 * self.every_seconds + self.window_seconds + self.job_grace_seconds


class LocalEvidence(Section, frozen=True):
    """What makes a port the culprit where others see only symptoms of transport."""

    window_seconds: Seconds = 900
    """A port's own fault explains what transport shows for so long after."""
    pci_stall_seconds: Count = 5
    """Seconds of the window in which the host held the device up: fewer are load."""
    corrected_pci_errors: Count = 10
    """Corrected PCIe errors in the window: a healthy device has two a day."""


class Transport(Section, frozen=True):
    """Thresholds of retries: a single one a day is normal, on any port."""

    window_seconds: Seconds = 60
    """Window of the counts: queue pairs try again every 4 s with NCCL's default."""
    ack_timeouts: Count = 3
    """Acknowledge timers that ran out in a window: one a day is normal."""
    sequence_errors: Count = 10
    """Packets lost or sent again in a window, below which no ratio is judged."""
    sequence_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-7
    """The same as a share of the packets sent: less costs no job any time."""
    warning_loss_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-4
    """Share of packets lost that halves the rate of a connection: it goes back and
    sends all that followed again. Less, seen at a victim, is information."""
    slow_window_seconds: Seconds = 600
    """Window for losses that are rare but do not end."""
    slow_sequence_errors: Count = 20
    """Packets lost in a slow window, below which no ratio is judged."""
    slow_sequence_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-8
    """Share of packets lost: a bit error ratio of 3e-13 somewhere on their way."""
    srd_retransmits_per_second: Annotated[float, Meta(gt=0)] = 1000
    """Packets that EFA sends again: its transport does so by design, up to this."""
    impaired_per_second: Annotated[float, Meta(gt=0)] = 1
    """Times that a device calls the path to a peer impaired or the peer silent."""
    not_ready_per_second: Annotated[float, Meta(gt=0)] = 100
    """Refusals of receivers that were not ready, heard over a window."""
    failed_requests_per_second: Annotated[float, Meta(gt=0)] = 100
    """EFA's reads and writes that fail, in both halves of a window: from so many its
    maker's agent for clusters alarms, and the end of a job is over sooner."""
    sustained_seconds: Pause = 180
    """Retries that last so long are a warning; shorter ones may be a peer's outage."""
    receiver_drops_per_second: Annotated[float, Meta(gt=0)] = 10
    """Packets refused because no receive was posted, over a window."""
    receiver_drop_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-6
    """The same as a share of the packets received."""
    srd_drops_per_second: Annotated[float, Meta(gt=0)] = 100
    """Packets that an EFA device drops on receipt, over a window: from so many its
    maker's agent for clusters alarms."""
    upstream_errors: Count = 20
    """Packets in a slow window that a hop before this port's link had damaged."""
    constraint_errors: Count = 5
    """Packets refused for their partition key in a slow window: one may be a probe."""
    common_ports: Count = 4
    """So many ports of a node, and half of its rails, that retry alike are one story."""
    post_flap_seconds: Seconds = 900
    """A port's traffic is compared for so long after its link came back."""
    post_flap_ratio: Ratio = 0.5
    """Share of its rails' rate, and of its own before, below which a port is slow."""
    post_flap_windows: Count = 3
    """Slow windows since the link came back, of the last four."""


class Congestion(Section, frozen=True):
    """Classes of congestion, and who began to pause the network; all is learnt."""

    window_seconds: Seconds = 30
    """Window of rates: driver statistics come every ten seconds."""
    windows: Count = 2
    """Looks at new values, in a row, that must agree."""
    notifications_per_second: Annotated[float, Meta(gt=0)] = 500
    """Congestion notifications, over a window, below which nobody is slowed down."""
    pause_ratio: Ratio = 0.05
    """Share of time paused by the network: below it a fabric without notifications is
    healthy."""
    wait_ratio: Ratio = 0.1
    """Share of ticks with data and no credit (``port_xmit_wait``)."""
    wait_tick_bits: Count = 64
    """Bits on the wire in one tick of ``port_xmit_wait``; the device's firmware says."""
    busy_ratio: Ratio = 0.02
    """Share of the line rate, over a window, above which a port has load to judge."""
    settle_seconds: Pause = 120
    """A job's start is rough: nothing is called congestion for so long after its rails
    became busy."""
    unlike_factor: Annotated[float, Meta(ge=1)] = 3
    """A port stands out at so many times the median of the node's other rails."""
    usual_factor: Annotated[float, Meta(ge=1)] = 3
    """And at so many times what is usual for it."""
    usual_half_life_seconds: Seconds = 1800
    """Half-life of what is usual: a job's phases average out, a change is learnt."""
    usual_windows: Count = 6
    """Busy windows before anything is called usual."""
    storm_window_seconds: Seconds = 60
    """Window of the pause that this host sends."""
    pause_warning_ratio: Ratio = 0.01
    """Share of that window in pause, sent by a host that stalls."""
    pause_critical_ratio: Ratio = 0.1
    """Share of that window in pause that holds the fabric up."""
    storm_ratio: Ratio = 0.5
    """Share of its time in pause from which nobody behind the switch gets through."""
    alike_ports: Count = 4
    """So many ports of a node, and half of its rails, that pause alike are the host;
    so many that wait alike, and most that are used, are the network."""
    alike_factor: Annotated[float, Meta(ge=1)] = 5
    """Most rails show so many times what is usual for this job, beyond what more load
    explains: phases of a job differ by less."""
    alike_seconds: Pause = 120
    """It lasts so long: bursts come on all rails as well, and are healthy."""
    full_ratio: Ratio = 0.8
    """Share of the line rate from which ports wait for themselves: benchmarks do."""
    pause_excess: Annotated[float, Meta(ge=1)] = 4
    """The origin sends so many times the pause that it receives; one whose own device
    counts a stall or a storm only as much, for those whom it holds up pause it too."""
    stall_ratio: Ratio = 0.3
    """Share of a second in which the host held the device up: the device's own mark."""
    victim_ratio: Ratio = 0.25
    """Share of time paused by the network that is no load any more."""
    discards_per_second: Annotated[float, Meta(gt=0)] = 10
    """Packets dropped on receipt, over a window, that flow control should prevent."""
    unmarked_pause_ratio: Ratio = 0.002
    """Share of time paused on a rail without notifications while others have them."""
    unmarked_seconds: Pause = 240
    """It holds for so long before the switch's marking is doubted."""
    unheeded_per_second: Annotated[float, Meta(gt=0)] = 100
    """Notifications ignored, or marked packets without any notification, over a window:
    both rest where congestion control is on."""
    unheeded_seconds: Pause = 240
    """It holds for so long before a rail's congestion control is called off."""
    outbound_discards_per_second: Annotated[float, Meta(gt=0)] = 10
    """Packets dropped on their way out, on average, while the link is up."""
    outbound_discard_seconds: Seconds = 600
    """Over so long: what a phase of a job makes wait is sent by then."""
    outbound_discard_reads: Count = 4
    """Reads in which they grew: the end of a job drops what is queued once or twice."""


class Stragglers(Section, frozen=True):
    """Rails of a node against each other, and against their own past.

    In a synchronous job every rail carries the same bytes. The slow one needs longer
    for them: it is busy longer, at a lower rate, while the mean rates stay equal.
    """

    least_rails: Annotated[int, Meta(ge=3)] = 3
    """Rails of one job that must be seen: with two nobody knows which one is odd."""
    active_share: Ratio = 0.2
    """Share of the rails that must be busy for a window to be judged."""
    active_samples: Count = 2
    """Busy samples that the usual rail has in a window: fewer say nothing of a rate."""
    ended_samples: Annotated[float, Meta(ge=1)] = 1.5
    """A rail is done so many samples before the usual one: one may be half a phase."""
    alone_samples: Count = 4
    """Busy samples of a rail that works on, slowly, when all others have ended."""
    score: Annotated[float, Meta(gt=0)] = 4
    """Robust z-score (median and MAD) from which a rail differs from the others."""
    spread_floor: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Least spread over rails, as a share of their median: equal rails have none."""
    busy_ratio: Annotated[float, Meta(gt=1)] = 1.3
    """How much longer than the usual rail a slow one is busy."""
    critical_busy_ratio: Annotated[float, Meta(gt=1)] = 2.0
    """The same, at which a job loses half of its network: drain after the job."""
    rate_ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.75
    """How slow against the usual rail (NVRx takes the same)."""
    windows: Count = 10
    """Newest windows that are looked at."""
    least_windows: Count = 6
    """So many of them must agree: job phases disturb one or two."""
    least_seconds: Pause = 60
    """They span so long at least: windows without pause see one phase of a job."""
    clear_windows: Annotated[int, Meta(ge=0)] = 2
    """The rail keeps pace again when no more of the newest windows agree."""
    pacing_ratio: Annotated[float, Meta(ge=1)] = 1.15
    """Busy time against the usual rail over all windows: less is less traffic, not pace."""
    more_traffic_ratio: Annotated[float, Meta(gt=1)] = 1.1
    """Bytes against the usual rail since a rail is odd: from so many it has traffic
    besides (storage, another job) and is not slow. Rails of a job carry the same."""
    more_traffic_seconds: Seconds = 300
    """They are counted over so long at most: what was before is over."""
    keeping_share: Ratio = 0.8
    """Share of windows in which a rail is as busy as the others, if it is of their job."""
    split_share: Ratio = 0.25
    """Share of the rails that may be slow at once: more are a job of their own."""
    jitter_windows: Count = 5
    """Judged windows without which nobody knows that a rail keeps pace otherwise."""
    jitter_episodes: Count = 2
    """Separate moments in which the same rail is slow: steps that take longer."""
    jitter_apart_seconds: Seconds = 20
    """Moments so far apart are separate: a step lasts a few seconds."""
    jitter_window_seconds: Seconds = 900
    """They count for so long."""
    idle_seconds: Seconds = 600
    """Without traffic for so long nothing is known of a rail any more."""
    job_past_seconds: Pause = 900
    """Jobs whose rails are not known, one after the other sooner: compared as one."""
    repaired_seconds: Pause = 300
    """A rail with a place is not told without one so soon after: windows remember it."""
    drift_ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.85
    """A rail so far below its own past, against the others, has become slow."""
    drift_weight: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Weight of the newest window in its own past (EWMA): some 20 windows."""
    drift_limit: Annotated[float, Meta(gt=0)] = 8
    """Sum of deviations (CUSUM, in standard deviations) at which a drift is real."""
    drift_windows: Count = 10
    """Windows of a job after which its own past is known."""
    host_path_ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.6
    """All rails below this share of the line rate since the job began: no GPUDirect."""
    host_path_windows: Count = 4
    """Windows from the beginning of the job that must all be so."""
    host_path_devices: Ratio = 0.5
    """Share of the rails whose PCIe side stalls: one alone is a fault of its own."""
    compute_ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.85
    """Busy time against the job's own past at which computing is what takes longer."""
    compute_minutes: Count = 4
    """Minutes in a row that must be so: a checkpoint lasts two."""
    compute_past_minutes: Count = 4
    """Minutes of a job after which its own past is known."""
    compute_rate_ratio: Annotated[float, Meta(gt=0, le=1)] = 0.9
    """Rate of the rails against their own past: below it the network is not clean."""
    pause_ratio: Ratio = 0.25
    """A minute with less traffic than this share of the usual holds a pause: not judged."""


class Fusion(Section, frozen=True):
    """How evidence of several kinds becomes one verdict, and how bold it may be."""

    link_weight: Ratio = 1.0
    """Damage, level or heat at this end of the link."""
    pcie_weight: Ratio = 1.0
    """The PCIe side of this device, or the device itself."""
    state_weight: Ratio = 1.0
    """State or rate of this port."""
    vote_weight: Ratio = 0.8
    """Several that name one peer."""
    log_weight: Ratio = 0.6
    """A job's log that names this device."""
    transport_weight: Ratio = 0.3
    """Retries and timeouts: they name who suffers."""
    congestion_weight: Ratio = 0.5
    """Taken off what is not local where the port sees congestion: it explains that."""
    action_weight: Annotated[float, Meta(gt=0)] = 1.0
    """Sum from which something may be advised; one item of it must be local."""
    corroboration_share: Ratio = 0.5
    """Share of its weight by which another kind of evidence of the same port takes away
    doubt: half, as both may come from one cause."""
    kernel_seconds: Pause = 60
    """What the kernel logged so long before a fault of its device belongs to it."""
    host_cause_devices: Count = 4
    """So many devices, and half of a model or of the node, that fail at once have one
    cause in the host: rails come in eights, and four slots do not fail together."""
    host_cause_window_seconds: Pause = 60
    """Devices that failed within so long of the next failed at once: PCIe is read every
    30 s, and a driver lets go of one device after the other."""
    drain_ports: Count = 2
    """Devices of this node that are advised to be drained at once: more is the node."""
