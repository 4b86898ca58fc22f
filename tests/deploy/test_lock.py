"""The versions that packages and the image carry."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tools.package.stage import LOCK, locked

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_fits() -> None:
    """Everything that the agent needs is locked, in a version that it takes."""
    versions = locked()

    extra = PROJECT["optional-dependencies"]["kubernetes"]
    for line in (*PROJECT["dependencies"], *extra):
        requirement = Requirement(line)
        version = versions[requirement.name.lower()]
        assert requirement.specifier.contains(version), line


def test_has_hashes() -> None:
    """What an index gives out is held against hashes, for every machine."""
    entries = LOCK.read_text().split("==")[1:]

    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_names_no_index() -> None:
    """Where packages come from is the site's choice."""
    assert "://" not in LOCK.read_text()
