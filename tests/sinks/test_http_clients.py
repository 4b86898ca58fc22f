"""Clients that are slow, many, or never hang up: they lock nobody out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http import HTTPStatus

import pytest

from fabricmon.sinks.http import Limits, Listener
from fabricmon.sinks.http_message import Request, Response
from fabricmon.sinks.http_places import Part, Places
from fabricmon.sinks.http_transfer import send_all
from tests.support.servers import wait_until

WAIT = 10.0  # longer than anything here takes, unless it hangs
PATIENT = 4 * WAIT
IMPATIENT = 0.05
HUGE = b"x" * (32 << 20)
"""More than the kernel takes for a client that does not read."""


def hello(_request: Request) -> Response:
    """Answer at once."""
    return Response(b"hello\n")


def huge(_request: Request) -> Response:
    """Answer with more than fits into the buffers of a connection."""
    return Response(HUGE)


def echo(request: Request) -> Response:
    """Tell how much came."""
    return Response(b"%d" % len(request.body))


Start = Callable[..., Listener]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a listener with few places and much time."""
    with ExitStack() as stack:

        def make(connections: int = 3, patience: float = IMPATIENT) -> Listener:
            routes = {"/hello": hello, "/huge": huge}
            limits = Limits(connections, PATIENT, 1000, patience)
            posts = {"/post": echo}
            made = Listener("test", "127.0.0.1:0", routes, limits, posts=posts)
            made.open()
            stack.callback(made.close)
            return made

        yield make


def ask(listener: Listener, request: bytes) -> socket.socket:
    """Send a request, and do not read."""
    connection = socket.create_connection(("127.0.0.1", listener.port), timeout=WAIT)
    connection.sendall(request)
    return connection


def scrape(listener: Listener) -> int:
    """Ask as a scraper does; return the status, or raise what a scraper would meet."""
    with ask(listener, b"GET /hello HTTP/1.1\r\n\r\n") as connection:
        return int(connection.recv(1000).split()[1])


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"GET /hello HT",
        b"GET /huge HTTP/1.1\r\n\r\n",
        b"GET /hello HTTP/1.1\r\n\r\n",
        b"POST /post HTTP/1.1\r\nContent-Length: 9\r\n\r\nx",
    ],
    ids=["silent", "half a request", "never reads", "never leaves", "half a body"],
)
def test_slow_clients_lock_nobody_out(start: Start, request_: bytes) -> None:
    """Whatever it is that they do not do, who comes later is served soon."""
    listener = start()
    with ExitStack() as slow:
        for _ in range(3):
            slow.enter_context(ask(listener, request_))
        wait_until(
            lambda: len(listener._places._clients) == 3, WAIT, "all places are taken"
        )
        for _ in range(5):
            slow.enter_context(ask(listener, request_))
            begun = time.monotonic()
            assert scrape(listener) == HTTPStatus.OK
            assert time.monotonic() - begun < WAIT / 2


def test_nobody_is_cut_off_before_its_time(start: Start) -> None:
    """A client that takes a moment gets its answer, also while others wait."""
    listener = start(connections=1, patience=WAIT)
    with ask(listener, b"GET /hello") as first, ThreadPoolExecutor(1) as pool:
        wait_until(
            lambda: len(listener._places._clients) == 1, WAIT, "it has the place"
        )
        second = pool.submit(scrape, listener)
        first.sendall(b" HTTP/1.1\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.1 200")
        assert second.result(WAIT) == HTTPStatus.OK


def test_many_scrapes_at_a_time_are_all_answered(start: Start) -> None:
    """Who finds no place waits for one: a burst of scrapers is no reason for gaps."""
    listener = start(connections=8, patience=WAIT)
    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(lambda _: scrape(listener), range(200)))
    assert found == [HTTPStatus.OK] * 200


def test_threads_are_bounded(start: Start) -> None:
    """A flood of silent clients takes as many threads as there are places."""
    listener = start(connections=4)
    before = threading.active_count()
    with ExitStack() as slow:
        for _ in range(100):
            slow.enter_context(ask(listener, b""))
        assert scrape(listener) == HTTPStatus.OK
        assert threading.active_count() <= before + 4


def test_an_answer_has_one_time_in_all() -> None:
    """A client that takes a piece now and then does not begin the time anew."""

    class Dripping:
        """A connection that takes one octet each second, and a clock."""

        def __init__(self) -> None:
            self.now = 0.0
            self.patience = 0.0

        def settimeout(self, seconds: float) -> None:
            self.patience = seconds

        def send(self, _data: object) -> int:
            if self.patience < 1:
                raise TimeoutError
            self.now += 1
            return 1

    dripping = Dripping()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: dripping.now)
        with pytest.raises(TimeoutError):
            send_all(dripping, b"x" * 100, 3.5)  # type: ignore[arg-type]
    assert dripping.now == 3


class TestPlaces:
    def test_who_has_the_least_to_lose_is_cut_off_first(self) -> None:
        """First who has its answer, then who asks, then who takes it."""
        places = Places(3, 0.0)
        parts = (Part.TAKING, Part.ASKING, Part.LEAVING)
        ends = {}
        with ExitStack() as stack:
            for part in parts:
                ours, ends[part] = map(stack.enter_context, socket.socketpair())
                assert places.take(lambda: False)
                stack.enter_context(places.waits(ours, part))
            order = []
            for _ in parts:
                places._make_room()
                order.append({part for part, end in ends.items() if _has_ended(end)})
        leaving, asking = {Part.LEAVING}, {Part.LEAVING, Part.ASKING}
        assert order == [leaving, asking, set(parts)]

    def test_it_does_not_wait_while_it_stops(self) -> None:
        """An agent that ends is not held up by its clients."""
        places = Places(1, PATIENT)
        assert places.take(lambda: False)
        begun = time.monotonic()
        assert not places.take(lambda: True)
        assert time.monotonic() - begun < WAIT


def _has_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    with suppress(BlockingIOError):
        return connection.recv(1) == b""
    return False
