"""Documents that are made from the tables are fresh, complete and well made."""

from pathlib import Path

import pytest

from fabricmon import documentation
from fabricmon.catalogue import ROWS, CounterKind
from fabricmon.config import Metrics
from fabricmon.documentation import DOCUMENTS, Document, main, metrics
from fabricmon.sinks.families import FAMILIES

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_committed_document_is_fresh(document: Document) -> None:
    """Whoever changes a table runs the generator."""
    committed = (ROOT / document.path).read_text(encoding="utf-8")
    assert committed == document.text(), (
        f"run: python -m fabricmon.documentation {document.name}"
    )


def test_every_metric_is_documented() -> None:
    """Nothing is exported that the reference does not explain."""
    text = metrics()
    counters = {spec.metric for spec in ROWS if spec.kind is not CounterKind.KNOB}
    names = counters | {family.metric for family in FAMILIES}
    assert [name for name in sorted(names) if f"`{name}" not in text] == []


def test_defaults_are_those_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference of the metrics names no default that it does not look up."""
    monkeypatch.setattr(documentation, "Metrics", lambda: Metrics(counted_series=17))
    assert "`metrics.counted_series` (17)" in metrics()


def test_tables_are_whole() -> None:
    """Each row of a table has as many cells as its head."""
    rows = [line for line in metrics().split("\n") if line.startswith("|")]
    assert rows
    cells = [row.replace("\\|", "").count("|") for row in rows]
    assert set(cells) == {5, 6}  # four columns of families, five of counters


def test_names_choose_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document alone, below the folder where it is started."""
    monkeypatch.chdir(tmp_path)
    main(["metrics"])
    assert (tmp_path / "docs" / "metrics.md").read_text(encoding="utf-8") == metrics()


def test_name_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which documents there are."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"there are: .*metrics"):
        main(["metric"])
    assert not list(tmp_path.iterdir())
