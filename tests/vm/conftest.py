"""Machines that are booted once for all tests that ask what happened in them."""

import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.packages import packages
from tests.vm import machine
from tests.vm.outcome import Outcome, read, report

MACHINES = ("rxe", "fakeib", "package")

Runs = dict[str, Future[Outcome]]


@pytest.fixture(scope="session")
def machines(request: pytest.FixtureRequest, testrun_uid: str) -> Iterator[Runs]:
    """Boot, side by side, the machines that tests of this process ask about."""
    wanted = {
        name
        for item in request.session.items
        for name in MACHINES
        if name in getattr(item, "fixturenames", ())
    }
    with ThreadPoolExecutor() as pool:
        yield {name: pool.submit(_outcome, name, testrun_uid) for name in wanted}


@pytest.fixture(scope="session")
def rxe(machines: Runs) -> Outcome:
    """Return what happened to Soft-RoCE devices and the service."""
    return machines["rxe"].result()


@pytest.fixture(scope="session")
def fakeib(machines: Runs) -> Outcome:
    """Return what happened to InfiniBand devices."""
    return machines["fakeib"].result()


@pytest.fixture(scope="session")
def package(machines: Runs) -> Outcome:
    """Return what happened to the .deb."""
    return machines["package"].result()


def _outcome(name: str, run: str) -> Outcome:
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
