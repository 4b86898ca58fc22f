"""Rows of the operator's own are checked when the configuration is read."""

import pytest

from fabricmon.config import Config, LogRule, Logs
from fabricmon.config_rules import check_rules
from fabricmon.errors import ConfigError

GOOD = LogRule(
    id="mine", anchor="flux capacitor", pattern="flux capacitor is (?P<level>low)"
)


def refused(*rows: LogRule) -> ConfigError:
    """Return the error that rows are refused with."""
    with pytest.raises(ConfigError) as caught:
        check_rules(Config(logs=Logs(rules=rows)))
    return caught.value


def test_a_good_row_is_taken() -> None:
    """Nothing is said about it."""
    check_rules(Config(logs=Logs(rules=(GOOD,))))


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (LogRule(id="C1", anchor="some text", pattern="some text"), "id"),
        (LogRule(id="x", anchor="abc", pattern="abc"), "anchor"),
        (LogRule(id="x", anchor="some text", pattern="some text (a+)+b"), "pattern"),
        (LogRule(id="x", anchor="some text", pattern="some text ("), "pattern"),
        (LogRule(id="x", anchor="some text", pattern="other text"), "pattern"),
        (LogRule(id="x", anchor="text", pattern="text", kind="Not A Kind"), "kind"),
    ],
)
def test_a_bad_row_is_named_with_its_key(row: LogRule, key: str) -> None:
    """The error says which row, which key, and what to do."""
    error = refused(GOOD, row)
    assert error.key == f"logs.rules[1].{key}"
    assert repr(row.id) in str(error)
    assert error.remedy


def test_rows_that_have_nothing_in_common_are_refused_when_many() -> None:
    """Every anchor of its own slows the reading of every log."""
    words = ("alpha", "bravo", "charlie", "delta", "foxtrot", "golf!", "hotel", "india")
    rows = [LogRule(id=word, anchor=word, pattern=word) for word in words]
    assert refused(*rows).key == "logs.rules"
