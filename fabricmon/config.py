"""The configuration: typed, closed, every key with its default and its reason.

Types only; `config_load` reads files. The docstring under each key is its
documentation: the schema, ``config show`` and the manual are made from it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Seconds = Annotated[float, Meta(ge=0.05, le=1e7)]
Pause = Annotated[float, Meta(ge=0, le=1e7)]
Timeout = Annotated[float, Meta(ge=0.05, le=3600)]
Count = Annotated[int, Meta(ge=1)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
Mode = Literal["off", "shadow", "on"]


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A closed group of keys."""


class Devices(Section, frozen=True):
    """Which RDMA devices and network devices are looked at; the rest is never opened.

    Patterns are those of the shell (``mlx5_*``) on names.
    """

    include: tuple[str, ...] = ("*",)
    """Devices to watch."""
    exclude: tuple[str, ...] = ()
    """Devices that are never opened: restricted functions flood the kernel log."""
    virtual_functions: Literal["fold", "export", "ignore"] = "fold"
    """``fold`` watches virtual functions and exports their number and state only."""
    generic_counters: Annotated[int, Meta(ge=0)] = 40
    """Counters per port that no table knows and that are exported all the same."""


class Periods(Section, frozen=True):
    """Seconds between reads; what reaches the firmware is read less often."""

    devices_seconds: Seconds = 5
    """Folder of the RDMA class: three misses make a device missing."""
    identity_seconds: Seconds = 60
    """Names, GUIDs, firmware, network devices, PCI placement."""
    state_seconds: Seconds = 5
    """Port state where the kernel, or a counter of outages, tells of link changes."""
    state_without_netdev_seconds: Seconds = 1
    """Port state where nothing tells of changes: a job dies of 7 s of outage."""
    outages_seconds: Seconds = 1
    """Counter of outages where the kernel tells nothing; else as ``errors_seconds``."""
    link_detail_seconds: Seconds = 60
    """Physical state, rate and LIDs: five firmware commands a file on mlx5."""
    errors_seconds: Seconds = 5
    """Error counters: one firmware command a file on mlx5."""
    traffic_seconds: Seconds = 15
    """Data and packet counters, and errors that are routine or configured."""
    hardware_seconds: Seconds = 5
    """``hw_counters``: one firmware command for the whole burst."""
    netdev_seconds: Seconds = 5
    """Carrier and statistics of the network devices: free."""
    driver_seconds: Seconds = 10
    """Driver statistics, one network device at a time: they hold a kernel lock."""
    pci_seconds: Seconds = 60
    """PCIe width, speed and AER tables."""
    ibstat_seconds: Seconds = 3600
    """``ibstat`` reads every P_Key; hourly is enough for a cross-check."""
    maintenance_seconds: Seconds = 5
    """The maintenance file."""
    accelerators_seconds: Seconds = 3600
    """GPUs on PCIe, which tell compute ports from others: they do not move."""
    boot_seconds: Seconds = 5
    """Boot identity, up-time and product name."""
    link_events_seconds: Seconds = 60
    """Link events of the kernel, in case one came without waking the agent: free."""


class Deadlines(Section, frozen=True):
    """How long things may take before they count as hung."""

    read_seconds: Timeout = 5
    """A poll of one device; longer marks the source as hung and its values as old."""
    command_seconds: Timeout = 20
    """A tool such as ``ibstat``; it is ended then."""
    driver_backoff_milliseconds: Seconds = 50
    """A driver statistics call slower than this doubles its period: it holds RTNL."""
    quarantine_failures: Count = 3
    """Polls in which every file of a group fails alike before it is read rarely."""
    quarantine_seconds: Seconds = 60
    """First pause of a quarantined group; it doubles up to a day."""


class LinkState(Section, frozen=True):
    """Thresholds of the link state detector."""

    down_seconds: Pause = 10
    """A port is down when it was not up for so long: short ones are flaps."""
    down_samples: Count = 2
    """Samples that must agree before a port is called down."""
    not_active_seconds: Pause = 30
    """INIT or ARMED for so long: a subnet manager takes up to 5 s after training."""
    rate_samples: Count = 2
    """Samples of a low rate that must agree: rates are odd while a link trains."""
    missing_polls: Count = 3
    """Polls without a device before it is missing: reloads take a moment."""
    reload_seconds: Pause = 90
    """A device that is gone for less may be a driver reload (5 to 60 s): no alarm yet."""
    boot_down_seconds: Pause = 300
    """Links may train for so long after a boot or driver load before they are down."""
    not_active_critical_seconds: Pause = 120
    """INIT or ARMED for so long is an outage: a subnet manager fails over within 60 s."""
    common_cause_ports: Count = 4
    """So many ports, and half of the node's, that fall together have one cause."""
    common_cause_window_seconds: Pause = 2
    """Ports that went down within so long of each other fell together."""
    common_cause_seconds: Pause = 600
    """No advice to drain for so long where ports fell together: a switch reboots."""
    management_down_seconds: Pause = 120
    """A management port is no part of the fabric: shorter outages are only noted."""
    boot_grace_seconds: Pause = 1800
    """Flaps in the first half hour of a boot are the fabric settling."""
    driver_grace_seconds: Pause = 300
    """The same after the driver was loaded again."""
    settling_seconds: Pause = 7200
    """A young boot in which half of the ports flap: the fabric settles, no port fails."""
    flap_merge_seconds: Seconds = 10
    """Signs of a flap in state, events and counters that belong to the same one."""
    flap_least_seconds: Annotated[float, Meta(ge=0)] = 0.05
    """A link needs so long to train again: a counter with more downs is garbage."""
    flap_penalty: Count = 1000
    """Penalty of one flap, as in RFC 2439."""
    flap_half_life_seconds: Seconds = 900
    """Time in which the penalty halves."""
    flapping_penalty: Count = 2000
    """Penalty at which a port is flapping: the third flap in about 20 minutes."""
    flapping_reuse_penalty: Count = 750
    """Penalty below which the episode is over."""
    flapping_count_short: Count = 3
    """Flaps within the short window that make a port flapping."""
    flapping_window_short_seconds: Seconds = 10800
    """Short window: vendors replace cables at three in three hours."""
    flapping_count_long: Count = 5
    """Flaps within the long window that make a port flapping."""
    flapping_window_long_seconds: Seconds = 86400
    """Long window."""
    flapping_down_seconds: Pause = 120
    """A flapping port that stays down for so long is down: it flaps no more."""
    outage_warning_seconds: Seconds = 7
    """An outage that kills jobs with NCCL's shorter timeout (18, retry 7)."""
    outage_critical_seconds: Seconds = 30
    """An outage that kills jobs with NCCL's default timeout (20, retry 7)."""
    downtime_critical_seconds_per_hour: Seconds = 60
    """Sum of outages in an hour that makes a port critical whatever their number."""


class LinkErrors(Section, frozen=True):
    """Thresholds of the bit error detector: Poisson bounds scaled by line rate."""

    warning_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-14
    """Post-FEC error ratio of a sound link is far below this."""
    warning_window_seconds: Seconds = 720
    """Window of the warning bound."""
    slow_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-15
    """A slow drift shows only over a long window."""
    slow_window_seconds: Seconds = 7500
    """Window of the slow bound."""
    critical_bit_error_ratio: Annotated[float, Meta(gt=0, le=1)] = 1e-12
    """The InfiniBand limit for a link in use."""
    critical_window_seconds: Seconds = 60
    """Window of the critical bound."""
    false_alarm_probability: Annotated[float, Meta(gt=0, lt=1)] = 1e-6
    """Chance that a link exactly at the bound alarms in one window."""
    windows: Count = 2
    """Windows that must agree before a warning."""
    recovery_warning_per_hour: Count = 3
    """Recoveries in an hour: each stalls traffic for hundreds of milliseconds."""
    recovery_critical_per_hour: Count = 10
    """Recoveries in an hour that no job bears."""
    independence_windows: Count = 20
    """Windows needed to say whether errors follow the load."""
    independence_correlation: Ratio = 0.3
    """Rank correlation below which errors are corruption, not load."""
    congestion_correlation: Ratio = 0.6
    """Rank correlation above which errors follow the load."""
    packet_errors_per_second: Annotated[float, Meta(gt=0)] = 0.1
    """Damaged packets per second for ten minutes that warn on their own."""
    packet_window_seconds: Seconds = 600
    """Window of the packet errors."""
    sustained_polls: Count = 3
    """Polls with errors within the critical window: one burst is no error ratio."""
    settle_seconds: Pause = 10
    """Errors wait so long before they count: the outage they belong to may show later."""
    retrain_seconds: Pause = 30
    """Errors so soon after an outage are the link that trains."""
    boot_grace_seconds: Pause = 900
    """Links train in the first ten minutes of a boot, with thousands of errors."""
    driver_grace_seconds: Pause = 300
    """The same after the driver was loaded again or the device came back."""


class Roles(Section, frozen=True):
    """How roles are told apart where configuration says nothing."""

    management_rate_gbps: Annotated[float, Meta(ge=0)] = 25
    """Ethernet up to this rate, outside the compute set, manages the node."""
    majority_ports: Annotated[int, Meta(ge=2)] = 3
    """Compute ports that must run at one rate before the others are expected to."""


class Telemetry(Section, frozen=True):
    """Thresholds of the detector that watches the monitor itself."""

    stale_polls: Count = 3
    """Missed polls that make a source stale."""
    stale_critical_seconds: Seconds = 600
    """Age at which nothing is known any more."""
    gap_polls: Count = 3
    """Polls missed in a row that make a gap: what happened within has no rate."""
    reset_settle_seconds: Pause = 20
    """Falls so close together have one cause: groups are read up to 15 s apart."""
    reset_ports: Count = 2
    """More ports than this reset by one cause are told as one: a boot, a driver."""
    reset_repeat_seconds: Seconds = 3600
    """A port whose counters are cleared again and again is told so rarely."""


class Listen(Section, frozen=True):
    """Where the agent listens; loopback unless told otherwise."""

    metrics: str | None = "127.0.0.1:9879"
    """Address of /metrics, /healthz and /readyz; null turns it off."""
    page: str | None = "127.0.0.1:9880"
    """Address of the status page; null turns it off."""
    tls_certificate: str | None = None
    """Certificate file (PEM) for the metrics address."""
    tls_key: str | None = None
    """Key file (PEM) for the metrics address."""
    client_authority: str | None = None
    """Authority (PEM) whose client certificates alone may read metrics."""
    connections: Count = 32
    """Connections served at once on an address; one more is sent away."""
    timeout_seconds: Timeout = 2
    """Time for a client to send its request, and again to take the answer."""
    healthy_seconds: Timeout = 30
    """/healthz fails when the agent's loop has not turned for so long."""


class Metrics(Section, frozen=True):
    """What /metrics exports beyond what is always there."""

    counted_series: Annotated[int, Meta(ge=0)] = 8
    """Series per port of counters that appear once they count: pause, lanes, drops.

    A port stays within 80 series so, also with all priorities paused.
    """


class Log(Section, frozen=True):
    """Log lines on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""


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


class Logs(Section, frozen=True):
    """Logs of NCCL, RCCL and aws-ofi-nccl: where they are and how they are read."""

    paths: tuple[str, ...] = ("/var/log/nccl/*.log", "/var/log/nccl/*/*.log")
    """Patterns of log files below ``root``; ``*`` does not cross a slash."""
    rules: tuple[LogRule, ...] = ()
    """Rows added to the log rule table."""


class Jobs(Section, frozen=True):
    """Which jobs run on the node, and what is asked of them."""

    slurm: bool = True
    """Name Slurm jobs and steps from cgroup names."""
    kubernetes: bool = True
    """Name Kubernetes pods from cgroup names."""
    processes: bool = False
    """Look at processes: environment (only NCCL_, RCCL_ and OFI_ keys are kept), open
    files, loaded libraries. It takes the rights of the drop-in for logs."""
    kubelet_socket: str | None = None
    """Socket of the kubelet's pod resources, which says who uses which device."""


class Expectation(Section, frozen=True):
    """What is expected of the ports whose names match."""

    ports: tuple[str, ...]
    """Patterns on ``device/port`` (``mlx5_*/1``) or on a PCI address."""
    rate_gbps: Annotated[float, Meta(gt=0)] | None = None
    """Expected rate of the link."""
    role: Literal["compute", "storage", "management", "unknown"] | None = None
    """Role of the port; configured wins over inferred."""
    rail: int | str | None = None
    """Rail of the port; configured wins over PCI order."""
    up: bool | None = None
    """True: alarm when down even if it was never seen up. False: never alarm."""


class Profile(Section, frozen=True):
    """A hardware product: how many ports of which rate and role it has."""

    product: str
    """Pattern on /sys/class/dmi/id/product_name."""
    ports: tuple[Expectation, ...] = ()
    """What is expected of its ports."""
    devices: Annotated[int, Meta(ge=0)] | None = None
    """RDMA devices with the role compute."""


class Config(Section, frozen=True):
    """The whole configuration of one agent."""

    node: str | None = None
    """Name of this node in findings; the host name if null."""
    cluster: str = ""
    """Name of the cluster, a level of MQTT topics."""
    root: str = "/"
    """Folder that stands for the node's root (``/host`` in a container)."""
    state_folder: str = "/var/lib/fabricmon"
    """Where the little that must survive a restart is kept."""
    run_folder: str = "/run/fabricmon"
    """Where the socket for ``fabricmon check`` and the maintenance file lie.

    It is the agent's own and not below ``root``; the agent makes it.
    """
    devices: Devices = field(default_factory=Devices)
    periods: Periods = field(default_factory=Periods)
    deadlines: Deadlines = field(default_factory=Deadlines)
    link_state: LinkState = field(default_factory=LinkState)
    link_errors: LinkErrors = field(default_factory=LinkErrors)
    roles: Roles = field(default_factory=Roles)
    telemetry: Telemetry = field(default_factory=Telemetry)
    listen: Listen = field(default_factory=Listen)
    metrics: Metrics = field(default_factory=Metrics)
    log: Log = field(default_factory=Log)
    logs: Logs = field(default_factory=Logs)
    jobs: Jobs = field(default_factory=Jobs)
    runbooks: str = "docs/runbooks/"
    """Where the runbooks are: findings link to this and ``KIND.md``; a URL or a path."""
    kinds: dict[str, Mode] = field(default_factory=dict)
    """Mode of single kinds: ``off``, ``shadow`` (computed, never alerted) or ``on``."""
    expect: tuple[Expectation, ...] = ()
    """Expectations of this node's ports; the first match wins."""
    profiles: tuple[Profile, ...] = ()
    """Hardware profiles, chosen by product name."""
    profile: str | None = None
    """Product name to assume instead of what the firmware says."""
    expected_devices: tuple[str, ...] = ()
    """Devices that must be there."""
    expected_rate_gbps: Annotated[float, Meta(gt=0)] | None = None
    """Rate expected of every compute port."""
