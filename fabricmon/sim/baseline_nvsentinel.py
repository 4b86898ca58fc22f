"""A monitor by the published rules of NVSentinel's nic-health-monitor.

Source: NVIDIA/NVSentinel, ``docs/nic-health-monitor.md`` and the values of its chart:
polls of 1 s; what is fatal cordons and drains the node and stays latched until the
counter is reset or the node boots. Counters that it allows but ships without a limit
(``port_xmit_wait``, ``out_of_sequence``) are not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from fabricmon.model import PortId
from fabricmon.sim.baseline_counting import Increase, Remembered, Window
from fabricmon.sim.baseline_ledger import FATAL, NOTED, Ledger, Verdict
from fabricmon.sim.baseline_node import PeerNode, WatchedPort

MISSING_POLLS = 3
CARRIER_CHANGES = 2  # more than that in one poll
_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class _Limit:
    """More than ``most`` in ``window`` seconds; no window: per second of one poll."""

    file: str
    verdict: Verdict
    most: float = 0
    window: float | None = None


LIMITS: tuple[_Limit, ...] = (
    _Limit("counters/link_downed", Verdict("port_flap", *FATAL), window=0),
    _Limit("counters/symbol_error", Verdict("link_errors", *NOTED), 10),
    _Limit("counters/symbol_error", Verdict("link_errors", *FATAL), 120, _HOUR),
    _Limit(
        "counters/link_error_recovery", Verdict("link_unstable", *NOTED), 5, _MINUTE
    ),
    _Limit("counters/port_rcv_errors", Verdict("link_errors", *NOTED), 10),
    _Limit("counters/port_xmit_discards", Verdict("congestion", *NOTED), 100),
    _Limit(
        "counters/local_link_integrity_errors", Verdict("link_errors", *FATAL), window=0
    ),
    _Limit(
        "counters/excessive_buffer_overrun_errors",
        Verdict("link_errors", *FATAL),
        window=0,
    ),
    _Limit(
        "hw_counters/local_ack_timeout_err", Verdict("transport_retries", *NOTED), 1
    ),
    _Limit(
        "hw_counters/rnr_nak_retry_err", Verdict("receiver_stall", *FATAL), window=0
    ),
    _Limit("hw_counters/roce_slow_restart", Verdict("transport_retries", *NOTED), 10),
)
"""The published numbers; ``window=0`` is any increase."""

KERNEL_LINES = (
    ("insufficient power", Verdict("nic_power", *NOTED)),
    ("high temperature", Verdict("module_hot", *NOTED)),
)


class NvSentinel:
    """State, disappearance, homogeneity of rates, counters and kernel lines."""

    name = "nvsentinel"
    seconds = 1.0

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: dict[tuple[PortId, str], Remembered] = defaultdict(Remembered)
        self._windows: dict[tuple[PortId, _Limit], Window] = {}
        self._missing: Counter[PortId] = Counter()
        self._boot: str | None = None
        self._lines = 0

    def poll(self, node: PeerNode) -> None:
        """Look once."""
        if self._boot not in {None, node.boot_id}:
            self._unlatch(node)
        self._boot = node.boot_id
        for port in node.watched:
            if self._is_there(node, port.id):
                self._judge_state(node, port.id)
                self._judge_counters(node, port)
        self._judge_rates(node)
        self._read_lines(node)

    def _is_there(self, node: PeerNode, port: PortId) -> bool:
        verdict = Verdict("device_missing", *FATAL)
        if node.is_there(port):
            self._missing.pop(port, None)
            self._ledger.close(node.now, port, verdict.kind)
            return True
        self._missing[port] += 1
        polls = self._missing[port]
        if polls >= MISSING_POLLS:
            self._ledger.tell(node.now, port, verdict, "missing_polls", polls)
        return False

    def _judge_state(self, node: PeerNode, port: PortId) -> None:
        is_up = node.is_up(port)
        if is_up is False:
            self._ledger.tell(node.now, port, Verdict("port_down", *FATAL), "state", 0)
        elif is_up:
            self._ledger.close(node.now, port, "port_down")

    def _judge_counters(self, node: PeerNode, port: WatchedPort) -> None:
        moves = {
            file: self._move(node, port.id, file)
            for file in dict.fromkeys(limit.file for limit in LIMITS)
        }
        for limit in LIMITS:
            move = moves[limit.file]
            if move is None:
                continue
            if move.is_reset:
                self._ledger.close(node.now, port.id, limit.verdict.kind)
            value = self._measure(node.now, port.id, limit, move)
            if value > limit.most:
                self._ledger.tell(
                    node.now, port.id, limit.verdict, _base(limit.file), value
                )
        changes = self._last[port.id, "carrier_changes"].move(
            node.now, node.net_counter(port, "carrier_changes")
        )
        if changes is not None and changes.amount > CARRIER_CHANGES:
            verdict = Verdict("port_flap", *NOTED)
            self._ledger.tell(
                node.now, port.id, verdict, "carrier_changes", changes.amount
            )

    def _move(self, node: PeerNode, port: PortId, file: str) -> Increase | None:
        return self._last[port, file].move(node.now, node.counter(port, file))

    def _measure(self, t: float, port: PortId, limit: _Limit, move: Increase) -> float:
        if limit.window is None:
            return move.per_second
        if limit.window == 0:
            return move.amount
        window = self._windows.setdefault((port, limit), Window(limit.window))
        return window.add(t, move.amount)

    def _judge_rates(self, node: PeerNode) -> None:
        """Cards of one role have the rate that most of them have."""
        rates = {
            port.id: rate
            for port in node.watched
            if (rate := node.rate_gbps(port.id)) and node.is_up(port.id)
        }
        if not rates:
            return
        usual = Counter(rates.values()).most_common(1)[0][0]
        for port, rate in rates.items():
            if rate < usual:
                verdict = Verdict("rate_degraded", *FATAL)
                self._ledger.tell(node.now, port, verdict, "rate", rate)
            else:
                self._ledger.close(node.now, port, "rate_degraded")

    def _read_lines(self, node: PeerNode) -> None:
        lines = node.lines(self._lines)
        self._lines += len(lines)
        for line in lines:
            text = line.text.lower()
            for words, verdict in KERNEL_LINES:
                if words in text:
                    port = port_of_line(node, text)
                    self._ledger.tell(node.now, port, verdict, "kmsg", 1)

    def _unlatch(self, node: PeerNode) -> None:
        for port in node.watched:
            for limit in LIMITS:
                self._ledger.close(node.now, port.id, limit.verdict.kind)


def port_of_line(node: PeerNode, text: str) -> PortId | None:
    """Return the port that a kernel line names, by device, netdev or PCI address."""
    words = {word.strip(":,()[]") for word in text.lower().split()}
    return next(
        (
            port.id
            for port in node.watched
            if any(name.lower() in words for name in port.names)
        ),
        None,
    )


def _base(file: str) -> str:
    return file.rpartition("/")[2]
