"""Ask the advisory service about every dependency that is locked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.package.commands import BuildError, UnreachableError

TIMEOUT_SECONDS = 15
"""For one answer of the service."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """A known hole: in which package, by which name, and where it is mended."""

    package: str
    version: str
    name: str
    mended_in: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in a line."""
        remedy = ", ".join(self.mended_in) or "no version yet"
        return f"{self.package} {self.version}: {self.name}, mended in {remedy}"


def audit(lock: Path, program: Sequence[str] = ()) -> int:
    """Return how many dependencies were asked about, none of which has a known hole.

    ``program`` stands for pip-audit. Raises `BuildError` for a dependency with a known
    hole, and `UnreachableError` where the service does not know one or does not answer:
    what was not asked is not known to be whole.
    """
    report = _ask(lock, program or (sys.executable, "-m", "pip_audit"))
    left_out = [each["name"] for each in report if "skip_reason" in each]
    found = [
        Advisory(each["name"], each["version"], hole["id"], tuple(hole["fix_versions"]))
        for each in report
        for hole in each.get("vulns", ())
    ]
    if found:
        raise BuildError("known holes:\n" + "\n".join(map(str, found)))
    if left_out or not report:
        names = ", ".join(left_out) or "nothing"
        raise UnreachableError(f"the advisory service does not know {names}")
    return len(report)


def _ask(lock: Path, program: Sequence[str]) -> list[dict[str, Any]]:
    command = [
        *(*program, "--requirement", str(lock), "--require-hashes", "--disable-pip"),
        *("--format", "json", "--progress-spinner", "off"),
        *("--timeout", str(TIMEOUT_SECONDS)),
    ]
    done = subprocess.run(  # noqa: S603 - fixed words and paths of this build
        command, check=False, capture_output=True, text=True
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        message = f"pip-audit gave no answer:\n{done.stderr[-2000:]}"
        raise UnreachableError(message) from None
    return found
