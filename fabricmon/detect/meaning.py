"""What a counter means that a text or a document names, whatever its driver is."""

from __future__ import annotations

from fabricmon.catalogue import Directory, Signal, lookup
from fabricmon.detect.lifetime import LifetimeValue
from fabricmon.parse.counter_names import file_name, is_saturated

# Packets that the agent need not read, because better counters are at hand there; in
# a listing that somebody made they may be the only measure of traffic.
_PACKETS = {
    "rx_packets": Signal.PACKETS_RECEIVED,
    "tx_packets": Signal.PACKETS_TRANSMITTED,
    "rx_packets_phy": Signal.PACKETS_RECEIVED,
    "tx_packets_phy": Signal.PACKETS_TRANSMITTED,
    "RxUDP": Signal.PACKETS_RECEIVED,
    "TxUDP": Signal.PACKETS_TRANSMITTED,
    **{f"rx_prio{i}_packets": Signal.PACKETS_RECEIVED for i in range(8)},
    **{f"tx_prio{i}_packets": Signal.PACKETS_TRANSMITTED for i in range(8)},
}


def signal_of(name: str, directory: Directory, driver: str | None) -> Signal | None:
    """Return what a counter means, None where no table knows it.

    ``name`` may be that of a file or of a tool (``SymbolErrorCounter``).
    """
    spec = lookup(directory, file_name(name), driver)
    return _PACKETS.get(name) if spec is None or spec.signal is None else spec.signal


def lifetime_value(
    name: str, value: int, directory: Directory, driver: str | None = None
) -> LifetimeValue:
    """Return a counter as `lifetime` judges it."""
    signal = signal_of(name, directory, driver)
    return LifetimeValue(name, value, signal, is_saturated(name, value))
