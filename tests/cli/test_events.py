"""`fabricmon events` on a real broker: what operators read, and what they must not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.cli.event_fleet import Fleet, UnreadableError
from fabricmon.cli.event_lines import Lines
from fabricmon.cli.events import _unreachable
from fabricmon.config import Mqtt
from fabricmon.finding_document import finding_document
from fabricmon.model import Verdict
from fabricmon.sinks.mqtt_topics import Place
from tests.sinks import nodes
from tests.support.mqtt import publish
from tests.support.servers import LOOPBACK, Server, free_port, wait_until

ROOT = "fabricmon/v1/c1/n1/"
ONLINE = b'{"state": "online", "since": "2026-01-05T08:00:00.000Z", "version": "1"}'
OFFLINE = ONLINE.replace(b"online", b"offline")
HEALTHY = b'{"verdict": "healthy", "state": "ACTIVE", "phys_state": "LinkUp"}'
DOWN = b'{"verdict": "down", "state": "DOWN", "reasons": ["no light"]}'


def finding(**changes: Any) -> bytes:
    """Return a finding as an agent sends it."""
    incident = nodes.incident(**changes)
    return msgspec.json.encode(finding_document(incident))


class Events:
    """A running command and what it printed."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [
                    # Whoever runs tests in the background has them ignore Ctrl-C.
                    *("env", "--default-signal=INT"),
                    *(sys.executable, "-m", "fabricmon", "events"),
                    *("--broker", f"{LOOPBACK}:{port}", *options),
                ],
                stdout=out,
                stderr=err,
                env=os.environ | {"NO_COLOR": ""},
            )

    @property
    def text(self) -> str:
        """What it printed."""
        return self.out.read_text()

    def until(self, word: str) -> str:
        """Wait until it printed a word."""
        wait_until(lambda: word in self.text, 20, f"{word!r} is printed")
        return next(line for line in self.text.splitlines() if word in line)

    def until_connected(self, how: str = "to") -> None:
        """Wait until it listens."""
        said = f"events: connected {how}"
        wait_until(lambda: said in self.err.read_text(), 20, "it listens")

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


Start = Callable[..., Events]


@pytest.fixture
def start(tmp_path: Path, mosquitto: Server) -> Iterator[Start]:
    """Start commands that listen; ends them."""
    started: list[Events] = []

    def begin(*options: str) -> Events:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Events(folder, mosquitto.port, *options))
        return started[-1]

    yield begin
    for events in started:
        events.process.kill()
        events.process.wait()


def once(port: int, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `fabricmon events --once`."""
    command = [sys.executable, "-m", "fabricmon", "events", "--once"]
    return subprocess.run(
        [*command, "--broker", f"{LOOPBACK}:{port}", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.server
class TestLive:
    def test_findings_and_nodes(self, mosquitto: Server, start: Start) -> None:
        """A finding, a port and a node that goes are a line each; Ctrl-C ends well."""
        publish(mosquitto.port, f"{ROOT}status", ONLINE)
        publish(mosquitto.port, f"{ROOT}port/mlx5_0/1", HEALTHY)
        publish(mosquitto.port, "fabricmon/v1/c1/gone/status", OFFLINE)
        events = start()
        events.until_connected()
        assert "08:00:00Z" in events.until("c1/gone")
        publish(mosquitto.port, f"{ROOT}finding", finding(), retain=False)
        line = events.until("port_down mlx5_0/1")
        assert line.startswith("08:00:00Z  c1/n1  critical")
        publish(mosquitto.port, f"{ROOT}port/mlx5_0/1", DOWN)
        assert "no light" in events.until("port mlx5_0/1")
        publish(mosquitto.port, f"{ROOT}status", OFFLINE)
        assert events.until("c1/n1  offline")
        assert events.interrupt() == 0
        assert "online" not in events.text.replace("offline", "")
        assert "\x1b" not in events.text

    def test_filters(self, mosquitto: Server, start: Start) -> None:
        """Cluster, kind and severity leave out the rest."""
        events = start(
            "--cluster", "c1", "--kind", "port_flap", "--severity", "warning"
        )
        events.until_connected()
        for topic in (f"{ROOT}finding", "fabricmon/v1/c2/n1/finding"):
            publish(mosquitto.port, topic, finding(), retain=False)
            publish(mosquitto.port, topic, finding(kind="port_flap"), retain=False)
        publish(mosquitto.port, f"{ROOT}status", OFFLINE)
        last = finding(kind="port_flap", seq=9)
        publish(mosquitto.port, f"{ROOT}finding", last, retain=False)
        wait_until(lambda: events.text.count("port_flap") == 2, 20, "both came")
        assert "port_down" not in events.text
        assert "c2" not in events.text
        assert "offline" not in events.text

    def test_jsonl(self, mosquitto: Server, start: Start) -> None:
        """Each message is one object with its place."""
        events = start("--format", "jsonl")
        events.until_connected()
        publish(mosquitto.port, f"{ROOT}finding", finding(), retain=False)
        publish(mosquitto.port, f"{ROOT}finding", b"no json\x1b[2J", retain=False)
        events.until("not JSON")
        first, second = map(json.loads, events.text.splitlines())
        assert first["payload"]["kind"] == "port_down"
        assert (first["cluster"], first["node"], first["what"]) == (
            "c1",
            "n1",
            "finding",
        )
        assert second["payload"] is None

    def test_broker_restart(self, mosquitto: Server, start: Start) -> None:
        """It says so and goes on."""
        events = start()
        events.until_connected()
        mosquitto.kill()
        wait_until(lambda: "trying again" in events.err.read_text(), 20, "it is said")
        mosquitto.start()
        events.until_connected("again")
        publish(mosquitto.port, f"{ROOT}finding", finding(), retain=False)
        events.until("port_down")

    def test_hostile(self, mosquitto: Server, start: Start) -> None:
        """Nothing that a terminal obeys gets through, from names or texts."""
        events = start("--color", "never")
        events.until_connected()
        base = nodes.incident()
        evil = msgspec.structs.replace(
            finding_document(base),
            summary="\x1b]0;owned\x07\u202e\x9b31m",
            kind="\r\n\x00",
        )
        topic = "fabricmon/v1/c1%1B[2J/n%0A1/finding"
        publish(mosquitto.port, topic, msgspec.json.encode(evil), retain=False)
        publish(mosquitto.port, topic, b"[" * 100_000, retain=False)
        publish(
            mosquitto.port, topic, b'{"a": "' + b"x" * 300_000 + b'"}', retain=False
        )
        publish(mosquitto.port, f"{ROOT}status", b'{"state": 7}')
        publish(mosquitto.port, f"{ROOT}finding", finding(), retain=False)
        events.until("port_down")
        lines = events.text.split("\n")
        assert len(lines) == 6
        assert all(line.isprintable() for line in lines)
        assert all(len(line) < 1000 for line in lines)
        assert "owned" in lines[0]


@pytest.mark.server
class TestOnce:
    def test_table(self, mosquitto: Server) -> None:
        """Every node with its verdict; one that is offline is not healthy."""
        summary = b'{"time": "x", "open": {"port_down": {"critical": 2}}, "ports": {}}'
        publish(mosquitto.port, f"{ROOT}status", ONLINE)
        publish(mosquitto.port, f"{ROOT}port/mlx5_0/1", HEALTHY)
        publish(mosquitto.port, f"{ROOT}port/mlx5_1/1", DOWN)
        publish(mosquitto.port, f"{ROOT}summary", summary)
        publish(mosquitto.port, "fabricmon/v1/c1/n2/status", OFFLINE)
        publish(mosquitto.port, "fabricmon/v1/c1/n2/port/mlx5_0/1", HEALTHY)
        result = once(mosquitto.port)
        assert result.returncode == 0
        head, first, second = result.stdout.splitlines()
        assert head.split()[:3] == ["CLUSTER", "NODE", "STATUS"]
        assert first.split()[:3] == ["c1", "n1", "online"]
        assert "down" in first
        assert "2 critical" in first
        assert second.split()[:3] == ["c1", "n2", "offline"]
        assert second.split()[4] == "unknown"

    def test_jsonl(self, mosquitto: Server) -> None:
        """A line for each node."""
        publish(mosquitto.port, f"{ROOT}status", ONLINE)
        result = once(mosquitto.port, "--format", "jsonl")
        (line,) = map(json.loads, result.stdout.splitlines())
        assert (line["node"], line["status"]) == ("n1", "online")

    def test_nothing_retained(self, mosquitto: Server) -> None:
        """An empty fleet is a table without rows, and what that may mean is said."""
        result = once(mosquitto.port)
        assert result.returncode == 0
        assert len(result.stdout.splitlines()) == 1
        assert "this user may not read it" in result.stderr


class TestWrong:
    def test_nobody_there(self) -> None:
        """One line names the broker and why."""
        port = free_port()
        result = once(port)
        assert result.returncode == 70
        assert f"{LOOPBACK}:{port}: " in result.stderr
        assert "refused" in result.stderr

    def test_port_of_tls_without_tls(self) -> None:
        """Who forgets --tls waits in vain, and is told of it."""
        told = str(_unreachable(Mqtt(host="b", port=8883), TimeoutError()))
        assert told == "b:8883: TimeoutError (does it want TLS? --tls)"
        other = str(_unreachable(Mqtt(host="b", port=8883, tls=True), TimeoutError()))
        assert other == "b:8883: TimeoutError"

    def test_no_broker(self, tmp_path: Path) -> None:
        """Without a broker it says how to name one."""
        config = tmp_path / "fabricmon.yaml"
        config.write_text("{}")
        result = subprocess.run(
            [sys.executable, "-m", "fabricmon", "events", "--config", str(config)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 78
        assert "--broker" in result.stderr


class TestFleet:
    PLACE = Place("c", "n", "port", "d", "1")

    @pytest.mark.parametrize("what", ["status", "summary", "finding", "port"])
    @given(payload=st.binary(max_size=200))
    def test_any_payload(self, what: str, payload: bytes) -> None:
        """It is read, or said to be unreadable; nothing else happens."""
        place = Place("c", "n", what, "d", "1")
        lines = Lines(colour=True)
        try:
            told = Fleet().take(place, payload)
        except UnreadableError as error:
            lines.unreadable(place, str(error))
        else:
            if told is not None:
                lines.event(place, told)

    def test_only_changes_are_news(self) -> None:
        """A port that is healthy and stays so is none; one that recovers is."""
        fleet = Fleet()
        assert fleet.take(self.PLACE, HEALTHY) is None
        assert fleet.take(self.PLACE, DOWN) is not None
        assert fleet.take(self.PLACE, DOWN) is None
        assert fleet.take(self.PLACE, HEALTHY) is not None

    def test_cleared(self) -> None:
        """An empty payload is a port that is gone."""
        fleet = Fleet()
        fleet.take(self.PLACE, DOWN)
        fleet.take(self.PLACE, b"")
        assert fleet.nodes[0].verdict == Verdict.UNKNOWN.word
