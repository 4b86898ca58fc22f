"""Configuration of the gate: closed sections, each key with its reason. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config import Lines, Mqtt
from fabricmon.config.words import Count, Pause, Ratio, Seconds, Section, Timeout
from fabricmon.fusion import LOCAL
from fabricmon.kinds import KINDS

SURE_KINDS = tuple(kind.slug for kind in KINDS if kind.proof in LOCAL)
"""Kinds that are made of what the node's own end shows; no other kind can be acted on."""

DEFAULT_KINDS = (
    "port_down",
    "port_flapping",
    "link_errors",
    "rate_degraded",
    "device_missing",
    "device_stuck",
    "pcie_degraded",
    "pcie_errors",
    "module_hot",
    "optics_weak",
    "straggler_link",
)

_Text = Annotated[str, Meta(max_length=256)]
_Texts = tuple[_Text, ...]


class Listen(Section, frozen=True):
    """Where alerts come in, and metrics and probes are answered."""

    address: str | None = "127.0.0.1:9881"
    """Address of /alerts, /metrics, /healthz and /readyz; null: none of them.

    Loopback, since whoever reaches /alerts can ask for nodes to be taken out. On any
    other address a token or an authority for clients is required."""
    health: str | None = None
    """Address of /healthz and /readyz alone, without TLS; null: only with the rest.

    For probes that have no certificate, where ``client_authority`` asks for one."""
    token_file: str | None = None
    """File with the token that Alertmanager must show (``authorization: Bearer``)."""
    tls_certificate: str | None = None
    """Certificate file (PEM) of the address."""
    tls_key: str | None = None
    """Key file (PEM) of that certificate."""
    client_authority: str | None = None
    """Authority (PEM) whose client certificates alone may connect."""
    body_bytes: Annotated[int, Meta(ge=4096, le=64 << 20)] = 4 << 20
    """Longest notification: an alert has two to four thousand bytes."""
    connections: Count = 16
    """Connections served at once: Alertmanagers, a scraper and a probe need few."""
    timeout_seconds: Timeout = 5
    """Time for a client to send its request, and again to take the answer."""
    patience_seconds: Timeout = 0.5
    """While all connections are taken, who has used so much of that time is cut off.

    Twice that of the agent: notifications of a whole fleet are long."""
    healthy_seconds: Timeout = 30
    """/healthz fails when the gate's loop has not turned for so long."""


class Alerts(Section, frozen=True):
    """How the site's alerts are labelled; as ``where`` of `fabricmon rules`."""

    node_label: _Text = "node"
    """Label with the node's name, as the script is to be told it."""
    cluster_label: _Text = "cluster"
    """Label with the cluster's name."""


class Broker(Section, frozen=True):
    """The MQTT broker that the agents send their findings to."""

    host: _Text | None = None
    """Name or address of the broker; null: findings come as alerts only."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Port of the broker; null: 1883, with TLS 8883."""
    client_id: _Text = "fabricmon-gate"
    """Name towards the broker, which keeps what is told while the gate is away."""
    topic_prefix: _Text = ""
    """Levels before ``fabricmon/v1``, as ``mqtt.topic_prefix`` of the agents."""
    user_file: str | None = None
    """File with the user's name; read again at each connection."""
    password_file: str | None = None
    """File with the password; read again at each connection, never logged."""
    tls: bool = False
    """Encrypt, and prove that the broker is the one that was named."""
    tls_authority: str | None = None
    """Authorities (PEM) that may vouch for the broker; null: those of the system."""
    tls_certificate: str | None = None
    """Certificate (PEM) of the gate, for a broker that asks for one."""
    tls_key: str | None = None
    """Key (PEM) of that certificate."""
    timeout_seconds: Annotated[float, Meta(ge=0.1, le=60)] = 5
    """Time in which the broker has to answer, before the connection is given up."""
    retry_seconds: Seconds = 1
    """Longest pause before the first retry; doubled with each."""
    retry_cap_seconds: Seconds = 30
    """Longest pause of all: nothing is decided without the broker, so it is short."""

    def as_mqtt(self) -> Mqtt:
        """Return it as the section that connections are made of."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return Mqtt(**given)


class Choice(Section, frozen=True):
    """Which findings may be acted on at all."""

    kinds: tuple[str, ...] = DEFAULT_KINDS
    """Kinds of findings; only those that a node's own end proves can stand here."""
    severities: tuple[Literal["critical", "warning"], ...] = ("critical",)
    """Severities; a warning is worth a ticket before it is worth a node."""
    actions: tuple[Literal["drain_now", "drain_after_job"], ...] = (
        "drain_now",
        "drain_after_job",
    )
    """Advice that is acted on; the script is told which it is."""
    nodes: _Texts = ("*",)
    """Patterns (``*``, ``?``) of the nodes that may be acted on."""
    never_nodes: _Texts = ()
    """Patterns of nodes that are never acted on: logins, storage, the gate's own."""


class Caution(Section, frozen=True):
    """How bold the gate may be."""

    settle_seconds: Pause = 180
    """A finding must have been open for so long: an evaluation of the fleet's rules
    (60 s), the wait of a group (30 s) and a repeat of both, so that a common cause is
    known first."""
    common_window_seconds: Seconds = 300
    """Findings that began within so long of each other may have one cause: groups of
    Alertmanager are told 300 s apart at most."""
    common_ports: Annotated[int, Meta(ge=2)] = 2
    """Ports of one leaf, rail or rack, on two nodes or more, that make a common cause:
    in so short a time a second one by chance is rarer than a leaf that fails."""
    common_nodes: Annotated[int, Meta(ge=2)] = 3
    """Nodes anywhere in the cluster that make one: power, a rollout, the subnet
    manager."""
    budget_nodes: Count = 2
    """Nodes that may be out at a time, and be acted on within the window. UFM's plug-in
    gives up ten ports of a fabric; two nodes of eight ports are sixteen."""
    budget_ratio: Ratio = 0.005
    """The same as a share of ``cluster_nodes``; the larger of the two counts. UFM's
    plug-in and CorrOpt hold back for the same reason."""
    cluster_nodes: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    """Nodes of the cluster; 0: ``budget_nodes`` alone counts."""
    budget_window_seconds: Seconds = 86_400
    """The window: faults that need a node are a few in a month of a thousand nodes, so
    that many in a day mean something else."""
    cooldown_seconds: Pause = 3600
    """Between an action on a node, or its return, and the next one on it; also how
    long a node must be without findings to count as back."""
    forget_seconds: Seconds = 93_600
    """An open finding that nobody repeated for so long is not acted on: a ticket is
    repeated once a day."""
    most_findings: Annotated[int, Meta(ge=100, le=1_000_000)] = 20_000
    """Findings remembered at a time. With more, nothing is acted on."""


class Script(Section, frozen=True):
    """The site's program that takes a node out."""

    path: str | None = None
    """Absolute path; called with a node and a reason, the finding on its input."""
    timeout_seconds: Timeout = 60
    """Time after which it and its children are killed: Slurm answers within ten."""
    output_bytes: Annotated[int, Meta(ge=0, le=1 << 20)] = 4096
    """Kept of what it prints, for the journal."""
    environment: dict[str, _Text] = field(default_factory=dict)
    """Variables that it gets beside LC_ALL and a usual PATH, or a PATH; no secrets."""


class Records(Section, frozen=True):
    """What is kept on disk."""

    folder: str = "/var/lib/fabricmon-gate"
    """Folder of the journal; not tmpfs, or a reboot forgets which nodes are out."""
    keep_days: Annotated[float, Meta(ge=1, le=3650)] = 180
    """How long entries are kept: two quarters, for reviews of what was done."""
    most_entries: Annotated[int, Meta(ge=1000, le=10_000_000)] = 500_000
    """Entries kept at most, some 300 bytes each; the oldest goes first."""


class GateConfig(Section, frozen=True):
    """All of it."""

    act: bool = False
    """Call the script. Off, the gate only writes down what it would have done: run it
    so for weeks, and read the journal, before you turn it on."""
    cluster: _Text | None = None
    """Name of the cluster; what is told of another is refused. Null: any name."""
    maintenance_file: str | None = None
    """JSON list of ``{until, nodes, reason}``: these nodes are not acted on until then.

    A file that is named and cannot be read holds everything."""
    listen: Listen = field(default_factory=Listen)
    alerts: Alerts = field(default_factory=Alerts)
    mqtt: Broker = field(default_factory=Broker)
    choice: Choice = field(default_factory=Choice)
    caution: Caution = field(default_factory=Caution)
    script: Script = field(default_factory=Script)
    journal: Records = field(default_factory=Records)
    log: Lines = field(default_factory=Lines)
