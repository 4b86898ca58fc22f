"""THE table of messages of collective libraries, in the order of their priority."""

from __future__ import annotations

from fabricmon.parse.nccl_rules import (
    context,
    framework,
    ib,
    plugins,
    sockets,
    transport,
)
from fabricmon.parse.nccl_rules.row import LogRow, Wording

__all__ = ["COARSE", "MOST_LITERALS", "RULES", "SUBJECTS", "LogRow", "Wording"]

RULES: tuple[LogRow, ...] = (
    *ib.ROWS,
    *transport.ROWS,
    *plugins.ROWS,
    *sockets.ROWS,
    *framework.ROWS,
    *context.ROWS,
    *sockets.TRACES,
)

# The same rows by what they are about.
SUBJECTS: tuple[tuple[str, tuple[LogRow, ...]], ...] = (
    ("Work completions", ib.COMPLETIONS),
    ("Asynchronous events", ib.EVENTS),
    ("Verbs calls and connection set-up", ib.VERBS),
    ("Failover inside merged NICs", ib.FAILOVER),
    ("Which network is used", transport.SELECTION),
    ("Channels and GPUDirect", transport.CHANNELS),
    ("Ends that do not match", transport.MISMATCHES),
    ("SHARP and CollNet", plugins.SHARP),
    ("NVLink and GPUs", plugins.NVLINK),
    ("libfabric and EFA", plugins.LIBFABRIC),
    ("Other plugins", plugins.OTHERS),
    ("TCP connections", sockets.CONNECTIONS),
    ("Bootstrap and agreement of ranks", sockets.BOOTSTRAP),
    ("Proxy and errors that follow others", (*sockets.PROXY, *sockets.TRACES)),
    ("PyTorch", framework.PYTORCH),
    ("RAS", framework.RAS),
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
