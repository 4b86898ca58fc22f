"""The runs behind the detection tables: each simulated, replayed, scored and kept.

A result is kept under a name that holds a hash of the package and of the scenario, so
that what is interrupted goes on where it was, and nothing old is taken for new.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import msgspec

import fabricmon
from fabricmon.sim.faults import FAULTS
from fabricmon.sim.load import load_file
from fabricmon.sim.score import RunScore
from fabricmon.sim.sensitivity import scaled
from fabricmon.trial import Trial, run_trial

PACKAGE = Path(fabricmon.__file__).parent
_SUFFIXES = frozenset({".py", ".yaml"})
_HASH_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a scenario at a seed, its magnitudes times a factor."""

    file: Path
    seed: int
    magnitude: float = 1.0
    with_peers: bool = True

    @property
    def text(self) -> str:
        """The run in one word."""
        scale = "" if self.magnitude == 1 else f" x{self.magnitude:g}"
        return f"{self.file.stem} seed {self.seed}{scale}"


@dataclass(frozen=True, slots=True)
class Done:
    """A run and what it gave; ``problem`` where it could not be run."""

    task: Task
    trial: Trial | None
    problem: str | None = None

    def score(self, judge: str) -> RunScore | None:
        """What a judge was worth."""
        return self.trial.scores.get(judge) if self.trial else None


def package_hash() -> str:
    """Return a hash of everything that decides what a run gives."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in _SUFFIXES and "scenarios" not in path.parts:
            digest.update(f"{path.relative_to(PACKAGE)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_all(
    tasks: Iterable[Task], cache: Path, jobs: int, tell: Callable[[str], None]
) -> Iterator[Done]:
    """Run what is not kept yet, several at a time; yield all, as they come."""
    cache.mkdir(parents=True, exist_ok=True)
    of_package = package_hash()
    paths = {task: _kept_at(cache, task, of_package) for task in tasks}
    missing = [task for task, path in paths.items() if not path.exists()]
    kept = (task for task in paths if task not in set(missing))
    for task in kept:
        yield Done(task, msgspec.json.decode(paths[task].read_bytes(), type=Trial))
    tell(f"{len(paths) - len(missing)} runs kept, {len(missing)} to do")
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {pool.submit(_run, task): task for task in missing}
        for number, future in enumerate(as_completed(futures), 1):
            done = future.result()
            if done.trial is not None:
                _keep(paths[done.task], done.trial)
            tell(f"{number}/{len(missing)} {_outcome(done)}")
            yield done


def _run(task: Task) -> Done:
    """Run one; what goes wrong with it ends only it, and is told."""
    try:
        with tempfile.TemporaryDirectory(prefix="fabricmon-bench-") as folder:
            scenario = scaled(load_file(task.file), task.magnitude, FAULTS)
            trial = run_trial(
                scenario, task.seed, Path(folder), with_peers=task.with_peers
            )
    except Exception as error:  # noqa: BLE001 - a table without one run is a table
        return Done(task, None, f"{type(error).__name__}: {error}")
    return Done(task, trial)


def _outcome(done: Done) -> str:
    if done.trial is None:
        return f"{done.task.text}: {done.problem}"
    seconds = done.trial.simulate_seconds + done.trial.replay_seconds
    return f"{done.task.text}: {seconds + done.trial.peer_seconds:.1f} s"


def _kept_at(cache: Path, task: Task, of_package: str) -> Path:
    digest = hashlib.sha256(of_package.encode())
    digest.update(task.file.read_bytes())
    digest.update(str(task.with_peers).encode())
    name = f"{task.file.stem}-{task.seed}-{task.magnitude:g}"
    return cache / f"{name}-{digest.hexdigest()[:_HASH_LENGTH]}.json"


def _keep(path: Path, trial: Trial) -> None:
    partial = path.with_suffix(".part")
    partial.write_bytes(msgspec.json.encode(trial))
    partial.replace(path)
