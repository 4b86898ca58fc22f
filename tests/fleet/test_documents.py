"""Files that are made from the rules are fresh, and the chart has the same."""

from pathlib import Path

import pytest

from fabricmon.fleet.documents import CHART, DOCUMENTS, Document

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.path)
def test_a_committed_file_is_fresh(document: Document) -> None:
    """Whoever changes a rule runs the generator."""
    committed = (ROOT / document.path).read_text(encoding="utf-8")
    assert committed == document.text(), "run: python -m fabricmon.fleet.documents"


def test_the_chart_has_the_same_files() -> None:
    """Helm cannot read outside its folder: what is there is a copy, and no more."""
    ours = {
        path.name: path.read_bytes() for path in (ROOT / "deploy/prometheus").iterdir()
    }
    chart = {path.name: path.read_bytes() for path in (ROOT / CHART).iterdir()}
    assert chart == ours
    made = {Path(each.path).name for each in DOCUMENTS if each.path.startswith(CHART)}
    assert set(ours) == made  # a group that is gone leaves no file
