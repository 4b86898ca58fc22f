"""On which cores of the node the agent runs."""

from __future__ import annotations

from fabricmon.config.words import Section


class Isolation(Section, frozen=True):
    """Keeps the agent out of the way of jobs."""

    cores: str = "auto"
    """``auto``: of the cores that the service manager leaves it, those that the kernel
    does not isolate (``isolcpus``, ``nohz_full``), where a job would feel every tick.
    A list such as ``0-1,64``: these. ``off``: as it was started. Needs a restart.
    """
