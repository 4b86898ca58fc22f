"""A short pass of every target: what once failed, what is hostile, what is nearly sound.

The inputs are the same each time; campaigns look for new ones (``python -m
tests.fuzz``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import HOSTILE, mutated
from tests.fuzz.target import CRASHES, Target
from tests.fuzz.targets import BY_NAME, TARGETS

ROOT = Path(__file__).parent.parent.parent

EXAMPLES = 200
"""Of each target."""

TIMES = 4
"""How many times as long the longer of two repetitions is."""

MOST_GROWTH = 10.0
"""A reader of linear time takes `TIMES` as long, a quadratic one its square, 16."""

LEAST_SECONDS = 0.1
"""Less is too little to be told from noise."""

each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.name)
seeds_of: dict[str, list[bytes]] = {}


def sound(target: Target) -> list[bytes]:
    """Return the seeds of a target, made once."""
    if target.name not in seeds_of:
        seeds_of[target.name] = target.seeds()
    return seeds_of[target.name]


@each_target
def test_sound_hostile_and_once_fatal_inputs(target: Target) -> None:
    """Each is read, or refused as documented, in its time."""
    for path in target.crashes():
        target.attempt(path.read_bytes())
    for data in (*sound(target), *HOSTILE):
        target.attempt(data)


@each_target
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(number=st.integers(0, 10**9))
def test_nearly_sound_inputs(target: Target, number: int) -> None:
    """A seed with a few faults is read, or refused as documented."""
    data = mutated(sound(target), target.words, number)
    try:
        target.attempt(data)
    except Exception as error:
        error.add_note(f"input: {data!r}")
        raise


@each_target
def test_time_is_linear(target: Target) -> None:
    """A piece that is repeated four times as often takes four times as long."""
    for piece in (*PIECES, *target.words[:12]):
        short = piece * (target.repeated // len(piece))
        if target.seconds(short * TIMES) < LEAST_SECONDS:
            continue
        took = min(target.seconds(short) for _ in range(3))
        longer = min(target.seconds(short * TIMES) for _ in range(3))
        assert longer < MOST_GROWTH * max(took, LEAST_SECONDS / MOST_GROWTH), piece


PIECES = (
    *(b"a", b" ", b"\n", b"9", b":", b"[", b'"', b"{", b"/", b"a ", b"a:", b"a: b\n"),
    *(b"x=", b"0x", b"a.", b"- ", b"\\", b"<", b"(", b"'", b"\0", b"\xff", b"a,"),
)


def test_every_kept_input_belongs_to_a_target() -> None:
    """A target that is renamed takes its inputs with it."""
    assert {path.name for path in CRASHES.iterdir()} <= BY_NAME.keys()


def test_a_fault_is_found(tmp_path: Path) -> None:
    """A campaign keeps an input that fails, tells of it, and goes on."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.fuzz.campaign import run\n"
        "from tests.fuzz.target import Target, texts\n"
        "bad = Target('x', lambda d: 1 / (b'7' not in d), texts('1', '7'))\n"
        "print(run(bad, 0.5, Path(sys.argv[1])))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    kept = [x for x in (tmp_path / "found" / "x").iterdir() if x.suffix != ".txt"]
    assert [path.name.partition("-")[0] for path in kept] == ["ZeroDivisionError"]
    assert kept[0].name in ended.stdout
    assert b"7" in kept[0].read_bytes()
