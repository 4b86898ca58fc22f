"""Clients that storm, dawdle, lie and leave: scrapers, `check`, and the broker."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from fabricmon.runtime.socket import NAME
from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene, status_field
from tests.support.agent import AgentProcess, Json
from tests.support.mqtt import Listener, SlowPath
from tests.support.servers import LOOPBACK, free_port, mosquitto

HTTP = "sinks/http.py"
TRANSFER = "sinks/http_transfer.py"
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
SHORT: Json = {"listen": {"timeout_seconds": 0.5, "connections": 16}}


def _connect(agent: AgentProcess) -> socket.socket:
    client = socket.create_connection((LOOPBACK, agent.port), timeout=10)
    client.settimeout(10)
    return client


def _answer(agent: AgentProcess, request: bytes) -> bytes:
    """Send a request and return all that comes."""
    with _connect(agent) as client:
        client.sendall(request)
        received = b""
        while chunk := client.recv(65536):
            received += chunk
        return received


def storm(scene: Scene) -> None:
    """Scrape from 64 clients at once, again and again."""
    agent = scene.start(SHORT)
    scene.verdict("mlx5_0", "healthy")
    answers: list[bytes] = []
    threads: list[int] = []

    def scrape(_: int) -> None:
        try:
            answers.append(_answer(agent, GET)[:12])
        except OSError:
            answers.append(b"reset")
        threads.append(status_field(agent.pid, "Threads"))

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(scrape, range(256)))
    good = [a for a in answers if a == b"HTTP/1.1 200"]
    assert good
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b"reset"}
    assert max(threads) <= 16 + 8
    assert b" 200 " in _answer(agent, GET)[:20]


def half_open(scene: Scene) -> None:
    """Open 100 connections and send nothing: who asks something is served soon."""
    agent = scene.start({"listen": {"timeout_seconds": 20, "connections": 16}})
    clients = [_connect(agent) for _ in range(100)]
    scene.until(lambda: agent.get("/healthz") == "ok\n", "it answers", 10)
    assert status_field(agent.pid, "Threads") <= 16 + 8
    for client in clients:
        client.close()


def many_silent(scene: Scene) -> None:
    """Open 100 connections whose heads never end: threads stay bounded."""
    agent = scene.start({"listen": {"timeout_seconds": 5, "connections": 16}})
    clients = [_connect(agent) for _ in range(100)]
    for client in clients:
        try:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
        except OSError:
            continue
    scene.until(lambda: status_field(agent.pid, "Threads") > 10, "they are taken")
    scene.polls_while(lambda: status_field(agent.pid, "Threads") <= 16 + 8)
    for client in clients:
        client.close()


def slow_loris(scene: Scene) -> None:
    """Send one octet of a request every tenth of a second."""
    agent = scene.start(SHORT)
    begun = time.monotonic()
    with _connect(agent) as client:
        try:
            for octet in GET * 3:
                client.sendall(bytes([octet]).replace(b"\r", b"x"))
                time.sleep(0.1)
                if time.monotonic() - begun > 6:
                    break
        except OSError:
            pass
        assert time.monotonic() - begun < 5


def huge_request(scene: Scene) -> None:
    agent = scene.begin()
    head = b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n"
    assert _answer(agent, head).startswith(b"HTTP/1.1 431")


def endless_request(scene: Scene) -> None:
    """Send a head that never ends, as fast as it is taken."""
    agent = scene.begin()
    sent = 0
    with _connect(agent) as client:  # what the kernel keeps of it is bounded, too
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        try:
            while sent < 8 << 20:
                sent += client.send(b"x" * 65536)
        except OSError:
            pass
    assert sent < 4 << 20, f"{sent} octets were taken"


def garbage(scene: Scene) -> None:
    agent = scene.begin()
    requests = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9.9\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
        b"GET http://[::bad HTTP/1.1\r\n\r\n",
    )
    for request in requests:
        answer = _answer(agent, request)
        assert answer[:10] in {b"HTTP/1.1 4", b"HTTP/1.1 5"}, (request, answer[:80])
        assert not answer.startswith(b"HTTP/1.1 500"), request
    post = b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
    assert _answer(agent, post).startswith(b"HTTP/1.1 405")


def odd_accept(scene: Scene) -> None:
    """Ask for a format whose version is none."""
    agent = scene.begin()
    head = b"GET /metrics HTTP/1.1\r\nAccept: "
    for accept in (b"application/openmetrics-text; version=x.y", b";;=,;q=\xff"):
        answer = _answer(agent, head + accept + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer[:80]


def resets(scene: Scene) -> None:
    """Ask and reset the connection at once, a hundred times."""
    agent = scene.begin()
    for _ in range(100):
        client = _connect(agent)
        client.sendall(GET)
        linger = struct.pack("ii", 1, 0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.close()
    with _connect(agent) as client:  # one that ends within its head
        client.sendall(b"GET /met")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b""
    scene.above('http_failures_total{listener="metrics"}', 0)
    assert agent.get("/healthz") == "ok\n"


def check_storm(scene: Scene) -> None:
    """Connect to the socket of `check` sixty times and say nothing."""
    agent = scene.begin()
    path = str(agent.run_folder / NAME)
    clients = []
    for _ in range(60):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)  # with a time-out it would not wait for a place
        client.settimeout(1)
        clients.append(client)
    time.sleep(1)  # half of what a client has for its request
    readable, _, _ = select.select(clients, [], [], 0)  # at their end, all of them
    assert len(readable) >= 30
    begun = time.monotonic()
    for client in clients:
        client.close()
    scene.until(lambda: agent.check()["verdict"] == "healthy", "it answers")
    assert time.monotonic() - begun < 5


def check_garbage(scene: Scene) -> None:
    agent = scene.begin()
    path = str(agent.run_folder / NAME)
    for request in (b"\xff\xfe\n", b"[]\n", b'{"ask": 1}\n', b"{" * 3000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(path)
            client.sendall(request)
            assert b'"error"' in client.recv(4096), request
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(path)
        client.sendall(b"x" * 100_000)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""
    scene.verdict("mlx5_0", "healthy")


# The broker


def _sending(port: int, **more: object) -> Json:
    quick = {"retry_seconds": 0.05, "retry_cap_seconds": 0.2, "timeout_seconds": 1}
    return {"cluster": "c1", "mqtt": {"host": LOOPBACK, "port": port, **quick, **more}}


def broker_absent(scene: Scene) -> None:
    agent = scene.start(_sending(free_port()))
    scene.line("broker_unreachable")
    scene.above('sink_failures_total{sink="mqtt"}', 3)
    scene.value('sink_connected{sink="mqtt"}', 0)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.above('sink_waiting_findings{sink="mqtt"}', 0)
    assert len(agent.lines("broker_unreachable")) == 1


def broker_killed(scene: Scene) -> None:
    """Kill the broker, let findings wait, and start it again."""
    broker = mosquitto(scene.folder)
    scene.servers.append(broker)
    broker.start()
    agent = scene.start(_sending(broker.port))
    scene.until(lambda: agent.lines("broker_connected"), "it is connected")
    broker.kill()
    scene.until(lambda: agent.lines("broker_unreachable"), "it is told")
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    finding = scene.finding("port_down", "mlx5_0")
    broker.start()
    with Listener(broker.port) as listener:
        scene.until(
            lambda: finding["id"] in {f.json["id"] for f in listener.of("/finding")},
            "the finding comes",
        )
        assert listener.seqs == sorted(set(listener.seqs))


def broker_refuses(scene: Scene) -> None:
    broker = mosquitto(scene.folder, "allow_anonymous false")
    scene.servers.append(broker)
    config = scene.folder / f"mosquitto-{broker.port}.conf"
    config.write_text(config.read_text().replace("allow_anonymous true\n", ""))
    broker.start()
    scene.start(_sending(broker.port))
    assert "uthori" in scene.line("broker_unreachable")["err"]
    scene.value('sink_connected{sink="mqtt"}', 0)


def broker_stalls(scene: Scene) -> None:
    """Let nothing through to a broker any more, while findings are on their way."""
    broker = mosquitto(scene.folder)
    scene.servers.append(broker)
    broker.start()
    path = SlowPath(broker.port)
    scene.closes.append(path.close)
    agent = scene.start(_sending(path.port))
    scene.until(lambda: agent.lines("broker_connected"), "it is connected")
    path.flows.clear()
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.until(lambda: agent.lines("broker_unreachable"), "it gives the path up")
    assert agent.stop() < 5


def _fake_broker(scene: Scene, says: bytes) -> int:
    """Serve a broker that answers any client with the same octets."""
    server = socket.create_server((LOOPBACK, 0))
    scene.closes.append(server.close)

    def serve() -> None:
        kept = []
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            kept.append(client)
            try:
                client.sendall(says)
            except OSError:
                continue

    threading.Thread(target=serve, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


def broker_garbage(scene: Scene) -> None:
    agent = scene.start(_sending(_fake_broker(scene, os.urandom(4096))))
    scene.above('sink_failures_total{sink="mqtt"}', 2)
    scene.bounded()
    assert agent.lines("broker_connected") == []


def broker_silent(scene: Scene) -> None:
    """Take the connection and never answer."""
    agent = scene.start(_sending(_fake_broker(scene, b"")))
    scene.line("broker_unreachable")
    assert agent.stop() < 5


def spool_broken(scene: Scene) -> None:
    """Let what waits for the broker be damaged on disk."""
    agent = scene.make(_sending(free_port()))
    agent.state_folder.mkdir()
    (agent.state_folder / "mqtt-spool.sqlite").write_bytes(os.urandom(8192))
    scene.begin(agent)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.above('sink_waiting_findings{sink="mqtt"}', 0)


FAULTS = (
    Fault(
        "scrape-storm",
        "64 clients scrape 256 times at once",
        "200 or 503 for each, threads bounded by listen.connections, served afterwards",
        Guard(
            "sinks/http_places.py",
            "threading.BoundedSemaphore(many)",
            "threading.BoundedSemaphore(many * 1000)",
        ),
        storm,
    ),
    Fault(
        "half-open-scrapers",
        "100 connections that say nothing hold every place",
        "who had its time is cut off: whoever asks is served within 10 s",
        Guard(
            "sinks/http_places.py",
            "            if not ripe:\n",
            "            if True:\n",
        ),
        half_open,
    ),
    Fault(
        "endless-heads",
        "100 connections whose heads never end",
        "threads bounded by listen.connections",
        Guard(
            HTTP,
            "        if not self._places.take(self._stopping.is_set):\n",
            "        if self._stopping.is_set():\n",
        ),
        many_silent,
    ),
    Fault(
        "slow-loris",
        "a request comes one octet at a time",
        "dropped after listen.timeout_seconds in all",
        Guard(
            TRANSFER,
            "    while len(head) <= MOST_OCTETS and not any(mark in head for mark in"
            " END_OF_HEAD):\n        connection.settimeout(max(end - time.monotonic(),"
            " _SHORTEST_SECONDS))",
            "    while len(head) <= MOST_OCTETS and not any(mark in head for mark in"
            " END_OF_HEAD):\n        connection.settimeout(seconds)",
        ),
        slow_loris,
    ),
    Fault(
        "request-too-long",
        "a request has a header of 9,000 octets",
        "431",
        Guard(HTTP, "        if len(head) > MOST_OCTETS:\n", "        if not head:\n"),
        huge_request,
    ),
    Fault(
        "request-endless",
        "8 MiB of request without an end",
        "cut off, memory bounded",
        Guard(
            TRANSFER,
            "    while len(head) <= MOST_OCTETS and not",
            "    while not",
        ),
        endless_request,
    ),
    Fault(
        "request-garbage",
        "a TLS hello, NULs, wrong versions, a POST",
        "400, 405 or 505, never 500",
        Guard(
            "sinks/http_message.py",
            "    except ValueError:\n        return Incoming(parsed.command)",
            "    except KeyError:\n        return Incoming(parsed.command)",
        ),
        garbage,
    ),
    Fault(
        "accept-garbage",
        "an Accept header that makes no sense",
        "200 in the plain format",
        Guard(
            "sinks/negotiation.py",
            "    except (TypeError, ValueError):\n        return choose_encoder",
            "    except KeyError:\n        return choose_encoder",
        ),
        odd_accept,
    ),
    Fault(
        "clients-reset",
        "100 clients reset the connection after asking, one ends within its head",
        "counted, nothing printed, served on",
        Guard(
            HTTP,
            "        except Exception:  # noqa: BLE001 - a client must not end what",
            "        except KeyError:  # noqa: BLE001 - a client must not end what",
        ),
        resets,
    ),
    Fault(
        "check-storm",
        "60 silent clients at the socket of `check`",
        "16 at once, the others are turned away; it answers afterwards",
        Guard(
            "runtime/socket.py",
            "if task is None or len(self._clients) >= MOST_CLIENTS:",
            "if task is None:",
        ),
        check_storm,
    ),
    Fault(
        "check-garbage",
        "requests that are none at the socket of `check`, one of 100 KB",
        "an error for each, or the end of the connection",
        Guard(
            "runtime/socket.py",
            "        except (OSError, ValueError, TimeoutError):  # gone, too long,",
            "        except (OSError, TimeoutError):  # gone, too long,",
        ),
        check_garbage,
    ),
    Fault(
        "broker-absent",
        "nothing listens at the broker's address",
        "one log line, tries counted, findings wait",
        Guard(
            "sinks/mqtt_courier.py",
            '        if self._changes.note("broker", text):\n',
            "        if text:\n",
        ),
        broker_absent,
    ),
    Fault(
        "broker-killed",
        "the broker is killed and comes back",
        "told, the finding of the meantime arrives, numbers in order",
        Guard(
            "sinks/mqtt_courier.py",
            "except (ConfigError, *self._client.LOST_ERRORS) as error:",
            "except ConfigError as error:",
        ),
        broker_killed,
    ),
    Fault(
        "broker-refuses",
        "the broker takes nobody without a name",
        "one log line with its reason, everything else as usual",
        Guard(
            "sinks/mqtt_courier.py",
            "        text = str(error) or type(error).__name__\n",
            "        text = type(error).__name__\n",
        ),
        broker_refuses,
    ),
    Fault(
        "broker-stalls",
        "nothing comes through to the broker any more",
        "given up after mqtt.timeout_seconds, SIGTERM ends it in time",
        Guard(
            "sinks/mqtt_client.py",
            "        timeout=mqtt.timeout_seconds,\n",
            "        timeout=mqtt.timeout_seconds + 600,\n",
        ),
        broker_stalls,
    ),
    Fault(
        "broker-garbage",
        "the broker answers with random octets",
        "tried again and again, never connected, memory bounded",
        Guard(
            "sinks/mqtt_client.py",
            "LOST_ERRORS = (MqttError, OSError, ValueError)",
            "LOST_ERRORS = (OSError, ValueError)",
        ),
        broker_garbage,
    ),
    Fault(
        "broker-silent",
        "the broker takes the connection and never answers",
        "one log line after mqtt.timeout_seconds, SIGTERM ends it in time",
        Guard(
            "sinks/mqtt_client.py",
            "        timeout=mqtt.timeout_seconds,\n        keepalive",
            "        timeout=mqtt.timeout_seconds + 600,\n        keepalive",
        ),
        broker_silent,
    ),
    Fault(
        "spool-damaged",
        "what waits for the broker is damaged on disk",
        "findings wait in a new spool or in memory",
        Guard(
            "sinks/mqtt_spool.py",
            "        except DatabaseError as error:\n            self._set_aside(error)",
            "        except KeyError as error:\n            self._set_aside(error)",
        ),
        spool_broken,
    ),
)
