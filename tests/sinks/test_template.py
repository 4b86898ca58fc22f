"""Templates: the text of the library, with our values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics.exposition import (
    generate_latest as generate_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.sinks.template import MOST_CHARACTERS, Fixed, cut, label, number

TEXTS = st.text(st.characters(codec=None), max_size=300)  # lone surrogates too


def metric(values: list[tuple[str, float]]) -> Fixed:
    """Return a gauge with a sample for each label value."""
    gauge = Metric("x", 'Help with "quotes", 100 %, a \\ and\nlines', "gauge")
    for text, value in values:
        gauge.add_sample("x", {"name": text}, value)
    return Fixed([gauge])


class TestCut:
    def test_filling_in_the_same_values_gives_the_same_text(self) -> None:
        """A template is what the library wrote."""
        metrics = metric([("a 1 % \n", 0.25), ("b{} 2", 7.5)])
        text = generate_latest(metrics)
        assert cut(text, 2).fill(("0.25", "7.5")) == text

    def test_end_of_openmetrics_stays(self) -> None:
        """The format that Prometheus prefers ends with a line of its own."""
        text: bytes = generate_openmetrics(metric([("a", 0.5)]))  # type: ignore[no-untyped-call]
        filled = cut(text, 1).fill(("0.5",))
        assert filled == text
        assert filled.endswith(b"# EOF\n")

    def test_text_with_other_samples_than_places_is_refused(self) -> None:
        """A value must not end up in the place of another."""
        with pytest.raises(ValueError, match="1 samples in the text, 2 places"):
            cut(generate_latest(metric([("a", 1.0)])), 2)

    def test_missing_value_does_not_become_a_number(self) -> None:
        """An absent value is no sample, and certainly not zero."""
        template = cut(generate_latest(metric([("a", 1.0)])), 1)
        with pytest.raises(TypeError):
            template.fill((None,))

    @given(st.lists(TEXTS, max_size=4, unique_by=label), st.integers(0, 2**70))
    def test_any_label_survives(self, texts: list[str], value: int) -> None:
        """What the parser reads back is what was meant, whatever the names are."""
        names = [label(text) for text in texts]
        text = generate_latest(metric([(name, 1.0) for name in names]))
        filled = cut(text, len(names)).fill((value,) * len(names))
        read = [
            (sample.labels["name"], float(sample.value))
            for family in text_string_to_metric_families(filled.decode())
            for sample in family.samples
        ]
        assert read == [(name, float(value)) for name in names]


class TestNumber:
    def test_whole_numbers_are_exact_beyond_what_a_float_holds(self) -> None:
        """Octets are four times words and pass 2^53 within weeks."""
        assert number(4 * (2**62 + 1)) == "18446744073709551620"

    @pytest.mark.parametrize(
        ("value", "text"), [(0.5, "0.5"), (float("inf"), "+Inf"), (1e21, "1e+21")]
    )
    def test_fractions_are_written_as_by_the_library(
        self, value: float, text: str
    ) -> None:
        """Prometheus writes infinity its own way."""
        assert number(value) == text


class TestLabel:
    def test_usual_names_stay(self) -> None:
        """Names of devices and files are plain."""
        assert label("mlx5_bond_0") == "mlx5_bond_0"

    def test_long_values_are_cut_and_stay_apart(self) -> None:
        """Two names that differ only past the limit are two series."""
        one, two = label("x" * 10_000), label("x" * 9_999 + "y")
        assert one != two
        assert len(one) == MOST_CHARACTERS

    def test_what_a_terminal_would_obey_is_escaped(self) -> None:
        """A forged device name does not clear the screen of whoever reads it."""
        assert label("a\x1b[2J\n\udc80") == "a\\x1b[2J\\n\\udc80"

    @given(TEXTS)
    def test_any_text_can_be_encoded(self, text: str) -> None:
        """A name that is no UTF-8 does not cost the scrape."""
        assert label(text).encode().decode().isprintable()
