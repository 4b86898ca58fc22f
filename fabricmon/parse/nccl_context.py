"""What earlier lines of a log said that a later line needs. Bounded, never changed."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.value import Value

MOST_PROCESSES = 64  # of one file that are remembered, the latest
MOST_NICS = 64  # of one process


class Nic(Value, frozen=True):
    """A NIC by the library's own number for it."""

    index: str
    device: str
    port: int | None
    direct: bool = False  # the library said that it reads GPU memory


class ProcessFacts(Value, frozen=True):
    """What a process said of itself.

    ``rdma_wanted``: it has a device or a plugin for RDMA. ``rdma_missed``: that could
    not be used. ``on_sockets``: it said that TCP is its network. ``gpu_failed``: what
    fails from now on may be the GPU's fault.
    """

    host: str | None = None
    pid: int | None = None
    library: str | None = None
    version: str | None = None
    rank: int | None = None
    ranks_differ: bool = False
    nics: tuple[Nic, ...] = ()
    interface: str | None = None
    rdma_wanted: bool = False
    rdma_missed: bool = False
    on_sockets: bool = False
    gpu_failed: bool = False

    def nic(self, index: str) -> Nic | None:
        """Return the NIC of this number, None if it was not named."""
        return next((each for each in self.nics if each.index == index), None)

    def with_nic(self, nic: Nic) -> ProcessFacts:
        """Return the facts with a NIC added or replaced."""
        others = tuple(each for each in self.nics if each.index != nic.index)
        return replace(self, nics=(*others, nic)[-MOST_NICS:])

    def with_rank(self, rank: int) -> ProcessFacts:
        """Return the facts with a rank; a process with several has none of its own."""
        differ = self.ranks_differ or self.rank not in {None, rank}
        return replace(self, rank=None if differ else rank, ranks_differ=differ)


class LogContext(Value, frozen=True):
    """What earlier lines of one file said; ``LogContext()`` is its beginning.

    ``library`` and ``version`` are those of a banner without a process.
    ``awaits_body``: the next line is the body of `Last error:`.
    """

    library: str | None = None
    version: str | None = None
    awaits_body: bool = False
    processes: tuple[ProcessFacts, ...] = ()

    def process(self, host: str | None, pid: int | None) -> ProcessFacts:
        """Return the facts of a process; of an unknown one nothing but its name."""
        for facts in self.processes:
            if facts.pid == pid and facts.host == host:
                return facts
        return ProcessFacts(host, pid)

    def with_process(self, facts: ProcessFacts) -> LogContext:
        """Return the context with a process's facts, the latest first."""
        others = tuple(
            each
            for each in self.processes
            if each.pid != facts.pid or each.host != facts.host
        )
        return replace(self, processes=(facts, *others)[:MOST_PROCESSES])
