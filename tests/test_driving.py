"""Where the live node is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.config import Config
from fabricmon.driving import live_host


@pytest.mark.parametrize(("named", "seen"), [(False, b"own"), (True, b"copied")])
def test_run_folder(tmp_path: Path, *, named: bool, seen: bytes) -> None:
    """It is this system's own, in a container too; that of a copy is in the copy."""
    run, root = tmp_path / "run", tmp_path / "root"
    copied = root / str(run).lstrip("/")
    for folder, text in ((run, "own"), (copied, "copied")):
        folder.mkdir(parents=True)
        (folder / "maintenance.json").write_text(text)
    config = Config(root=str(root), run_folder=str(run))
    host = live_host(config, str(root) if named else None)
    assert host.read(f"{run}/maintenance.json") == seen
    host.close()
