import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.core_list import MOST_CORES, parse_cores, write_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("\n", set()),
        ("(null)\n", set()),
        ("0\n", {0}),
        ("1-3,8,10-11\n", {1, 2, 3, 8, 10, 11}),
        ("64, 66", {64, 66}),
    ],
)
def test_lists(text: str, cores: set[int]) -> None:
    """The kernel's lists are read, also where there is none."""
    assert parse_cores(text) == cores


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "1-", "1,,2", "0-99999999", "²"])
def test_other_text(text: str) -> None:
    """What is no list is refused, and costs no memory."""
    with pytest.raises(ValueError, match="core"):
        parse_cores(text)


@given(st.frozensets(st.integers(0, MOST_CORES - 1)))
def test_what_is_written_is_read(cores: frozenset[int]) -> None:
    """A list that was written gives the same cores."""
    assert parse_cores(write_cores(cores)) == cores


def test_is_short() -> None:
    """Neighbours are written as a range."""
    assert write_cores({4, 0, 1, 2, 9}) == "0-2,4,9"
