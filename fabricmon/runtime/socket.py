"""The socket at which the agent answers ``fabricmon check``.

One request is one line of JSON; the answer is one JSON document, then the end.
"""

from __future__ import annotations

import asyncio
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.errors import HostError

NAME = "agent.sock"
"""Name of the socket in the run folder."""

REQUEST_BYTES = 4096
ANSWER_BYTES = 64 * 1024 * 1024
EXCHANGE_SECONDS = 2.0
"""A client has this long for its request, and as long again to take the answer."""

MOST_CLIENTS = 16
"""Clients served at once; one more is turned away."""

_END = b"\n"  # after the answer, which has no line break: it arrived whole
_PARTING_SECONDS = 0.5  # for tasks whose connection was cut
_MODE = 0o666  # it only answers, with what /metrics and the page tell as well
_FOLDER_MODE = 0o755
_BACKLOG = 16
_ACCEPTS = 1  # tries at a time: without descriptors, asyncio logs each of them
_CHUNK_BYTES = 64 * 1024

Handler = Callable[[dict[str, Any]], bytes]


class AgentSocket:
    """A bound socket, in the file system only while an agent stands behind it.

    `bind` and `remove` touch the file system, so they are for before and after the
    event loop; `serve` is for within.
    """

    def __init__(self, path: str, listener: socket.socket, inode: int) -> None:
        self._path = path
        self._listener = listener
        self._inode = inode
        self._clients: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._refused = 0

    @classmethod
    def bind(cls, path: str) -> AgentSocket:
        """Take the place of a socket that nobody answers at.

        Makes its folder, which every user may look into. Raises HostError if somebody
        answers, or if the place cannot be taken.
        """
        _check_free(path)
        fresh = str(Path(path).with_suffix(".new"))
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _make_folder(Path(path).parent)
            Path(fresh).unlink(missing_ok=True)
            listener.bind(fresh)
            Path(fresh).chmod(_MODE)
            listener.listen(_BACKLOG)
            inode = Path(fresh).stat().st_ino
            Path(fresh).rename(path)  # so nobody ever sees it with another mode
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
            raise HostError(f"cannot listen here: {reason}", path=path) from error
        listener.setblocking(False)
        return cls(path, listener, inode)

    @property
    def refused(self) -> int:
        """Clients turned away because too many were being served."""
        return self._refused

    async def serve(self, handler: Handler, stop: asyncio.Event) -> None:
        """Answer clients until ``stop`` is set; `handler` makes an answer at once.

        An exception in the handler is told to its client and ends nothing.
        """

        async def answer(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await self._answer(handler, reader, writer)

        server = await asyncio.start_unix_server(
            answer, sock=self._listener, limit=REQUEST_BYTES, backlog=_ACCEPTS
        )
        self._listener.listen(_BACKLOG)
        try:
            await stop.wait()
        finally:
            server.close()
            clients = tuple(self._clients.items())
            for _, writer in clients:
                writer.transport.abort()
        if clients:
            await asyncio.wait([task for task, _ in clients], timeout=_PARTING_SECONDS)

    def remove(self) -> None:
        """Close the socket and take its name away, unless it is another agent's."""
        self._listener.close()
        with suppress(OSError):
            if Path(self._path).stat().st_ino == self._inode:
                Path(self._path).unlink()

    async def _answer(
        self,
        handler: Handler,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        if task is None or len(self._clients) >= MOST_CLIENTS:
            self._refused += 1
            writer.transport.abort()
            return
        self._clients[task] = writer
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits for all
        try:
            async with asyncio.timeout(EXCHANGE_SECONDS):
                line = await reader.readline()
            writer.write(_respond(handler, line) + _END)
            async with asyncio.timeout(EXCHANGE_SECONDS):
                await writer.drain()
        except (OSError, ValueError, TimeoutError):  # gone, too long, too slow
            writer.transport.abort()
        finally:
            del self._clients[task]
            writer.close()


def ask(path: str, request: Mapping[str, Any], seconds: float) -> bytes | None:
    """Ask the agent; None if nobody answers wholly within ``seconds``."""
    deadline = time.monotonic() + seconds
    answer = bytearray()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.settimeout(seconds)
            client.connect(path)
            client.sendall(msgspec.json.encode(request) + b"\n")
            while chunk := client.recv(_CHUNK_BYTES):
                answer += chunk
                client.settimeout(max(deadline - time.monotonic(), 0.001))
                if len(answer) > ANSWER_BYTES:
                    return None
        except (OSError, ValueError):
            return None
    return bytes(answer[: -len(_END)]) if answer.endswith(_END) else None


def _respond(handler: Handler, line: bytes) -> bytes:
    try:
        return handler(msgspec.json.decode(line, type=dict[str, Any]))
    except msgspec.DecodeError as error:
        return _error(f"not a request: {error}")
    except Exception as error:  # noqa: BLE001 -- a client must not end the agent
        return _error(f"{type(error).__name__}: {error}")


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir()
        folder.chmod(_FOLDER_MODE)  # whatever the umask


def _error(text: str) -> bytes:
    return msgspec.json.encode({"error": text})


def _check_free(path: str) -> None:
    with suppress(OSError):
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            raise HostError("is in the way of the agent's socket", path=path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(EXCHANGE_SECONDS)
        try:
            client.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
        except OSError as error:
            reason = error.strerror or str(error)
            raise HostError(f"cannot listen here: {reason}", path=path) from error
    raise HostError("another agent answers here", path=path)
