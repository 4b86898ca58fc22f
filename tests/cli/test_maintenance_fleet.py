"""`fabricmon maintenance --leaf|--rack|--nodes` on a real Alertmanager."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import aiomqtt
import pytest

from fabricmon.cli import FAILED, USAGE_ERROR, main
from tests.support.programs import require
from tests.support.servers import LOOPBACK, Server

Start = Callable[..., Server]


class Fleet:
    """The command, with an Alertmanager and a configuration of its own."""

    def __init__(
        self, url: str, config: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.words = ["--config", str(config), "--alertmanager", url]
        self.url = url
        self.capsys = capsys
        self.errors = ""

    def __call__(self, *words: str, status: int = 0) -> str:
        """Run it, expect a status, and return what it printed."""
        assert main(["maintenance", *words, *self.words]) == status
        shown = self.capsys.readouterr()
        self.errors = shown.err
        return shown.out

    def states(self) -> dict[str, str]:
        """Return the state of every alert by its word ``is``."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as reply:
            found = json.load(reply)
        return {each["labels"]["is"]: each["status"]["state"] for each in found}

    def post(self, **alerts: dict[str, str]) -> None:
        """Send alerts, each called by its word ``is``."""
        body = json.dumps(
            [{"labels": labels | {"is": word}} for word, labels in alerts.items()]
        ).encode()
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration of a cluster, without a broker."""
    path = tmp_path / "fabricmon.yaml"
    path.write_text(f"cluster: c1\nrun_folder: {tmp_path}\n")
    return path


@pytest.fixture
def fleet(
    start_alertmanager: Start, config: Path, capsys: pytest.CaptureFixture[str]
) -> Fleet:
    """The command against a running Alertmanager."""
    return Fleet(start_alertmanager().url, config, capsys)


def alert(**labels: str) -> dict[str, str]:
    """Return the labels of an alert of the cluster."""
    usual = {"alertname": "FabricPortDown", "cluster": "c1", "origin": "node"}
    return usual | labels


@pytest.mark.server
@pytest.mark.parametrize(
    ("words", "silenced", "spared"),
    [
        (["--leaf", "l3"], {"leaf": "l3"}, {"leaf": "l33"}),
        (["--leaf", "l3", "l4"], {"leaf": "l4"}, {"leaf": "l5"}),
        (["--rack", "r.1"], {"rack": "r.1"}, {"rack": "rx1"}),
        (["--nodes", "gpu-*"], {"node": "gpu-17"}, {"node": "cpu-1"}),
        (["--nodes", "n1"], {"node": "n1"}, {"node": "n1", "cluster": "c2"}),
        (["--nodes", "n1"], {"node": "n1"}, {"node": "n1", "origin": ""}),
        (
            ["--nodes", "n1", "--rack", "r1"],
            {"node": "n1", "rack": "r1"},
            {"node": "n1"},
        ),
    ],
)
def test_what_is_worked_on_is_silenced(
    words: list[str], silenced: dict[str, str], spared: dict[str, str], fleet: Fleet
) -> None:
    """Its alerts and no others; a node without our origin has other monitors."""
    fleet.post(silenced=alert(**silenced), spared=alert(**spared))
    fleet(*words, "--for", "1h", "--reason", "new optics")
    assert fleet.states() == {"silenced": "suppressed", "spared": "active"}


@pytest.mark.server
def test_a_silence_is_listed_and_ended(fleet: Fleet) -> None:
    """By its id; then alerts are told again."""
    fleet.post(port=alert(leaf="l3"))
    made = fleet(
        "--leaf", "l3", "--until", "2099-01-31T18:00:00+01:00", "--reason", "x"
    )
    identity = made.split()[0]
    listed = fleet("--list")
    assert identity in listed
    assert "until 2099-01-31T17:00:00.000Z: cluster=c1 leaf=l3" in listed
    assert "fabricmon maintenance: x" in listed
    assert fleet("--end", identity) == f"ended {identity}\n"
    assert fleet.states() == {"port": "active"}
    assert fleet("--list") == "no maintenance\n"


@pytest.mark.server
def test_silences_of_others_are_not_listed(fleet: Fleet) -> None:
    """Only those that this command made."""
    body = {
        "matchers": [{"name": "alertname", "value": "X", "isRegex": False}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2099-01-01T00:00:00Z",
        "createdBy": "somebody",
        "comment": "theirs",
    }
    request = urllib.request.Request(
        f"{fleet.url}/api/v2/silences",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=10).close()
    assert fleet("--list") == "no maintenance\n"


@pytest.mark.server
def test_the_broker_is_told_and_told_again(
    start_alertmanager: Start,
    mosquitto: Server,
    config: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A retained message while it lasts, nothing after its end."""
    with config.open("a") as stream:
        stream.write(f"mqtt: {{host: {LOOPBACK}, port: {mosquitto.port}}}\n")
    fleet = Fleet(start_alertmanager().url, config, capsys)
    identity = fleet("--rack", "r1", "--for", "2h", "--reason", "cooling").split()[0]
    ((topic, payload),) = retained(mosquitto).items()
    assert topic == f"fabricmon/v1/c1/maintenance/{identity}"
    notice = json.loads(payload)
    assert notice | {"since": "", "until": "", "by": ""} == {
        "schema": "fabricmon.maintenance/1",
        "id": identity,
        "since": "",
        "until": "",
        "leafs": [],
        "racks": ["r1"],
        "nodes": [],
        "reason": "cooling",
        "by": "",
    }
    fleet("--end", identity)
    assert retained(mosquitto) == {}


@pytest.mark.server
def test_a_broker_that_is_away_is_said(
    start_alertmanager: Start, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The silence stands all the same."""
    with config.open("a") as stream:
        stream.write(f"mqtt: {{host: {LOOPBACK}, port: 1}}\n")
    fleet = Fleet(start_alertmanager().url, config, capsys)
    fleet("--rack", "r1", "--for", "2h", status=FAILED)
    assert "Alertmanager knows, who listens to MQTT does not" in fleet.errors
    assert "rack=r1" in fleet("--list")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--leaf", "l1"], "say when it ends: either --for or --until"),
        (["--leaf", "l1", "--until", "2020-01-01T00:00:00Z"], "has passed"),
        (["--leaf", "l1", "--list"], "--list and --end go alone"),
        (["set", "--leaf", "l1", "--for", "1h"], "are about this node alone"),
        (["--list", "--for", "1h"], "--until and --for go with --leaf"),
    ],
)
def test_words_that_do_not_fit(
    words: list[str], message: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One error, before anybody is asked."""
    fleet = Fleet("http://127.0.0.1:1", config, capsys)
    assert fleet(*words, status=USAGE_ERROR) == ""
    assert message in fleet.errors


def test_where_it_is_has_to_be_said(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a word or the environment."""
    words = ["maintenance", "--list", "--config", str(config)]
    monkeypatch.delenv("ALERTMANAGER_URL", raising=False)
    assert main(words) == USAGE_ERROR
    assert "--alertmanager or $ALERTMANAGER_URL" in capsys.readouterr().err
    monkeypatch.setenv("ALERTMANAGER_URL", "http://127.0.0.1:1")
    assert main(words) == FAILED
    assert "http://127.0.0.1:1 does not answer" in capsys.readouterr().err


def test_a_wrong_url_is_an_error(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says how one is written."""
    fleet = Fleet("alerts.example:9093", config, capsys)
    fleet("--list", status=USAGE_ERROR)
    assert "is no URL: write http://HOST:9093" in fleet.errors


class Guard(BaseHTTPRequestHandler):
    """An Alertmanager behind a proxy that asks for a password."""

    seen: list[str | None] = []  # noqa: RUF012 - one server at a time

    def do_GET(self) -> None:
        """Answer with no silences."""
        self.seen.append(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def guarded(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve it, with TLS where a context is given; yield its port."""
    Guard.seen = []
    server = HTTPServer((LOOPBACK, 0), Guard)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.parametrize(
    ("line", "header"),
    [("Bearer abc", "Bearer abc"), ("Basic ops:pw", "Basic b3BzOnB3")],
)
def test_a_file_has_the_password(
    line: str,
    header: str,
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is sent as the header wants it."""
    file = tmp_path / "secret"
    file.write_text(f"{line}\n")
    with guarded() as port:
        fleet = Fleet(f"http://{LOOPBACK}:{port}", config, capsys)
        fleet("--list", "--authorization-file", str(file))
    assert Guard.seen == [header]


def test_a_bad_file_does_not_show_its_secret(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the file and the form, not the content."""
    file = tmp_path / "secret"
    file.write_text("hunter2\n")
    fleet = Fleet("http://127.0.0.1:1", config, capsys)
    fleet("--list", "--authorization-file", str(file), status=FAILED)
    assert "Bearer TOKEN" in fleet.errors
    assert "hunter2" not in fleet.errors


def test_a_server_that_nobody_vouches_for_is_refused(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its authority named it is asked."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [require("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with guarded(context) as port:
        fleet = Fleet(f"https://{LOOPBACK}:{port}", config, capsys)
        fleet("--list", status=FAILED)
        assert "certificate verify failed" in fleet.errors
        assert fleet("--list", "--authority", str(certificate)) == "no maintenance\n"


def retained(server: Server) -> dict[str, str]:
    """Return the retained messages by topic."""

    async def collect() -> dict[str, str]:
        found: dict[str, str] = {}
        async with aiomqtt.Client(LOOPBACK, server.port) as client:
            await client.subscribe([("fabricmon/#", 1), ("that-was-all", 1)])
            await client.publish("that-was-all", qos=1)
            async for message in client.messages:
                if str(message.topic) == "that-was-all":
                    break
                found[str(message.topic)] = bytes(message.payload).decode()
        return found

    return asyncio.run(collect())
