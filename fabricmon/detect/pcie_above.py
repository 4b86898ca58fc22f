"""Links above the slot of a device that carry less than its own: ``pcie_degraded``.

Between a card and the processor there may be switches. The kernel names the narrowest
link on the way when it finds the card; sysfs shows the card's own link only. How a node
is built is no fault: it is told where most cards of the model have a better way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabricmon.config import Pcie
from fabricmon.detect.device_places import kernel_text, model_of, subject_of_device
from fabricmon.detect.pcie_load import raw_gbps
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    KernelEvent,
    PortView,
    Severity,
    View,
)
from fabricmon.parse.pci_path import pci_functions
from fabricmon.summaries import one_line

MOST_LINES = 256
"""Addresses whose line is kept: more than a node has RDMA functions."""

_NARROWER = 0.99  # the line is rounded


class LinksAbove:
    """Keeps what the kernel said of the way of each card to its host."""

    def __init__(self, limits: Pcie) -> None:
        """Take the thresholds."""
        self._limits = limits
        self._lines: dict[str, KernelEvent] = {}  # by address, the newest
        self._here: frozenset[str] = frozenset()

    @property
    def heard(self) -> bool:
        """Whether the kernel said anything of this."""
        return bool(self._lines)

    def hear(self, event: KernelEvent) -> None:
        """Take in a line of the bandwidth that a function has."""
        known = event.address in self._lines or len(self._lines) < MOST_LINES
        if event.address is not None and known:
            self._lines[event.address] = event

    def look(self, devices: Mapping[str, Sequence[PortView]]) -> None:
        """Forget what was said of a card that went away: it is said again."""
        here = frozenset(ports[0].info.pci_address or "" for ports in devices.values())
        for address in self._here - here:
            self._lines.pop(address, None)
        self._here = here

    def findings(
        self,
        devices: Mapping[str, Sequence[PortView]],
        needs: Mapping[str, float],
        view: View,
    ) -> Iterator[Finding]:
        """Yield the devices whose way is narrow above their slot.

        ``needs`` are the line rates in Gb/s of devices whose own link is full.
        """
        paths = {hca.name: pci_functions(hca.pci_path) for hca in view.hcas}
        narrow: dict[str, KernelEvent] = {}
        for name, ports in devices.items():
            line = self._lines.get(ports[0].info.pci_address or "")
            if line is not None and _is_above(line, paths.get(name, ()), ports[0]):
                narrow[name] = line
        for name, line in narrow.items():
            usable = (line.gbps or 0.0) * self._limits.payload_ratio
            starves = usable < needs.get(name, 0.0)
            if starves and not _is_built_so(name, narrow, devices):
                yield _finding(name, line, devices[name], view)


def _is_above(line: KernelEvent, path: Sequence[str], port: PortView) -> bool:
    """Tell whether a link beyond the card's slot carries less than its own could."""
    if line.gbps is None or line.limited_by not in path[:-2]:  # sysfs shows the slot
        return False
    own = _own_gbps(port)
    return own is not None and line.gbps < own * _NARROWER


def _own_gbps(port: PortView) -> float | None:
    """Return what card and slot can carry, None where it cannot be read."""
    if port.pci is None:
        return None
    ends = (port.pci.link, port.pci.slot)
    widths = [end.max_width for end in ends if end.max_width is not None]
    speeds = [end.max_speed_gts for end in ends if end.max_speed_gts is not None]
    return raw_gbps(min(widths), min(speeds)) if widths and speeds else None


def _is_built_so(
    name: str,
    narrow: Mapping[str, KernelEvent],
    devices: Mapping[str, Sequence[PortView]],
) -> bool:
    """Tell whether no more than half of the cards of a model have a better way."""
    info = devices[name][0].info
    alike = [
        other
        for other, ports in devices.items()
        if (model_of(ports[0].info), ports[0].info.role) == (model_of(info), info.role)
    ]
    return 2 * sum(other in narrow for other in alike) >= len(alike)


def _finding(
    name: str, line: KernelEvent, ports: Sequence[PortView], view: View
) -> Finding:
    onset, own = line.at + view.onset_offset, _own_gbps(ports[0])
    limit = None if own is None else round(own, 1)
    return Finding(
        kind="pcie_degraded",
        subject=subject_of_device(name, ports),
        onset=onset,
        evidence=(
            Evidence("available_gbps", line.gbps, "Gb/s", "kernel log", limit),
            Evidence("limited_by", line.limited_by, "", "kernel log"),
            Evidence("kmsg", kernel_text(line), "", "kernel log"),
        ),
        summary=one_line(
            f"{name} has {line.gbps:.0f} of {limit:.0f} Gb/s since {clock(onset)}: "
            f"bridge {line.limited_by} above its slot, not card or fabric"
        ),
        severity=Severity.WARNING,
        action=Action.INSPECT,
    )
