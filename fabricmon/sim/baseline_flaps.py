"""Four agents that watch states and count flaps, by their published rules.

Sources: leptonai/gpud ``components/accelerator/nvidia/infiniband``; Azure/
azurehpc-health-checks ``customTests``; Azure/cyclecloud-healthagent
``healthagent/defaults.yaml``; oracle-quickstart/oci-hpc ``playbooks/roles/healthchecks``
and ``metrics-exporter``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fabricmon.model import PortId
from fabricmon.sim.baseline_counting import Remembered, Window
from fabricmon.sim.baseline_ledger import FAILED, NOTED, UNHEALTHY, Ledger, Verdict
from fabricmon.sim.baseline_node import PeerNode, WatchedPort
from fabricmon.sim.baseline_nvsentinel import port_of_line

_MINUTE, _HOUR = 60.0, 3600.0
SAME_FLAP_SECONDS = 2.0  # kernel and network manager both write of one loss
LOST_WORDS = ("link down", "lost carrier")


class LostCarriers:
    """Losses of a link that the log tells of, each once."""

    def __init__(self) -> None:
        self._lines = 0
        self._last: dict[PortId, float] = {}

    def news(self, node: PeerNode) -> Iterator[tuple[PortId, float]]:
        """Yield ports whose link was lost since the last call, and when."""
        lines = node.lines(self._lines)
        self._lines += len(lines)
        for line in lines:
            text = line.text.lower()
            if not any(words in text for words in LOST_WORDS):
                continue
            port = port_of_line(node, text)
            if port is None:
                continue
            before = self._last.get(port)
            self._last[port] = line.at
            if before is None or line.at - before > SAME_FLAP_SECONDS:
                yield port, line.at


class Gpud:
    """Ports and rate by product, drops, flaps and two kernel lines; polls of 30 s.

    A product has at least so many ports at a rate (H100 and later: 8 at 400 Gb/s,
    A100: 1 at 200). A drop is a port that is down for 4 min while ``link_downed``
    stands still. A flap is three times down for 25 s and up again within 12 h. Drops
    and flaps are kept for InfiniBand ports only.
    """

    name = "gpud"
    seconds = 30.0
    products = {400.0: 8, 200.0: 1}  # noqa: RUF012 - a published table
    drop_seconds = 240.0
    flap_seconds = 25.0
    flaps = 3
    flap_window = 12 * _HOUR
    lines = (
        ("insufficient power", Verdict("nic_power", *UNHEALTHY)),
        ("high temperature", Verdict("module_hot", *UNHEALTHY)),
    )

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._down: dict[PortId, tuple[float, int | None]] = {}
        self._flaps: dict[PortId, Window] = defaultdict(
            lambda: Window(self.flap_window)
        )
        self._demand: tuple[int, float] | None = None
        self._lines = 0

    def poll(self, node: PeerNode) -> None:
        """Look once."""
        for port in node.watched:
            if port.is_infiniband:
                self._follow(node, port.id)
        self._count(node)
        lines = node.lines(self._lines)
        self._lines += len(lines)
        for line in lines:
            for words, verdict in self.lines:
                if words in line.text.lower():
                    port_id = port_of_line(node, line.text)
                    self._ledger.tell(node.now, port_id, verdict, "kmsg", 1)

    def _follow(self, node: PeerNode, port: PortId) -> None:
        is_up = node.is_up(port)
        downs = node.counter(port, "counters/link_downed")
        if is_up is False:
            since, before = self._down.setdefault(port, (node.now, downs))
            if node.now - since >= self.drop_seconds and downs == before:
                verdict = Verdict("port_down", *UNHEALTHY)
                self._ledger.tell(node.now, port, verdict, "drop", node.now - since)
        elif is_up and port in self._down:
            since, _ = self._down.pop(port)
            if node.now - since >= self.flap_seconds:
                count = self._flaps[port].add(node.now, 1)
                if count >= self.flaps:
                    verdict = Verdict("port_flapping", *UNHEALTHY)
                    self._ledger.tell(node.now, port, verdict, "flaps", count)

    def _count(self, node: PeerNode) -> None:
        rates = {port.id: node.rate_gbps(port.id) or 0.0 for port in node.watched}
        if self._demand is None and rates:
            rate = max(rates.values())
            self._demand = (min(self.products.get(rate, 0), len(rates)), rate)
        wanted, rate = self._demand or (0, 0.0)
        well = {port for port in rates if node.is_up(port) and rates[port] >= rate}
        is_short = len(well) < wanted
        for port in rates:
            is_up = node.is_up(port)
            kind = "rate_degraded" if is_up else "port_down"
            if is_short and port not in well:
                verdict = Verdict(kind, *UNHEALTHY)
                self._ledger.tell(node.now, port, verdict, "ports", len(well))
            else:
                self._ledger.close(node.now, port, "rate_degraded")
                self._ledger.close(node.now, port, "port_down")


class AzureChecks:
    """Node health check: state and rate of each device, 5 losses in 24 h; every 5 min."""

    name = "azurehpc"
    seconds = 300.0
    losses = 5
    window = 24 * _HOUR

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._log = LostCarriers()
        self._lost: dict[PortId, Window] = defaultdict(lambda: Window(self.window))
        self._rates: dict[PortId, float] = {}

    def poll(self, node: PeerNode) -> None:
        """Look once."""
        for port in node.watched:
            check_state(self._ledger, node, port.id)
            rate = node.rate_gbps(port.id)
            expected = self._rates.setdefault(port.id, rate or 0.0)
            if rate is not None and rate < expected and node.is_up(port.id):
                verdict = Verdict("rate_degraded", *FAILED)
                self._ledger.tell(node.now, port.id, verdict, "rate", rate)
            else:
                self._ledger.close(node.now, port.id, "rate_degraded")
        for port_id, at in self._log.news(node):
            count = self._lost[port_id].add(at, 1)
            if count >= self.losses:
                verdict = Verdict("port_flapping", *FAILED)
                self._ledger.tell(node.now, port_id, verdict, "lost_carrier", count)


class HealthAgent:
    """State, ``link_downed`` 3 times in 3 h, recoveries and carrier losses; every 60 s.

    Only InfiniBand devices are looked at. Three losses are an error that stays until
    the node boots; more than 3 recoveries or 5 carrier losses in a lifetime a warning.
    """

    name = "healthagent"
    seconds = 60.0
    downs = 3
    window = 3 * _HOUR
    recoveries = 3
    carrier_downs = 5

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: dict[PortId, Remembered] = defaultdict(Remembered)
        self._downs: dict[PortId, Window] = defaultdict(lambda: Window(self.window))
        self._boot: str | None = None

    def poll(self, node: PeerNode) -> None:
        """Look once."""
        is_new_boot = self._boot not in {None, node.boot_id}
        self._boot = node.boot_id
        for port in node.watched:
            if port.is_infiniband:
                if is_new_boot:
                    self._ledger.close(node.now, port.id, "port_flapping")
                check_state(self._ledger, node, port.id)
                self._count(node, port)

    def _count(self, node: PeerNode, port: WatchedPort) -> None:
        now = node.now
        downed = node.counter(port.id, "counters/link_downed")
        move = self._last[port.id].move(now, downed)
        count = self._downs[port.id].add(now, move.amount if move else 0)
        if count >= self.downs:
            verdict = Verdict("port_flapping", *FAILED)
            self._ledger.tell(now, port.id, verdict, "link_downed", count)
        recovered = node.counter(port.id, "counters/link_error_recovery") or 0
        if recovered > self.recoveries:
            verdict = Verdict("link_unstable", *NOTED)
            self._ledger.tell(now, port.id, verdict, "link_error_recovery", recovered)
        lost = node.net_counter(port, "carrier_down_count") or 0
        if lost > self.carrier_downs:
            verdict = Verdict("port_flap", *NOTED)
            self._ledger.tell(now, port.id, verdict, "carrier_down_count", lost)


class OciChecks:
    """Flaps in the log, state, PCIe width, AER errors for 15 min; every 5 min.

    One loss in 6 h warns, a second one drains; losses in the first 30 min after boot
    do not count. A narrow PCIe link means "tag and terminate".
    """

    name = "oci-hpc"
    seconds = 300.0
    window = 6 * _HOUR
    boot_seconds = 30 * _MINUTE
    aer_polls = 3  # an increase in each of three polls: held for 15 min

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._log = LostCarriers()
        self._lost: dict[PortId, Window] = defaultdict(lambda: Window(self.window))
        self._aer: dict[PortId, Remembered] = defaultdict(Remembered)
        self._aer_polls: dict[PortId, int] = defaultdict(int)

    def poll(self, node: PeerNode) -> None:
        """Look once."""
        for port in node.watched:
            check_state(self._ledger, node, port.id)
            self._check_pci(node, port)
        for port_id, at in self._log.news(node):
            if node.uptime - (node.now - at) < self.boot_seconds:
                continue
            count = self._lost[port_id].add(at, 1)
            verdict = (
                Verdict("port_flap", *NOTED)
                if count == 1
                else Verdict("port_flapping", *FAILED)
            )
            self._ledger.tell(node.now, port_id, verdict, "link_flaps", count)

    def _check_pci(self, node: PeerNode, port: WatchedPort) -> None:
        width, most = node.pci_width(port)
        if width is not None and most is not None and width < most:
            verdict = Verdict("pcie_degraded", *FAILED)
            self._ledger.tell(node.now, port.id, verdict, "current_link_width", width)
        move = self._aer[port.id].move(node.now, node.aer_correctable(port))
        rises = move is not None and move.amount > 0
        self._aer_polls[port.id] = self._aer_polls[port.id] + 1 if rises else 0
        if self._aer_polls[port.id] >= self.aer_polls:
            verdict = Verdict("pcie_errors", *UNHEALTHY)
            self._ledger.tell(node.now, port.id, verdict, "aer_dev_correctable", 1)


def check_state(ledger: Ledger, node: PeerNode, port: PortId) -> None:
    """Fail a port that is not ACTIVE and LinkUp, or not there, at this poll."""
    if node.is_up(port):
        ledger.close(node.now, port, "port_down")
        ledger.close(node.now, port, "device_missing")
        return
    kind = "port_down" if node.is_there(port) else "device_missing"
    ledger.tell(node.now, port, Verdict(kind, *FAILED), "state", 0)
