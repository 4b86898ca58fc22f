"""What is read of the node, how often, and how long it may take."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from fabricmon.config.words import Count, Pause, Seconds, Section, Timeout


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
    pci_seconds: Seconds = 30
    """PCIe width, speed and AER tables: the kernel reads no firmware for them."""
    kmsg_seconds: Seconds = 5
    """The kernel's log: free, and nothing that it says is lost between."""
    modules_seconds: Seconds = 30
    """Temperature of transceivers: one or two firmware commands a sensor on mlx5."""
    device_health_seconds: Seconds = 30
    """Health reporters of devices: the kernel answers from memory."""
    ibstat_seconds: Seconds = 3600
    """``ibstat`` reads every P_Key; hourly is enough for a cross-check."""
    burst_seconds: Seconds = 0.2
    """Between the samples of a burst: two firmware commands a port on mlx5."""
    maintenance_seconds: Seconds = 5
    """The maintenance file."""
    nccl_log_seconds: Seconds = 1
    """Log files that are followed; with none, as ``logs.discovery_seconds`` says."""
    jobs_seconds: Seconds = 10
    """Jobs and processes on the node: jobs start rarely, and each is a few files."""
    accelerators_seconds: Seconds = 3600
    """GPUs on PCIe, which tell compute ports from others: they do not move."""
    gids_seconds: Seconds = 60
    """Addresses of RoCE ports: the kernel answers from memory."""
    host_path_seconds: Seconds = 300
    """What GPUDirect and flow control need of the node: it changes with a boot."""
    inspector_seconds: Seconds = 10
    """Files of NCCL's Inspector: what is new in them."""
    clock_seconds: Seconds = 60
    """How far the wall clock may be off: it grows by half a millisecond a second."""
    addresses_seconds: Seconds = 60
    """Addresses of the node: the kernel answers from memory."""
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
    command_retry_seconds: Seconds = 60
    """A tool that failed is tried again so soon: one slow run must not count an hour.
    The pause doubles with each failure, up to the tool's period."""
    driver_backoff_milliseconds: Seconds = 50
    """A driver statistics call slower than this doubles its period: it holds RTNL."""
    quarantine_failures: Count = 3
    """Polls in which every file of a group fails alike before it is read rarely."""
    quarantine_seconds: Seconds = 60
    """First pause of a quarantined group; it doubles up to a day."""


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
