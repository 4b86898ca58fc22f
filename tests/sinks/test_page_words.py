"""Words and numbers of the status page."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.sinks.page_words import (
    LONGEST,
    bits,
    clock,
    listed,
    number,
    plural,
    quantity,
    span,
    text,
)

DAY = 86400.0
NOON = 1_767_614_400.0  # 2026-01-05 12:00:00Z


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("mlx5_0", "mlx5_0"),
        ("<script>", "&lt;script&gt;"),
        ("\"'&", "&quot;&#x27;&amp;"),
        ("a\x00b", "a\ufffdb"),
        ("a\nb", "a\ufffdb"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\u2066x\u2069", "\ufffdx\ufffd"),
        ("\udc80", "\ufffd"),
        (7, "7"),
    ],
)
def test_text_is_harmless(value: object, shown: str) -> None:
    """Markup is escaped; what is invisible or turns the direction is replaced."""
    assert text(value) == shown


def test_long_text_is_cut() -> None:
    """A name of 10 kB takes no more room than one of 200 characters."""
    shown = text("x" * 10_000)
    assert len(shown) == LONGEST
    assert shown.endswith("x\N{HORIZONTAL ELLIPSIS}")


@given(st.text())
def test_text_cannot_leave_its_place(value: str) -> None:
    """No text holds markup, and printable text comes back as it was."""
    shown = text(value)
    assert not set(shown) & set("<>\"'")
    shown.encode()
    if value.isprintable() and len(value) <= LONGEST:
        assert html.unescape(shown) == value


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (0.2, "0.2 s"),
        (0.256, "0.26 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (172_800, "2 d"),
        (864_000, "10 d"),
    ],
)
def test_span(seconds: float, shown: str) -> None:
    """A length of time has one unit, and at least two of it or two digits."""
    assert span(seconds) == shown


@pytest.mark.parametrize(
    ("bytes_per_second", "shown"),
    [
        (0, "0 b/s"),
        (100, "800 b/s"),
        (125_000, "1 Mb/s"),
        (50e9, "400 Gb/s"),
    ],
)
def test_bits(bytes_per_second: float, shown: str) -> None:
    """Traffic is told in the unit of link rates."""
    assert bits(bytes_per_second) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.0, "1,234,567"), (0.25, "0.25"), (39.53, "39.5"), (1e-15, "1e-15")],
)
def test_number(value: float, shown: str) -> None:
    """Whole numbers are whole, others have three digits."""
    assert number(value) == shown


def test_quantity_tells_nothing_from_zero() -> None:
    """A value that is not there is not 0."""
    assert [quantity(None), quantity(0), quantity("<DOWN>")] == [
        "\N{EN DASH}",
        "0",
        "&lt;DOWN&gt;",
    ]


def test_clock_of_today() -> None:
    """The time of day is enough for today."""
    assert clock(NOON, NOON + 60) == (
        '<time datetime="2026-01-05T12:00:00Z">12:00:00Z</time>'
    )


def test_clock_of_another_day() -> None:
    """Another day is named."""
    assert ">2026-01-05 12:00Z<" in clock(NOON, NOON + DAY)


@pytest.mark.parametrize("wall", [-1.0, 1e300, float("inf")])
def test_clock_of_a_time_that_cannot_be(wall: float) -> None:
    """A clock that is not set breaks no page."""
    assert clock(wall, NOON).startswith("<time")


def test_plural() -> None:
    """One is one."""
    assert [plural(1, "port"), plural(0, "port"), plural(1000, "port")] == [
        "1 port",
        "0 ports",
        "1,000 ports",
    ]


def test_listed() -> None:
    """Words are joined as in a sentence."""
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == [
        "",
        "a",
        "a, b and c",
    ]
