"""Every sink of the agent: one row each; none is made that the configuration refuses.

Apart from the other registry, because sinks load what only the agent needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks import kubernetes, log, mqtt, prometheus, textfile
from fabricmon.sinks.protocol import Sink

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Make = Callable[[Config, Heartbeat, "FilteringBoundLogger"], Sink | None]


def _make_page(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> Sink | None:
    if config.listen.page is None:
        return None
    from fabricmon.sinks import page  # noqa: PLC0415 - only where it is on

    return page.make(config, heartbeat, log)


SINKS: tuple[Make, ...] = (
    log.make,
    prometheus.make,
    _make_page,
    textfile.make,
    kubernetes.make,
    mqtt.make,
)
