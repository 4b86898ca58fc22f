"""Why counters of network devices are missing: nobody counts, or nobody shows them."""

from __future__ import annotations

from fabricmon.model import View
from fabricmon.parse.words import LinkLayer

UNCOUNTED = "no driver here counts it"
OUT_OF_SIGHT = "driver statistics are those of another network namespace"


def uncounted(view: View) -> str:
    """Say why no port has a counter that only driver statistics tell.

    Without link events the agent is not in the node's network namespace, and asks the
    drivers of that other one in vain.
    """
    is_outside = view.boot is not None and not view.boot.tells_links
    ethernet = any(p.info.link_layer is LinkLayer.ETHERNET for p in view.ports)
    return OUT_OF_SIGHT if is_outside and ethernet else UNCOUNTED
