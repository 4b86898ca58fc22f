"""The runs behind the detection tables: each simulated, replayed, scored and kept.

A result is kept under a name that holds a hash of the package and of the scenario, so
that what is interrupted goes on where it was, and nothing old is taken for new.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import chain, islice, repeat
from multiprocessing import get_context
from pathlib import Path

import msgspec

import fabricmon
from fabricmon.fleet.concluding import Site
from fabricmon.fleet.programs import Programs
from fabricmon.fleet.trial import (
    FleetScore,
    ScrapedTrial,
    conclude_scenes,
    read_scene,
    score_scene,
)
from fabricmon.sim.faults import FAULTS
from fabricmon.sim.load import load_file
from fabricmon.sim.score import RunScore
from fabricmon.sim.sensitivity import scaled
from fabricmon.trial import Trial, run_trial

PACKAGE = Path(fabricmon.__file__).parent
_SUFFIXES = frozenset({".py", ".yaml"})
_HASH_LENGTH = 12
_RULES = frozenset({"fleet", "cli"})
"""Rooms of the package that no agent's run depends on."""
_SCRAPES = frozenset({"fleet/playing.py", "fleet/scraping.py"})
METRICS = "metrics"
"""Folder below the cache in which what was scraped is kept as blocks."""


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


@dataclass(frozen=True, slots=True)
class FleetBench:
    """Evaluates rules over runs, ``batch`` of them at a time in one Prometheus."""

    site: Site
    programs: Programs
    batch: int = 24
    keep_metrics: bool = False


def package_hash(*, rules: bool = False) -> str:
    """Return a hash of everything that decides what a run gives.

    With ``rules`` also of what decides only what the fleet's rules make of it.
    """
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE)
        own = str(name) in _SCRAPES or name.parts[0] not in _RULES
        if (
            path.suffix in _SUFFIXES
            and "scenarios" not in name.parts
            and (own or rules)
        ):
            digest.update(f"{name}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_all(
    tasks: Iterable[Task], cache: Path, jobs: int, tell: Callable[[str], None]
) -> Iterator[Done]:
    """Run what is not kept yet, ``jobs`` at a time; yield all, as they come.

    With 0 jobs nothing is run: what is kept is all that there is.
    """
    cache.mkdir(parents=True, exist_ok=True)
    of_package = package_hash()
    paths = {task: _kept_at(cache, task, of_package) for task in tasks}
    missing = [task for task, path in paths.items() if not path.exists()]
    kept = (task for task in paths if task not in set(missing))
    for task in kept:
        yield Done(task, _trial(paths[task]))
    tell(f"{len(paths) - len(missing)} runs kept, {len(missing)} to do")
    yield from _run_in_processes(missing, paths, jobs, tell)


def run_all_with_fleet(
    tasks: Sequence[Task],
    cache: Path,
    jobs: int,
    tell: Callable[[str], None],
    bench: FleetBench,
) -> Iterator[Done]:
    """Do the same, and let the rules of the fleet look on where peers do."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / METRICS).mkdir(exist_ok=True)
    watched = [task for task in tasks if task.with_peers]
    yield from run_all(
        [task for task in tasks if not task.with_peers], cache, jobs, tell
    )
    agents = package_hash()
    rules = hashlib.sha256(
        f"{package_hash(rules=True)}{bench.site}".encode()
    ).hexdigest()
    paths = {task: _kept_at(cache, task, agents, fleet=True) for task in watched}
    scores = {
        task: _kept_at(cache, task, rules, fleet=True).with_suffix(".fleet.json")
        for task in watched
    }
    missing = [
        task
        for task in watched
        if not scores[task].exists() and not _metrics(paths[task]).exists()
    ]
    missing += [t for t in watched if not paths[t].exists() and t not in set(missing)]
    tell(f"{len(watched) - len(missing)} runs of fleets kept, {len(missing)} to do")
    ready = [task for task in watched if task not in set(missing)]
    runs = _run_in_processes(missing, paths, jobs, tell, bench)
    for batch in _batches(chain(map(Done, ready, repeat(None)), runs), bench.batch):
        yield from _with_rules(batch, paths, scores, bench, tell)


def _batches(runs: Iterable[Done], size: int) -> Iterator[list[Done]]:
    runs = iter(runs)
    while batch := list(islice(runs, size)):
        yield batch


def _with_rules(
    batch: Sequence[Done],
    paths: Mapping[Task, Path],
    scores: Mapping[Task, Path],
    bench: FleetBench,
    tell: Callable[[str], None],
) -> Iterator[Done]:
    """Evaluate the rules over a batch; yield its runs with all scores."""
    good = [each.task for each in batch if each.problem is None]
    new = [task for task in good if not scores[task].exists()]
    if new:
        begun = time.monotonic()
        folders = [_metrics(paths[task]) for task in new]
        found = conclude_scenes(bench.site, folders, bench.programs)
        seconds = (time.monotonic() - begun) / len(new)
        for task, folder, conclusion in zip(new, folders, found, strict=True):
            score = score_scene(bench.site, read_scene(folder), conclusion)
            score = msgspec.structs.replace(score, seconds=seconds)
            _keep(scores[task], score)
        tell(f"rules over {len(new)} runs: {seconds:.1f} s each")
        for name in found[0].stray:
            tell(f"{name}: names no cluster, so that nobody hears of it here")
    for each in batch:
        if each.problem is not None:
            yield each
            continue
        trial = _trial(paths[each.task])
        score = msgspec.json.decode(scores[each.task].read_bytes(), type=FleetScore)
        both = trial.scores | score.scores
        yield Done(each.task, msgspec.structs.replace(trial, scores=both))
        if not bench.keep_metrics:
            shutil.rmtree(_metrics(paths[each.task]), ignore_errors=True)


def _run_in_processes(
    tasks: Sequence[Task],
    paths: Mapping[Task, Path],
    jobs: int,
    tell: Callable[[str], None],
    bench: FleetBench | None = None,
) -> Iterator[Done]:
    if not jobs:
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = [
            pool.submit(_run, task, _metrics(paths[task]) if bench else None, bench)
            for task in tasks
        ]
        for number, future in enumerate(as_completed(futures), 1):
            done = future.result()
            if done.trial is not None:
                _keep(paths[done.task], done.trial)
            tell(f"{number}/{len(tasks)} {_outcome(done)}")
            yield done


def _run(task: Task, metrics: Path | None, bench: FleetBench | None) -> Done:
    """Run one; what goes wrong with it ends only it, and is told."""
    try:
        with tempfile.TemporaryDirectory(prefix="fabricmon-bench-") as folder:
            scenario = scaled(load_file(task.file), task.magnitude, FAULTS)
            if metrics is None or bench is None:
                trial = run_trial(
                    scenario, task.seed, Path(folder), with_peers=task.with_peers
                )
            else:
                shutil.rmtree(metrics, ignore_errors=True)
                scraped = ScrapedTrial(bench.site, bench.programs, metrics)
                trial = scraped.run(
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


def _trial(path: Path) -> Trial:
    return msgspec.json.decode(path.read_bytes(), type=Trial)


def _metrics(kept: Path) -> Path:
    """Return where the metrics of a run are; its name is the cluster's."""
    return kept.parent / METRICS / kept.stem


def _kept_at(cache: Path, task: Task, of_package: str, *, fleet: bool = False) -> Path:
    digest = hashlib.sha256(of_package.encode())
    digest.update(task.file.read_bytes())
    digest.update(str(task.with_peers).encode())
    digest.update(b"fleet" if fleet else b"")
    name = f"{task.file.stem}-{task.seed}-{task.magnitude:g}"
    return cache / f"{name}-{digest.hexdigest()[:_HASH_LENGTH]}.json"


def _keep(path: Path, kept: msgspec.Struct) -> None:
    partial = path.with_suffix(".part")
    partial.write_bytes(msgspec.json.encode(kept))
    partial.replace(path)
