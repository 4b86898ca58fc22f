"""The whole table."""

from __future__ import annotations

from tests.campaign import (
    configuration,
    devices,
    logs,
    process,
    reads,
    serving,
    state,
    tools,
)
from tests.campaign.row import Fault

FAULTS: tuple[Fault, ...] = (
    *reads.FAULTS,
    *tools.FAULTS,
    *devices.FAULTS,
    *state.FAULTS,
    *process.FAULTS,
    *serving.FAULTS,
    *logs.FAULTS,
    *configuration.FAULTS,
)
