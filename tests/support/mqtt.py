"""The other end of MQTT in tests: a client that listens, a slow path, certificates."""

import json
import queue
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.support.programs import require
from tests.support.servers import LOOPBACK, wait_until

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Heard:
    """A message as it arrived."""

    topic: str
    payload: bytes
    retained: bool

    @property
    def json(self) -> Json:
        """Its payload, which must be JSON."""
        value: Json = json.loads(self.payload)
        return value


class Listener:
    """Subscribes to everything and keeps it in order; another client than ours."""

    def __init__(self, port: int, topic: str = "#") -> None:
        self.heard: list[Heard] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._note
        self._granted = threading.Event()
        self._client.on_subscribe = lambda *_: self._granted.set()
        self._client.connect(LOOPBACK, port)
        self._client.subscribe(topic, 1)
        self._client.loop_start()
        assert self._granted.wait(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def of(self, end: str) -> list[Heard]:
        """Return what came on topics that end so."""
        return [each for each in tuple(self.heard) if each.topic.endswith(end)]

    @property
    def seqs(self) -> list[int]:
        """Numbers of the findings, in the order of their arrival."""
        return [each.json["seq"] for each in self.of("/finding")]

    def until(self, end: str, number: int = 1, seconds: float = 20.0) -> list[Heard]:
        """Wait for so many messages on topics that end so."""
        wait_until(
            lambda: len(self.of(end)) >= number, seconds, f"{number} messages on {end}"
        )
        return self.of(end)

    def state(self) -> str | None:
        """Return what was said last of whether the node is there."""
        told = self.of("/status")
        return told[-1].json["state"] if told and told[-1].payload else None

    def _note(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        payload = bytes(message.payload)
        self.heard.append(Heard(message.topic, payload, bool(message.retain)))


def publish(port: int, topic: str, payload: bytes, *, retain: bool = True) -> None:
    """Publish one message, as anybody may."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect(LOOPBACK, port)
    client.loop_start()
    client.publish(topic, payload, 1, retain).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


def retained(port: int) -> dict[str, bytes]:
    """Return what a broker retains."""
    with Listener(port) as listener:
        publish(port, "test/end", b"", retain=False)
        listener.until("test/end")
        return {each.topic: each.payload for each in listener.heard if each.retained}


class SlowPath:
    """A way to a server that a test can slow down, hold up and cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.delay_seconds = 0.0
        self.flows = threading.Event()
        self.flows.set()
        self._ends: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
        self.connections = 0
        self._closed = threading.Event()
        self._pipes: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """End everything; what is on its way is lost."""
        self._closed.set()
        self.flows.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        while not self._ends.empty():
            end = self._ends.get()
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for pipe in self._pipes:
            pipe.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                far = socket.create_connection((LOOPBACK, self._target))
                self._serve(near, far)

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        for one, other in ((near, far), (far, near)):
            self._ends.put(one)
            pipe = threading.Thread(target=self._pipe, args=(one, other), daemon=True)
            self._pipes.append(pipe)
            pipe.start()

    def _pipe(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                self.flows.wait()
                self._closed.wait(self.delay_seconds)
                if self._closed.is_set():
                    break
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates, as a site's authority does."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        made = self._make(name, "-x509", "-addext", "basicConstraints=critical,CA:TRUE")
        self.file = made.certificate
        self._key = made.key

    def sign(self, name: str, address: str = LOOPBACK) -> Pair:
        """Return a certificate for a name and an address."""
        more = ("-x509", "-addext", f"subjectAltName=IP:{address},DNS:{name}")
        signer = ("-CA", str(self.file), "-CAkey", str(self._key))
        return self._make(f"{self._name}-{name}", *more, *signer)

    def _make(self, name: str, *more: str) -> Pair:
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        command = [
            *(require("openssl"), "req", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"),
            *("-keyout", str(pair.key), "-out", str(pair.certificate), *more),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return pair
