"""The last minutes of the node, kept as a trace."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fabricmon.config.words import Section


class History(Section, frozen=True):
    """The last minutes as a trace, for ``fabricmon support``. Needs a restart.

    It lies in ``history/`` of the state folder, for the agent's user alone. What jobs
    write to their logs is not in it, nor what their processes tell.
    """

    minutes: Annotated[float, Meta(ge=0, le=1440)] = 0
    """Minutes that are there at any time, once the agent has run for so long; 0: none.

    Off, because it costs processor time and memory on every node all the time, and
    most bundles are made while the trouble is there. Ten show how a fault began."""
    most_megabytes: Annotated[int, Meta(ge=1, le=4096)] = 16
    """Disk that it may take, in 10^6 bytes; what is oldest goes first, then minutes are
    missing.

    Ten minutes of eight ports took 0.06, and 0.4 where every counter moved all the
    time; the rest is for nodes with hundreds of functions or a kernel that talks."""
