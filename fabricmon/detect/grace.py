"""How long ago the node booted and each driver was loaded: links settle after both."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from fabricmon.model import BootInfo, Hca, View


class SavedGrace(Struct, frozen=True):
    """Boot and driver instances as they were last seen; times are Unix seconds."""

    boot_id: str | None = None
    booted: float | None = None
    instances: dict[str, str] = {}
    loaded: dict[str, float] = {}


class Grace:
    """Follows boots, driver loads, and devices or network devices that come and go."""

    def __init__(self) -> None:
        """Assume that the node and its drivers have been up for long."""
        self._boot: BootInfo | None = None
        self._boot_id: str | None = None
        self._booted = -inf
        self._hcas: tuple[Hca, ...] = ()
        self._instances: dict[str, str] = {}
        self._loaded: dict[str, float] = {}
        self._gone: set[str] = set()

    def observe(self, view: View) -> bool:
        """Take in a view; return whether it belongs to another boot than the last."""
        rebooted = False
        if view.boot is not None and view.boot is not self._boot:
            rebooted = self._take_boot(view.boot)
        if view.hcas is not self._hcas:
            self._take_hcas(view)
        if view.missing or self._gone:
            self._take_missing(view)
        for event in view.events:
            if event.gone:
                self._take_gone_netdev(event.netdev, event.at, view)
        return rebooted

    def since_boot(self, now: float) -> float:
        """Return the seconds since the node booted; infinite if that is not known."""
        return now - self._booted

    def since_load(self, device: str, now: float) -> float:
        """Return the seconds since the driver took the device, if that was noticed."""
        return now - self._loaded.get(device, -inf)

    def save(self, offset: float) -> SavedGrace:
        """Return what must survive a restart; ``offset`` is wall minus monotonic."""
        return SavedGrace(
            boot_id=self._boot_id,
            booted=None if self._booted == -inf else self._booted + offset,
            instances=self._instances,
            loaded={name: at + offset for name, at in self._loaded.items()},
        )

    def restore(self, saved: SavedGrace, offset: float) -> None:
        """Go on from what `save` returned."""
        self._boot_id = saved.boot_id
        self._booted = -inf if saved.booted is None else saved.booted - offset
        self._instances = dict(saved.instances)
        self._loaded = {name: at - offset for name, at in saved.loaded.items()}

    def _take_boot(self, boot: BootInfo) -> bool:
        """Note when this boot began; up-time tells, else the change of the boot id."""
        other = self._boot_id is not None and boot.boot_id != self._boot_id
        if boot.uptime_seconds is not None:
            self._booted = boot.at - boot.uptime_seconds
        elif other:
            self._booted = boot.at
        self._boot, self._boot_id = boot, boot.boot_id
        return other

    def _take_hcas(self, view: View) -> None:
        self._hcas = view.hcas
        for hca in view.hcas:
            instance = hca.driver_instance
            if instance is None:
                continue
            place = hca.pci_address or hca.name
            if self._instances.get(place, instance) != instance:
                self._loaded[hca.name] = view.now
            self._instances[place] = instance

    def _take_missing(self, view: View) -> None:
        missing = {device.name for device in view.missing}
        for name in self._gone - missing:
            self._loaded[name] = view.now
        self._gone = missing

    def _take_gone_netdev(self, netdev: str, at: float, view: View) -> None:
        """A network device leaves when its driver does, or for another namespace."""
        for port in view.ports:
            if netdev in port.info.netdevs or netdev == port.info.netdev:
                self._loaded[port.info.id.device] = at
