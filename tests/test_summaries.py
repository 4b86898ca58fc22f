"""How summaries are worded."""

from __future__ import annotations

from fabricmon.summaries import SUMMARY_LENGTH, one_line


def test_a_long_one_is_cut() -> None:
    """To what sinks accept, and it shows."""
    assert one_line("x" * SUMMARY_LENGTH) == "x" * SUMMARY_LENGTH
    cut = one_line("x" * 500)
    assert (len(cut), cut[-1]) == (SUMMARY_LENGTH, "…")


def test_nothing_in_it_steers_a_terminal() -> None:
    """Names come from logs that anybody writes."""
    assert one_line("to \x1b[2Jn1\n\u202eevil\x9b") == "to ?[2Jn1??evil?"
