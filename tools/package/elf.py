"""What programs and libraries ask of the system that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

Version = tuple[int, ...]

GLIBC = "GLIBC_"


@dataclass(frozen=True, slots=True)
class Needs:
    """Names of libraries, and the newest glibc whose symbols are used."""

    libraries: tuple[str, ...]
    glibc: Version


def files(folder: Path) -> Iterator[Path]:
    """Yield all programs and libraries below a folder, in order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def needs(path: Path) -> Needs:
    """Return what one program or library needs; raises `ELFError` for other files."""
    libraries: list[str] = []
    glibc: list[Version] = [(0,)]
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if isinstance(section, DynamicSection):
                tags = section.iter_tags("DT_NEEDED")
                libraries += [str(getattr(tag, "needed")) for tag in tags]  # noqa: B009 - by its tag
            if isinstance(section, GNUVerNeedSection):
                glibc += _versions(section)
    return Needs(tuple(libraries), max(glibc))


def floor(folder: Path) -> Version:
    """Return the oldest glibc on which everything below a folder runs."""
    return max((needs(path).glibc for path in files(folder)), default=(0,))


def text(version: Version) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


def _versions(section: GNUVerNeedSection) -> Iterator[Version]:
    for _library, wanted in section.iter_versions():
        for each in wanted:
            if each.name.startswith(GLIBC) and each.name[len(GLIBC)].isdigit():
                yield tuple(map(int, each.name.removeprefix(GLIBC).split(".")))
