from fabricmon.config import Periods
from fabricmon.registry import DETECTORS, SOURCES


class TestSources:
    def test_names_are_unique(self) -> None:
        """A job finds its source by name."""
        names = [source.name for source in SOURCES]
        assert len(names) == len(set(names))

    def test_every_source_has_a_period(self) -> None:
        """The key `NAME_seconds` of the configuration is there for each row."""
        assert all(source.period(Periods()) > 0 for source in SOURCES)

    def test_every_period_has_a_source(self) -> None:
        """A key that paces nothing would mislead; one key paces state a second way."""
        keys = set(Periods.__struct_fields__) - {"state_without_netdev_seconds"}
        assert {f"{source.name}_seconds" for source in SOURCES} == keys


def test_detectors_are_unique() -> None:
    """Saved state is kept by the detector's name."""
    names = [detector.name for detector in DETECTORS]
    assert len(names) == len(set(names))
