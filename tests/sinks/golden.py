"""Golden files: what a test made once, kept to be compared with.

``FABRICMON_UPDATE_GOLDEN=1 pytest ...`` writes them anew; the change is reviewed as any
other.
"""

import os
import re
from difflib import unified_diff
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "golden"
SWITCH = "FABRICMON_UPDATE_GOLDEN"
UPDATE = os.environ.get(SWITCH) == "1"  # now: tests run without such variables
# Differs between runs and machines.
_UNSTEADY = re.compile(
    r"^(fabricmon_(?:source_duration_seconds|source_age_seconds|snapshot_age_seconds"
    r')(?:\{.*\})?) .*$|(?<=python=")[^"]*|(?<=[{,]version=")[^"]*|(?<=hash=")[^"]*',
    re.MULTILINE,
)


def steady(exposition: str) -> str:
    """Leave out of an exposition what differs between runs and machines."""
    return _UNSTEADY.sub(lambda found: f"{found[1] or ''} ?".strip(), exposition)


def check(name: str, text: str) -> None:
    """Compare with a golden file, or write it where the switch says so."""
    path = FOLDER / name
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if not path.exists():
        pytest.fail(f"{path} is missing: make it with {SWITCH}=1")
    wanted = path.read_text(encoding="utf-8")
    if wanted != text:
        lines = unified_diff(
            wanted.split("\n"), text.split("\n"), "golden", "now", lineterm="", n=0
        )
        pytest.fail("\n".join([*list(lines)[:60], f"(if wanted: {SWITCH}=1)"]))
