"""What happened in each machine of a test run: booted once, by whoever comes first."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.packages import packages
from tests.vm import machine
from tests.vm.outcome import Outcome, read, report

MACHINES = ("rxe", "fakeib", "package")


def outcome(name: str, run: str) -> Outcome:
    """Return what happened in a machine; the first process of a run boots it."""
    image = machine.image()
    debs = _debs() if name == "package" else ()
    folder = machine.FOLDER / name
    with machine.only_one(name):
        if not _is_of(run, folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "run").write_text(run)
            machine.run(_task(name), image, folder, debs)
        machine.judge(folder)
        outcome = read(folder / "result.json")
    with machine.only_one("report"):
        _write_report(run)
    return outcome


def _debs() -> tuple[Path, ...]:
    made = packages()
    return (made.deb, made.next_deb)


def _task(name: str) -> str:
    return f"cd /share && PYTHONPATH=/share exec python3 -m tests.vm.guest.{name}"


def _write_report(run: str) -> None:
    """Write the table of the machines that have run so far in this test run."""
    folders = {name: machine.FOLDER / name for name in MACHINES}
    outcomes = {
        name: read(folder / "result.json")
        for name, folder in folders.items()
        if _is_of(run, folder) and (folder / "result.json").exists()
    }
    (machine.FOLDER / "report.md").write_text(report(outcomes))


def _is_of(run: str, folder: Path) -> bool:
    mark = folder / "run"
    return mark.exists() and mark.read_text() == run
