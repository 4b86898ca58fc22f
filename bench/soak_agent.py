"""Runs ``fabricmon`` as it is; on SIGUSR1 it also says how much it holds.

What only the process itself can count: tasks of its loop, objects that the collector of
garbage knows. The counts go to the file that ``SOAK_TOLD`` names, whole or not at all.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from fabricmon.cli import main


def tell(_number: int, _frame: FrameType | None) -> None:
    """Write the counts; runs in the loop's own thread, between two steps of it."""
    place = Path(os.environ["SOAK_TOLD"])
    try:
        tasks = len(asyncio.all_tasks())
    except RuntimeError:  # the loop does not run yet, or not any more
        return
    counts = {"tasks": tasks, "objects": len(gc.get_objects())}
    fresh = place.with_suffix(".new")
    fresh.write_text(json.dumps(counts), "ascii")
    fresh.replace(place)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    sys.exit(main(sys.argv[1:]))
