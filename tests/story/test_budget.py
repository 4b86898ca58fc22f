"""How long an outage a job survives."""

import pytest

from fabricmon.stories.budget import retry_budget


@pytest.mark.parametrize(
    ("version", "seconds"),
    [
        ("2.13.4", 0.47),
        ("2.14.3", 7.5),
        ("2.22.3", 7.5),
        ("2.23.4", 30),
        ("2.30.7", 30),
    ],
)
def test_defaults_are_those_of_the_version(version: str, seconds: float) -> None:
    """NCCL raised its time-out in 2.14 and in 2.23."""
    budget = retry_budget(version)
    assert budget is not None
    assert budget.seconds == pytest.approx(seconds, rel=0.01)
    assert not budget.known


def test_settings_of_the_job_win() -> None:
    """4.096 us * 2^22 * 3 retries, whatever the version."""
    budget = retry_budget("2.7.8", "22", "3")
    assert budget is not None
    assert budget.seconds == pytest.approx(51.5, rel=0.01)
    assert budget.known


def test_retries_default_to_seven_beside_a_time_out() -> None:
    """One of the two is enough where no version is known."""
    budget = retry_budget(None, "18")
    assert budget is not None
    assert budget.retries == 7


@pytest.mark.parametrize("version", [None, "", "2", "x.y", "torch 2.5"])
def test_nothing_is_said_of_an_unknown_version(version: str | None) -> None:
    """A number would be made up."""
    assert retry_budget(version) is None


def test_a_setting_that_is_no_number_counts_as_not_set() -> None:
    """NCCL falls back to its default too."""
    assert retry_budget("2.23.4", "twenty", "99") == retry_budget("2.23.4")


def test_a_time_out_of_zero_waits_for_ever() -> None:
    """Zero is the specification's word for no limit, not zero seconds."""
    budget = retry_budget("2.23.4", "0")
    assert budget is not None
    assert budget.seconds is None
    assert "for ever" in budget.text


def test_the_text_says_that_hardware_may_take_longer() -> None:
    """The formula is a lower bound."""
    budget = retry_budget("2.20.5")
    assert budget is not None
    assert "NCCL_IB_TIMEOUT=18" in budget.text
    assert "4x" in budget.text
