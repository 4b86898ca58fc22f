"""A real mosquitto on the loopback interface."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def broker(folder: Path, port: int) -> Iterator[None]:
    """Run one until the caller is done; Debian puts the program beside PATH."""
    config = folder / f"mosquitto-{port}.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n", "utf-8")
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    with subprocess.Popen(
        ["mosquitto", "-c", str(config)],
        env=os.environ | {"PATH": path},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        finally:
            process.terminate()
