"""What a process asked of the kernel, as strace wrote it, and what of it is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

OPENING = ("open", "openat", "openat2", "creat")
CHANGING = (
    *("truncate", "ftruncate", "fallocate"),
    *("mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2"),
    *("unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat"),
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat"),
    *("lchown", "mknod", "mknodat", "utimensat", "setxattr", "fsetxattr"),
    *("mount", "umount2", "pivot_root", "chroot", "swapon", "ptrace"),
    *("init_module", "finit_module", "delete_module", "settimeofday", "sethostname"),
)
REACHING = ("connect", "bind", "sendto")
RUNNING = ("execve", "execveat")
CALLS = (*OPENING, *CHANGING, *REACHING, *RUNNING)

_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
_LINE = re.compile(r"(\d+) +(\w+)\((.*)")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FOLDER = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>(?:\(deleted\))?, \"")
_OWN_FILE = re.compile(r"^\d+<(/[^>]*)>")
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_HARMLESS = re.compile(r"^/dev/(null|tty)$")
_CACHE = re.compile(r"/__pycache__(/[^/]*)?$")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call: who made it, its name, and the text of its arguments."""

    process: int
    name: str
    text: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names, or that its descriptor is of, as absolute paths."""
        if self.name in REACHING:
            return tuple(_TEXT.findall(self.text)) if "sun_path" in self.text else ()
        if self.name in {"ftruncate", "fchmod", "fchown", "fallocate", "fsetxattr"}:
            return tuple(_OWN_FILE.findall(self.text))
        folder = _FOLDER.match(self.text)
        start = Path(folder[1] if folder is not None else "/")
        names = _TEXT.findall(self.text)[: 2 if "name" in self.name else 1]
        return tuple(str(start / name) for name in names)

    @property
    def writes(self) -> bool:
        """Tell whether it changes a file, a folder or the system."""
        if self.name in OPENING:
            return self.name == "creat" or _WRITING.search(self.text) is not None
        return self.name in CHANGING

    @property
    def port(self) -> int | None:
        """The port that it reaches for, None where it is of no network."""
        found = _PORT.search(self.text) if self.name in REACHING else None
        return None if found is None else int(found[1])

    def __str__(self) -> str:
        """Return it as strace has it."""
        return f"{self.name}({self.text}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What an agent may do; ``programs`` begin so, by the last part of their path.

    ``sockets`` are those of this node by path, ``ports`` those of the network.
    """

    folders: tuple[str, ...]
    ports: frozenset[int] = frozenset()
    sockets: tuple[str, ...] = ()
    programs: tuple[str, ...] = ("python",)


def read(path: Path) -> tuple[Call, ...]:
    """Return the calls that ``strace -f -y`` wrote, in order."""
    lines = path.read_text("utf-8", "replace").splitlines()
    found = (_LINE.match(line) for line in lines)
    return tuple(Call(int(m[1]), m[2], m[3]) for m in found if m is not None)


def wrongs(calls: Iterable[Call], allowed: Allowed) -> list[str]:
    """Return what an agent did and may not do, in words of strace."""
    return [str(call) for call in calls if not _is_right(call, allowed)]


def _is_right(call: Call, allowed: Allowed) -> bool:
    if call.name in RUNNING:
        name = Path(call.paths[0]).name
        return name.startswith(allowed.programs)
    if call.name in REACHING:
        return _may_reach(call, allowed)
    if not call.writes:
        return True
    return bool(call.paths) and all(_may_write(p, allowed) for p in call.paths)


def _may_reach(call: Call, allowed: Allowed) -> bool:
    if call.port is not None:  # 0: the client's own end, which the kernel chooses
        return call.port in allowed.ports or (call.name == "bind" and not call.port)
    if "sun_path" in call.text:
        return all(path.startswith(allowed.sockets) for path in call.paths)
    # The kernel itself, or an end that `connect` has already reached.
    return "AF_NETLINK" in call.text or ("NULL, 0" in call.text)


def _may_write(path: str, allowed: Allowed) -> bool:
    inside = any(path == f or path.startswith(f"{f}/") for f in allowed.folders)
    return inside or bool(_HARMLESS.match(path) or _CACHE.search(path))


def opened(calls: Iterable[Call], below: str) -> Iterator[Call]:
    """Yield the calls that open something below a folder."""
    for call in calls:
        if call.name in OPENING and call.paths[0].startswith(f"{below}/"):
            yield call
