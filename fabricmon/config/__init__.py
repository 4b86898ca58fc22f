"""The configuration: typed, closed, every key with its default and its reason.

Types only; `config_load` reads files. The docstring under each key is its
documentation: the schema, ``config show`` and the manual are made from it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from fabricmon.config.expected import (
    Expectation,
    Profile,
)
from fabricmon.config.history import (
    History,
)
from fabricmon.config.host_side import (
    DeviceHealth,
    Modules,
    Pcie,
)
from fabricmon.config.isolation import (
    Isolation,
)
from fabricmon.config.jobs import (
    Inspector,
    Jobs,
    LogRule,
    Logs,
    Settings,
    Stories,
)
from fabricmon.config.kubernetes import (
    Kubernetes,
)
from fabricmon.config.link import (
    LinkErrors,
    LinkState,
)
from fabricmon.config.mqtt import (
    Mqtt,
)
from fabricmon.config.reading import (
    Deadlines,
    Devices,
    Periods,
    Roles,
    Telemetry,
)
from fabricmon.config.redact import (
    Exposure,
    LabelRedaction,
    LineRedaction,
    Redaction,
)
from fabricmon.config.serving import (
    Lines,
    Listen,
    Log,
    Metrics,
    Textfile,
)
from fabricmon.config.traffic import (
    Bursts,
    Congestion,
    Fusion,
    LocalEvidence,
    Stragglers,
    Transport,
)
from fabricmon.config.words import (
    Count,
    Mode,
    Pause,
    Ratio,
    Seconds,
    Section,
    Timeout,
)

__all__ = [
    "Bursts",
    "Config",
    "Congestion",
    "Count",
    "Deadlines",
    "DeviceHealth",
    "Devices",
    "Expectation",
    "Exposure",
    "Fusion",
    "History",
    "Inspector",
    "Isolation",
    "Jobs",
    "Kubernetes",
    "LabelRedaction",
    "LineRedaction",
    "Lines",
    "LinkErrors",
    "LinkState",
    "Listen",
    "LocalEvidence",
    "Log",
    "LogRule",
    "Logs",
    "Metrics",
    "Mode",
    "Modules",
    "Mqtt",
    "Pause",
    "Pcie",
    "Periods",
    "Profile",
    "Ratio",
    "Redaction",
    "Roles",
    "Seconds",
    "Section",
    "Settings",
    "Stories",
    "Stragglers",
    "Telemetry",
    "Textfile",
    "Timeout",
    "Transport",
]


class Config(Section, frozen=True):
    """The whole configuration of one agent."""

    node: str | None = None
    """Name of this node in findings; the host name if null."""
    cluster: str = ""
    """Name of the cluster, a level of MQTT topics."""
    topology: str | None = None
    """File that says where nodes and ports stand (``topology.yaml``); null: none."""
    root: str = "/"
    """Folder that stands for the node's root (``/host`` in a container)."""
    state_folder: str = "/var/lib/fabricmon"
    """Where the little that must survive a restart is kept."""
    run_folder: str = "/run/fabricmon"
    """Where the socket for ``fabricmon check`` and the maintenance file lie.

    It is the agent's own and not below ``root``; the agent makes it.
    """
    maintenance_file: str | None = None
    """File with the windows of maintenance, not below ``root`` either; null:
    ``maintenance.json`` in ``run_folder``. For a file that somebody else provides, such
    as a ConfigMap."""
    isolation: Isolation = field(default_factory=Isolation)
    devices: Devices = field(default_factory=Devices)
    periods: Periods = field(default_factory=Periods)
    deadlines: Deadlines = field(default_factory=Deadlines)
    link_state: LinkState = field(default_factory=LinkState)
    link_errors: LinkErrors = field(default_factory=LinkErrors)
    bursts: Bursts = field(default_factory=Bursts)
    local_evidence: LocalEvidence = field(default_factory=LocalEvidence)
    transport: Transport = field(default_factory=Transport)
    congestion: Congestion = field(default_factory=Congestion)
    pcie: Pcie = field(default_factory=Pcie)
    modules: Modules = field(default_factory=Modules)
    device_health: DeviceHealth = field(default_factory=DeviceHealth)
    stragglers: Stragglers = field(default_factory=Stragglers)
    fusion: Fusion = field(default_factory=Fusion)
    roles: Roles = field(default_factory=Roles)
    telemetry: Telemetry = field(default_factory=Telemetry)
    listen: Listen = field(default_factory=Listen)
    metrics: Metrics = field(default_factory=Metrics)
    textfile: Textfile = field(default_factory=Textfile)
    mqtt: Mqtt = field(default_factory=Mqtt)
    kubernetes: Kubernetes = field(default_factory=Kubernetes)
    log: Log = field(default_factory=Log)
    history: History = field(default_factory=History)
    logs: Logs = field(default_factory=Logs)
    jobs: Jobs = field(default_factory=Jobs)
    settings: Settings = field(default_factory=Settings)
    inspector: Inspector = field(default_factory=Inspector)
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
