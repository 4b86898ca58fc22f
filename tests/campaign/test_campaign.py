"""Every row of the fault campaign: `python -m tests.campaign` prints them as a table."""

from __future__ import annotations

import re

import pytest

from tests.campaign.playing import PACKAGE, play
from tests.campaign.row import Fault
from tests.campaign.table import FAULTS

LEAST_ROWS = 60
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault) -> None:
    """What is expected of the fault holds, and what must hold whatever happens."""
    play(fault)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_guard(fault: Fault) -> None:
    """The guard that `--mutate` takes out is there, once, and still Python without."""
    guard = fault.guard
    text = (PACKAGE / guard.file).read_text(encoding="utf-8")
    assert text.count(guard.old) == 1
    compile(text.replace(guard.old, guard.new), guard.file, "exec")


def test_the_table() -> None:
    """The rows are many, and each is told apart and says what it does and expects."""
    assert len(FAULTS) >= LEAST_ROWS
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(NAME.fullmatch(fault.name) for fault in FAULTS)
    assert all(fault.done and fault.expected for fault in FAULTS)
