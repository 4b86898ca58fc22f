"""The source of the package, as syntax: none of what opens holes in other daemons."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import fabricmon
from tests.security.code import RUNS, Look, look_at, modules

PACKAGE = Path(fabricmon.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

DOOR = {
    "host/live_command.py",  # ibstat
    "host/live_journal.py",  # journalctl
    "gate/script.py",  # the site's script
    "fleet/programs.py",  # a Prometheus of its own, to replay a fleet
    "sim/folder.py",  # processes of its own code, to simulate a fleet
    "replaying_fleet.py",  # and to replay one
}
"""Who may start processes. import-linter holds the same of `subprocess`."""

HARMLESS = {
    # Names out of its own table of commands, not what was typed.
    ("cli/__init__.py", "importlib.import_module loads what a value names"),
}

EXCUSED = {
    ("gate/script.py", "S603"): "no shell, fixed arguments, a program of root's",
    ("host/live_command.py", "S603"): "words of a fixed table",
    ("host/live_journal.py", "S603"): "fixed words, a folder and a number of the boot",
    ("fleet/programs.py", "S603"): "a fixed program, no shell",
    ("gate/journal.py", "S608"): "names of columns come from a record class",
    ("sinks/mqtt_disk.py", "S608"): "fixed text; values are bound",
    ("detect/firmware.py", "S104"): "a version number that looks like an address",
    ("sim/profiles.py", "S104"): "a version number that looks like an address",
}
"""Where a rule of ruff's security set is off, and why."""

CONTROLS = (
    "eval('1')",
    "import os\nos.system('true')",
    "from os import system as s\ns('true')",
    "import os\nos.execv('/bin/true', [])",
    "import subprocess\nsubprocess.run('true', shell=True)",
    "import pickle",
    "from marshal import loads",
    "import yaml\nyaml.load(text)",
    "import yaml\nyaml.load(text, Loader=yaml.Loader)",
    "import ssl\nssl._create_unverified_context()",
    "context.verify_mode = ssl.CERT_NONE",
    "context.check_hostname = False",
    "client.get(url, verify=False)",
    "import tempfile\ntempfile.mktemp()",
    "open('/tmp/fabricmon.state', 'w')",
    "assert user.may_enter",
    "archive.extractall(folder)",
    "import xml.etree.ElementTree as tree",
    "import importlib\nimportlib.import_module(name)",
    "import hashlib\nhashlib.md5(b'')",
)


def relative(path: Path) -> str:
    """Name a file as from within the package."""
    return path.relative_to(PACKAGE).as_posix()


@cache
def looks() -> dict[str, Look]:
    """Look at every file of the package, once."""
    return {relative(path): look_at(path.read_text("utf-8")) for path in FILES}


def test_the_package_has_no_hole() -> None:
    """No file of it has any of what is looked for."""
    found = [
        f"{name}:{hole.line}: {hole.what}"
        for name, look in looks().items()
        for hole in look.holes
        if (name, hole.what) not in HARMLESS
    ]
    assert found == []
    assert len(FILES) > 300


@pytest.mark.parametrize("source", CONTROLS)
def test_holes_are_seen(source: str) -> None:
    """The control: each of these is found."""
    assert look_at(source).holes


def test_processes_start_behind_a_door() -> None:
    """Only the files that are known for it can start one."""
    starting = {name for name, look in looks().items() if modules(look.imports) & RUNS}
    assert starting == DOOR


def test_every_exception_from_the_rules_is_known() -> None:
    """Ruff's security rules are all on; where one is off, the reason stands here."""
    off = {
        (relative(path), code)
        for path in FILES
        for line in path.read_text("utf-8").splitlines()
        if (found := re.search(r"noqa:([A-Z0-9, ]*)", line)) is not None
        for code in re.findall(r"\bS\d+", found[1])
    }
    assert off == set(EXCUSED)
