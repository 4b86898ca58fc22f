"""Run the programs that a build needs, with an error that says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


class BuildError(Exception):
    """A package cannot be built; the text says why and what to do."""


class UnreachableError(BuildError):
    """Packages of others could not be had, which says nothing about this build."""


def run(
    command: Sequence[str | Path],
    folder: Path | None = None,
    failure: type[BuildError] = BuildError,
    **environment: str,
) -> str:
    """Run a program to its end and return what it printed.

    Raises `BuildError` where it is missing, and ``failure``, with its last lines,
    where it fails.
    """
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise BuildError(f"{words[0]} is needed (see tests/setup/programs.txt)")
    done = subprocess.run(  # noqa: S603 - fixed words and paths of this build
        words,
        check=False,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise failure(f"{' '.join(words[:4])} failed:\n{done.stdout[-3000:]}")
    return done.stdout
