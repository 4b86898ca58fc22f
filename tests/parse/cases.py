"""Recorded tool outputs and what their sidecars say that they mean.

``tests/data/fabric/NAME.expect.json`` names its inputs, the values that they hold and
the verdicts that follow.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricmon.parse.report import Report
from fabricmon.parse.text import decode
from fabricmon.parse.tools import tool_named

DATA = Path(__file__).parent.parent / "data"
FABRIC = DATA / "fabric"
SIMULATED = DATA / "ibsim"


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded text with its sidecar."""

    name: str
    sidecar: dict[str, Any]

    @property
    def kind(self) -> str:
        """Which tool printed it."""
        return str(self.sidecar["kind"])

    @property
    def expect(self) -> dict[str, Any]:
        """What the text holds."""
        return dict(self.sidecar["expect"])

    def text(self, stream: str) -> str:
        """Return what the tool printed on a stream, empty if nothing is recorded."""
        name = self.sidecar["inputs"].get(stream)
        return decode((FABRIC / name).read_bytes()) if name else ""

    def report(self) -> Report:
        """Parse the text as `fabricmon parse` does."""
        tool = tool_named(self.kind)
        assert tool is not None
        status = self.sidecar["exit_code"]
        return tool.parse(self.text("stdout"), self.text("stderr"), status)


def sidecars(kind: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return names and sidecars of all cases, or of one kind, in order of names."""
    found = []
    for path in sorted(FABRIC.glob("*.expect.json")):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        if kind is None or sidecar["kind"] == kind:
            found.append((path.name.removesuffix(".expect.json"), sidecar))
    return found


def load() -> list[Case]:
    """Return all recorded texts of tools."""
    texts = (Case(*item) for item in sidecars())
    return [case for case in texts if tool_named(case.kind) is not None]


def simulated(name: str) -> str:
    """Return the output of a tool on a simulated subnet."""
    return decode((SIMULATED / name).read_bytes())
