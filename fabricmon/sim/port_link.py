"""The link of a port as its files tell it: state, physical state, rate, carrier."""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.sim.effects import SimPort
from fabricmon.sim.page import Page
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.profiles import Family
from fabricmon.sim.sysfs import carrier, link_texts, netdev_folder, port_folder

STATES = {
    "NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5,
}  # fmt: skip
PHYSICAL_STATES = {
    "Sleep": 1, "Polling": 2, "Disabled": 3, "PortConfigurationTraining": 4,
    "LinkUp": 5, "LinkErrorRecovery": 6, "Phy Test": 7,
}  # fmt: skip
_FILES = ("state", "phys_state", "rate")


@dataclass(frozen=True, slots=True)
class Overlay:
    """What state files say instead of what they said; None: as before."""

    state: str | None = None
    phys: str | None = None
    rate: str | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The texts in the order of the files."""
        return self.state, self.phys, self.rate


class PortLink:
    """One link; it writes what changes to the page.

    ``present`` is whether the device is there, ``has_netdev`` whether its network
    device is. Overlays lie over each other in the order in which they came.
    """

    def __init__(self, plan: FleetPlan, port: SimPort, page: Page) -> None:
        self.netdev = plan.physical_netdev(port)
        self.folder = port_folder(plan, port)
        self.net_folder = netdev_folder(plan, port)
        self.present = True
        self.has_netdev = bool(self.netdev)
        self._page = page
        self._overlays: dict[object, Overlay] = {}
        self._used = port.port in plan.slot(port).used
        # EFA's driver always says ACTIVE and LinkUp: its state proves nothing.
        self._tells = plan.slot(port).card.family is not Family.EFA
        self._usual = self._shown = Overlay(*link_texts(plan, port))
        self._ups, self._downs, self._lost = int(self._used), 0, 0
        self._off = False

    @property
    def is_up(self) -> bool:
        """Whether data can pass: the port is there and ACTIVE."""
        return self.present and (self._shown.state or "").endswith("ACTIVE")

    def overlay(self, key: object, overlay: Overlay | None) -> None:
        """Let state files say something else for a time; None ends it."""
        if overlay is None:
            self._overlays.pop(key, None)
        else:
            self._overlays[key] = overlay
        self._look()

    def lose_carrier(self, *, off: bool = False) -> None:
        """Let the network device lose its carrier; ``off``: someone took it down."""
        self._downs += 1
        self._lost += 1
        self._off = off
        self.show_carrier()

    def gain_carrier(self) -> None:
        """Let the network device have its carrier again."""
        self._lost = max(0, self._lost - 1)
        self._off = False
        if not self._lost:
            self._ups += 1
        self.show_carrier()

    def begin_anew(self) -> None:
        """Have a network device that has counted nothing, as after a driver load."""
        self._ups, self._downs = int(self._used), 0
        self._shown = self._usual
        self._look()
        self.show_carrier()

    def show_carrier(self) -> None:
        """Write what the network device says of its carrier."""
        if not self.present or not self.has_netdev:
            return
        up = self._ups > 0 and not self._lost
        files = carrier(used=up, ups=self._ups, downs=self._downs)
        for name, text in files.items():
            self._page.text(f"{self.net_folder}/{name}", f"{text}\n")
        if self._off:  # the kernel names no carrier of an interface that is down
            self._page.error(f"{self.net_folder}/carrier", "EINVAL")

    def _look(self) -> None:
        """Write the files whose text the overlays have changed."""
        now = list(self._usual.texts)
        for each in self._overlays.values():
            for place, text in enumerate(each.texts):
                now[place] = now[place] if text is None else text
        before, self._shown = self._shown, Overlay(*now)
        if not self.present or not self._tells:
            return
        for file, old, new in zip(_FILES, before.texts, now, strict=True):
            if new != old and new is not None:
                self._page.text(f"{self.folder}/{file}", f"{new}\n")


def state_text(state: str | None) -> str | None:
    """Return the whole text of ``state`` for a word such as DOWN."""
    return _numbered(state, STATES)


def physical_text(phys: str | None) -> str | None:
    """Return the whole text of ``phys_state`` for a word such as Polling."""
    return _numbered(phys, PHYSICAL_STATES)


def _numbered(word: str | None, numbers: dict[str, int]) -> str | None:
    return f"{numbers[word]}: {word}" if word in numbers else word
