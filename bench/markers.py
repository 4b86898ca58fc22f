"""Replaces what stands between two markers of a document, and says what is measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def replace_between(document: Path, name: str, text: str) -> None:
    """Put ``text`` between the markers ``name:begin`` and ``name:end``.

    Raises `ValueError` where the document does not have both, once and in order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    whole = document.read_text(encoding="utf-8")
    before, first, rest = whole.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last or begin in rest or end in after:
        raise ValueError(f"{document}: needs one {begin} and one {end} after it")
    document.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", "utf-8")


def between(document: Path, name: str) -> str:
    """Return what stands between the markers, empty where there are none."""
    _, _, rest = document.read_text("utf-8").partition(f"<!-- {name}:begin -->")
    return rest.partition(f"<!-- {name}:end -->")[0]


def now_and_here() -> str:
    """Return the date, the machine and the commit, to stand beside figures."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    date = datetime.now(UTC).date().isoformat()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{date}, {os.cpu_count()} processors ({model}), {python}, {commit()}"


def commit() -> str:
    """Return the commit that is measured, marked where files have been changed."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return f"commit {answer.stdout.strip()}" if answer.stdout else "no commit"
