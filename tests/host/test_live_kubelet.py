"""The one gRPC call of the agent, against the bytes of a real gRPC server."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from fabricmon.host.live_kubelet import CALL, pod_resources
from fabricmon.host.protocol import ReadError
from tests.parse.test_pod_resources import ANSWER

RECORDED = Path("tests/data/kubelet/list.http2").read_bytes()
FRAME = 9


class Kubelet:
    """Answers one call with these bytes, a few at a time; keeps what it was sent."""

    def __init__(self, path: Path, answer: bytes, step: int, *, ends: bool) -> None:
        self.path = str(path / "kubelet.sock")
        self.heard = b""
        self._answer, self._step, self._ends = answer, step, ends
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        link, _ = self._socket.accept()
        with link:
            link.settimeout(5)
            try:
                self.heard += link.recv(1 << 16)
                for start in range(0, len(self._answer), self._step):
                    link.sendall(self._answer[start : start + self._step])
                while not self._ends and (more := link.recv(1 << 16)):
                    self.heard += more
            except OSError:
                pass

    def close(self) -> None:
        """Stop, and wait for what it still hears."""
        self._socket.close()
        self._thread.join(5)


Serve = Callable[..., Kubelet]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Return what starts a kubelet."""
    kubelets = []

    def start(answer: bytes, step: int = 7, *, ends: bool = False) -> Kubelet:
        kubelets.append(Kubelet(tmp_path, answer, step, ends=ends))
        return kubelets[-1]

    yield start
    for kubelet in kubelets:
        kubelet.close()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame of HTTP/2."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def message(text: bytes) -> bytes:
    """Return a message of gRPC."""
    return b"\0" + len(text).to_bytes(4, "big") + text


class TestAnswer:
    @pytest.mark.parametrize("step", [1, 7, 100_000])
    def test_of_a_real_server(self, serve: Serve, step: int) -> None:
        """However its bytes come in; headers are never decoded."""
        kubelet = serve(RECORDED, step)
        assert pod_resources(kubelet.path, 5) == ANSWER
        assert kubelet.heard.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert CALL.encode() in kubelet.heard

    def test_in_several_frames_with_padding(self, serve: Serve) -> None:
        """A large node has more than one frame holds; each is granted again."""
        whole = message(b"x" * 40_000)
        padded = b"\x03" + whole[:20_000] + b"\0\0\0"
        frames = frame(0, 8, 1, padded) + frame(6, 0, 0, b"12345678")
        kubelet = serve(frames + frame(0, 0, 1, whole[20_000:]), 9999)
        assert pod_resources(kubelet.path, 5) == b"x" * 40_000
        kubelet.close()
        assert frame(6, 1, 0, b"12345678") in kubelet.heard
        assert frame(8, 0, 1, len(padded).to_bytes(4, "big")) in kubelet.heard

    @pytest.mark.parametrize(
        "answer",
        [
            frame(1, 5, 1, b"trailers"),
            frame(3, 0, 1, b"\0\0\0\1"),
            frame(7, 0, 0, b"\0" * 8),
            frame(0, 0, 1, b"\1" + message(b"x")[1:]),
            b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 10,
        ],
        ids=["refused", "reset", "goes away", "compressed", "no HTTP/2"],
    )
    def test_none(self, serve: Serve, answer: bytes) -> None:
        """Whatever it says instead, it is one error."""
        kubelet = serve(answer, ends=True)
        assert pod_resources(kubelet.path, 5) == ReadError("EPROTO")

    def test_a_server_that_is_silent(self, serve: Serve) -> None:
        """The call ends at its deadline."""
        assert pod_resources(serve(b"").path, 0.05) == ReadError("ETIMEDOUT")

    def test_too_much(self, serve: Serve) -> None:
        """A message without end is not kept."""
        part = frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * (1 << 23))
        kubelet = serve(part * 3, 1 << 20)
        assert pod_resources(kubelet.path, 5) == ReadError("EFBIG")

    def test_no_socket(self, tmp_path: Path) -> None:
        """There is no kubelet, or its folder is not given to us."""
        assert pod_resources(str(tmp_path / "x"), 1) == ReadError("ENOENT")
        assert pod_resources("/" + "x" * 200, 1) == ReadError("EPROTO")
