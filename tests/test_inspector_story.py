"""Files of NCCL's Inspector in a trace, up to what is exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fabricmon.replaying import Replay
from tests import traces
from tests.parse.test_inspector import RECORD
from tests.sinks.scraping import exposition, scrape

FILE = "/var/log/nccl/nccl-inspector-4711/node01-pid7.log"
PLACE = 'collective="AllReduce",comm="0x9e7a479f95a66c",rank="31",size="16GiB"'
BANDWIDTH = f"fabricmon_collective_bus_bandwidth_bytes_per_second{{{PLACE}}}"


def line(seconds: float) -> str:
    """Return the record as it was dumped so many seconds into the trace."""
    record: dict[str, Any] = json.loads(json.dumps(RECORD))
    record["metadata"]["hostname"] = "node01"
    record["metadata"]["dump_timestamp_us"] = int((traces.START + seconds) * 1e6)
    return json.dumps(record) + "\n"


def exported(folder: Path, end: float) -> str | None:
    """Return the bandwidth that is exported when a trace ends: a job wrote until 110."""
    folder.mkdir()
    times = [t for t in range(20, 120, 10) if t < end]
    path = traces.write(
        folder,
        [
            {"t": 0, "set": {"/proc/sys/kernel/hostname": "node01\n"}},
            *({"t": t, "append": {FILE: line(t)}} for t in times),
            {"t": end},
        ],
    )
    replay = Replay(path)
    list(replay.changes())
    return scrape(exposition(replay.pipeline.snapshot)).get(BANDWIDTH)


def test_a_job_that_writes_and_ends(tmp_path: Path) -> None:
    """Its rates are exported while they are new, and leave no series behind."""
    assert exported(tmp_path / "before", 10) is None
    assert float(exported(tmp_path / "while", 130) or 0) == 537.096146e9
    assert exported(tmp_path / "after", 900) is None
