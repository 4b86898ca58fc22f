"""What a package is made of: locked wheels, and what of Debian is linked or copied in."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools.package.commands import BuildError

BUNDLED = "./usr/share/doc/fabricmon/bundled.txt"
LICENCES = "./usr/share/doc/fabricmon/licenses"
_OF_DEBIAN = re.compile(r"(\S+) (\S+) \(Debian (\S+)\)")
_NAMED = re.compile(r"^License: *(\S.*)$", re.MULTILINE)
_SOURCES = {
    # Source package: which copyright file tells of it.
    "expat": "libexpat1",
    "libffi": "libffi8",
    "openssl": "libssl3",
    "python3.11": "libpython3.11-stdlib",
    "sqlite3": "libsqlite3-0",
    "zlib": "zlib1g",
}


@dataclass(frozen=True, slots=True)
class PythonPart:
    """A wheel: its hash, what it says of its licence, what it needs."""

    name: str
    version: str
    sha256: str
    licence: str
    needs: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class DebianPart:
    """A source package of Debian, of which something is inside."""

    name: str
    version: str
    suite: str
    licences: tuple[str, ...]


def digest(path: Path) -> str:
    """Return a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheels(folder: Path, locked: Mapping[str, str]) -> tuple[PythonPart, ...]:
    """Return every locked wheel; raises `BuildError` where one is missing."""
    found = {}
    for path in folder.glob("*.whl"):
        of_wheel = parse_wheel_filename(path.name)
        found[str(of_wheel[0]), str(of_wheel[1])] = path
    parts = []
    for name, version in locked.items():
        wheel = found.get((str(canonicalize_name(name)), version))
        if wheel is None:
            raise BuildError(f"{folder} has no wheel of {name} {version}: make package")
        parts.append(wheel_part(wheel))
    return tuple(parts)


def wheel_part(path: Path) -> PythonPart:
    """Return what a wheel says of itself."""
    with zipfile.ZipFile(path) as archive:
        (name,) = (
            name
            for name in archive.namelist()
            if name.count("/") == 1 and name.endswith(".dist-info/METADATA")
        )
        told = HeaderParser().parse(io.TextIOWrapper(archive.open(name), "utf-8"))
    return PythonPart(
        name=canonicalize_name(told["Name"]),
        version=told["Version"],
        sha256=digest(path),
        licence=_licence(told),
        needs=_needs(told),
        summary=told["Summary"] or "",
    )


def _licence(told: Message) -> str:
    """Return an SPDX expression, else the name that the package gives."""
    expression = told["License-Expression"]
    if expression:
        return str(expression)
    classifiers = told.get_all("Classifier") or []
    names = [
        each.rpartition(" :: ")[2]
        for each in classifiers
        if each.startswith("License :: ") and not each.endswith(":: OSI Approved")
    ]
    text = str(told["License"] or "").strip()
    short = text if text and "\n" not in text else ""
    licence = short or " / ".join(names)
    if not licence:
        raise BuildError(f"{told['Name']} does not say under which licence it is")
    return licence


def _needs(told: Message) -> tuple[str, ...]:
    """Return what a package needs here: without extras, on this kind of system."""
    lines = (Requirement(line) for line in told.get_all("Requires-Dist") or ())
    environment = {"extra": "", "sys_platform": "linux", "os_name": "posix"}
    return tuple(
        canonicalize_name(each.name)
        for each in lines
        if each.marker is None or each.marker.evaluate(environment)
    )


def debian_parts(package: Path) -> tuple[DebianPart, ...]:
    """Return what of Debian is inside a ``.deb``, by its own list."""
    files = _files(package)
    text = files.get(BUNDLED, b"").decode()
    found = tuple(
        DebianPart(name, version, suite, _licences(files, name))
        for name, version, suite in _OF_DEBIAN.findall(text)
    )
    if not found:
        raise BuildError(f"{package} does not say what is inside: {BUNDLED}")
    return found


def _licences(files: Mapping[str, bytes], source: str) -> tuple[str, ...]:
    """Return the short names of a copyright file that has them; else where it is."""
    path = f"{LICENCES}/{_SOURCES.get(source, source)}"
    text = files.get(path)
    if text is None:
        raise BuildError(f"{source}: no licence is passed on with it")
    told = text.decode("utf-8", "replace")
    names = _NAMED.findall(told) if told.startswith("Format:") else ()
    unique = dict.fromkeys(name.strip() for name in names)
    return tuple(unique) or (f"see {path.removeprefix('.')}",)


def _files(package: Path) -> dict[str, bytes]:
    """Return the documents of a ``.deb`` by their path in it."""
    done = subprocess.run(  # noqa: S603 - fixed words
        ["dpkg-deb", "--fsys-tarfile", str(package)],  # noqa: S607 - Debian's
        check=False,
        capture_output=True,
    )
    if done.returncode:
        raise BuildError(f"{package}: {done.stderr.decode()[-500:]}")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for entry in archive:
            if entry.isfile() and (
                entry.name == BUNDLED or entry.name.startswith(LICENCES)
            ):
                stream = archive.extractfile(entry)
                found[entry.name] = b"" if stream is None else stream.read()
    return found
