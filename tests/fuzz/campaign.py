"""One campaign: a target under atheris in a process of its own, or without it.

Failures do not end a campaign: each kind of them is kept once, the shortest input of
all. Only what no exception tells, a hang or the end of the process, ends it.
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.mutation import HOSTILE, mutated
from tests.fuzz.target import Target

HANG_SECONDS = 30
"""An input that takes longer ends its campaign."""

MEMORY_MIB = 4096
LONGEST = 4096
_COVER = re.compile(r"#(\d+)\s+(\w+)\s+cov: (\d+)")
_DONE = re.compile(r"^executions (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """What a campaign gave; ``coverage`` None where nothing led it."""

    executions: int
    coverage: int | None
    failures: tuple[str, ...]


class Failures:
    """Keeps one input for each kind of failure: its type and where it was raised."""

    def __init__(self, folder: Path) -> None:
        """Write below a folder."""
        self._folder = folder
        self._kept: dict[str, int] = {}

    def note(self, error: BaseException, data: bytes) -> None:
        """Keep an input, if it is the first of its kind or shorter."""
        kind = _kind(error)
        if len(data) >= self._kept.get(kind, sys.maxsize):
            return
        self._kept[kind] = len(data)
        name = f"{type(error).__name__}-{sha256(kind.encode()).hexdigest()[:8]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / name).write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (self._folder / f"{name}.txt").write_text(text, encoding="utf-8")


def _kind(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "fabricmon" in f.filename or "tests" in f.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__} {place}"


def run(target: Target, seconds: float, work: Path) -> Result:
    """Run a campaign for so many seconds of the CPU; ``work`` keeps what it finds.

    It runs in a process of its own, forked: to instrument the package takes longer than
    many a campaign.
    """
    corpus, found = work / "corpus" / target.name, work / "found" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    log = found / "log.txt"
    sys.stdout.flush()
    child = os.fork()
    if not child:
        with log.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        try:
            _be(target, seconds, corpus, found)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    said = log.read_text(encoding="utf-8", errors="replace")
    covers = _COVER.findall(said)
    begun = [int(cov) for _, what, cov in covers if what == "INITED"]
    done = _DONE.search(said)
    kept = {path.name for path in found.iterdir() if path.suffix != ".txt"}
    if done is None and not any(name.startswith(("timeout", "oom")) for name in kept):
        kept.add(f"ended with status {status}: see {log}")
    return Result(
        int(done[1]) if done else int(covers[-1][0]) if covers else 0,
        int(covers[-1][2]) - begun[0] if begun else None,
        tuple(sorted(kept)),
    )


def _be(target: Target, seconds: float, corpus: Path, found: Path) -> None:
    """Be the campaign's process; it ends within."""
    failures = Failures(found)
    seeds = [*target.seeds(), *(path.read_bytes() for path in target.crashes())]
    count, end = 0, time.process_time() + seconds

    def attempt(data: bytes) -> None:
        nonlocal count
        count += 1
        try:
            target.attempt(data)
        except Exception as error:  # noqa: BLE001 - each is what is looked for
            failures.note(error, data)
        if time.process_time() > end:
            os.write(1, f"\nexecutions {count}\n".encode())
            os._exit(0)  # libFuzzer takes any other end for a crash

    if find_spec("atheris") is None:
        for data in HOSTILE:
            attempt(data)
        while True:
            attempt(mutated(seeds, target.words, count))
    for number, data in enumerate((*seeds, *HOSTILE)):
        (corpus / f"seed-{number:04}").write_bytes(data[:LONGEST])
    _led(attempt, target, corpus, found)


def _led(
    attempt: Callable[[bytes], None], target: Target, corpus: Path, found: Path
) -> None:
    atheris = import_module("atheris")  # of the group `fuzz`
    options = [
        f"-artifact_prefix={found}/", f"-max_len={LONGEST}", "-len_control=20",
        f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}",
        f"-report_slow_units={HANG_SECONDS}",  # of the clock, not the CPU
    ]  # fmt: skip
    lines = [f"{each}\n" for word in target.words if (each := _quoted(word))]
    if lines:
        words = corpus.with_suffix(".dict")
        words.write_text("".join(lines), "ascii")
        options.append(f"-dict={words}")
    atheris.Setup(["fuzz", str(corpus), *options], attempt)
    atheris.Fuzz()


def _quoted(word: bytes) -> str:
    """Return a word as libFuzzer reads it; empty for none."""
    inside = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}"
        for b in word[:60]
    )
    return f'"{inside}"' if inside else ""
