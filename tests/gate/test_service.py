"""The gate as a process: what comes in, what is called, what survives."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from fabricmon.fleet.alertmanager import alertmanager_file
from fabricmon.fleet.options import FleetOptions
from tests.gate.gates import alert, finding, notification
from tests.gate.process import GateProcess
from tests.support.mqtt import Authority, publish
from tests.support.servers import LOOPBACK, Server, free_port, wait_until

HOLD_JOURNAL = (
    "import sqlite3,sys,time;b=sqlite3.connect(sys.argv[1]);"
    "b.execute('BEGIN EXCLUSIVE');print('held',flush=True);time.sleep(60)"
)
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for a gate."""
    made = tmp_path / "gate"
    made.mkdir()
    return made


def test_journal_of_a_gate_that_never_ran(folder: Path) -> None:
    """Journal and release say so, rather than what a database says."""
    gate = GateProcess(folder)
    for words in (("journal",), ("release", "gpu17")):
        ran = gate.ask(*words)
        assert ran.returncode == 70
        assert "there is no journal yet" in ran.stderr


class TestActing:
    def test_dry_run_is_the_default(self, folder: Path) -> None:
        """Nothing is called; what would have been done is written and counted."""
        with GateProcess(folder) as gate:
            assert gate.post(notification(alert())).status == 200
            gate.until_metric("actions_total", 1, '{outcome="dry_run"}')

            (line,) = gate.lines("withheld")
            assert (line["node"], line["kind"]) == ("n1", "port_down")
            assert "action_withheld" in gate.said()
            assert gate.metric("dry_run") == 1
            assert gate.metric("out_nodes") == 1
            assert gate.calls == []

    def test_acts_once(self, folder: Path) -> None:
        """The script gets the node, the reason and the finding; repeats do nothing."""
        with GateProcess(folder, act=True) as gate:
            for _ in range(3):
                assert gate.post(notification(alert(leaf="l1"))).status == 200
            gate.until_metric("actions_total", 1, '{outcome="done"}')
            gate.post(notification(alert(leaf="l1")))

            assert gate.calls == [["n1", "fabricmon: mlx5_0/1 DOWN"]]
            assert gate.inputs[0]["subject"]["leaf"] == "l1"
            gate.until_metric("held_findings", 1, '{reason="node_out"}')
            words = [each["what"] for each in gate.journal()]
            order = ["taken", "decided", "begun", "acted"]
            assert list(dict.fromkeys(words)) == order

    def test_one_after_the_other_within_the_budget(self, folder: Path) -> None:
        """Never two at a time, and no more nodes than the budget."""
        more = (
            f"mkdir {folder}/lock || touch {folder}/two; sleep 0.2; rmdir {folder}/lock"
        )
        caution = {"budget_nodes": 2}
        with GateProcess(folder, more, act=True, caution=caution) as gate:
            told = (alert(f"n{number}") for number in range(5))
            gate.post(notification(*told))
            gate.until_metric("held_findings", 3, '{reason="budget"}')

            assert len(gate.calls) == 2
            assert not (folder / "two").exists()
            assert gate.metric("budget_nodes") == 2
            assert gate.metric("window_nodes") == 2

    def test_common_cause(self, folder: Path) -> None:
        """Ports of one leaf that fall together take no node out."""
        with GateProcess(folder, act=True) as gate:
            told = (alert(f"n{number}", leaf="l1") for number in range(4))
            gate.post(notification(*told))
            gate.until_metric("held_findings", 4, '{reason="common_cause"}')

            assert gate.calls == []

    def test_alert_budget_exceeded(self, folder: Path) -> None:
        """While the fleet's rules say that this is too much, nothing is done."""
        fleet = alert(
            "", alertname="FabricAlertBudgetExceeded", kind="alert_budget",
            origin="fleet", role="observer", action="none",
        )  # fmt: skip
        with GateProcess(folder, act=True) as gate:
            gate.post(notification(fleet, alert()))
            gate.until_metric("held_findings", 1, '{reason="fleet_cause"}')
            gate.post(notification(fleet | {"status": "resolved"}))

            gate.until_calls(1)

    def test_failing_script(self, folder: Path) -> None:
        """Its words and status are in the journal, and it is not called again."""
        with GateProcess(folder, "echo no slurmctld; exit 7", act=True) as gate:
            gate.post(notification(alert()))
            gate.until_metric("actions_total", 1, '{outcome="failed"}')
            gate.until_metric("held_findings", 1, '{reason="cooldown"}')

            (line,) = gate.lines("acted")
            assert line["verdict"] == "failed"
            assert line["detail"] == "status 7: no slurmctld"
            assert gate.metric("out_nodes") == 0
            assert len(gate.calls) == 1

    def test_slow_script(self, folder: Path) -> None:
        """It is ended in time; meanwhile probes are answered and alerts taken in."""
        slow = {"path": str(folder / "script"), "timeout_seconds": 1}
        with GateProcess(folder, "sleep 60", act=True, script=slow) as gate:
            gate.post(notification(alert()))
            gate.until_calls(1)
            assert gate.post(notification(alert("n2"))).status == 200
            gate.until_metric("actions_total", 1, '{outcome="timeout"}')

            gate.until_metric("unsure_nodes", 1)

    def test_maintenance(self, folder: Path) -> None:
        """A node under maintenance is left alone; a file that is broken holds all."""
        file = folder / "maintenance.json"
        window = {"until": "2099-01-01T00:00:00Z", "nodes": ["n1"], "reason": "DIMM"}
        file.write_text(json.dumps([window]))
        with GateProcess(folder, act=True, maintenance_file=str(file)) as gate:
            gate.post(notification(alert()))
            gate.until_metric("held_findings", 1, '{reason="maintenance"}')
            file.write_text("[")
            wait_until(lambda: "maintenance_unreadable" in gate.said(), 10, "said")
            assert gate.calls == []
            file.write_text("[]")

            gate.until_calls(1)


class TestLife:
    def test_killed_between_decision_and_outcome(self, folder: Path) -> None:
        """An action whose end nobody saw is told, and never done again blindly."""
        with GateProcess(folder, "sleep 60", act=True) as gate:
            gate.post(notification(alert()))
            gate.until_calls(1)
            gate.kill()
            gate.write_script()
            gate.start()

            assert gate.metric("unsure_nodes") == 1
            (line,) = gate.lines("acted")
            assert (line["node"], line["verdict"]) == ("n1", "unknown")
            gate.post(notification(alert()))
            gate.until_metric("held_findings", 1, '{reason="node_out"}')
            assert len(gate.calls) == 1

    def test_restart_keeps_what_is_known(self, folder: Path) -> None:
        """Nodes that are out stay out, and findings that wait wait on."""
        caution = {"budget_nodes": 1}
        with GateProcess(folder, act=True, caution=caution) as gate:
            gate.post(notification(alert("n1"), alert("n2")))
            gate.until_metric("held_findings", 1, '{reason="budget"}')
            gate.kill()
            gate.start()

            gate.until_metric("held_findings", 1, '{reason="budget"}')
            assert gate.metric("out_nodes") == 1
            assert len(gate.calls) == 1

    def test_stops_in_time(self, folder: Path) -> None:
        """SIGTERM ends it and the script within 2 s; what it did is unknown."""
        with GateProcess(folder, "trap '' TERM; sleep 60", act=True) as gate:
            gate.post(notification(alert()))
            gate.until_calls(1)
            begun = time.monotonic()
            gate.signal(signal.SIGTERM)

            assert gate.ended() == 0
            assert time.monotonic() - begun < 2
            (line,) = gate.lines("acted")
            assert line["verdict"] == "interrupted"

    def test_release(self, folder: Path) -> None:
        """Who gives a node back makes room, and the node has its cool-down."""
        caution = {"budget_nodes": 1, "budget_window_seconds": 0.05}
        with GateProcess(folder, act=True, caution=caution) as gate:
            gate.post(notification(alert("n1"), alert("n2")))
            gate.until_metric("held_findings", 1, '{reason="budget"}')
            first = gate.calls[0][0]
            ran = gate.ask("release", first)
            assert ran.returncode == 0
            assert "given back" in ran.stdout

            gate.until_calls(2)
            gate.until_metric("held_findings", 1, '{reason="cooldown"}')
            (line,) = gate.lines("released")
            assert line["node"] == first

    @pytest.mark.parametrize("node", ["$(id)", "a b", "a;b", ""])
    def test_release_of_nothing(self, folder: Path, node: str) -> None:
        """A name that is none is refused by the command."""
        gate = GateProcess(folder)
        assert gate.ask("release", node).returncode == 78

    def test_reload(self, folder: Path) -> None:
        """SIGHUP turns a rehearsal into action; a wrong file changes nothing."""
        with GateProcess(folder) as gate:
            gate.post(notification(alert()))
            gate.until_metric("actions_total", 1, '{outcome="dry_run"}')
            gate.configure(act=True, caution={"budget_nodes": 0})
            gate.signal(signal.SIGHUP)
            wait_until(lambda: "configuration_refused" in gate.said(), 10, "refused")
            assert gate.metric("dry_run") == 1
            gate.configure(act=True)
            gate.signal(signal.SIGHUP)

            gate.until_calls(1)
            assert gate.metric("dry_run") == 0

    def test_tells_its_supervisor(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Ready, alive and stopping go to systemd."""
        path = str(folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.bind(path)
            channel.settimeout(10)
            monkeypatch.setenv("NOTIFY_SOCKET", path)
            monkeypatch.setenv("WATCHDOG_USEC", "400000")
            heard: list[bytes] = []
            with GateProcess(folder) as gate:
                while not {b"READY=1", b"WATCHDOG=1"} <= set(heard):
                    heard.append(channel.recv(4096))
                gate.signal(signal.SIGTERM)
                while b"STOPPING=1" not in heard:
                    heard.append(channel.recv(4096))
                assert gate.ended() == 0

    def test_a_wrong_configuration(self, folder: Path) -> None:
        """It does not start, with one line and status 78."""
        gate = GateProcess(folder, act=True, script={"path": None})
        ran = gate.ask("run")

        assert ran.returncode == 78
        assert ran.stderr.count("\n") == 1
        assert "script.path" in ran.stderr

    @pytest.mark.slow
    def test_journal_that_cannot_be_written(self, folder: Path) -> None:
        """Nothing is done that could not be written; the sender comes again."""
        with GateProcess(folder, act=True) as gate:
            file = folder / "state" / "journal.sqlite"
            held = subprocess.Popen(
                [
                    *("python3", "-c"),
                    HOLD_JOURNAL,
                    str(file),
                ],
                stdout=subprocess.PIPE,
            )
            try:
                assert held.stdout is not None
                held.stdout.readline()
                assert gate.post(notification(alert())).status == 503
                gate.until_metric("journal_failing", 1)
                assert gate.calls == []
            finally:
                held.kill()
                held.wait()
                if held.stdout is not None:
                    held.stdout.close()
            gate.until_metric("journal_failing", 0)
            assert gate.post(notification(alert())).status == 200
            gate.until_calls(1)


class TestHostile:
    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"{", 400),
            (b"[" * 200_000, 400),
            (b'{"version": "4", "alerts": "x"}', 400),
        ],
        ids=["broken", "deep", "wrong"],
    )
    def test_bodies(self, folder: Path, body: bytes, status: int) -> None:
        """What is no notification is sent away and counted, and the gate goes on."""
        with GateProcess(folder, act=True) as gate:
            assert gate.post(body).status == status
            assert gate.post(notification(alert())).status == 200
            gate.until_calls(1)

    def test_huge_body(self, folder: Path) -> None:
        """What is announced to be too long is not even received."""
        with (
            GateProcess(folder) as gate,
            socket.create_connection((LOOPBACK, gate.port), 10) as client,
        ):
            client.sendall(b"POST /alerts HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
            assert b" 413 " in client.recv(1000).splitlines()[0]

    def test_forged_names(self, folder: Path) -> None:
        """No text of an alert is ever obeyed by a shell."""
        mark = folder / "obeyed"
        shell = f"$(touch {mark})`touch {mark}`;touch {mark};'\"\n|touch {mark}"
        with GateProcess(folder, act=True) as gate:
            names = [f"n1{shell}", "-rf", "a b", "../../x", f"{'n' * 300}", ""]
            told = [alert(name) for name in names]
            gate.post(notification(*told, alert("good", device=shell, port=shell)))
            gate.until_calls(1)
            gate.until_metric("actions_total", 1, '{outcome="done"}')

            assert [call[0] for call in gate.calls] == ["good"]
            assert not mark.exists()
            refused = [e for e in gate.lines("decided") if e["verdict"] == "refuse"]
            assert {each["reason"] for each in refused} == {"node_name"}
            assert "\x1b" not in gate.ask("journal").stdout

    def test_token(self, folder: Path) -> None:
        """Without the token nothing comes in; it appears nowhere."""
        (folder / "token").write_text(TOKEN + "\n")
        listen = {"token_file": str(folder / "token")}
        with GateProcess(folder, act=True, listen=listen) as gate:
            told = notification(alert())
            assert gate.post(told).status == 401
            assert gate.post(told, Authorization="Bearer wrong").status == 401
            assert gate.post(told, Authorization=f"Basic {TOKEN}").status == 401
            assert gate.metric("refused_requests_total", '{reason="token"}') == 3
            assert gate.post(told, Authorization=f"Bearer {TOKEN}").status == 200
            gate.until_calls(1)
            assert TOKEN not in gate.said()

    def test_client_certificates(self, folder: Path, tmp_path: Path) -> None:
        """With TLS and an authority only its clients are served at all."""
        authority = Authority(tmp_path, "site")
        own, client = authority.sign("gate"), authority.sign("alertmanager")
        listen = {
            "tls_certificate": os.fspath(own.certificate),
            "tls_key": os.fspath(own.key),
            "client_authority": os.fspath(authority.file),
        }
        gate = GateProcess(folder, act=True, listen=listen)
        gate.context = ssl.create_default_context(cafile=authority.file)
        gate.context.load_cert_chain(client.certificate, client.key)
        with gate:
            stranger = ssl.create_default_context(cafile=authority.file)
            gate.context, known = stranger, gate.context
            with pytest.raises(OSError, match=r".*"):
                gate.post(notification(alert("stranger")))
            gate.context = known
            assert gate.post(notification(alert())).status == 200
            gate.until_calls(1)
            assert [call[0] for call in gate.calls] == ["n1"]

    def test_probes_without_certificate(self, folder: Path, tmp_path: Path) -> None:
        """Where clients need certificates, a second address tells health, no more."""
        authority, port = Authority(tmp_path, "site"), free_port()
        own, client = authority.sign("gate"), authority.sign("alertmanager")
        listen = {
            "health": f"{LOOPBACK}:{port}",
            "tls_certificate": os.fspath(own.certificate),
            "tls_key": os.fspath(own.key),
            "client_authority": os.fspath(authority.file),
        }
        gate = GateProcess(folder, listen=listen)
        gate.context = ssl.create_default_context(cafile=authority.file)
        gate.context.load_cert_chain(client.certificate, client.key)
        with gate:
            gate.context, gate.port = None, port
            assert gate.get("/healthz").status == 200
            assert gate.get("/readyz").status == 200
            assert gate.get("/metrics").status == 404
            assert gate.post(notification(alert())).status in {404, 405}

    def test_slow_client(self, folder: Path) -> None:
        """Who promises a body and sends none is dropped, and holds up nobody."""
        listen = {"timeout_seconds": 0.5}
        with GateProcess(folder, act=True, listen=listen) as gate:
            with socket.create_connection((LOOPBACK, gate.port), 10) as slow:
                slow.sendall(b"POST /alerts HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
                assert gate.post(notification(alert())).status == 200
                assert slow.recv(100) == b""
            gate.until_calls(1)

    def test_other_methods(self, folder: Path) -> None:
        """/alerts takes POST, the others do not."""
        with GateProcess(folder) as gate:
            with socket.create_connection((LOOPBACK, gate.port), 10) as client:
                client.sendall(b"GET /alerts HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b" 405 " in client.recv(1000).splitlines()[0]
            with socket.create_connection((LOOPBACK, gate.port), 10) as client:
                client.sendall(b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")
                assert b" 405 " in client.recv(1000).splitlines()[0]


@pytest.mark.server
class TestAlertmanager:
    def test_end_to_end(
        self, folder: Path, start_alertmanager: Callable[..., Server]
    ) -> None:
        """A page of the example's routes goes through the gate to the script."""
        (folder / "token").write_text(TOKEN)
        listen = {"token_file": str(folder / "token")}
        with GateProcess(folder, act=True, listen=listen) as gate:
            document: Any = yaml.safe_load(alertmanager_file(FleetOptions()))
            document["route"] |= {"group_wait": "0s", "group_interval": "1s"}
            for receiver in document["receivers"][1:]:
                receiver["webhook_configs"] = [
                    {
                        "url": gate.url("/alerts"),
                        "http_config": {
                            "authorization": {"credentials_file": str(folder / "token")}
                        },
                    }
                ]
            server = start_alertmanager(yaml.safe_dump(document))
            labels = alert("gpu17", leaf="l1", rail="3")["labels"]
            other = {"node": "gpu18", "leaf": "l2", "rail": "4"}
            victim = labels | other | {"role": "victim", "notice": "ticket"}
            self.post(server, labels, victim)
            gate.until_calls(1)
            gate.until_metric("open_findings", 2)
            assert gate.calls == [["gpu17", "fabricmon: mlx5_0/1 DOWN"]]

            self.post(server, labels, over=True)
            gate.until_metric("open_findings", 1)
            (line,) = gate.lines("resolved")
            assert line["node"] == "gpu17"

    def post(self, server: Server, *alerts: dict[str, str], over: bool = False) -> None:
        """Send alerts as Prometheus does."""
        times = {"startsAt": "2026-01-01T00:00:00Z"}
        if over:
            times["endsAt"] = "2026-01-01T00:10:00Z"
        body = json.dumps([{"labels": labels} | times for labels in alerts]).encode()
        request = urllib.request.Request(
            f"{server.url}/api/v2/alerts", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).close()


@pytest.mark.server
class TestMqtt:
    topic = "fabricmon/v1/c1/n1"

    def mqtt(self, port: int, **more: Any) -> dict[str, Any]:
        """Return a configuration with a broker."""
        return {"act": True, "mqtt": {"host": LOOPBACK, "port": port} | more}

    def tell(self, port: int, state: str = "open", seq: int = 1) -> None:
        """Publish a finding as an agent does."""
        told = msgspec.structs.replace(finding(), state=state, seq=seq)
        publish(port, f"{self.topic}/finding", msgspec.json.encode(told), retain=False)

    def test_end_to_end(self, folder: Path, mosquitto: Server) -> None:
        """A finding goes from a real broker to the script."""
        with GateProcess(folder, **self.mqtt(mosquitto.port)) as gate:
            gate.until_metric("input_connected", 1, '{source="mqtt"}')
            self.tell(mosquitto.port)
            gate.until_calls(1)
            assert gate.calls == [["n1", "fabricmon: mlx5_0/1 DOWN"]]
            self.tell(mosquitto.port, "resolved", 2)

            gate.until_metric("open_findings", 0)

    def test_what_is_told_while_it_is_away(
        self, folder: Path, mosquitto: Server
    ) -> None:
        """The broker keeps findings for a gate that is restarted."""
        with GateProcess(folder, **self.mqtt(mosquitto.port)) as gate:
            gate.until_metric("input_connected", 1, '{source="mqtt"}')
            gate.signal(signal.SIGTERM)
            assert gate.ended() == 0
            self.tell(mosquitto.port)
            gate.start()

            gate.until_calls(1)

    def test_unreachable_broker(self, folder: Path) -> None:
        """The gate serves without it, says that it is away, and tries again."""
        broker = {"host": LOOPBACK, "port": free_port(), "retry_cap_seconds": 1}
        with GateProcess(folder, act=True, mqtt=broker) as gate:
            wait_until(lambda: "broker_lost" in gate.said(), 10, "it is said")
            assert gate.metric("input_connected", '{source="mqtt"}') == 0
            gate.post(notification(alert()))

            gate.until_calls(1)

    @pytest.mark.slow
    def test_broker_that_goes_away(
        self, folder: Path, start_mosquitto: Callable[..., Server]
    ) -> None:
        """What it said is not acted on until it is back."""
        server = start_mosquitto()
        caution = {"settle_seconds": 4}
        config = self.mqtt(server.port, retry_seconds=0.2, retry_cap_seconds=0.5)
        with GateProcess(folder, caution=caution, **config) as gate:
            gate.until_metric("input_connected", 1, '{source="mqtt"}')
            self.tell(server.port)
            gate.until_metric("open_findings", 1)
            server.kill()
            gate.until_metric("held_findings", 1, '{reason="input_lost"}')
            assert gate.calls == []
            server.start()

            gate.until_calls(1)

    def test_agent_that_is_offline(self, folder: Path, mosquitto: Server) -> None:
        """The last will of a node holds what it said."""
        status = f"{self.topic}/status"
        publish(mosquitto.port, status, b'{"state": "offline"}')
        with GateProcess(folder, **self.mqtt(mosquitto.port)) as gate:
            gate.until_metric("input_connected", 1, '{source="mqtt"}')
            self.tell(mosquitto.port)
            gate.until_metric("held_findings", 1, '{reason="agent_offline"}')
            assert gate.calls == []
            publish(mosquitto.port, status, b'{"state": "online"}')

            gate.until_calls(1)

    def test_forged_messages(self, folder: Path, mosquitto: Server) -> None:
        """Retained findings, other nodes' names and garbage take no node out."""
        with GateProcess(folder, **self.mqtt(mosquitto.port)) as gate:
            gate.until_metric("input_connected", 1, '{source="mqtt"}')
            other = msgspec.json.encode(finding("n2"))
            for payload in (other, b"{", b"\xff", b"x" * 300_000):
                publish(mosquitto.port, f"{self.topic}/finding", payload, retain=False)
            gate.until_metric("unusable_reports_total", 4, '{source="mqtt"}')
            assert gate.metric("open_findings") == 0
            self.tell(mosquitto.port)

            gate.until_calls(1)

    def test_tls_with_a_wrong_authority(
        self, folder: Path, tmp_path: Path, start_mosquitto: Callable[..., Server]
    ) -> None:
        """A broker that cannot prove who it is is not listened to."""
        pair = Authority(tmp_path, "one").sign("broker")
        wrong = Authority(tmp_path, "other").file
        port = free_port()
        own = f"user root\nlistener {port} {LOOPBACK}\n"
        start_mosquitto(f"{own}certfile {pair.certificate}\nkeyfile {pair.key}")
        tls = {"tls": True, "tls_authority": os.fspath(wrong)}
        with GateProcess(folder, **self.mqtt(port, **tls)) as gate:
            wait_until(lambda: "broker_lost" in gate.said(), 10, "it is said")
            assert "certificate" in gate.said()
            assert gate.metric("input_connected", '{source="mqtt"}') == 0
