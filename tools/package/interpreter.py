"""The interpreter that packages carry: Debian's CPython, linked for older nodes.

Debian's objects are taken for their security support. Its program needs the glibc of
its own release, for two symbols only; linked anew, with stand-ins for these two, it
runs on what clusters have.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.package import elf
from tools.package.commands import BuildError, UnreachableError, run

SUITE = "bookworm"
VERSION = "3.11"
LAUNCHER = Path(__file__).parent.parent.parent / "deploy" / "package" / "launcher.c"
HOME = "usr/lib/fabricmon"

_PACKAGES = (
    *("python3.11-minimal", "libpython3.11-dev", "libpython3.11-stdlib"),
    *("libexpat1-dev", "zlib1g-dev", "libc6-dev", "libffi8", "libsqlite3-0", "libssl3"),
)

_TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

# Modules in C that the agent and what it needs import. The others (bz2, curses, dbm,
# readline, uuid...) would each bring a library.
_MODULES = (
    *("_asyncio", "_contextvars", "_ctypes", "_decimal", "_hashlib", "_json"),
    *("_multiprocessing", "_posixshmem", "_queue", "_sqlite3", "_ssl", "_typing"),
    *("_zoneinfo", "mmap", "resource", "termios"),
)

# What no agent runs: tests, windows, installers, and what Debian adds for its own.
_LEFT_OUT = (
    *("__pycache__", "*.pyc", "EXTERNALLY-MANAGED", "config-*", "lib-dynload"),
    *("sitecustomize.py", "_sysconfigdata_d*", "test", "tests", "idlelib", "tkinter"),
    *("turtle*", "ensurepip", "lib2to3", "distutils", "pydoc*", "venv", "curses"),
    *("unittest", "doctest.py", "antigravity.py", "this.py", "xmlrpc"),
    *("__phello__", "cgi.py", "cgitb.py"),
)

_OF_GLIBC = re.compile(r"lib(c|m|dl|rt|pthread|util)\.so\.\d+|ld-linux.*")

# Copyright files of what is linked in or copied, by its Debian package.
_BUNDLED = (
    *("libexpat1", "libffi8", "libpython3.11-stdlib", "libsqlite3-0", "libssl3"),
    "zlib1g",
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A library folder and launcher, below ``root``, and what they were made of.

    ``compile_with`` runs a Python whose byte code this interpreter reads.
    """

    root: Path
    compile_with: tuple[str, ...]


def triple(architecture: str) -> str:
    """Return how compilers call one of Debian's architectures."""
    try:
        return _TRIPLES[architecture]
    except KeyError:
        known = ", ".join(_TRIPLES)
        raise BuildError(f"architecture {architecture}: known are {known}") from None


def interpreter(architecture: str, cache: Path) -> Interpreter:
    """Return the interpreter for an architecture, made before or now.

    Raises `BuildError`: Debian's packages, the compiler or the loader are missing.
    """
    sources = (Path(__file__).read_bytes(), LAUNCHER.read_bytes())
    key = hashlib.sha256(b"\0".join(sources)).hexdigest()[:12]
    folder = cache / f"interpreter-{architecture}-{key}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        _make(architecture, new)
        new.rename(folder)
    return Interpreter(folder / "root", _compiler(architecture, folder / "debian"))


def compile_files(root: Path, folder: Path, python: Sequence[str]) -> None:
    """Write byte code that does not depend on the times of the files."""
    run(
        [
            *(*python, "-S", "-m", "compileall", "-q", "-j1"),
            *("--invalidation-mode=unchecked-hash", "-s", root, "-p", "/", folder),
        ],
        PYTHONHASHSEED="0",
        PYTHONDONTWRITEBYTECODE="1",
    )


def _make(architecture: str, folder: Path) -> None:
    debian, home = folder / "debian", folder / "root" / HOME
    _fetch(architecture, debian)
    library = home / "lib" / f"python{VERSION}"
    source = debian / "usr/lib" / f"python{VERSION}"
    shutil.copytree(source, library, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    dynamic = library / "lib-dynload"
    dynamic.mkdir()
    suffix = f"cpython-{VERSION.replace('.', '')}-{triple(architecture)}.so"
    for module in _MODULES:
        shutil.copy(source / "lib-dynload" / f"{module}.{suffix}", dynamic)
    compile_files(folder / "root", library, _compiler(architecture, debian))
    _link(architecture, debian, home / "fabricmon")
    _copy_libraries(debian / "usr/lib" / triple(architecture), home)
    _note_origin(debian, folder / "root" / "usr/share/doc/fabricmon")


def _fetch(architecture: str, folder: Path) -> None:
    run(
        [
            *("mmdebstrap", "--quiet", "--variant=extract"),
            f"--architectures={architecture}",
            f"--include={','.join(_PACKAGES)}",
            *(SUITE, folder),
        ],
        failure=UnreachableError,
    )


def _link(architecture: str, debian: Path, program: Path) -> None:
    """Link the launcher with the interpreter, expat and zlib inside."""
    name = triple(architecture)
    compiler = shutil.which(f"{name}-gcc") or "gcc"
    made_for = run([compiler, "-dumpmachine"]).strip()
    if made_for != name:
        raise BuildError(f"a compiler for {name} is needed (gcc-{name})")
    archive = f"usr/lib/python{VERSION}/config-{VERSION}-{name}/libpython{VERSION}"
    run(
        [
            *(compiler, f"--sysroot={debian}", f"-I{debian}/usr/include/python3.11"),
            *("-O2", "-g0", "-fPIE", "-fstack-protector-strong"),
            *("-D_FORTIFY_SOURCE=2", "-Wall", "-Wextra", "-Werror"),
            *(LAUNCHER, "-o", program, "-pie", "-s"),
            # Modules in C look up the interpreter's functions in the program.
            *("-Wl,--export-dynamic", "-Wl,--whole-archive"),
            *(f"{debian}/{archive}-pic.a", "-Wl,--no-whole-archive"),
            *("-Wl,-Bstatic", "-lexpat", "-lz", "-Wl,-Bdynamic", "-lm"),
            *("-Wl,--wrap=hypot", "-Wl,--wrap=arc4random_buf"),
            *("-Wl,-z,relro", "-Wl,-z,now", "-Wl,--build-id=none"),
            # RPATH, not RUNPATH: it counts for the libraries of modules too.
            "-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib",
        ]
    )


def _copy_libraries(source: Path, home: Path) -> None:
    """Copy the libraries that modules in C need, and those that these need."""
    waiting = [name for path in elf.files(home) for name in elf.needs(path).libraries]
    while waiting:
        name = waiting.pop()
        target = home / "lib" / name
        if _OF_GLIBC.fullmatch(name) or target.exists():
            continue
        shutil.copy(source / name, target)
        waiting += elf.needs(target).libraries


def _note_origin(debian: Path, folder: Path) -> None:
    """Write which versions are inside, and keep their licences."""
    (folder / "licenses").mkdir(parents=True)
    lines = []
    for package in _BUNDLED:
        documents = debian / "usr/share/doc" / package
        shutil.copy(documents / "copyright", folder / "licenses" / package)
        with gzip.open(documents / "changelog.Debian.gz", "rt") as changelog:
            source, version = changelog.readline().split()[:2]
        lines.append(f"{source} {version.strip('()')} (Debian {SUITE})\n")
    (folder / "bundled.txt").write_text("".join(sorted(lines)))


def _compiler(architecture: str, debian: Path) -> tuple[str, ...]:
    """Return Debian's own Python, run by its own loader; it need not fit this system."""
    if run(["dpkg", "--print-architecture"]).strip() != architecture:
        return (f"python{VERSION}",)
    library = f"lib/{triple(architecture)}"
    (loader,) = (debian / library).glob("ld-linux*")
    paths = f"{debian}/{library}:{debian}/usr/{library}"
    program = f"{debian}/usr/bin/python{VERSION}"
    home = ("env", f"PYTHONHOME={debian}/usr")
    return (*home, str(loader), "--library-path", paths, program)
