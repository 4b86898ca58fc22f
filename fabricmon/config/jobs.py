"""Logs, jobs and settings of collective libraries."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config.words import Count, Pause, Ratio, Seconds, Section


class LogRule(Section, frozen=True):
    """A row of the log rule table, of the operator's own."""

    id: str
    """Name of the row; findings name it as evidence."""
    anchor: str
    """Text that every line of this kind holds; it selects lines, the pattern judges."""
    pattern: str
    """Regular expression (Python's), searched in the message; its named groups
    ``device``, ``port``, ``peer``, ``peer_port``, ``status``, ``rank`` and ``comm`` are
    taken as such, others as fields."""
    kind: str = "operator_rule"
    """Kind of the event, in lower case with underscores."""
    severity: Literal["info", "warning", "error", "critical"] = "warning"
    """How bad it is."""


class Stories(Section, frozen=True):
    """How events of logs are told as one story: who failed first, what follows."""

    event_merge_seconds: Pause = 2
    """Every process of a host reads the same event of a device: one event in so long."""
    repeat_seconds: Seconds = 60
    """Errors of one process that repeat within so long of each other are one."""
    root_seconds: Seconds = 60
    """The first warning of a process explains what follows it within so long."""
    consequence_seconds: Seconds = 1860
    """Watchdogs and peers speak so late at most: PyTorch's older time-out and a minute."""
    start_seconds: Seconds = 60
    """A failure so soon after the start of a communicator is a matter of set-up."""
    open_groups: Count = 4096
    """Different events held in memory at once; an error storm stops here."""
    vote_observers: Count = 3
    """Nodes that must name one peer, or peers that one node must name, to suspect it."""
    vote_share: Ratio = 0.5
    """Share of the nodes that talk to a peer and must name it."""


class Logs(Section, frozen=True):
    """Logs of NCCL, RCCL and aws-ofi-nccl: where they are and how they are read."""

    paths: tuple[str, ...] = ("/var/log/nccl/*.log", "/var/log/nccl/*/*.log")
    """Patterns of log files below ``root``; ``*`` does not cross a slash.

    ``%h`` stands for the short host name, for folders that many nodes share. Lines of
    other hosts are passed over wherever a file was found, and counted in
    ``fabricmon_log_foreign_events_total``; a container has a host name of its own and is
    known by the name of its pod, so let others have the node's name."""
    rules: tuple[LogRule, ...] = ()
    """Rows added to the log rule table."""
    stories: Stories = field(default_factory=Stories)
    """How events are folded and told apart."""
    closing_seconds: Pause = 300
    """An error is over when nothing of it was logged for so long."""
    settle_seconds: Pause = 2
    """An error is told so long after its first line: what follows from it comes then,
    and the first line of all is not always the first to be read."""
    joining_seconds: Seconds = 300
    """What a log says and what a port shows within so long of each other belong
    together: a job dies up to two minutes after its link."""
    peer_votes: Count = 3
    """HCAs here (processes, where no HCA is named) that must fail towards a peer
    before it is suspected."""
    slurm_output: tuple[str, ...] = ()
    """Output files of Slurm jobs, as ``--output`` writes them
    (``/home/*/slurm-%j.out``). Only jobs that run here count, and of a file to which all
    nodes of a job write only the lines of this one."""
    pods: Literal["off", "devices", "all"] = "devices"
    """Container logs below ``/var/log/pods``: of pods to which the kubelet gave devices
    (``jobs.kubelet_socket``; of all pods where it is not given), of ``all``, or ``off``."""
    docker: bool = True
    """Logs of containers that Docker writes (``json-file``)."""
    discovery_seconds: Seconds = 5
    """Between two searches for log files: a new one waits so long at most."""
    max_files: Count = 512
    """Files followed at once, those that were written last; the others are counted."""
    bytes_per_poll: Annotated[int, Meta(ge=1 << 20)] = 4 << 20
    """Read at most in one poll, shared by all files: 20 ms of one core."""
    poll_milliseconds: Annotated[float, Meta(ge=10, le=10_000)] = 200
    """A poll reads no more after so long: a storm of errors, of which every line must
    be understood, costs a fifth of a core, and the rest of it is skipped."""
    backlog_bytes: Annotated[int, Meta(ge=1 << 20)] = 16 << 20
    """Of a file that runs away only the newest are read; what is skipped is counted."""
    start_bytes: Annotated[int, Meta(ge=0)] = 64 << 10
    """Read so much of the end of a file that is there when the agent first starts."""
    start_seconds: Pause = 600
    """A file that was not written for so long is not read back at the first start."""
    still_seconds: Pause = 2
    """A message that may go on is taken as whole when its file is still for so long."""
    quiet_seconds: Seconds = 60
    """A file that was renamed away and not written for so long is let go of; a last
    line without an end is taken as whole."""


class Jobs(Section, frozen=True):
    """Which jobs run on the node, and what is asked of them."""

    slurm: bool = True
    """Name Slurm jobs and steps from cgroup names."""
    kubernetes: bool = True
    """Name Kubernetes pods from cgroup names."""
    pods_exclude: tuple[str, ...] = ("kube-system/*",)
    """Pods (``NAMESPACE/POD``) that are no jobs; their logs are never read."""
    processes: bool = False
    """Look at processes: environment (only NCCL_, RCCL_ and OFI_ keys are kept), open
    files, loaded libraries. It takes the rights of the drop-in for logs."""
    kubelet_socket: str | None = None
    """Socket of the kubelet's pod resources, which says who uses which device."""


class Settings(Section, frozen=True):
    """What settings of NCCL are held against: what a node cannot see of the fabric."""

    retrain_seconds: Pause = 7
    """An outage that a job must outlast: a link that trains again takes 2 to 15 s."""
    rail_only: bool | None = None
    """Whether the fabric has no path between rails; null: not known, not judged."""
    adaptive_routing: bool | None = None
    """Whether switches route adaptively; null: not known, not judged."""
    queue_pairs: Count | None = None
    """Queue pairs per connection that spread flows over the paths; null judges none."""
    settle_seconds: Pause = 30
    """A mismatch holds for so long before it counts: devices appear one by one."""
    address_told_seconds: Seconds = 600
    """A changed address is told for so long: connections made before failed by then."""
    remember_seconds: Seconds = 86400
    """Settings that a log tells are kept for so long: it tells them at the start."""


class Inspector(Section, frozen=True):
    """What NCCL's Inspector writes of the collectives of local ranks."""

    paths: tuple[str, ...] = (
        "/var/log/nccl/nccl-inspector-*/*.log",
        "/var/log/nccl/nccl-inspector-*/*.prom",
    )
    """Patterns of its files; ``*`` does not cross a slash."""
    window_seconds: Seconds = 300
    """Rates are medians of so long; older ones are not exported."""
    series: Annotated[int, Meta(ge=0)] = 64
    """Most series of one metric of a node: ranks, collectives and sizes multiply."""
