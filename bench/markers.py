"""Replaces what stands between two markers of a document, and nothing else."""

from __future__ import annotations

from pathlib import Path


def replace_between(document: Path, name: str, text: str) -> None:
    """Put ``text`` between the markers ``name:begin`` and ``name:end``.

    Raises `ValueError` where the document does not have both, once and in order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    whole = document.read_text(encoding="utf-8")
    before, first, rest = whole.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last or begin in rest or end in after:
        raise ValueError(f"{document}: needs one {begin} and one {end} after it")
    document.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", "utf-8")
