"""What a trace has to say so that its reader answers as the node did.

Keeps the node as a reader of the trace so far would have it. Where that would answer a
question otherwise than the node just did, records put it right. So a trace holds what
was asked, when it changed, and nothing else. A name that was listed but never read is
a file that fails with `NEVER_READ`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os.path import relpath

from fabricmon.host.bridging_trace import from_trace, to_trace
from fabricmon.host.carrier import NETDEVS
from fabricmon.host.node import Node
from fabricmon.host.protocol import (
    KMSG,
    ClockState,
    CommandOutput,
    KernelLine,
    ReadError,
    Statistic,
)
from fabricmon.host.trace import (
    ETHTOOL,
    LONGEST_CLOCK_ERROR,
    Module,
    Printed,
    TraceRecord,
)
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse

NEVER_READ = "ENODATA"
"""Errno in the trace of what was seen in a folder and never read."""

STEP_SECONDS = 0.1
"""The wall clock has jumped; less is the clock being disciplined (ntpd steps 0.128)."""

_ABSENT = ReadError("ENOENT")
_CIRCLE = ReadError("ELOOP")
_IS_FOLDER = ReadError("EISDIR")
_NO_FOLDER = ReadError("ENOTDIR")


class Transcript:
    """Turns answers of a node into records; times are those of the trace.

    Args:
        boot_id: The boot in the header.
        target: Asks the node where a path leads, None if nowhere.
        write: Takes a record; what it raises goes to the caller.
    """

    def __init__(
        self,
        boot_id: str,
        target: Callable[[str], str | None],
        write: Callable[[TraceRecord], None],
    ) -> None:
        self._node = Node(boot_id)
        self._tree = self._node.tree
        self._target = self._leads = target
        self._write = write
        self._leads_to: dict[str, str | None] = {}  # folders, as the node just said
        self._asked_at = -1.0
        self._listed: set[str] = set()
        self.unfaithful = 0  # answers that the format cannot hold

    def files(
        self,
        paths: Sequence[str],
        contents: Sequence[bytes | ReadError],
        at: float,
    ) -> None:
        """Note what files hold or how they failed."""
        held = self._tree.read_many(paths, at)
        if held == contents:
            return
        texts: dict[str, str] = {}
        for path, before, content in zip(paths, held, contents, strict=True):
            if before == content:
                continue
            if isinstance(content, bytes):
                if not isinstance(before, bytes):
                    self._make_way(path, at)
                texts[path] = content.decode("utf-8", "surrogateescape")
            else:
                self._put(TraceRecord(t=at, set=texts))
                texts = {}
                self._fail(path, content, at, is_file=True)
        self._put(TraceRecord(t=at, set=texts))
        self._check(self._tree.read_many(paths, at) == contents)

    def folder(self, path: str, names: tuple[str, ...] | ReadError, at: float) -> None:
        """Note what a folder holds or how listing it failed."""
        if self._tree.names(path) != names:
            if isinstance(names, ReadError):
                self._fail(path, names, at, is_file=False)
            else:
                self._list(path, names, at)
            self._check(self._tree.names(path) == names)
        if not isinstance(names, ReadError):
            self._listed.add(self._tree.place(path))

    def target(self, path: str, target: str | None, at: float) -> None:
        """Note where a path leads."""
        if self._tree.target(path) == target:
            return
        if target is None:
            self._vanish(path, at)
        else:
            self._lead(path, at)
            if self._tree.target(path) is None:
                self._put(TraceRecord(t=at, err={path: NEVER_READ}))
        self._check(self._tree.target(path) == target)

    def statistics(
        self, netdev: str, answer: tuple[Statistic, ...] | ReadError, at: float
    ) -> None:
        """Note the driver statistics of a network device."""
        read = self._node.statistics.read
        if read(netdev, at) == answer:
            return
        device = ETHTOOL + netdev
        if isinstance(answer, ReadError):
            self._put(TraceRecord(t=at, ethtool={netdev: None}))
            if read(netdev, at) != answer:
                self._put(TraceRecord(t=at, err={device: answer.errno}))
            return
        if self._tree.error(device) is not None:
            self._put(TraceRecord(t=at, deleted=[device]))
        before = read(netdev, at)
        known = () if isinstance(before, ReadError) else before
        if known and [each.name for each in known] != [each.name for each in answer]:
            self._put(TraceRecord(t=at, ethtool={netdev: None}))
            known = ()
        figures: dict[str, int] = {
            each.name: each.value for each in answer if each not in set(known)
        }
        self._put(TraceRecord(t=at, ethtool={netdev: {**figures}}))
        self._check(read(netdev, at) == answer)

    def command(
        self,
        name: str,
        answer: CommandOutput | ReadError,
        deadline: float,
        took: float,
        at: float,
    ) -> None:
        """Note what a command printed; one that failed to start cannot be noted."""
        known = self._node.command(name)
        if isinstance(answer, ReadError):
            self._check(known is None and answer == _ABSENT)
        elif known is None or known.within(deadline) != answer:
            printed = Printed(
                stdout=answer.stdout.decode("utf-8", "surrogateescape"),
                stderr=answer.stderr.decode("utf-8", "surrogateescape"),
                exit=answer.exit_status,
                seconds=round(took, 3),
            )
            self._put(TraceRecord(t=at, command={name: printed}))

    def bridging(self, netdev: str, answer: PriorityUse | None, at: float) -> None:
        """Note the data centre bridging of a network device."""
        if from_trace(netdev, self._node.bridging(netdev)) == answer:
            return
        if self._node.bridging(netdev) is not None:
            self._put(TraceRecord(t=at, dcb={netdev: None}))
        if answer is not None:
            self._put(TraceRecord(t=at, dcb={netdev: to_trace(answer)}))
        self._check(from_trace(netdev, self._node.bridging(netdev)) == answer)

    def kernel_log(self, answer: tuple[KernelLine, ...] | ReadError, at: float) -> None:
        """Note lines of the kernel's log; that some were lost cannot be noted."""
        refused = self._tree.error(KMSG)
        if isinstance(answer, ReadError):
            if refused != answer:
                self._put(TraceRecord(t=at, err={KMSG: answer.errno}))
            return
        if refused is not None:
            self._put(TraceRecord(t=at, deleted=[KMSG]))
        self._put(TraceRecord(t=at, kmsg=[line.text for line in answer if line.text]))
        self._node.kernel_log()  # its reader fetches them, too
        self.unfaithful += sum(1 for line in answer if line.lost)

    def module(self, port: str, answer: Module | None, at: float) -> None:
        """Note the diagnostics of a transceiver."""
        if self._node.module(port) != answer:
            self._put(TraceRecord(t=at, module={port: None}))
            self._put(TraceRecord(t=at, module={port: answer}))

    def devlink(
        self, address: str, answer: tuple[HealthReporter, ...], at: float
    ) -> None:
        """Note the health reporters of a PCI device."""
        if self._node.reporters(address) != answer:
            states = {each.name: each.state for each in answer}
            self._put(TraceRecord(t=at, devlink={address: None}))
            self._put(TraceRecord(t=at, devlink={address: states}))

    def clock(self, answer: ClockState | ReadError, at: float) -> None:
        """Note how far the wall clock may be off, if the node can say."""
        if isinstance(answer, ClockState):
            error = answer.error_seconds
            told = LONGEST_CLOCK_ERROR if error is None else round(error, 6)
            if told != self._node.clock_error:
                self._put(TraceRecord(t=at, clock_error=told))

    def link_event(self, event: LinkEvent, at: float) -> None:
        """Note a change of a network device; a reader derives it from its files."""
        folder = f"{NETDEVS}/{event.netdev}"
        if event.gone:
            if self._tree.target(folder) is not None:
                self._put(TraceRecord(t=at, deleted=[folder], dir=[NETDEVS]))
        elif event.up is not None and self._node.is_up(event.netdev) != event.up:
            carrier, operstate = f"{folder}/carrier", f"{folder}/operstate"
            self._make_way(carrier, at)
            texts = {carrier: "1\n" if event.up else "0\n"}
            if isinstance(self._tree.read(operstate, at), bytes):
                texts[operstate] = "up\n" if event.up else "down\n"
            self._put(TraceRecord(t=at, set=texts))

    def boot_id(self, boot_id: str, at: float) -> None:
        """Note which boot this is."""
        if boot_id != self._node.boot_id:
            self._put(TraceRecord(t=at, boot_id=boot_id))

    def wall(self, seconds: float, at: float) -> None:
        """Note the wall clock, as seconds since the start of the trace."""
        drift = seconds - at - self._node.wall_offset
        if abs(drift) >= STEP_SECONDS:
            self._put(TraceRecord(t=at, wall_step=round(drift, 3)))

    def put(self, record: TraceRecord) -> None:
        """Write a record that somebody else has made."""
        self._put(record)

    def _put(self, record: TraceRecord) -> None:
        """Write a record, unless it says nothing, and take it as its reader will."""
        if record != TraceRecord(t=record.t):
            self._write(record)
            self.unfaithful += len(self._node.apply(record))

    def _check(self, is_so: bool) -> None:  # noqa: FBT001 -- reads as an assertion
        self.unfaithful += not is_so

    def _fail(self, path: str, error: ReadError, at: float, *, is_file: bool) -> None:
        if error == _ABSENT:
            self._vanish(path, at)
        elif error == _IS_FOLDER:
            self._make_folder(path, at)
        elif error == _NO_FOLDER:
            self._put_file_in_the_way(path, at)
        elif error == _CIRCLE:
            self._put_circle(path, at)
        else:
            if is_file:
                self._make_way(path, at)
            else:
                self._lead(path, at)
            self._put(TraceRecord(t=at, err={path: error.errno}))

    def _put_file_in_the_way(self, path: str, at: float) -> None:
        """Let the last name on the way that is there on the node be a file."""
        nowhere = self._lead(path, at)
        if nowhere is None:
            place = self._tree.place(path)
            deleted = [place] if self._tree.is_folder(place) else []
            self._put(TraceRecord(t=at, deleted=deleted, set={place: ""}))
            return
        place = nowhere.rpartition("/")[0]
        if self._tree.is_folder(place):  # so a link leads through a file
            error = {nowhere: _NO_FOLDER.errno}
            self._put(TraceRecord(t=at, deleted=[nowhere], err=error))
            return
        known = self._tree.error(place)
        error = {} if known in {None, _ABSENT} else {place: known.errno}
        self._put(TraceRecord(t=at, set={place: ""}, err=error))

    def _put_circle(self, path: str, at: float) -> None:
        """Let the first name that leads nowhere on the node be a link to itself."""
        place = self._lead(path, at) or self._tree.place(path)
        itself = place.rpartition("/")[2]
        self._put(TraceRecord(t=at, deleted=[place], link={place: itself}))

    def _vanish(self, path: str, at: float) -> None:
        """Let a path lead nowhere; a name that was listed stays until it is not."""
        folder, _, name = path.rstrip("/").rpartition("/")
        folder = folder or "/"
        nowhere = self._lead(folder, at)
        if nowhere is not None:
            self._vanish(nowhere, at)
            return
        if self._tree.file(folder) is not None:
            self._make_folder(folder, at)
        if self._tree.has(path):
            stays = self._tree.place(folder) in self._listed
            self._put(
                TraceRecord(
                    t=at,
                    deleted=[path],
                    dir=[folder] if self._tree.names(folder) == (name,) else [],
                    err={path: _ABSENT.errno} if stays else {},
                )
            )

    def _list(self, path: str, names: tuple[str, ...], at: float) -> None:
        self._make_folder(path, at)
        known = self._tree.names(path)
        there = set(known) if isinstance(known, tuple) else set()
        gone = sorted(there.difference(names))
        place = self._tree.place(path)
        errors: dict[str, str] = {}
        links: dict[str, str] = {}
        for name in names:
            if name not in there:
                child = f"{place}/{name}"
                real = self._leads(f"{path}/{name}")
                if real is None:
                    errors[child] = _ABSENT.errno
                elif real == child:
                    errors[child] = NEVER_READ
                else:
                    links[child] = relpath(real, place or "/")
        self._put(
            TraceRecord(
                t=at,
                deleted=[f"{place}/{name}" for name in gone],
                dir=[path] if not names else [],
                link=links,
                err=errors,
            )
        )

    def _make_folder(self, path: str, at: float) -> None:
        """Let a path be a folder that can be listed."""
        self._lead(path, at)
        is_file = self._tree.file(path) is not None
        if is_file or not isinstance(self._tree.names(path), tuple):
            place = self._tree.place(path)
            deleted = [place] if is_file else []
            self._put(TraceRecord(t=at, deleted=deleted, dir=[place]))

    def _make_way(self, path: str, at: float) -> None:
        """Let a path be ready to become a file."""
        self._lead(path, at)
        if self._tree.is_folder(path):
            self._put(TraceRecord(t=at, deleted=[self._tree.place(path)]))

    def _lead(self, path: str, at: float) -> str | None:
        """Let a path lead where it does on the node, link by link.

        Returns the first place on the way where there is nothing, None if it arrives.
        """
        place = asked = ""
        nowhere = None
        names = [name for name in path.split("/") if name not in {"", "."}]
        for index, name in enumerate(names):
            asked += f"/{name}"
            if name == "..":
                place = place.rpartition("/")[0]
                continue
            here = f"{place}/{name}"
            real = self._node_target(asked, at)
            if real is None:
                nowhere = nowhere or here
            self._lead_on(here, real, at)
            place = here if real is None else real.rstrip("/")
            if index < len(names) - 1:
                self._let_pass(place, at, is_there=real is not None)
        return nowhere

    def _lead_on(self, here: str, real: str | None, at: float) -> None:
        """Let one name be the link that it is on the node, or none."""
        if real is not None and real != here:
            if self._tree.target(here) != real:
                self._lead(real, at)
                link = {here: relpath(real, here.rpartition("/")[0] or "/")}
                self._put(TraceRecord(t=at, deleted=[here], link=link))
        elif self._tree.is_link(here):
            error = {} if real is None else {here: NEVER_READ}
            self._put(TraceRecord(t=at, deleted=[here], err=error))

    def _let_pass(self, place: str, at: float, *, is_there: bool) -> None:
        """Let no file lie where the way leads on."""
        file = self._tree.file(place)
        if file is not None and not file.bare:
            folder = [place] if is_there else []
            self._put(TraceRecord(t=at, deleted=[place], dir=folder))

    def _node_target(self, path: str, at: float) -> str | None:
        """Ask the node, once for all files of a burst."""
        if at != self._asked_at:
            self._asked_at = at
            self._leads_to.clear()
        if path not in self._leads_to:
            self._leads_to[path] = self._target(path)
        return self._leads_to[path]
