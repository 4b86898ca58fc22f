"""The HTTP server: fixed paths, bounded in time, size and number of clients."""

import contextlib
import errno
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import CapturingLogger

from fabricmon.errors import ConfigError, HostError
from fabricmon.sinks import http
from fabricmon.sinks.http import Limits, Listener, make_tls
from fabricmon.sinks.http_message import MOST_OCTETS, Header, Request, Response
from fabricmon.sinks.http_transfer import read_head
from tests.support.programs import require
from tests.support.servers import wait_until

WAIT = 10.0  # longer than anything here takes, unless it hangs
PATIENT = 2 * WAIT


def hello(request: Request) -> Response:
    """Tell what was asked."""
    return Response(f"{request.path} {request.query} {request.accept}\n".encode())


def broken(_request: Request) -> Response:
    """Fail as a programming error would."""
    raise KeyError("no such thing")


def styled(_request: Request) -> Response:
    """Answer with headers of its own."""
    return Response(b"x", headers=(Header("Content-Security-Policy", "own"),))


ROUTES = {"/hello": hello, "/broken": broken, "/styled": styled}
Start = Callable[..., Listener]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start listeners on free ports, and stop them."""
    started = []

    def make(
        routes: object = None, address: str = "127.0.0.1:0", **more: object
    ) -> Listener:
        listener = Listener("test", address, routes or ROUTES, **more)  # type: ignore[arg-type]
        listener.open()
        started.append(listener)
        return listener

    yield make
    for listener in started:
        listener.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Listener]:
    """Return one listener for the tests that cannot break it."""
    listener = Listener("test", "127.0.0.1:0", ROUTES, Limits(timeout_seconds=PATIENT))
    listener.open()
    yield listener
    listener.close()


def connect(listener: Listener) -> socket.socket:
    """Return a connection that does not wait for ever."""
    return socket.create_connection(("127.0.0.1", listener.port), timeout=WAIT)


def read(connection: socket.socket) -> bytes:
    """Read all there is until the server ends."""
    received = b""
    while chunk := connection.recv(1 << 16):
        received += chunk
    return received


def send(listener: Listener, sent: bytes, *, end: bool = False) -> bytes:
    """Send octets, tell the end if asked to, and return the answer."""
    with connect(listener) as connection:
        connection.sendall(sent)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return read(connection)


def get(listener: Listener, target: str = "/hello", method: str = "GET") -> bytes:
    """Return the answer to a plain request."""
    return send(listener, f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def status(answer: bytes) -> int:
    """Return the status of an answer."""
    return int(answer.split(b" ", 2)[1])


def failures(listener: Listener) -> float:
    """Return how many failures the listener counted."""
    (metric,) = listener.collect()
    return float(metric.samples[0].value)


class TestRoutes:
    def test_path_is_answered(self, shared: Listener) -> None:
        """Path, query and the headers that matter reach the route."""
        request = b"GET /hello?a=1 HTTP/1.1\r\nAccept: text/x\r\n\r\n"
        head, _, body = send(shared, request).partition(b"\r\n\r\n")
        assert body == b"/hello a=1 text/x\n"
        assert b"Content-Length: 18\r\n" in head + b"\r\n"

    def test_folded_header_is_one_line(self, shared: Listener) -> None:
        """What a route echoes cannot begin a header of the answer."""
        request = b"GET /hello HTTP/1.1\r\nAccept: a\r\n b\r\n\r\n"
        assert send(shared, request).endswith(b"/hello  a b\n")

    @pytest.mark.parametrize(
        ("method", "target", "expected"),
        [
            ("GET", "/hello", 200),
            ("GET", "http://elsewhere:1/hello", 200),
            ("GET", "/", 404),
            ("GET", "/hello/", 404),
            ("GET", "/../hello", 404),
            ("GET", "/%68ello", 404),
            ("POST", "/hello", 405),
            ("DELETE", "/hello", 405),
            ("POST", "/nowhere", 404),
            ("GET", "/broken", 500),
        ],
    )
    def test_status(
        self, shared: Listener, method: str, target: str, expected: int
    ) -> None:
        """Only exact paths exist, only for GET and HEAD."""
        assert status(get(shared, target, method)) == expected

    def test_other_methods_are_told_which_exist(self, shared: Listener) -> None:
        """405 comes with Allow."""
        assert b"\r\nAllow: GET, HEAD\r\n" in get(shared, "/hello", "PUT")

    def test_head_has_the_length_but_no_body(self, shared: Listener) -> None:
        """A probe may ask for the head alone."""
        answer = get(shared, "/hello", "HEAD")
        length = len(get(shared, "/hello").partition(b"\r\n\r\n")[2])
        assert answer.endswith(b"\r\n\r\n")
        assert f"Content-Length: {length}".encode() in answer

    def test_answer_to_a_request_with_a_body_arrives(self, shared: Listener) -> None:
        """The body is not read, and the client still sees why."""
        request = b"POST /hello HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + b"x" * 4000
        assert status(send(shared, request)) == 405

    def test_route_that_fails_is_counted(self, start: Start) -> None:
        """A failure shows as a number, not as a traceback on the terminal."""
        listener = start()
        get(listener, "/broken")
        assert failures(listener) == 1
        assert status(get(listener, "/hello")) == 200

    def test_route_that_fails_is_logged_once_a_minute(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often it is asked for, and whether or not it worked between."""
        broken = [True]

        def wavering(_: Request) -> Response:
            return Response(b"" if not broken[0] else str(1 // 0).encode())

        log = CapturingLogger()
        listener = Listener(
            "test", "127.0.0.1:0", {"/": wavering}, log=cast("Any", log)
        )
        with contextlib.closing(listener):
            listener.open()
            for fails in (True, True, False, True):
                broken[0] = fails
                assert status(get(listener, "/")) == (500 if fails else 200)
            assert [call.args for call in log.calls] == [("page_crashed",)]
            monkeypatch.setattr(http, "TELL_SECONDS", 0.0)
            assert status(get(listener, "/")) == 500
        assert len(log.calls) == 2
        assert "ZeroDivisionError" in log.calls[0].kwargs["err"]

    def test_headers_forbid_what_no_page_needs(self, shared: Listener) -> None:
        """Nothing is sniffed, framed, cached or referred to."""
        answer = get(shared)
        for name in (b"X-Content-Type-Options: nosniff", b"X-Frame-Options: DENY"):
            assert name in answer
        assert b"Content-Security-Policy: default-src 'none'" in answer

    def test_program_does_not_name_itself(self, shared: Listener) -> None:
        """Versions are for who may read the metrics."""
        assert b"server:" not in get(shared).lower()

    def test_route_may_set_a_header_itself(self, shared: Listener) -> None:
        """Its own value stands, once."""
        answer = get(shared, "/styled")
        assert answer.count(b"Content-Security-Policy: ") == 1
        assert b"Content-Security-Policy: own\r\n" in answer

    def test_slow_route_does_not_hold_up_others(self, start: Start) -> None:
        """A probe is answered while a scrape takes its time."""
        entered, leave = threading.Event(), threading.Event()

        def slow(_request: Request) -> Response:
            entered.set()
            assert leave.wait(WAIT)
            return Response(b"late\n")

        listener = start({"/slow": slow, "/hello": hello})
        with connect(listener) as connection:
            connection.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
            assert entered.wait(WAIT)
            assert status(get(listener)) == 200
            leave.set()
            assert read(connection).endswith(b"late\n")


class TestHostileClients:
    @given(sent=st.binary(max_size=300))
    def test_garbage_does_no_harm(self, shared: Listener, sent: bytes) -> None:
        """Any octets end in an answer or a closed connection."""
        answer = send(shared, sent + b"\r\n\r\n", end=True)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
        assert status(get(shared)) == 200

    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            (b"GET /hello\r\n\r\n", 505),
            (b"GET /hello HTTP/2.0\r\n\r\n", 505),
            (b"GET /hello HTTP/1.x\r\n\r\n", 400),
            (b"GET http://[ HTTP/1.1\r\n\r\n", 400),
            (b"GET\r\n\r\n", 400),
            (b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n", 200),
            (b"GET /hello HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", 200),
            (b"GET /hello HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
            (b"GET /" + b"x" * 2 * MOST_OCTETS + b" HTTP/1.1\r\n\r\n", 431),
        ],
    )
    def test_malformed_request(
        self, shared: Listener, request_: bytes, expected: int
    ) -> None:
        """Each is answered with what is wrong."""
        assert status(send(shared, request_)) == expected

    def test_request_without_end_is_refused_at_its_limit(
        self, shared: Listener
    ) -> None:
        """At once, not when its time is over, and nothing more is kept of it."""
        with connect(shared) as connection:
            connection.sendall(b"x" * (MOST_OCTETS + 1))
            head = connection.recv(1 << 16)
        assert status(head) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE

    def test_client_that_says_nothing_is_no_failure(self, start: Start) -> None:
        """Probes of the port alone are usual."""
        listener = start()
        assert send(listener, b"", end=True) == b""
        get(listener)
        assert failures(listener) == 0

    def test_client_that_ends_within_its_request_is_dropped(self, start: Start) -> None:
        """Half a request is none."""
        assert send(start(), b"GET /hello HT", end=True) == b""

    def test_silent_client_is_dropped_in_time(self, start: Start) -> None:
        """It may not hold a thread for ever."""
        listener = start(limits=Limits(timeout_seconds=0.05))
        with connect(listener) as connection:
            assert read(connection) == b""

    def test_dripping_client_is_dropped_in_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The time is for the whole request, however often something comes."""

        class Dripping:
            """A connection that brings one octet a second, and a clock."""

            def __init__(self) -> None:
                self.now = 0.0
                self.patience = 0.0

            def settimeout(self, seconds: float) -> None:
                self.patience = seconds

            def recv(self, _size: int) -> bytes:
                if self.patience < 1:
                    raise TimeoutError
                self.now += 1
                return b"x"

        dripping = Dripping()
        monkeypatch.setattr(time, "monotonic", lambda: dripping.now)
        with pytest.raises(TimeoutError):
            read_head(dripping, 3.5)  # type: ignore[arg-type]
        assert dripping.now == 3

    def test_client_that_does_not_read_is_dropped(self, start: Start) -> None:
        """An answer that nobody takes ends too."""
        done = threading.Event()

        def huge(_request: Request) -> Response:
            done.set()
            return Response(b"x" * (64 << 20))

        listener = start({"/huge": huge, "/hello": hello}, limits=Limits(1, 0.05))
        with connect(listener) as connection:
            connection.sendall(b"GET /huge HTTP/1.1\r\n\r\n")
            assert done.wait(WAIT)
            assert served_at_last(listener)
        assert failures(listener) >= 1

    def test_one_client_too_many_is_sent_away(self, start: Start) -> None:
        """A flood takes a bounded number of threads; there is room again after it."""
        done, busy = threading.Event(), threading.Semaphore(0)

        def slow(_request: Request) -> Response:
            busy.release()
            done.wait(WAIT)
            return Response(b"")

        limits = Limits(connections=2, timeout_seconds=WAIT)
        listener = start({"/slow": slow, "/hello": hello}, limits=limits)
        with connect(listener) as one, connect(listener) as two:
            for connection in (one, two):
                connection.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
                assert busy.acquire(timeout=WAIT)
            with connect(listener) as third:
                assert status(read(third)) == HTTPStatus.SERVICE_UNAVAILABLE
            assert failures(listener) == 1
            done.set()
        assert served_at_last(listener)

    def test_who_dawdles_makes_room(self, start: Start) -> None:
        """Where every place is held by half a request, the oldest is dropped."""
        limits = Limits(connections=2, timeout_seconds=PATIENT)
        listener = start(limits=limits)
        with connect(listener) as one:
            one.sendall(b"G")
            wait_until(lambda: len(listener._places._clients) == 1, WAIT, "one is read")
            with connect(listener):
                wait_until(
                    lambda: len(listener._places._clients) == 2, WAIT, "so is the next"
                )
                assert status(get(listener)) == HTTPStatus.OK
                assert read(one) == b""

    def test_an_error_that_nobody_foresaw(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It costs its client the answer, and nobody else anything."""
        listener = start(limits=Limits(connections=1, timeout_seconds=WAIT))
        with monkeypatch.context() as patch:
            patch.setattr(http, "parse", lambda _head: 1 / 0)
            assert get(listener) == b""
            wait_until(lambda: failures(listener) == 1, WAIT, "it is counted")
        assert served_at_last(listener)

    def test_a_thread_is_kept_for_the_next_client(self, start: Start) -> None:
        """Scrapes that come one after the other share it; together they do not wait."""
        idents: list[int] = []

        def who(_request: Request) -> Response:
            idents.append(threading.get_ident())
            return Response(b"")

        listener = start({"/hello": who})
        for _ in range(3):
            get(listener)
            wait_until(lambda: listener._has_spare, WAIT, "it waits for the next")
        assert len(set(idents)) == 1
        with connect(listener):
            get(listener)
        assert len(set(idents)) == 2

    def test_the_thread_that_is_kept_ends(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody comes any more; who comes later is served all the same."""
        monkeypatch.setattr(http, "SPARE_SECONDS", 0.01)
        before = threading.active_count()
        listener = start()
        get(listener)
        wait_until(lambda: threading.active_count() == before + 1, WAIT, "it has ended")
        assert status(get(listener)) == 200

    def test_out_of_descriptors_it_goes_on(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A connection that cannot be accepted is counted, and later ones are served."""
        monkeypatch.setattr(http, "_PAUSE_SECONDS", 0)
        listener = start()

        class Exhausted:
            """A listening socket of a process without free descriptors."""

            def accept(self) -> None:
                raise OSError(errno.EMFILE, "Too many open files")

        listener._accept(Exhausted())  # type: ignore[arg-type]
        assert failures(listener) == 1
        assert status(get(listener)) == 200

    def test_client_that_is_gone_before_it_is_accepted_is_no_failure(
        self, start: Start
    ) -> None:
        """It happens with every scan of ports."""
        listener = start()

        class Gone:
            """A listening socket whose only client has reset the connection."""

            def accept(self) -> None:
                raise ConnectionAbortedError

        listener._accept(Gone())  # type: ignore[arg-type]
        assert failures(listener) == 0

    def test_out_of_threads_the_client_is_sent_away(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And its place is free again."""
        listener = start(limits=Limits(connections=1))

        def fail(_thread: threading.Thread) -> None:
            message = "can't start new thread"
            raise RuntimeError(message)

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            with connect(listener) as connection:
                assert status(read(connection)) == HTTPStatus.SERVICE_UNAVAILABLE
        assert status(get(listener)) == 200

    def test_many_clients_at_once_are_all_answered(self, start: Start) -> None:
        """Each gets the page or is told to come again."""
        listener = start(limits=Limits(connections=4))
        with ThreadPoolExecutor(16) as pool:
            found = set(pool.map(lambda _: _tolerant(listener), range(200)))
        assert 200 in found
        assert found <= {200, 503, 0}
        assert served_at_last(listener)


def _tolerant(listener: Listener) -> int:
    """Return a status, 0 where the refusal was lost with the connection."""
    try:
        return status(get(listener))
    except (ConnectionError, IndexError):
        return 0


def served_at_last(listener: Listener) -> bool:
    """Ask until a place is free, for a bounded time."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if _tolerant(listener) == HTTPStatus.OK:
            return True
    return False


class TestLife:
    def test_close_is_quick_and_frees_the_address(self, start: Start) -> None:
        """Also while a client is connected and silent."""
        listener = start(limits=Limits(timeout_seconds=WAIT))
        port = listener.port
        with connect(listener):
            before = time.monotonic()
            listener.close()
            assert time.monotonic() - before < 0.5
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=WAIT)

    def test_it_can_be_opened_again(self, start: Start) -> None:
        """A listener that was closed is as new."""
        listener = start()
        listener.close()
        listener.open()
        assert status(get(listener)) == 200

    def test_address_in_use_is_one_clear_error(self, start: Start) -> None:
        """Two agents on a node: the second says so."""
        first = start()
        with pytest.raises(HostError) as caught:
            start(address=f"127.0.0.1:{first.port}")
        assert caught.value.errno == "EADDRINUSE"
        said = f"listen.test: cannot listen on 127.0.0.1 port {first.port}: "
        assert str(caught.value) == said + "Address already in use (EADDRINUSE)"

    @pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "::1:80"])
    def test_text_that_is_no_address_is_refused(self, address: str) -> None:
        """What is wrong with it is said at once."""
        with pytest.raises(ConfigError, match="no address"):
            Listener("test", address, ROUTES)

    def test_host_that_does_not_exist_is_one_clear_error(self) -> None:
        """Names come from the configuration."""
        with pytest.raises(HostError, match=r"cannot listen on no\.such\.invalid"):
            Listener("test", "no.such.invalid:0", ROUTES).open()

    @pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
    def test_address_of_ipv6(self, start: Start) -> None:
        """Brackets, as in URLs."""
        listener = start(address="[::1]:0")
        address = ("::1", listener.port)
        with socket.create_connection(address, timeout=WAIT) as connection:
            connection.sendall(b"GET /hello HTTP/1.1\r\n\r\n")
            assert status(read(connection)) == 200

    @pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
    def test_every_address_of_both_families(self, start: Start) -> None:
        """``[::]`` takes IPv4 too."""
        assert status(get(start(address="[::]:0"))) == 200


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the keys of a server and of a client, each its own mark."""
    folder = tmp_path_factory.mktemp("keys")
    openssl = require("openssl")
    for name in ("server", "client"):
        command: list[str | Path] = [
            openssl, "req", "-x509", "-newkey", "ec",
            "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
    return folder


def client(keys: Path, *, identified: bool) -> ssl.SSLContext:
    """Return what a client trusts, and its own key if it is to show one."""
    context = ssl.create_default_context(cafile=keys / "server.pem")
    if identified:
        context.load_cert_chain(keys / "client.pem", keys / "client.key")
    return context


class TestTls:
    def secured(
        self, start: Start, keys: Path, authority: str | None, connections: int = 32
    ) -> Listener:
        """Start a listener with the server's key."""
        tls = make_tls(
            str(keys / "server.pem"),
            str(keys / "server.key"),
            authority and str(keys / authority),
        )
        return start(tls=tls, limits=Limits(connections, timeout_seconds=WAIT))

    def test_who_never_shakes_hands_makes_room(self, start: Start, keys: Path) -> None:
        """A client that says nothing keeps nobody else away."""
        listener = self.secured(start, keys, None, connections=1)
        with connect(listener) as silent:
            wait_until(lambda: len(listener._places._clients) == 1, WAIT, "it is read")
            answer = self.ask(listener, client(keys, identified=False))
            assert status(answer) == HTTPStatus.OK
            assert read(silent) == b""

    def ask(self, listener: Listener, context: ssl.SSLContext) -> bytes:
        """Ask over TLS."""
        with context.wrap_socket(
            connect(listener), server_hostname="127.0.0.1"
        ) as connection:
            connection.sendall(b"GET /hello HTTP/1.1\r\n\r\n")
            return read(connection)

    def test_page_over_tls(self, start: Start, keys: Path) -> None:
        """Encrypted, and the server shows its certificate."""
        listener = self.secured(start, keys, None)
        assert status(self.ask(listener, client(keys, identified=False))) == 200

    def test_client_that_shows_its_mark_is_served(
        self, start: Start, keys: Path
    ) -> None:
        """With an authority, it takes a certificate of it."""
        listener = self.secured(start, keys, "client.pem")
        assert status(self.ask(listener, client(keys, identified=True))) == 200

    def test_client_without_is_sent_away(self, start: Start, keys: Path) -> None:
        """And learns nothing."""
        listener = self.secured(start, keys, "client.pem")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            self.ask(listener, client(keys, identified=False))

    def test_client_that_never_greets_does_not_hold_up_others(
        self, start: Start, keys: Path
    ) -> None:
        """The handshake is its own thread's affair."""
        listener = self.secured(start, keys, None)
        with connect(listener):
            assert status(self.ask(listener, client(keys, identified=False))) == 200

    def test_key_that_cannot_be_used_is_one_clear_error(self, keys: Path) -> None:
        """The file is named."""
        with pytest.raises(HostError, match=r"server.pem.*TLS cannot be set up"):
            make_tls(str(keys / "server.pem"), str(keys / "client.key"), None)
