"""The words of the RDMA class, as fabricmon writes them, and the rate of a link.

No imports from the package: everything else may import this file.
"""

from __future__ import annotations

from enum import StrEnum

from fabricmon.value import Value


class PortState(StrEnum):
    """Logical state of a port; in sysfs the numbers 0 to 5."""

    NOP = "NOP"
    DOWN = "DOWN"
    INIT = "INIT"
    ARMED = "ARMED"
    ACTIVE = "ACTIVE"
    ACTIVE_DEFER = "ACTIVE_DEFER"


class PhysState(StrEnum):
    """Physical state of a port; in sysfs the numbers 1 to 7."""

    SLEEP = "Sleep"
    POLLING = "Polling"
    DISABLED = "Disabled"
    TRAINING = "PortConfigurationTraining"
    LINK_UP = "LinkUp"
    RECOVERY = "LinkErrorRecovery"
    TEST = "PhyTest"


class LinkLayer(StrEnum):
    """What runs below RDMA; EFA calls itself Unknown."""

    INFINIBAND = "InfiniBand"
    ETHERNET = "Ethernet"
    UNKNOWN = "Unknown"


class Rate(Value, frozen=True):
    """Rate of a link: Gb/s, number of lanes, name of the lane speed (``NDR``).

    Each part is None where the text does not say.
    """

    gbps: float | None = None
    width: int | None = None
    speed: str | None = None
