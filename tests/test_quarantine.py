import pytest

from fabricmon.config import Deadlines
from fabricmon.model import Absence, PortId, Reading
from fabricmon.quarantine import Quarantine, Transition, common_failure
from tests.views import SPECS

FILES = ("symbol_error", "link_downed")
PERIOD = 5.0
DAY = 86_400.0


def failing(*reasons: str) -> Reading:
    """Return a reading in which each file fails for its reason."""
    absent = tuple(Absence(f, r) for f, r in zip(FILES, reasons, strict=True))
    return reading((None, None), absent)


def reading(
    values: tuple[int | None, ...], absent: tuple[Absence, ...] = ()
) -> Reading:
    """Return a reading of the two files."""
    specs = tuple(SPECS[file] for file in FILES)
    return Reading(PortId("mlx5_0", 1), 0.0, specs, values, absent)


GOOD = reading((0, 0))
SHORT = failing("EMFILE", "EMFILE")
BAD = failing("EINVAL", "EINVAL")
HALF = reading((0, None), (Absence("link_downed", "EINVAL"),))


class Watch:
    """A quarantine and its clock."""

    def __init__(self) -> None:
        self.quarantine = Quarantine(Deadlines())
        self.now = 0.0
        self.transitions: list[Transition] = []

    def poll(self, *readings: Reading, times: int = 1) -> None:
        """Poll as often as the quarantine lets, at the period or after its pause."""
        for _ in range(times):
            self.now = self.until or self.now + PERIOD
            change = self.quarantine.judge("mlx5_0", "errors", readings, self.now)
            self.transitions += [change] if change else []

    @property
    def until(self) -> float | None:
        """When the next try is due."""
        return self.quarantine.until("mlx5_0", "errors")

    @property
    def pause(self) -> float | None:
        """How long the pause is that began now."""
        return None if self.until is None else self.until - self.now


@pytest.fixture
def watch() -> Watch:
    """Return a new quarantine at time 0."""
    return Watch()


class TestQuarantine:
    def test_three_failures_put_aside(self, watch: Watch) -> None:
        """Two may be chance; at the third the source pauses for ten minutes."""
        watch.poll(BAD, times=2)
        assert (watch.until, watch.transitions) == (None, [])
        watch.poll(BAD)
        assert watch.pause == 60
        assert watch.transitions == [Transition("mlx5_0", "errors", "EINVAL")]
        assert watch.quarantine.reason("mlx5_0", "errors") == "EINVAL"

    def test_pause_doubles_up_to_a_day(self, watch: Watch) -> None:
        """Each failed try doubles the pause, without another log line."""
        watch.poll(BAD, times=3)
        pauses = [watch.pause]
        for _ in range(12):
            watch.poll(BAD)
            pauses.append(watch.pause)
        assert pauses[:4] == [60, 120, 240, 480]
        assert pauses[-2:] == [DAY, DAY]
        assert len(watch.transitions) == 1

    def test_anything_that_answers_ends_it(self, watch: Watch) -> None:
        """One value is enough to read as before, and that is said once."""
        watch.poll(BAD, times=3)
        watch.poll(HALF)
        assert watch.until is None
        assert watch.transitions[1:] == [Transition("mlx5_0", "errors", None)]
        watch.poll(GOOD)
        assert len(watch.transitions) == 2

    def test_second_time_begins_with_the_short_pause(self, watch: Watch) -> None:
        """What has recovered is as good as new."""
        watch.poll(BAD, times=5)
        watch.poll(GOOD)
        watch.poll(BAD, times=3)
        assert watch.pause == 60

    def test_good_polls_between_start_the_count_anew(self, watch: Watch) -> None:
        """Only failures in a row count."""
        watch.poll(BAD, times=2)
        watch.poll(GOOD)
        watch.poll(BAD, times=2)
        assert watch.until is None

    def test_another_reason_starts_the_count_anew(self, watch: Watch) -> None:
        """Failing in one way twice and in another once is no pattern."""
        watch.poll(BAD, times=2)
        watch.poll(failing("EIO", "EIO"))
        assert watch.until is None

    def test_text_in_place_of_numbers_is_a_reason(self, watch: Watch) -> None:
        """A driver that answers with words costs the device just as much."""
        watch.poll(failing("N/A (no PMA)", "N/A (no PMA)"), times=3)
        assert watch.quarantine.reason("mlx5_0", "errors") == "N/A (no PMA)"

    def test_one_good_port_keeps_both(self, watch: Watch) -> None:
        """A source is put aside only if every port of the device fails."""
        watch.poll(BAD, GOOD, times=5)
        assert watch.until is None

    @pytest.mark.parametrize("errno", ["ENOENT", "ENODEV"])
    def test_a_device_that_went_away_is_not_restricted(
        self, watch: Watch, errno: str
    ) -> None:
        """A driver reload must not silence a device for ten minutes."""
        watch.poll(failing(errno, errno), times=5)
        assert watch.until is None

    def test_going_away_is_no_recovery(self, watch: Watch) -> None:
        """A device put aside that disappears has not answered."""
        watch.poll(BAD, times=3)
        watch.poll(failing("ENODEV", "ENODEV"))
        assert len(watch.transitions) == 1
        assert watch.quarantine.reason("mlx5_0", "errors") == "EINVAL"

    def test_without_readings_nothing_is_said(self, watch: Watch) -> None:
        """A poll of a device without such files is no failure."""
        watch.poll(times=5)
        assert watch.until is None

    def test_forgotten_with_its_device(self, watch: Watch) -> None:
        """A card that comes back is read at once."""
        watch.poll(BAD, times=3)
        watch.quarantine.forget("mlx5_0")
        assert watch.until is None

    def test_sources_and_devices_are_apart(self, watch: Watch) -> None:
        """Restricted error files leave traffic and other devices alone."""
        watch.poll(BAD, times=3)
        assert watch.quarantine.until("mlx5_0", "traffic") is None
        assert watch.quarantine.until("mlx5_1", "errors") is None


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        ((BAD,), "EINVAL"),
        ((BAD, BAD), "EINVAL"),
        ((failing("EINVAL", "EIO"),), None),
        ((HALF,), None),
        ((GOOD,), None),
    ],
)
def test_common_failure(readings: tuple[Reading, ...], reason: str | None) -> None:
    """Every value must be missing, and all for one reason."""
    assert common_failure(readings) == reason


def test_shortage_of_descriptors_is_no_fault_of_the_device(watch: Watch) -> None:
    """A process that can open nothing more goes on trying."""
    watch.poll(SHORT, times=10)
    assert watch.until is None
    assert watch.transitions == []
