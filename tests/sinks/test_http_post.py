"""POST on the HTTP server: only where it is wanted, and bounded like the rest."""

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from fabricmon.sinks.http import Limits, Listener
from fabricmon.sinks.http_message import Request, Response

Ask = Callable[..., str]
LIMITS = Limits(timeout_seconds=1, body_octets=100_000)


def length(request: Request) -> Response:
    """Tell how much came, and who sent it."""
    return Response(f"{len(request.body)} {request.authorization}\n".encode())


def hello(_request: Request) -> Response:
    """Answer a GET."""
    return Response(b"hello\n")


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A listener with one path for each method."""
    made = Listener(
        "test", "127.0.0.1:0", {"/get": hello}, LIMITS, posts={"/post": length}
    )
    made.open()
    yield made
    made.close()


@pytest.fixture
def ask(listener: Listener) -> Ask:
    """Send octets, in pieces, and return the answer."""

    def send(*pieces: bytes, end: bool = False) -> str:
        with socket.create_connection(("127.0.0.1", listener.port), 10) as client:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(0.01 if len(pieces) > 1 else 0)
            if end:
                client.shutdown(socket.SHUT_WR)
            answer = b""
            while received := client.recv(65536):
                answer += received
        return answer.decode()

    return send


def head(path: str = "/post", *fields: str, method: str = "POST") -> bytes:
    """Return the head of a request."""
    return "\r\n".join((f"{method} {path} HTTP/1.1", *fields, "", "")).encode()


def status(answer: str) -> int:
    """Return the status of an answer."""
    return int(answer.split()[1])


@pytest.mark.parametrize("size", [0, 1, 5000, 100_000])
def test_whole_body(ask: Ask, size: int) -> None:
    """A body arrives whole, whatever its length."""
    answer = ask(head("/post", f"Content-Length: {size}") + b"x" * size)

    assert status(answer) == 200
    assert answer.endswith(f"\r\n\r\n{size} \n")


def test_in_pieces(ask: Ask) -> None:
    """Head and body may be cut anywhere."""
    whole = head("/post", "Content-Length: 6", "Authorization: Bearer x") + b"abcdef"
    answer = ask(whole[:9], whole[9:-8], whole[-8:-3], whole[-3:])

    assert answer.endswith("6 Bearer x\n")


def test_what_follows_is_not_the_body(ask: Ask) -> None:
    """No more than was announced is taken."""
    answer = ask(head("/post", "Content-Length: 2") + b"abGET / HTTP/1.1\r\n\r\n")

    assert answer.endswith("\r\n\r\n2 \n")


@pytest.mark.parametrize(
    ("request_head", "expected"),
    [
        (head("/post"), 411),
        (head("/post", "Content-Length: -1"), 411),
        (head("/post", "Content-Length: 1e3"), 411),
        (head("/post", "Content-Length: +5"), 411),
        (head("/post", "Content-Length: 5", "Content-Length: 6"), 411),
        (head("/post", "Content-Length: 5", "Transfer-Encoding: chunked"), 411),
        (head("/post", "Transfer-Encoding: chunked"), 411),
        (head("/post", "Content-Length: 100001"), 413),
        (head("/post", "Content-Length: " + "9" * 18), 413),
        (head("/post", "Content-Length: " + "9" * 400), 411),
        (head("/get", "Content-Length: 1"), 405),
        (head("/post", method="GET"), 405),
        (head("/post", method="PUT"), 405),
        (head("/none", "Content-Length: 1"), 404),
    ],
)
def test_refused(ask: Ask, request_head: bytes, expected: int) -> None:
    """A body without a plain length, a long one, and another path are refused."""
    assert status(ask(request_head)) == expected


@pytest.mark.parametrize("sent", [b"", b"x", b"x" * 9])
def test_a_body_that_ends_early(ask: Ask, sent: bytes) -> None:
    """Less than was announced is no request; the route is not called."""
    assert ask(head("/post", "Content-Length: 10") + sent, end=True) == ""


def test_a_body_that_does_not_come(ask: Ask) -> None:
    """The client is dropped when its time is up."""
    begun = time.monotonic()

    assert ask(head("/post", "Content-Length: 10") + b"x") == ""
    assert time.monotonic() - begun < 5


def test_a_client_that_asks_first(ask: Ask) -> None:
    """Whoever waits to be told to go on is answered once the body is there."""
    first = head("/post", "Content-Length: 3", "Expect: 100-continue")

    assert ask(first, b"abc").endswith("\r\n\r\n3 \n")


def test_other_paths_still_answer(ask: Ask) -> None:
    """GET is as before."""
    assert ask(head("/get", method="GET")).endswith("hello\n")
