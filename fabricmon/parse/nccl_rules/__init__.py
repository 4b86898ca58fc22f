"""THE table of messages of collective libraries, in the order of their priority."""

from __future__ import annotations

from fabricmon.parse.nccl_rules import (
    bootstrap,
    channels,
    completions,
    connections,
    context,
    events,
    failover,
    libfabric,
    mismatches,
    nvlink,
    other_plugins,
    proxy,
    pytorch,
    ras,
    selection,
    sharp,
    traces,
    verbs,
)
from fabricmon.parse.nccl_rules.row import LogRow, Wording

__all__ = ["COARSE", "MOST_LITERALS", "RULES", "SUBJECTS", "LogRow", "Wording"]

RULES: tuple[LogRow, ...] = (
    *completions.COMPLETIONS,
    *events.EVENTS,
    *verbs.VERBS,
    *failover.FAILOVER,
    *selection.SELECTION,
    *channels.CHANNELS,
    *mismatches.MISMATCHES,
    *sharp.SHARP,
    *nvlink.NVLINK,
    *libfabric.LIBFABRIC,
    *other_plugins.OTHERS,
    *connections.CONNECTIONS,
    *bootstrap.BOOTSTRAP,
    *proxy.PROXY,
    *pytorch.PYTORCH,
    *ras.RAS,
    *context.ROWS,
    *traces.TRACES,
)

# The same rows by what they are about.
SUBJECTS: tuple[tuple[str, tuple[LogRow, ...]], ...] = (
    ("Work completions", completions.COMPLETIONS),
    ("Asynchronous events", events.EVENTS),
    ("Verbs calls and connection set-up", verbs.VERBS),
    ("Failover inside merged NICs", failover.FAILOVER),
    ("Which network is used", selection.SELECTION),
    ("Channels and GPUDirect", channels.CHANNELS),
    ("Ends that do not match", mismatches.MISMATCHES),
    ("SHARP and CollNet", sharp.SHARP),
    ("NVLink and GPUs", nvlink.NVLINK),
    ("libfabric and EFA", libfabric.LIBFABRIC),
    ("Other plugins", other_plugins.OTHERS),
    ("TCP connections", connections.CONNECTIONS),
    ("Bootstrap and agreement of ranks", bootstrap.BOOTSTRAP),
    ("Proxy and errors that follow others", (*proxy.PROXY, *traces.TRACES)),
    ("PyTorch", pytorch.PYTORCH),
    ("RAS", ras.RAS),
    ("Settings, versions and hints", context.SETTINGS),
    ("Initialisation and operations", context.INIT),
)

# Literals that select lines in a file, each with how many lines behind such a line are
# read too: result traces behind a warning, the body behind `Last error:`, RCCL's banner
# and the tables of a RAS report behind a version. Few, since each costs time for every
# octet of log; what the library prints at each call holds none of them.
COARSE: tuple[tuple[str, int], ...] = (
    ("NCCL WARN", 4),
    ("NET", 0),
    ("ank ", 0),  # `rank 0` of init lines, `Rank 0]` of PyTorch
    ("Using ", 0),
    ("CCL version", 20),
    ("CCL_", 0),  # settings
    ("retrying", 0),
    ("rror", 4),
    ("libfabric:", 0),
    ("] ERROR ", 0),
)
MOST_LITERALS = 16  # of these and the operator's together
