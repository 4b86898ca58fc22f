"""A receiver of Alertmanager's notifications on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers import LOOPBACK


@dataclass(frozen=True)
class Delivery:
    """One alert of a notification, and the path that it came to."""

    path: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Webhook:
    """What came in, by the path it came to."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._came = threading.Condition()
        self._received: list[tuple[str, dict[str, Any]]] = []
        self.port = 0

    def take(self, path: str, body: dict[str, Any]) -> None:
        """Keep a notification."""
        with self._came:
            self._received.append((path, body))
            self._came.notify_all()

    def url(self, path: str) -> str:
        """Return where to send to."""
        return f"http://{LOOPBACK}:{self.port}{path}"

    def wait_for(self, count: int, seconds: float = 30) -> None:
        """Return once so many came; fail when they do not in time."""
        with self._came:
            done = self._came.wait_for(lambda: len(self._received) >= count, seconds)
        assert done, f"{len(self._received)} of {count} notifications came"

    def wait_for_alert(
        self, status: str, labels: Mapping[str, str], seconds: float = 45
    ) -> Delivery:
        """Return the first alert with a status and labels, as soon as it came."""
        with self._came:
            self._came.wait_for(lambda: self._told(status, labels), seconds)
            found = self._told(status, labels)
        assert found, f"no alert is {status} with {labels}: {self.deliveries()}"
        return found[0]

    def deliveries(self, **labels: str) -> list[Delivery]:
        """Return every alert with these labels, in order of coming."""
        with self._came:
            return [each for each in self._all() if _has(each, labels)]

    def _told(self, status: str, labels: Mapping[str, str]) -> list[Delivery]:
        return [e for e in self._all() if e.status == status and _has(e, labels)]

    def _all(self) -> Iterator[Delivery]:
        for path, body in self._received:
            for each in body["alerts"]:
                told = each["status"], each["labels"], each["annotations"]
                yield Delivery(path, *told)

    @property
    def received(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """All notifications so far, each with its path."""
        with self._came:
            return tuple(self._received)

    def alerts(self, path: str) -> list[list[str]]:
        """Return the names of alerts in each notification to a path, sorted."""
        with self._came:
            return sorted(
                sorted(alert["labels"]["alertname"] for alert in body["alerts"])
                for where, body in self._received
                if where == path
            )


def _has(delivery: Delivery, labels: Mapping[str, str]) -> bool:
    return labels.items() <= delivery.labels.items()


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Serve one until the end of the ``with``."""
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            hook.take(self.path, json.loads(self.rfile.read(length)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
