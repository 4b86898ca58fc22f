"""One case for each alert that compares nodes: a small cluster, and what it is told."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fleet import cause_cases, priority_cases, rail_cases, vote_cases
from tests.fleet.promtool import Case


def cases() -> Iterator[Case]:
    """Yield them."""
    yield from cause_cases.cases()
    yield from vote_cases.cases()
    yield from rail_cases.cases()
    yield from priority_cases.cases()
