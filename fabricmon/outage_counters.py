"""Whether a device remembers outages itself, so that its state is read less often.

`state` is five firmware commands a file on mlx5, the counter of outages is one, and
the counter also tells of an outage that was over before anybody looked.
"""

from __future__ import annotations

from fabricmon.catalogue import CounterSpec, Directory, Group, Signal
from fabricmon.model import Counters, Hca, HcaPort
from fabricmon.parse.words import LinkLayer


def counts_outages(hca: Hca, counters: Counters) -> bool:
    """Tell whether every port has a counter of outages that can still count."""
    return bool(hca.ports) and all(_counts(port, counters) for port in hca.ports)


def _counts(port: HcaPort, counters: Counters) -> bool:
    full = counters.saturated(port.id)
    return any(
        _is_trusted(spec, port)
        and spec not in full
        and counters.value(port.id, spec) is not None
        for spec in counters.by_signal(port.id, Signal.LINK_DOWN)
    )


def _is_trusted(spec: CounterSpec, port: HcaPort) -> bool:
    """Tell whether a counter is polled as often as needed, and counts on this link.

    ``counters/`` is the InfiniBand PMA: on Ethernet the file exists and may rest at 0.
    """
    if spec.group is not Group.OUTAGES:
        return False
    is_pma = spec.directory is Directory.COUNTERS
    return port.link_layer is LinkLayer.INFINIBAND or not is_pma
