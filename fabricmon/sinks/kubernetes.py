"""The sink that tells Kubernetes: the node's condition, and events about the node.

Off by default. The last word of an agent that stops stays: a rolling update must not
look like a change of the fabric. Who turns the condition off has it removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.errors import ConfigError, HostError
from fabricmon.model import Delivery, Incident, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.name_key import load_key

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from fabricmon.sinks.kubernetes_courier import Courier

STOP_SECONDS = 0.5
"""How long the end waits for a request that is under way."""

_KEY = "kubernetes.redact.key_file"


class KubernetesSink:
    """Passes on what the agent concludes to a thread of its own."""

    name = "kubernetes"

    def __init__(self, config: Config, log: FilteringBoundLogger) -> None:
        """Connect to nothing yet."""
        self._config = config
        self._log = log
        self._courier: Courier | None = None
        self._newest: Snapshot | None = None

    @property
    def delivery(self) -> Delivery | None:
        """How it fares, None while it is off."""
        return None if self._courier is None else self._courier.delivery

    def open(self) -> None:
        """Start the thread; raises `HostError` where it cannot ever work."""
        try:
            self._start(self._config)
        except ConfigError as error:
            raise HostError(str(error)) from error

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Leave these for the thread."""
        self._newest = snapshot
        if self._courier is not None:
            self._courier.offer(snapshot, changes)

    def reload(self, config: Config) -> None:
        """Take new settings: a condition that is turned off now is removed."""
        old, self._config = self._config, config
        same = old.kubernetes == config.kubernetes
        if same and old.state_folder == config.state_folder:
            return
        before, self._courier = self._courier, None
        if before is not None:
            off = not (config.kubernetes.enabled and config.kubernetes.condition)
            before.stop(0.0, removes=off and old.kubernetes.condition)
        try:
            self._start(config, before)
        except (ConfigError, HostError) as error:
            self._log.error("sink_failed", sink=self.name, err=str(error))

    def close(self) -> None:
        """End the thread; the condition stays as it is."""
        if self._courier is not None:
            self._courier.stop(STOP_SECONDS)

    def _start(self, config: Config, before: Courier | None = None) -> None:
        settings = config.kubernetes
        if not settings.enabled:
            return
        # A megabyte that an agent does without where this is off.
        from fabricmon.sinks.kubernetes_api import is_installed  # noqa: PLC0415
        from fabricmon.sinks.kubernetes_courier import Courier  # noqa: PLC0415

        if not is_installed():
            remedy = "install fabricmon[kubernetes], or set kubernetes.enabled: false"
            raise HostError(f"the library lightkube is not installed ({remedy})")
        redactor = Redactor(
            settings.redact, load_key(settings.redact.key_file, config, _KEY)
        )
        made = before.delivery if before is not None else None
        self._courier = Courier(settings, redactor, self._log, made)
        self._courier.start()
        if self._newest is not None:
            self._courier.offer(self._newest, ())


def make(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> KubernetesSink:
    """Return the sink, which may be off and be turned on by a reload."""
    del heartbeat
    return KubernetesSink(config, log)
