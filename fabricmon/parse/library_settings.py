"""Settings of NCCL, RCCL and aws-ofi-nccl as files hold them, and what they name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricmon.parse.text import decode
from fabricmon.value import Value

KEYS = ("NCCL_", "RCCL_", "OFI_")
"""How the names of settings begin; nothing else in any file is one."""

MOST_SETTINGS = 256
"""Settings taken of one file; NCCL knows about 150."""

MOST_CHARACTERS = 4096
"""Length of a value that is kept."""

DEBUG_FILE = "NCCL_DEBUG_FILE"
DEVICES = "NCCL_IB_HCA"
CONFIGURATION = "NCCL_CONF_FILE"

_VERSION = re.compile(r"lib(?:nccl|rccl)[\w-]{0,32}\.so\.(\d{1,3}(?:\.\d{1,5}){1,3})")
_WILD = frozenset("*?[")
_OUTSIDE = ("/dev/", "/proc/", "/sys/")


class NamedValue(Value, frozen=True):
    """A setting and its value, as text."""

    name: str
    value: str


def parse_configuration(raw: bytes) -> tuple[NamedValue, ...]:
    """Return the settings of ``nccl.conf``: ``NAME=VALUE`` lines, ``#`` comments."""
    return tuple(_values(raw))[:MOST_SETTINGS]


def _values(raw: bytes) -> Iterator[NamedValue]:
    for line in decode(raw).split("\n"):
        name, equals, value = line.strip().partition("=")
        if equals and is_setting(name.strip()):
            yield NamedValue(name.strip(), value.strip()[:MOST_CHARACTERS])


def is_setting(name: str) -> bool:
    """Tell whether a name is that of a library's setting."""
    return name.startswith(KEYS)


def library_version(path: str) -> str | None:
    """Return the version in the file name of a library, None if it has none."""
    match = _VERSION.search(path)
    return None if match is None else match[1]


def debug_pattern(value: str, host: str | None, pid: int | None) -> str | None:
    """Return the pattern of what ``NCCL_DEBUG_FILE`` names; None for no regular file.

    NCCL replaces ``%h`` by the short host name, ``%p`` by the process id and ``%%`` by
    one; other pairs stay as they are. None of the two known means any.
    """
    known = {"h": host, "p": None if pid is None else str(pid)}
    pieces = []
    rest = iter(value)
    for each in rest:
        if each != "%":
            pieces.append(_literal(each))
            continue
        letter = next(rest, "")
        if letter in known:
            text = known[letter]
            pieces.append("*" if text is None else "".join(map(_literal, text)))
        else:
            pieces.append(
                "%" if letter == "%" else "%" + "".join(map(_literal, letter))
            )
    pattern = "".join(pieces)
    is_file = pattern and not pattern.startswith(_OUTSIDE)
    return pattern if is_file else None


def named_devices(value: str) -> tuple[str, ...]:
    """Return the devices that ``NCCL_IB_HCA`` names to be used.

    A name stands for all that begin with it, hence the ``*``; after ``=`` names are
    exact. What it excludes (``^``) names none.
    """
    if value.startswith("^"):
        return ()
    exact = value.startswith("=")
    found = []
    for item in value.removeprefix("=").split(","):
        name, colon, port = item.strip().partition(":")
        port = port.partition(":")[0]
        if name:
            device = name if exact else f"{name}*"
            found.append(f"{device}/{port}" if colon and port.isdigit() else device)
    return tuple(found)


def _literal(letter: str) -> str:
    return f"[{letter}]" if letter in _WILD else letter
