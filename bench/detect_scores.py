"""All runs of a table, and what each judge was worth in them."""

from __future__ import annotations

from dataclasses import dataclass

from detect_runs import Done

from fabricmon.sim.score import RunScore
from fabricmon.sim.score_summary import Summary, summarize
from fabricmon.trial import OWN

OUTSIDE = "outside"
MAGNITUDES = {0.5: "half", 1.0: "as written", 2.0: "double"}


@dataclass(frozen=True, slots=True)
class Report:
    """All runs, and the command that made them.

    ``allowance`` is how much later than a node's agent the fleet's rules may answer,
    seconds; None where they were not evaluated.
    """

    done: tuple[Done, ...]
    command: str
    allowance: float | None = None

    def scores(
        self, judge: str, magnitude: float = 1.0, *, outside: bool | None = None
    ) -> tuple[RunScore, ...]:
        """Return the scores of a judge; ``outside`` picks by that tag."""
        found = (
            score
            for each in self.done
            if each.task.magnitude == magnitude
            and (score := each.score(judge)) is not None
            and (outside is None or (OUTSIDE in score.tags) is outside)
        )
        return tuple(sorted(found, key=lambda score: (score.scenario, score.seed)))

    def summary(
        self, judge: str, magnitude: float = 1.0, *, outside: bool | None = None
    ) -> Summary:
        """Add up the scores of a judge."""
        return summarize(self.scores(judge, magnitude, outside=outside))

    @property
    def at_magnitudes(self) -> dict[float, tuple[RunScore, ...]]:
        """Scores of the agents by magnitude, of what was run at all of them."""
        scores = {each: self.scores(OWN, each) for each in MAGNITUDES}
        found = ({(run.scenario, run.seed) for run in some} for some in scores.values())
        everywhere = set.intersection(*found)
        return {
            each: tuple(r for r in some if (r.scenario, r.seed) in everywhere)
            for each, some in scores.items()
        }
