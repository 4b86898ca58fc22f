"""`fabricmon demo` as a process, with the page and the metrics on free ports."""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.servers import LOOPBACK, STOP_SECONDS, Server, answers, free_port

Json = dict[str, Any]


class Demo(Server):
    """A demo that plays; `url` is its page."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        command: tuple[str, ...] = ("demo",),
        config: Json | None = None,
    ) -> None:
        page, self.metrics_port = free_port(), free_port()
        listen = {
            "page": f"{LOOPBACK}:{page}",
            "metrics": f"{LOOPBACK}:{self.metrics_port}",
        }
        file = folder / f"demo-{page}.yaml"
        file.write_text(json.dumps({"listen": listen, **(config or {})}))
        super().__init__(
            [
                *(sys.executable, "-m", "fabricmon", *command),
                *("--config", str(file), *words),
            ],
            page,
            file.with_suffix(".log"),
            lambda: answers(f"{self.url}/"),
        )

    @property
    def command(self) -> list[str]:
        """The command line that starts it."""
        return self._command

    def end(self, number: int) -> int:
        """Send a signal; return the exit status."""
        assert self._process is not None
        self._process.send_signal(number)
        status = self._process.wait(STOP_SECONDS)
        self._process = None
        return status

    def page(self, path: str = "/") -> str:
        """Return what the page's listener serves; raises `OSError`."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as reply:
            return str(reply.read().decode())

    def lines(self, event: str) -> list[Json]:
        """Return what it logged of one event."""
        lines = self.log.read_text().splitlines()
        logged = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in logged if line["event"] == event]
