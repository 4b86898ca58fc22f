"""Plays rows: one, many at once, or one whose guard was taken out."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import fabricmon
from tests.campaign.row import Fault, Guard
from tests.campaign.scene import PATIENCE_SECONDS, Scene

PACKAGE = Path(fabricmon.__file__).parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a row went: ``as expected``, ``skipped`` or ``FAILED``, and why."""

    fault: Fault
    word: str
    why: str = ""
    seconds: float = 0.0


AS_EXPECTED, SKIPPED, FAILED = "as expected", "skipped", "FAILED"
UNPROVEN = "nothing proven"


def play(
    fault: Fault, package: Path | None = None, patience: float = PATIENCE_SECONDS
) -> None:
    """Play one row; raises what its expectations raise, or pytest's skip."""
    with tempfile.TemporaryDirectory(
        prefix="fault-", ignore_cleanup_errors=True
    ) as folder:
        scene = Scene(Path(folder), package, patience)
        try:
            fault.play(scene)
            scene.finish()
        finally:
            scene.close()


def outcome(
    fault: Fault, package: Path | None = None, patience: float = PATIENCE_SECONDS
) -> Outcome:
    """Play one row and say how it went."""
    begun = time.monotonic()
    try:
        play(fault, package, patience)
    except pytest.skip.Exception as skip:
        return Outcome(fault, SKIPPED, str(skip), time.monotonic() - begun)
    except Exception as error:  # noqa: BLE001 - any is an expectation that fails
        lines = traceback.format_exception_only(error)[-1].strip().splitlines()
        why = lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"
        return Outcome(fault, FAILED, why, time.monotonic() - begun)
    return Outcome(fault, AS_EXPECTED, "", time.monotonic() - begun)


def play_all(faults: Sequence[Fault], at_once: int) -> Iterator[Outcome]:
    """Play rows, so many at a time; yield the outcomes in the order of the rows."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(outcome, faults)


def without(guard: Guard, folder: Path) -> Path:
    """Make a copy of the package that lacks a guard; return what to put on the path."""
    shutil.copytree(PACKAGE, folder / "fabricmon")
    file = folder / "fabricmon" / guard.file
    text = file.read_text(encoding="utf-8")
    assert text.count(guard.old) == 1, f"{guard.file}: not there once: {guard.old!r}"
    file.write_text(text.replace(guard.old, guard.new), encoding="utf-8")
    return folder


def play_without_guard(fault: Fault, patience: float) -> Outcome:
    """Play a row against an agent whose guard was taken out: it must fail.

    With its guard and as little patience it must hold, or nothing is proven.
    """
    sound = outcome(fault, patience=patience)
    if sound.word == FAILED:
        return Outcome(fault, UNPROVEN, sound.why, sound.seconds)
    if sound.word == SKIPPED:
        return sound
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        try:
            package = without(fault.guard, Path(folder))
        except AssertionError as error:
            return Outcome(fault, UNPROVEN, str(error))
        return outcome(fault, package, patience)
