"""Find the programs that tests start, and skip loudly where one is missing."""

import os
import shutil
from pathlib import Path

import pytest

MISSING = "MISSING "
"""How the reason of every skip begins that is due to an incomplete machine."""

_TABLE = Path(__file__).parent.parent / "setup" / "programs.txt"
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def _packages() -> dict[str, str]:
    """Read which Debian package brings which program."""
    lines = _TABLE.read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return dict(rows)


def find(program: str) -> str | None:
    """Return the path of a program, also from folders meant for root."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    return shutil.which(program, path=path)


def require(program: str) -> str:
    """Return the path of a program, or skip the test and say what is missing."""
    package = _packages()[program]
    path = find(program)
    if path is None:
        pytest.skip(f"{MISSING}{program} (apt-get install {package})")
    return path
