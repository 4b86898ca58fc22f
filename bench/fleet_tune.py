"""What the fleet's rules make of runs whose metrics were kept, alert by alert.

For who writes rules: `bench_detect.py --keep-metrics` plays the agents once, this
evaluates the rules as they are now, a few seconds for a batch. Tune on seeds 0 to 99.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from detect_runs import METRICS

from fabricmon.fleet.concluding import Conclusion
from fabricmon.fleet.firing import Heard
from fabricmon.fleet.programs import find_programs
from fabricmon.fleet.site import DEFAULT, site_of
from fabricmon.fleet.trial import (
    JUDGE,
    Scene,
    conclude_scenes,
    read_scene,
    score_scene,
)
from fabricmon.sim.score_tables import seconds

ROOT = Path(__file__).parent.parent
_NOT_SHOWN = frozenset(
    {"alertname", "cluster", "kind", "severity", "role", "action", "notice", "instance"}
)


def main() -> None:
    """Evaluate and print."""
    options = _options()
    found = sorted((options.cache / METRICS).glob(f"{options.runs}*"))
    site, programs = site_of(options.rules), find_programs()
    for begin in range(0, len(found), options.batch):
        folders = found[begin : begin + options.batch]
        begun = time.monotonic()
        conclusions = conclude_scenes(site, folders, programs)
        took = time.monotonic() - begun
        for folder, conclusion in zip(folders, conclusions, strict=True):
            scene = read_scene(folder)
            score = score_scene(site, scene, conclusion).scores[JUDGE]
            print(f"\n{folder.name}: {'passed' if score.passed else 'NOT passed'}")
            for each in score.answers:
                after = seconds(each.seconds)
                print(f"  {each.fault} {each.place}: {each.outcome} after {after} s")
            for wrong in (*score.false, *score.blames, *score.breaches, *score.loud):
                print(f"  {wrong.what}: {wrong.kind} on {wrong.place} at {wrong.t:.0f}")
            if not options.quiet:
                _alerts(scene, conclusion)
        print(f"\n{len(folders)} runs in {took:.1f} s")


def _alerts(scene: Scene, conclusion: Conclusion) -> None:
    for each in conclusion.heard:
        life = each.firing.life
        times = (life.active, life.fired, life.ended, each.told, each.resolved)
        shown = "/".join(
            "-" if at is None else f"{at - scene.begin:.0f}" for at in times
        )
        print(f"    {shown:24} {_what(each)}")


def _what(each: Heard) -> str:
    firing = each.firing
    place = " ".join(
        f"{label.name}={label.value}"
        for label in firing.labels
        if label.name not in _NOT_SHOWN
    )
    words = [firing.label(name) for name in ("severity", "role", "action", "notice")]
    silenced = f" [{each.silenced}]" if each.silenced else ""
    return f"{firing.alert.name} {' '.join(words)} {place}{silenced}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="times: active/fired/ended/told/resolved, seconds"
    )
    parser.add_argument("runs", nargs="?", default="", help="beginning of their names")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/bench-detect")
    parser.add_argument("--rules", default=DEFAULT, metavar="FILE")
    parser.add_argument("--batch", type=int, default=24, metavar="N")
    parser.add_argument("--quiet", action="store_true", help="no single alerts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
