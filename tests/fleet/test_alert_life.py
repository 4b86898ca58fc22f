"""The life of alerts is that of Prometheus: promtool judges thousands of evaluations."""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricmon.fleet.alert_life import Life, Timing, lives
from tests.support.programs import require

STEP = 15
EVALUATIONS = range(0, 40 * STEP, STEP)
TIMINGS = [
    Timing(hold, keep) for hold, keep in product((0, 15, 37, 60), (0, 15, 40, 90))
]
ABSENT, GONE, FALSE = "_", "stale", "0"

Values = dict[float, float]


def written(name: str, *words: str) -> list[str]:
    """Return a series of the same length as all, the last word for ever."""
    del name
    return [*words, *[words[-1]] * (len(EVALUATIONS) - len(words))][: len(EVALUATIONS)]


def drawn(seed: int) -> list[str]:
    """Return a series that flaps as chance has it: there, false, gone."""
    chance = random.Random(seed)
    calm = chance.choice((0.05, 0.3, 0.6))
    word, words = FALSE, []
    for _ in EVALUATIONS:
        if chance.random() < calm:
            word = chance.choice(("1", "2", FALSE, GONE))
        words.append(word)
    return words


PATTERNS = [
    written("never", FALSE),
    written("always", "1"),
    written("from the second on", FALSE, "1"),
    written("one blink", FALSE, "1", FALSE),
    written("vanishes while pending", "1", "1", GONE),
    written("vanishes while firing", *["1"] * 10, GONE),
    written("a missed scrape while firing", *["1"] * 10, GONE, "1"),
    written("two missed scrapes", *["1"] * 10, GONE, GONE, "1"),
    written("comes back when the keeping ends", *["1"] * 8, *[FALSE] * 3, "1"),
    written("flaps every evaluation", *["1", FALSE] * 20),
    written("flaps every two", *["1", "1", FALSE, FALSE] * 10),
    written("another value", *["1"] * 5, "7"),
    written("a hole that the look-back fills", "1", *[ABSENT] * 3, FALSE),
    *map(drawn, range(24)),
]


def values(words: list[str]) -> Values:
    """Return what ``x > 0`` gives at each evaluation."""
    found: Values = {}
    last: float | None = None
    for time, word in zip(EVALUATIONS, words, strict=True):
        if word != ABSENT:
            last = None if word == GONE else float(word)
        if last:
            found[time] = last
    return found


def document(expected: dict[tuple[int, int], list[str]]) -> dict[str, Any]:
    """Return a test of promtool: which series fire, by timing and evaluation."""
    return {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{STEP}s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": [
                    {"series": f'x{{series="{number}"}}', "values": " ".join(words)}
                    for number, words in enumerate(PATTERNS)
                ],
                "alert_rule_test": [
                    {
                        "eval_time": f"{time}s",
                        "alertname": f"A{rule}",
                        "exp_alerts": [
                            {"exp_labels": {"series": name}}
                            for name in expected[rule, time]
                        ],
                    }
                    for rule, time in product(range(len(TIMINGS)), EVALUATIONS)
                ],
            }
        ],
    }


def judged(folder: Path, expected: dict[tuple[int, int], list[str]]) -> bool:
    """Tell whether promtool sees the same fire."""
    rules = [
        {
            "alert": f"A{number}",
            "expr": "x > 0",
            "for": f"{timing.hold_seconds:.0f}s",
            "keep_firing_for": f"{timing.keep_seconds:.0f}s",
        }
        for number, timing in enumerate(TIMINGS)
    ]
    groups = {"groups": [{"name": "g", "rules": rules}]}
    (folder / "rules.yml").write_text(yaml.safe_dump(groups))
    test = folder / "test.yml"
    test.write_text(yaml.safe_dump(document(expected)))
    command = [require("promtool"), "test", "rules", str(test)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def firing() -> dict[tuple[int, int], list[str]]:
    """Return which series fire by our own account, by timing and evaluation."""
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (rule, timing), (name, words) in product(
        enumerate(TIMINGS), enumerate(PATTERNS)
    ):
        for life in lives(EVALUATIONS, values(words), timing):
            ended = EVALUATIONS.stop if life.ended is None else life.ended
            for time in EVALUATIONS:
                if life.fired <= time < ended:
                    found[rule, time].append(str(name))
    return found


@pytest.mark.slow
def test_same_as_promtool(
    firing: dict[tuple[int, int], list[str]], tmp_path: Path
) -> None:
    """Gaps, flaps, missed scrapes and chance, under every timing, all the time."""
    assert sum(map(len, firing.values())) > 1000
    assert judged(tmp_path, firing)


def test_promtool_would_tell(
    firing: dict[tuple[int, int], list[str]], tmp_path: Path
) -> None:
    """One alert that ends an evaluation too late is seen."""
    wrong = defaultdict(list, {key: list(names) for key, names in firing.items()})
    rule, time = len(TIMINGS) - 1, 14 * STEP
    name = next(str(n) for n in range(len(PATTERNS)) if str(n) not in wrong[rule, time])
    wrong[rule, time].append(name)
    assert not judged(tmp_path, wrong)


def test_times_and_value() -> None:
    """A life has its beginning, its first and its last moment, and its first value."""
    found = list(lives(EVALUATIONS, {30: 4.0, 45: 5.0, 60: 6.0}, Timing(15, 20)))
    assert found == [Life(active=30, fired=45, ended=105, value=5.0)]


def test_still_firing() -> None:
    """What fires at the last evaluation has no end."""
    found = list(lives(EVALUATIONS, dict.fromkeys(EVALUATIONS, 1.0), Timing()))
    assert found == [Life(0, 0, None, 1.0)]
