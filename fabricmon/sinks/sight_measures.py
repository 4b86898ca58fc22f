"""What the agent knows to be there and cannot look into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.measures import Sample, Scene


def functions_out_of_sight(scene: Scene) -> Iterable[Sample]:
    """Ports of RoCE whose network device lies in another network namespace.

    Either the function was moved to one, for a pod, and its device is not to be seen at
    all; or the agent is in one itself, which it knows by the link events that it lacks.
    """
    snapshot = scene.snapshot
    is_outside = snapshot.boot is not None and not snapshot.boot.tells_links
    found = Counter(
        "virtual" if port.info.is_vf else "physical"
        for port in snapshot.ports
        if port.info.link_layer is LinkLayer.ETHERNET
        and (is_outside or port.info.netdev is None)
    )
    return [Sample((function,), number) for function, number in sorted(found.items())]
