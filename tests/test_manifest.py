from pathlib import Path

import pytest

from fabricmon.host.protocol import ReadError
from tests.fake_host import FakeHost
from tests.manifest import SYSFS, entries, lay_out

CASES = sorted(SYSFS.glob("*.manifest"))


@pytest.mark.parametrize("manifest", CASES, ids=lambda path: path.stem)
def test_memory_and_files_agree(manifest: Path, tmp_path: Path) -> None:
    """A tree in memory answers as the kernel does for the same tree laid out."""
    lay_out(manifest, tmp_path)
    host = FakeHost(manifest)
    for entry in entries(manifest):
        path = tmp_path / entry.path
        found = host.read(f"/{entry.path}")
        if entry.errno is not None:
            assert found == ReadError(entry.errno)
            with pytest.raises(OSError, match="Invalid argument"):
                path.read_bytes()
        elif path.is_dir():
            names = sorted(each.name for each in path.iterdir())
            assert host.names(f"/{entry.path}") == tuple(names)
        elif path.exists():
            assert found == path.read_bytes()
        else:
            assert host.target(f"/{entry.path}") is None
