"""The kernel's log: what drivers and PCIe say of RDMA devices.

The host reads it from /dev/kmsg or, where that may not be opened, from the journal.
"""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import KernelEvents, Target
from fabricmon.parse.kmsg import recognise

DROP_IN = "kernel-log.conf.example"
"""The drop-in of the unit that gives the right to read the log."""

_REFUSED = frozenset({"EPERM", "EACCES", "ENOENT"})  # ENOENT: a sandbox hides it


def poll(host: Host, target: Target, _config: Config) -> tuple[KernelEvents, ...]:
    """Read what is new; nothing to tell gives no record, a problem gives one once.

    What is carried is the problem that was told last.
    """
    lines = host.kernel_log()
    if isinstance(lines, ReadError):
        problem = _problem(lines.errno)
        if problem == target.carried:
            return ()
        return (KernelEvents(host.monotonic(), problem=problem, carried=problem),)
    events = (recognise(line.text, line.at) for line in lines if line.text)
    known = tuple(event for event in events if event is not None)
    lost = sum(line.lost for line in lines)
    if not known and not lost and not target.carried:
        return ()
    # An empty word, not None: what is carried must take the place of a problem.
    return (KernelEvents(host.monotonic(), known, lost, carried=""),)


def _problem(errno: str) -> str:
    remedy = f": see {DROP_IN}" if errno in _REFUSED else ""
    return f"the kernel log cannot be read ({errno}){remedy}"
