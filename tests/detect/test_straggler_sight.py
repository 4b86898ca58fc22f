"""What the comparison of rails does not see it says, and it follows jobs by name."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.detect.straggler import Stragglers
from fabricmon.model import JobUse
from tests.detect.rails import Rails, healthy, slow
from tests.node import RAILS


class TestBlindness:
    def test_a_rail_whose_bursts_ended(self) -> None:
        """Its device rests or hangs: nobody compares it any more."""
        rails = Rails()
        rails.play(*healthy(), 2)
        assert list(rails.detector.blind(rails.view())) == []
        rails.bursts = tuple(b for b in rails.bursts if b.port != RAILS[2].id)
        rails.now += 150
        blind = list(rails.detector.blind(rails.view()))
        assert [item.kind for item in blind] == list(Stragglers.kinds)
        assert str(RAILS[2].id) in blind[0].reason

    def test_a_driver_that_counts_once_a_second(self) -> None:
        """Samples between two steps of its counters would be artefacts."""
        infos = tuple(replace(info, driver="bnxt_en") for info in RAILS)
        rails = Rails(infos=infos)
        assert "bnxt_re" in next(iter(rails.detector.blind(rails.view()))).reason


class TestJobs:
    def test_a_new_job_has_no_past(self) -> None:
        """Its rails are not known, its name is: windows of the other do not count."""
        rails = Rails()
        rails.jobs = (JobUse("1", "job"),)
        rails.play(*slow(1), 5)
        rails.jobs = (JobUse("2", "job"),)
        assert rails.play(*slow(1), 5) == []
        assert rails.play(*slow(1), 1)

    def test_jobs_that_come_and_go_beside_it(self) -> None:
        """A rail that is slow is told although a pod starts every half minute."""
        rails = Rails()
        for number in range(6):
            rails.jobs = (JobUse("1", "job"), JobUse(f"pod-{number}", "kubernetes"))
            found = rails.play(*slow(1))
        assert found

    def test_short_jobs_one_after_the_other(self) -> None:
        """They are compared as one: a slow rail does not hide behind them."""
        rails = Rails()
        for number in range(9):
            rails.jobs = (JobUse(f"array-{number}", "slurm"),)
            found = rails.play(*slow(1))
        assert found
