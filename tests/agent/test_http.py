"""Hostile clients of a running agent: it answers cleanly, goes on, and stays small."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.runtime.socket import NAME, ask
from tests.support.agent import AgentProcess, Node
from tests.support.servers import LOOPBACK, free_port

WAIT = 20.0  # longer than anything here takes, unless it hangs
SCRAPE_SECONDS = 5.0
"""A good scraper has its answer within; Prometheus gives up after 10."""

PLACES = 32
SLOW = 200
CONNECTIONS = 500
GROWTH_BYTES = 24 << 20
"""Threads and answers for `PLACES` clients; a leak per client would be more."""

LAG_SECONDS = 1.0
"""The loop answers within, also beside a flood on a crowded machine."""

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER = re.compile(rb"HTTP/1\.1 (?P<status>\d{3}) [A-Za-z -]+\r\n")


class Served:
    """An agent that serves metrics and page."""

    def __init__(self, folder: Path) -> None:
        Node(folder)
        self.page = free_port()
        page = f"{LOOPBACK}:{self.page}"
        self.agent = AgentProcess(folder, {"listen": {"page": page}}).start()
        self.process = psutil.Process(self.agent.pid)

    def send(self, raw: bytes, port: int | None = None) -> bytes:
        """Send octets and return all that is answered."""
        with _connect(port or self.agent.port) as connection:
            with suppress(OSError):  # it may refuse before all is sent
                connection.sendall(raw)
                connection.shutdown(socket.SHUT_WR)
            return _read(connection)

    def sockets(self) -> int:
        """Return how many the agent has open; its files come and go with polls."""
        return len(self.process.net_connections())

    def loop_lag(self) -> float:
        """Return how long the agent's own loop takes to answer at its socket."""
        begun = time.monotonic()
        answer = ask(f"{self.agent.run_folder}/{NAME}", {"ask": "nothing"}, WAIT)
        assert answer is not None
        return time.monotonic() - begun

    def is_sound(self) -> None:
        """Check that it serves, and that nothing in it went wrong."""
        assert b"fabricmon_build_info" in self.send(SCRAPE)
        assert "Traceback" not in self.agent.log_file.read_text()
        assert self.agent.lines("source_crashed") == []


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return an agent that is ready."""
    made = Served(tmp_path_factory.mktemp("http"))
    made.agent.until(lambda: len(made.agent.check()["ports"]) == 4, "it sees its ports")
    yield made
    made.is_sound()
    made.agent.stop()
    made.agent.close()


def _connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), timeout=WAIT)


def _read(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionError):
        while chunk := connection.recv(1 << 16):
            answer += chunk
    return answer


def _status(answer: bytes) -> int:
    found = ANSWER.match(answer)
    assert found is not None, answer[:200]
    return int(found["status"])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # Two lengths, or a length beside chunks: what smuggles a second request.
        ((b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
         b"\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"), {405}),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 44\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
         {200}),
        (b"GET /healthz HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", {200}),
        (b"GET /healthz\r\n\r\n", {505}),
        (b"GET /healthz HTTP/0.9\r\n\r\n", {505}),
        (b"GET /healthz HTTP/2.0\r\n\r\n", {505}),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505}),
        (b"GET /healthz HTTP/1.1 HTTP/1.1\r\n\r\n", {400}),
        (b"GET  HTTP/1.1\r\n\r\n", {400, 505}),
        (b"G\xc3\x84T /healthz HTTP/1.1\r\n\r\n", {400, 405}),
        (b"GET /h\xff\xfeealthz HTTP/1.1\r\n\r\n", {404}),
        (b"GET /metrics\0 HTTP/1.1\r\n\r\n", {400, 404}),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", {404}),
        (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n\r\n", {404}),
        (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", {404}),
        (b"GET //evil.example/metrics HTTP/1.1\r\n\r\n", {404}),
        (b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", {404}),
        (b"GET http://[::1 HTTP/1.1\r\n\r\n", {400}),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", {404}),
        (b"TRACE /metrics HTTP/1.1\r\nCookie: secret\r\n\r\n", {405}),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", {400, 404}),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", {405}),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx", {405}),
        (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n", {431}),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n", {431}),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", {431}),
        ((b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.a"
         b"\r\n\r\n"), {200}),
        (b"GET /metrics HTTP/1.1\r\nAccept: " + b"text/plain;version=9," * 300
         + b"\r\n\r\n", {200}),
        (b"GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip;q=x, \xff\r\n\r\n", {200}),
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 200 + b"\n\n", {400, 505}),
        (b"\0" * 9000, {431}),
        (b"\r\n" * 10, {400}),
    ],
)  # fmt: skip
def test_attack(served: Served, raw: bytes, expected: set[int]) -> None:
    """Each has one answer, which is no failure of ours, and nothing behind it."""
    answer = served.send(raw)
    assert _status(answer) in expected
    assert len(ANSWER.findall(answer)) == 1
    assert b"secret" not in answer


@pytest.mark.parametrize(
    "host", [b"evil.example", b"evil.example:9880", b"127.0.0.1.evil.example", b"[::2]"]
)
def test_page_of_another_name(served: Served, host: bytes) -> None:
    """A name that somebody pointed to this machine shows nothing of it."""
    answer = served.send(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", served.page)
    assert _status(answer) == 421
    assert b"mlx5" not in answer


PIECES = st.sampled_from(
    [
        *(
            b"GET ",
            b"POST ",
            b"HEAD ",
            b"/metrics",
            b"/healthz",
            b"/",
            b" HTTP/1.1\r\n",
        ),
        *(b" HTTP/1.0\r\n", b"\r\n", b"\r\n\r\n", b"\n\n", b"Host: ", b"localhost\r\n"),
        *(
            b"Content-Length: 5\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"5\r\nhello\r\n",
        ),
        *(b"Accept: ", b"application/openmetrics-text;version=", b"1.0.0", b"gzip"),
        *(b"Accept-Encoding: ", b":", b" ", b"\t", b"\0", b"\xff", b"%", b"?a=b", b"#"),
        *(
            b"Expect: 100-continue\r\n",
            b"Connection: keep-alive\r\n",
            b"http://[",
            b"-1",
        ),
        *(b"Content-Length: ", b"9" * 30, b"\x1f\x8b", b"a" * 9000),
    ]
)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    raw=st.lists(PIECES | st.binary(max_size=12), max_size=14).map(b"".join),
    page=st.booleans(),
)
def test_anything(served: Served, raw: bytes, page: bool) -> None:  # noqa: FBT001
    """Whatever is sent has one clean answer or none at all."""
    answer = served.send(raw, served.page if page else None)
    if answer:
        assert _status(answer) in {200, 400, 404, 405, 421, 431, 501, 505}


class Slow:
    """Clients that hold connections: some say nothing, some never read an answer."""

    def __init__(self, port: int, idle: int, deaf: int) -> None:
        self.open: list[socket.socket] = []
        for number in range(idle + deaf):
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            raw.settimeout(WAIT)
            raw.connect((LOOPBACK, port))
            self.open.append(raw)
            with suppress(OSError):
                raw.sendall(SCRAPE if number >= idle else b"GET /met")

    def close(self) -> None:
        """Hang up."""
        for connection in self.open:
            connection.close()


def _good(served: Served) -> float:
    """Scrape as Prometheus does; return how long it took."""
    begun = time.monotonic()
    answer = served.send(SCRAPE)
    assert _status(answer) == 200
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(body) in head + b"\r\n"
    return time.monotonic() - begun


def test_slow_and_many_clients(served: Served) -> None:
    """A flood costs a bounded number of threads and bytes, and no scrape its answer."""
    _good(served)
    before = served.process.memory_info().rss
    threads, sockets = served.process.num_threads(), served.sockets()
    stop, lags = threading.Event(), list[float]()

    def watch() -> None:
        while not stop.wait(0.02):
            lags.append(served.loop_lag())

    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        stack.callback(stop.set)
        for _ in range(3):
            slow = Slow(served.agent.port, CONNECTIONS - SLOW, SLOW)
            stack.callback(slow.close)
            took = [_good(served) for _ in range(3)]
            assert max(took) < SCRAPE_SECONDS
            assert served.process.num_threads() <= threads + PLACES
        grown = served.process.memory_info().rss - before
        stop.set()
        watching.result(WAIT)
    assert grown < GROWTH_BYTES
    assert sorted(lags)[int(len(lags) * 0.99)] < LAG_SECONDS
    served.agent.until(lambda: served.sockets() <= sockets, "all are forgotten", WAIT)


def test_many_scrapes_at_a_time(served: Served) -> None:
    """200 at once are all answered whole."""
    with ThreadPoolExecutor(SLOW) as pool:
        took = list(pool.map(lambda _: _good(served), range(SLOW)))
    assert max(took) < WAIT


def test_half_open_clients(served: Served) -> None:
    """Who vanishes without a word is forgotten in time, and holds no descriptor."""
    before = served.sockets()
    for _ in range(100):
        with _connect(served.agent.port) as connection:
            linger = b"\1\0\0\0\0\0\0\0"  # on, no time: a reset instead of an end
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(SCRAPE[: 1 + os.getpid() % len(SCRAPE)])
    served.agent.until(
        lambda: served.sockets() <= before + 2, "all are forgotten", WAIT
    )
