import asyncio
import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricmon.errors import HostError
from fabricmon.runtime import socket as module
from fabricmon.runtime.socket import NAME, REQUEST_BYTES, AgentSocket, ask
from tests.support.servers import wait_until

LARGE = b'"' + b"x" * 5_000_000 + b'"'


def handle(request: dict[str, Any]) -> bytes:
    """Answer as an agent would, or fail, or say much."""
    if request.get("fail"):
        raise KeyError("port")
    if request.get("large"):
        return LARGE
    return json.dumps({"asked": request}).encode()


class Agent:
    """An agent's socket, served by a loop in a thread of its own."""

    def __init__(self, path: str) -> None:
        self.socket = AgentSocket.bind(path)
        self.loop = asyncio.new_event_loop()
        self.stop = asyncio.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop, debug=False) as runner:
            runner.run(self.socket.serve(handle, self.stop))

    def end(self) -> None:
        """Stop serving and take the socket away."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.socket.remove()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return where the socket shall be."""
    return str(tmp_path / NAME)


@pytest.fixture
def agent(path: str) -> Iterator[Agent]:
    """Return an agent that answers."""
    running = Agent(path)
    yield running
    running.end()


@pytest.fixture
def bound(path: str) -> Iterator[AgentSocket]:
    """Return a socket that nobody serves yet."""
    free = AgentSocket.bind(path)
    yield free
    free.remove()


def connect(path: str) -> socket.socket:
    """Return a client that does as a test says."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(path)
    return client


def read_all(client: socket.socket) -> bytes:
    """Read until the agent ends the connection."""
    data = b""
    try:
        while chunk := client.recv(65536):
            data += chunk
    except ConnectionResetError:
        return data
    return data


class TestAsk:
    def test_answer(self, agent: Agent, path: str) -> None:
        """A request is answered with one document."""
        answer = ask(path, {"want": "check", "port": "mlx5_0/1"}, 10)

        assert answer == b'{"asked": {"want": "check", "port": "mlx5_0/1"}}'

    def test_large_answer(self, agent: Agent, path: str) -> None:
        """An answer of many pieces arrives whole."""
        assert ask(path, {"large": True}, 10) == LARGE

    def test_handler_fails(self, agent: Agent, path: str) -> None:
        """A bug in the handler is told to the client and ends nothing."""
        answer = ask(path, {"fail": True}, 10)

        assert answer == b"""{"error":"KeyError: 'port'"}"""
        assert ask(path, {}, 10) == b'{"asked": {}}'

    def test_nobody(self, path: str) -> None:
        """Without an agent the answer is None at once."""
        assert ask(path, {}, 10) is None

    def test_dead_socket(self, path: str) -> None:
        """A socket that nobody stands behind is the same."""
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)

        assert ask(path, {}, 10) is None

    @pytest.mark.parametrize("bad", ["/x\0y", "/" + "x" * 200])
    def test_impossible_path(self, bad: str) -> None:
        """A path that no socket can have is nobody, too."""
        assert ask(bad, {}, 10) is None

    def test_hung_agent(self, path: str) -> None:
        """An agent that hangs costs the time that was given, no more."""
        with socket.socket(socket.AF_UNIX) as hung:
            hung.bind(path)
            hung.listen()

            assert ask(path, {}, 0.05) is None

    @pytest.mark.parametrize("sent", [b"", b'{"half":', b'{"whole":1}'])
    def test_cut_answer(self, path: str, sent: bytes) -> None:
        """An answer whose end did not arrive is none."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()

            def answer() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(sent)

            thread = threading.Thread(target=answer)
            thread.start()

            assert ask(path, {}, 10) is None

            thread.join()


class TestServe:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.binary(max_size=100).filter(lambda line: b"\n" not in line))
    def test_any_request(self, agent: Agent, path: str, line: bytes) -> None:
        """Whatever comes is answered with a document."""
        with connect(path) as client:
            client.sendall(line + b"\n")

            assert json.loads(read_all(client))

    @pytest.mark.parametrize("request_line", [b"[1]\n", b"check\n", b"\n"])
    def test_no_request(self, agent: Agent, path: str, request_line: bytes) -> None:
        """What is not an object is an error that says so."""
        with connect(path) as client:
            client.sendall(request_line)

            assert "not a request" in json.loads(read_all(client))["error"]

    def test_long_request(self, agent: Agent, path: str) -> None:
        """A request beyond the limit is cut off, and the next is answered."""
        with connect(path) as client:
            client.sendall(b"x" * (3 * REQUEST_BYTES))

            assert read_all(client) == b""

        assert ask(path, {}, 10) == b'{"asked": {}}'

    def test_silent_client(
        self, agent: Agent, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A client that says nothing is let go."""
        monkeypatch.setattr(module, "EXCHANGE_SECONDS", 0.05)
        with connect(path) as client:
            assert read_all(client) == b""

    def test_client_that_does_not_read(
        self, agent: Agent, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An answer that nobody takes is dropped, and its memory with it."""
        monkeypatch.setattr(module, "EXCHANGE_SECONDS", 0.05)
        with connect(path) as client:
            client.sendall(b'{"large": true}\n')
            client.recv(1, socket.MSG_PEEK)  # the answer has begun
            wait_until(lambda: not agent.socket._clients, 10, "it was given up")

            assert len(read_all(client)) < len(LARGE)

    def test_client_goes_away(self, agent: Agent, path: str) -> None:
        """A client that goes before its answer ends nothing."""
        with connect(path) as client:
            client.sendall(b'{"large": true}\n')

        assert ask(path, {}, 10) == b'{"asked": {}}'

    def test_too_many_clients(
        self, agent: Agent, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One client above the limit is turned away; those within are served."""
        monkeypatch.setattr(module, "MOST_CLIENTS", 2)
        with connect(path) as first, connect(path) as second, connect(path) as third:
            assert read_all(third) == b""
            for client in (first, second):
                client.sendall(b"{}\n")
                assert read_all(client) == b'{"asked": {}}\n'

        assert agent.socket.refused == 1

    def test_stop_with_a_client(self, agent: Agent, path: str) -> None:
        """The end does not wait for a client that says nothing."""
        with connect(path) as client:
            client.sendall(b"{")
            wait_until(lambda: bool(agent.socket._clients), 10, "it is served")

            agent.end()

            assert read_all(client) == b""

    async def test_loop_is_not_blocked(self, bound: AgentSocket, path: str) -> None:
        """Serving touches no file."""
        stop = asyncio.Event()
        serving = asyncio.create_task(bound.serve(handle, stop))
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"{}\n")

        assert await reader.read() == b'{"asked": {}}\n'

        writer.close()
        stop.set()
        await serving


class TestBind:
    def test_mode(self, agent: Agent, path: str) -> None:
        """Every user may ask: nothing is secret; and no second name stays behind."""
        mode = Path(path).stat().st_mode

        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o666
        assert list(Path(path).parent.iterdir()) == [Path(path)]

    def test_removed(self, path: str) -> None:
        """At the end the name is gone."""
        Agent(path).end()

        assert not Path(path).exists()

    def test_stale(self, path: str) -> None:
        """A socket that a killed agent left behind is replaced."""
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)

        agent = Agent(path)

        assert ask(path, {}, 10) == b'{"asked": {}}'
        agent.end()

    def test_second_agent(self, agent: Agent, path: str) -> None:
        """An agent that answers is not pushed aside."""
        with pytest.raises(HostError, match="another agent answers here"):
            AgentSocket.bind(path)

        assert ask(path, {}, 10) == b'{"asked": {}}'

    def test_busy_agent(self, path: str) -> None:
        """One that does not come to answering is alive all the same."""
        with socket.socket(socket.AF_UNIX) as busy:
            busy.bind(path)
            busy.listen(0)
            with connect(path), pytest.raises(HostError):
                AgentSocket.bind(path)

    def test_file_in_the_way(self, path: str) -> None:
        """Somebody's file is never removed."""
        Path(path).write_text("precious")

        with pytest.raises(HostError, match="in the way"):
            AgentSocket.bind(path)

        assert Path(path).read_text() == "precious"

    def test_folder(self, tmp_path: Path) -> None:
        """One that is not there is made so that every user gets to the socket."""
        folder = tmp_path / "run"
        before = os.umask(0o077)
        try:
            AgentSocket.bind(str(folder / NAME)).remove()
        finally:
            os.umask(before)

        assert stat.S_IMODE(folder.stat().st_mode) == 0o755

    @pytest.mark.parametrize("folder", ["absent/too", "x" * 120])
    def test_impossible(self, tmp_path: Path, folder: str) -> None:
        """A place that cannot be taken is one clear error."""
        with pytest.raises(HostError, match="cannot listen here"):
            AgentSocket.bind(str(tmp_path / folder / NAME))

    def test_successor(self, path: str, tmp_path: Path) -> None:
        """An agent that ends does not take away its successor's socket."""
        first = AgentSocket.bind(path)
        first._listener.close()
        second = AgentSocket.bind(path)

        first.remove()

        assert Path(path).exists()
        second.remove()
        assert not Path(path).exists()
