"""What is known of the host's side: kernel log, transceivers, health of devices."""

from __future__ import annotations

from fabricmon.model.node import ClockStatus, NodeAddresses
from fabricmon.model.ports import PortId
from fabricmon.parse.kernel_event import KernelEvent
from fabricmon.value import Value


class KernelEvents(Value, frozen=True):
    """What one poll of the kernel's log found.

    ``lost`` lines were overwritten before they were read; ``problem`` says why there
    is no log, None where there is one. ``carried`` is what the next poll goes on from.
    """

    at: float
    events: tuple[KernelEvent, ...] = ()
    lost: int = 0
    problem: str | None = None
    carried: object = None


class ModuleStatus(Value, frozen=True):
    """Diagnostics of a port's transceiver at ``at``; None where they cannot be read.

    ``alarm_c`` is the vendor's own limit; ``receive_power_dbm`` goes by lane.
    ``source`` is where the temperature was read.
    """

    port: PortId
    at: float
    temperature_c: float | None = None
    alarm_c: float | None = None
    receive_power_dbm: tuple[float, ...] = ()
    source: str = ""


class HealthReporter(Value, frozen=True):
    """A health reporter of a device (devlink); ``state`` is ``healthy`` or ``error``."""

    name: str
    state: str


class DeviceHealth(Value, frozen=True):
    """The health reporters of a device's PCI function at ``at``."""

    device: str
    at: float
    reporters: tuple[HealthReporter, ...] = ()


class KernelTally(Value, frozen=True):
    """How many events of one kind the kernel's log had since the agent started."""

    kind: str
    events: int


class HostSide(Value, frozen=True):
    """The newest of each; ``kernel_problem`` is as in `KernelEvents`."""

    modules: tuple[ModuleStatus, ...] = ()
    health: tuple[DeviceHealth, ...] = ()
    kernel_problem: str | None = None
    kernel_lost: int = 0
    tallies: tuple[KernelTally, ...] = ()
    clock: ClockStatus | None = None
    addresses: NodeAddresses | None = None


NO_HOST_SIDE = HostSide()
