"""A table of bars: what is asked, what was found, whether that is enough."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from markers import between, commit

NAME = "bench-bars"
COLUMNS = ("bar", "figure", "met", "load", "measured", "detail")
YES, NO, OPEN = "yes", "**no**", "open"
NEVER = "never"
_DATE = re.compile(r"\b(\d{4}-\d\d-\d\d)\b")
_COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,}(?:-dirty)?)")


@dataclass(frozen=True, slots=True)
class Row:
    """One bar; ``command`` gives the detail behind the figure."""

    bar: str
    figure: str
    met: str
    command: str
    load: str = ""
    measured: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return its cells, in the order of the columns."""
        detail = f"`{self.command}`" if self.command else ""
        cells = (self.bar, self.figure, self.met, self.load, self.measured, detail)
        return tuple(" ".join(cell.split()).replace("|", "/") for cell in cells)


def verdict(*, met: bool) -> str:
    """Return the word for it."""
    return YES if met else NO


def render(rows: Sequence[Row]) -> Iterator[str]:
    """Yield lines of Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for row in rows:
        yield f"| {' | '.join(row.cells())} |"


def read(text: str) -> dict[str, Row]:
    """Return the rows of an earlier table, by what is asked."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) == len(COLUMNS) and cells[0] not in {COLUMNS[0], "---"}:
            bar, figure, met, load, measured, detail = cells
            found[bar] = Row(bar, figure, met, detail.strip("`"), load, measured)
    return found


def load_now() -> str:
    """Return how many processes ran or wanted to, the mean of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def today() -> str:
    """Return the date and the commit, for what was measured just now."""
    return f"{datetime.now(UTC).date().isoformat()}, {commit()}"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a long measurement has left in a document."""

    text: str
    measured: str

    def table(self, first_column: str) -> list[dict[str, str]]:
        """Return the rows of the first table whose first column is called so."""
        rows: list[dict[str, str]] = []
        names: list[str] = []
        for line in self.text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                if rows:
                    break
                names = []
            elif not names:
                names = cells if cells[0] == first_column else names
            elif not cells[0].startswith("---") and len(cells) == len(names):
                rows.append(dict(zip(names, cells, strict=True)))
        return rows


def stored(document: Path, name: str) -> Stored | None:
    """Return what stands between the markers, None if nothing does.

    When and of which commit it is, it says itself; else the history of the document.
    """
    text = between(document, name)
    if not text.strip():
        return None
    date, of = _DATE.search(text), _COMMIT.search(text)
    told = date.group(1) if date else "?"
    known = f"commit {of.group(1)}" if of else _blamed(document, name)
    return Stored(text, f"{told}, {known}")


def _blamed(document: Path, name: str) -> str:
    """Tell which commit has the first line between the markers as it stands."""
    where = f"/<!-- {name}:begin -->/,+2"
    asked = ["git", "-C", str(document.parent), "blame", "-s", "-L", where]
    asked.append(document.name)
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    lines = answer.stdout.splitlines()
    found = lines[-1].split()[0].lstrip("^") if lines else ""
    return f"commit {found}" if found.strip("0") else "not committed"
