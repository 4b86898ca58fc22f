"""Numbers, words and lines that every grammar uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse import text


class TestDecimal:
    """`decimal` takes non-negative integers and nothing else."""

    def test_reads_the_largest_counter(self) -> None:
        """No digit of 2**64 - 1 is lost."""
        assert text.decimal("18446744073709551615") == 2**64 - 1

    @pytest.mark.parametrize(
        "word", ["", "-1", "+1", "1.5", "0x1", "²", "1_0", "9" * 21]
    )
    def test_refuses_everything_else(self, word: str) -> None:
        """Signs, fractions, underscores, superscripts and endless digits are none."""
        assert text.decimal(word) is None


class TestNumber:
    """`number` takes finite decimal fractions."""

    def test_reads_an_exponent(self) -> None:
        """A bit error rate of mlxlink is a legal number."""
        assert text.number("15E-255") == 1.5e-254

    @pytest.mark.parametrize("word", ["nan", "inf", "1e999", "1e", "--1", "", "1,5"])
    def test_refuses_what_json_cannot_hold(self, word: str) -> None:
        """NaN, infinity and broken numbers are none."""
        assert text.number(word) is None


class TestFold:
    """`fold` makes the spellings of one word equal."""

    def test_spellings_of_link_up_are_one_word(self) -> None:
        """Case, blanks and underscores do not matter."""
        spellings = ("LinkUp", "LINK_UP", "Link Up", "link-up")
        assert {text.fold(word) for word in spellings} == {"linkup"}


class TestLines:
    """`lines` splits at line feeds only."""

    def test_carriage_returns_are_dropped(self) -> None:
        """A file that went through Windows reads the same."""
        assert list(text.lines("a\r\nb")) == ["a", "b"]

    def test_other_separators_stay_within_a_line(self) -> None:
        """A form feed or a line separator in a name is part of the name."""
        assert list(text.lines("a\x0cb\u2028c")) == ["a\x0cb\u2028c"]


class TestQuoted:
    """`quoted` finds a name in quotes."""

    def test_a_name_may_hold_quotes(self) -> None:
        """First and last quote count."""
        assert text.quoted("CA 'a'b'") == "a'b"

    @pytest.mark.parametrize("line", ["", "a", "a'b"])
    def test_two_quotes_are_needed(self, line: str) -> None:
        """Half a quotation is none."""
        assert text.quoted(line) is None


class TestWithoutColour:
    """`without_colour` drops what a terminal would show as colour."""

    def test_drops_colour_codes(self) -> None:
        """The value between two codes is left."""
        assert text.without_colour("State : \x1b[32mActive\x1b[0m") == "State : Active"

    def test_keeps_text_after_a_broken_code(self) -> None:
        """A code that never ends costs only itself."""
        assert text.without_colour("a\x1b[12") == "a12"


class TestDecode:
    """`decode` never fails."""

    @given(st.binary(max_size=200))
    def test_gives_text_that_utf8_can_hold(self, raw: bytes) -> None:
        """What comes out can be printed as JSON."""
        text.decode(raw).encode("utf-8")


@given(st.text(max_size=60))
def test_helpers_take_any_text(word: str) -> None:
    """No helper raises, whatever it is given."""
    text.decimal(word)
    text.hexadecimal(word)
    text.number(word)
    text.fold(word)
    text.field(word)
    text.quoted(word)
    text.without_colour(word)
