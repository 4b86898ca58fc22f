"""A rail that carries more than the others is busy for longer, and paces nobody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fabricmon.config import Config
from fabricmon.detect.local_evidence import LocalEvidence, LocalSign, Nature
from fabricmon.model import Evidence, Finding, JobUse, PortView, Reading, View
from fabricmon.parse.words import Rate
from fabricmon.window import Window
from tests.detect.rails import LINE, STEP, Rails, healthy, slow
from tests.views import SPECS, status

_FILES = (SPECS["port_rcv_data"], SPECS["port_xmit_data"])
_POLL = 15.0


class Counted(Rails):
    """Rails whose byte counters move as their windows say, read every 15 s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.window = Window(Config())
        self.parts["counters"] = self.window
        self.octets = dict.fromkeys((info.id for info in self.infos), 0.0)
        self.read_at = self.now

    def play(
        self, busy: Sequence[float], rate: Sequence[float], times: int = 1
    ) -> list[Finding]:
        """Let windows pass with what they carry."""
        found: list[Finding] = []
        for _ in range(times):
            self._carry(busy, rate)
            found = super().play(busy, rate)
        return found

    def _carry(self, busy: Sequence[float], rate: Sequence[float]) -> None:
        until = self.now + self.every
        while self.read_at + _POLL <= until:
            self.read_at += _POLL
            for info, share, speed in zip(self.infos, busy, rate, strict=True):
                self.octets[info.id] += share * speed * LINE * _POLL
                words = round(self.octets[info.id] / 4)
                reading = Reading(info.id, self.read_at, _FILES, (words, words), ())
                self.window.add(reading, _POLL)


def more(which: int, read: float = 0.06) -> tuple[list[float], list[float]]:
    """Return equal rails, one of which also reads a share of the line all the time."""
    duty, rate = healthy()
    carried = duty[which] * rate[which] + read
    duty[which], rate[which] = 1.0, carried
    return duty, rate


def same_bytes(which: int) -> tuple[list[float], list[float]]:
    """Return equal rails, one of which needs twice as long for the same bytes."""
    duty, rate = healthy()
    duty[which], rate[which] = 2 * duty[which], rate[which] / 2
    return duty, rate


def test_a_rail_that_carries_more_is_not_slow() -> None:
    """Storage that is read over one rail makes it busier, and slows no job down."""
    rails = Counted()
    rails.play(*healthy(), 5)
    assert rails.play(*more(0), 20) == []


def test_a_rail_with_the_same_bytes_is_slow() -> None:
    """Rails of one job carry the same: then longer busy is pace."""
    rails = Counted()
    rails.play(*healthy(), 5)
    (finding,) = rails.play(*same_bytes(0), 10)
    assert (finding.kind, finding.subject.rail) == ("rail_slow", 0)


def test_a_sign_of_its_own_makes_no_culprit_of_it() -> None:
    """A port with more traffic and a trivial fault is told by its fault alone."""
    rails = Counted()
    half = status(rails.infos[0], rails.now, rate=Rate(200.0, 2, "NDR"))
    rails.ports["mlx5_0"] = {"status": half}
    rails.play(*healthy(), 5)
    assert rails.play(*more(0), 20) == []


def test_moments_of_more_traffic_are_no_jitter() -> None:
    """What comes now and then besides the job is no step that takes longer."""
    rails, found = Counted(), []
    rails.play(*healthy(), 8)
    for _ in range(5):
        rails.play(*more(4, read=0.2))
        found += rails.play(*healthy(), 2)
    assert found == []


def test_a_rail_is_compared_with_those_of_its_job() -> None:
    """A job that sends less on the other rails does not explain a slow rail."""
    jobs = (
        JobUse("big", "job", rails=(0, 1, 2)),
        JobUse("small", "job", rails=(3, 4, 5, 6, 7)),
    )
    rails = Counted(jobs=jobs)
    duty, rate = healthy()
    rate[3:] = [0.1] * 5
    duty[0], rate[0] = 2 * duty[0], rate[0] / 2
    found = rails.play(duty, rate, 10)
    assert [each.subject.rail for each in found] == [0]


def test_planes_that_carry_what_another_cannot() -> None:
    """One of four planes is down: the three others of the device carry a third more."""
    rails = Counted()
    duty, rate = healthy()
    for plane in (1, 2):
        duty[plane] = 8 * STEP
    assert rails.play(duty, rate, 20) == []


def test_without_counters_windows_decide_alone() -> None:
    """Bytes that are not known excuse nobody."""
    assert Rails().play(*more(0), 10)


@pytest.mark.parametrize("which", [0, 7])
def test_a_half_rate_rail_with_its_windows_alone(which: int) -> None:
    """Windows that meet each step at one moment show other bytes than were sent.

    So the counters decide: 1.5 times the bytes in windows are none.
    """
    rails = Counted()
    rails.play(*healthy(), 5)
    seen = slow(which, busy=12 * STEP, rate=0.64)
    found = []
    for _ in range(10):
        rails._carry(*same_bytes(which))
        found = super(Counted, rails).play(*seen)
    assert [each.subject.rail for each in found] == [which]


class _Damaged(LocalEvidence):
    """A first rail whose link damages what it carries."""

    def of(self, port: PortView, view: View) -> tuple[LocalSign, ...]:
        """Return that it does, now."""
        shown = Evidence("symbol_error", 900, "errors", "counters")
        sign = LocalSign(Nature.LINK, view.now, shown)
        return (sign,) if port.info.rail == 0 else ()


def test_what_a_bad_link_sends_again_is_no_excuse() -> None:
    """Twice as busy with a fifth more bytes, all of them lost and sent again."""
    rails = Counted()
    rails.detector._local = _Damaged(Config())
    rails.play(*healthy(), 5)
    duty, rate = healthy()
    duty[0], rate[0] = 2 * duty[0], 0.6 * rate[0]
    (finding,) = rails.play(duty, rate, 10)
    assert (finding.kind, finding.subject.device) == ("straggler_link", "mlx5_0")


def test_traffic_that_is_over_excuses_nothing() -> None:
    """A rail that read storage for long and then is slow is told within minutes."""
    rails = Counted()
    rails.play(*healthy(), 5)
    assert rails.play(*more(0), 40) == []
    assert rails.play(*same_bytes(0), 14)
