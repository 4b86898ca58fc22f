"""What the agent kept, taken by somebody who may be root: only traces, and bounded."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricmon.config import Config
from fabricmon.config_load import build
from fabricmon.host.trace import Header, TraceRecord
from fabricmon.host.trace_write import TraceWriter
from fabricmon.support import history
from fabricmon.support.history import job_paths, plan_paths, take_history
from fabricmon.support.joining import Source
from tests.support.agent import Json
from tests.traces import START

ROOM = 1 << 20


class Kept:
    """A history, and where it is copied to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "state" / "history"
        self.folder.mkdir(parents=True)
        self.copies = folder / "copies"
        self.copies.mkdir()
        tree: Json = {
            "state_folder": str(folder / "state"),
            "history": {"minutes": 10},
        }
        self.config: Config = build(tree, (), ()).config

    def path(self, number: int) -> Path:
        """Name a segment."""
        return self.folder / f"000001-{number:06d}.trace.jsonl.gz"

    def write(self, number: int) -> None:
        """Write a segment."""
        with TraceWriter(self.path(number), Header(node="n", start=START)) as writer:
            writer.write(TraceRecord(t=number))

    def taken(self) -> history.LastMinutes:
        """Take it."""
        return take_history(self.config, self.copies, ROOM)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return an empty history."""
    return Kept(tmp_path)


class TestTaken:
    def test_what_is_no_file(self, kept: Kept) -> None:
        """A link to a device without end, or a pipe, is left; the rest is taken."""
        kept.write(1)
        kept.path(2).symlink_to("/dev/zero")
        os.mkfifo(kept.path(3))
        kept.path(4).symlink_to(kept.path(1))
        last = kept.taken()
        assert [each.path.name for each in last.sources] == [kept.path(1).name]
        assert "cannot be copied" in (last.note or "")
        assert [path.name for path in kept.copies.iterdir()] == [kept.path(1).name]

    def test_one_that_is_too_large(self, kept: Kept) -> None:
        """No more of it than has room."""
        kept.write(1)
        os.truncate(kept.path(1), 1 << 40)
        (source,) = kept.taken().sources
        assert source.path.stat().st_size == ROOM

    def test_the_time_of_its_end_stays(self, kept: Kept) -> None:
        """It says until when the agent kept something."""
        kept.write(1)
        os.utime(kept.path(1), (START, START))
        assert kept.taken().until == START

    def test_no_room_for_the_copy(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That is said, and not that nothing was kept; no half of it stays."""
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        kept.write(1)
        full = kept.copies / kept.path(1).name
        full.symlink_to("/dev/full")
        last = kept.taken()
        assert last.sources == ()
        assert "cannot be copied: No space left on device" in (last.note or "")
        assert not full.is_symlink()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder for recordings."""
    made = Path(tempfile.mkdtemp())
    yield made
    shutil.rmtree(made)


class TestPaths:
    def recording(self, folder: Path, config: Json | None, link: Json) -> list[Source]:
        """Return a recording that was made with this, and in which these links are."""
        path = folder / "x.jsonl"
        with TraceWriter(path, Header(node="n", start=START, config=config)) as writer:
            writer.write(TraceRecord(t=0, link=link))
        return [Source(path)]

    def test_by_the_configuration_of_then(self, folder: Path) -> None:
        """What has moved since is found where it was."""
        then: Json = {"run_folder": "/old/", "jobs": {"kubelet_socket": "/old.sock"}}
        then["maintenance_file"] = "/old.json"
        sources = self.recording(folder, then, {})
        config = build({}, (), ()).config
        found = job_paths(config, sources)
        assert {"/old/jobs", "/old.sock", "/run/fabricmon/jobs"} <= set(found)
        assert {"/old/maintenance.json", "/old.json"} <= set(
            plan_paths(config, sources)
        )

    def test_by_one_that_is_none(self, folder: Path) -> None:
        """Whatever stands there."""
        sources = self.recording(folder, {"run_folder": 7, "jobs": [1]}, {})
        config = build({}, (), ()).config
        assert job_paths(config, sources) == job_paths(config, [])

    def test_where_links_led(self, folder: Path) -> None:
        """Of a folder on the way, and of what lies below."""
        link = {
            "/var/log/pods": "../../data/pods",
            "/var/log/pods/a.log": "/data/containers/a.log",
            "/sys/class/net/ib0": "../../devices/ib0",
        }
        found = job_paths(build({}, (), ()).config, self.recording(folder, None, link))
        assert {"/data/pods", "/data/containers/a.log"} <= set(found)
        assert not any("ib0" in path for path in found)
