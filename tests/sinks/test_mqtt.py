"""The MQTT sink against a real broker: order, counts, outages, refusals, the end."""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricmon.model import Subject
from fabricmon.sinks.mqtt_client import publish_retained
from fabricmon.sinks.mqtt_spool import FILE
from tests.conftest import StartServer
from tests.sinks import nodes
from tests.sinks.mqtt_sinks import ROOT, Rig, snapshot
from tests.support.mqtt import Authority, Listener, SlowPath, publish, retained
from tests.support.programs import require
from tests.support.servers import Server, free_port, wait_until

pytestmark = pytest.mark.server

MakeRig = Callable[..., Rig]
OWN = "user root\n"
"""Else a broker that root starts cannot read the files of the test."""

SOON = 1.0
"""An agent's sinks end within a second."""


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[MakeRig]:
    """Make sinks of one node; ends them."""
    made: list[Rig] = []

    def make(port: int | None, **mqtt: Any) -> Rig:
        made.append(Rig(tmp_path / "state", port, **mqtt))
        return made[-1]

    make.made = made  # type: ignore[attr-defined]
    yield make
    for rig in made:
        rig.sink.close()


@pytest.fixture
def path(mosquitto: Server) -> Iterator[SlowPath]:
    """Return a way to the broker that can be slowed down."""
    way = SlowPath(mosquitto.port)
    yield way
    way.close()


class TestTopics:
    def test_what_is_retained(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """Status, ports and summary stay with the broker; findings do not."""
        rig = make_rig(mosquitto.port).publish()
        rig.tell(1)
        with Listener(mosquitto.port) as listener:
            rig.publish(incidents=(nodes.incident(),))
            wait_until(lambda: not rig.delivery.waiting, 10, "all is told")
            listener.until("/summary")
        found = retained(mosquitto.port)
        assert set(found) == {
            f"{ROOT}status",
            f"{ROOT}summary",
            f"{ROOT}port/mlx5_0/1",
        }

    def test_payloads(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """Each holds the keys of the format; a port has no counters."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port).publish(incidents=(nodes.incident(),))
            rig.tell(1)
            (status,) = listener.until("/status")
            (port,) = listener.until("/port/mlx5_0/1")
            (summary,) = listener.until("/summary")
            (finding,) = listener.until("/finding")
        assert set(status.json) == {"state", "since", "version"}
        assert status.json["state"] == "online"
        assert port.json["state"] == "ACTIVE"
        assert not {"counters", "hw_counters"} & set(port.json)
        assert {"verdict", "reasons", "unavailable", "rate_gbps"} <= set(port.json)
        assert summary.json["open"] == {"port_down": {"critical": 1}}
        assert set(summary.json) == {"schema", "time", "open", "ports"}
        assert finding.json["schema"] == "fabricmon.finding/1"
        assert finding.json["subject"]["device"] == "mlx5_0"

    def test_mqtt_5_and_a_prefix(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """The newer version works, and topics may begin with a site's own levels."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port, protocol=5, topic_prefix="site/a").publish()
            rig.tell(3)
            listener.until("/finding", 3)
        assert all(each.topic.startswith(f"site/a/{ROOT}") for each in listener.heard)

    def test_only_changes_are_sent(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """Counters that move are no news of a port."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port).publish()
            listener.until("/port/mlx5_0/1")
            moved = replace(rig.shown.ports[0], readings=(), resets=7)
            rig.publish(ports=(moved,))
            down = replace(rig.shown.ports[0], reasons=("told",))
            rig.publish(ports=(down,))
            listener.until("/port/mlx5_0/1", 2)
        assert listener.of("/port/mlx5_0/1")[-1].json["reasons"] == ["told"]
        assert len(listener.of("/port/mlx5_0/1")) == 2


class TestOutages:
    def test_absent_at_start(
        self, start_mosquitto: StartServer, make_rig: MakeRig
    ) -> None:
        """What was told before there was a broker comes in order, with its numbers."""
        port = free_port()
        rig = make_rig(port).publish()
        rig.tell(300)
        rig.until_spooled(300)
        wait_until(lambda: rig.delivery.failures > 1, 10, "it tries again and again")
        assert len(rig.lines("broker_unreachable")) == 1
        broker = start_mosquitto("max_queued_messages 0", port)
        with Listener(broker.port) as listener:
            rig.publish()
            listener.until("/status")
            wait_until(lambda: not rig.delivery.waiting, 20, "all is delivered")
            rig.tell(1)
            wait_until(lambda: 301 in listener.seqs, 20, "the newest came")
        seen = listener.seqs
        assert seen == sorted(seen)
        assert rig.delivery.delivered >= 301

    def test_killed_and_restarted_under_load(
        self, start_mosquitto: StartServer, make_rig: MakeRig
    ) -> None:
        """Nothing is lost that the broker did not take; the order holds."""
        broker = start_mosquitto("max_queued_messages 0")
        rig = make_rig(broker.port).publish().until_connected()
        seen: list[int] = []
        for number in range(3):
            with Listener(broker.port) as listener:
                rig.tell(200)
                listener.until("/finding", 20)
                broker.kill()
                rig.tell(200)
            seen += listener.seqs
            broker.start()
            with Listener(broker.port) as listener:
                rig.until_connected(number + 2)
                wait_until(lambda: not rig.delivery.waiting, 30, "all is delivered")
                rig.tell(1)
                wait_until(lambda: rig.told in listener.seqs, 20, "the last one came")
            seen += listener.seqs
        # A finding may be missed by a listener that was not yet there, but the sink
        # counts an acknowledgement for each; none may come before one that is older.
        assert rig.delivery.dropped == 0
        assert rig.delivery.delivered >= rig.told
        first = list(dict.fromkeys(seen))
        assert first == sorted(first)

    def test_nothing_is_lost_on_the_way(
        self, mosquitto: Server, path: SlowPath, make_rig: MakeRig
    ) -> None:
        """A connection that breaks in the middle costs no finding, whoever listens."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(path.port).publish().until_connected()
            for _ in range(3):
                rig.tell(100)
                wait_until(lambda: len(listener.seqs) > 5, 20, "some came")
                path.flows.clear()
                rig.tell(100)
                path.close()
                path = SlowPath(mosquitto.port)
                rig.sink.reload(rig.configure(path.port))
            rig.publish()
            wait_until(lambda: set(listener.seqs) == set(range(1, 601)), 40, "all came")
        first = list(dict.fromkeys(listener.seqs))
        assert first == sorted(first)
        path.close()

    def test_a_slow_broker_slows_nobody(
        self, mosquitto: Server, path: SlowPath, make_rig: MakeRig
    ) -> None:
        """Handing over costs microseconds, also while nothing gets through."""
        rig = make_rig(path.port).publish().until_connected()
        path.delay_seconds = 0.2
        begun = time.perf_counter()
        rig.tell(500)
        each = (time.perf_counter() - begun) / 500
        assert each < 1e-3, f"{each * 1e6:.0f} us"
        with Listener(mosquitto.port) as listener:
            path.delay_seconds = 0
            rig.publish()
            wait_until(lambda: not rig.delivery.waiting, 40, "all is delivered")
            assert listener.seqs == sorted(listener.seqs)
        assert rig.delivery.dropped == 0

    def test_a_broker_that_takes_nothing(
        self, mosquitto: Server, path: SlowPath, make_rig: MakeRig
    ) -> None:
        """It is given up after the time-out, and its connection does not linger."""
        rig = make_rig(path.port, timeout_seconds=0.3).publish().until_connected()
        path.flows.clear()
        rig.tell(1)
        wait_until(lambda: rig.delivery.failures > 0, 10, "it gave up")
        path.flows.set()
        rig.until_connected(2)
        wait_until(lambda: not rig.delivery.waiting, 10, "it is delivered")

    def test_the_oldest_are_dropped(self, make_rig: MakeRig) -> None:
        """Beyond the bound, counted; what waits is counted as well."""
        rig = make_rig(free_port(), spool_findings=100).publish()
        rig.tell(250)
        wait_until(lambda: rig.delivery.dropped == 150, 10, "150 are dropped")
        assert rig.delivery.waiting == 100
        assert not rig.delivery.connected
        assert rig.delivery.last_success is None


class TestRestart:
    def test_findings_survive(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """What waits at the end is delivered by the next agent, oldest first."""
        first = make_rig(free_port()).publish()
        first.tell(50)
        first.until_spooled(50)
        first.sink.close()
        with Listener(mosquitto.port) as listener:
            make_rig(mosquitto.port).publish()
            listener.until("/finding", 50)
        assert listener.seqs == list(range(1, 51))

    def test_told_at_the_very_end(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """The last findings of an agent that ends are delivered, then it is offline."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port).publish().until_connected()
            rig.tell(20)
            rig.sink.close()
            wait_until(lambda: listener.state() == "offline", 10, "it is offline")
        assert listener.seqs == list(range(1, 21))
        assert listener.heard[-1].topic == f"{ROOT}status"

    def test_topics_of_an_earlier_run(
        self, mosquitto: Server, make_rig: MakeRig
    ) -> None:
        """A device that went away while no agent ran is cleared, and told until then."""
        two = snapshot(
            ports=(*snapshot().ports, nodes.port("mlx5_9")),
        )
        first = make_rig(mosquitto.port)
        with Listener(mosquitto.port) as listener:
            first.publish(ports=two.ports)
            listener.until("/port/mlx5_9/1")
            first.sink.close()
            second = make_rig(mosquitto.port, gone_seconds=30).publish()
            told = listener.until("/port/mlx5_9/1", 2)[-1]
            assert told.json["verdict"] == "unknown"
            assert told.json["state"] is None
            second.now += 60
            second.publish()
            assert listener.until("/port/mlx5_9/1", 3)[-1].payload == b""
        assert f"{ROOT}port/mlx5_9/1" not in retained(mosquitto.port)

    def test_topics_of_another_name(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """What was retained below another cluster's name is cleared at once."""
        rig = make_rig(mosquitto.port).publish().until_connected()
        wait_until(lambda: f"{ROOT}summary" in retained(mosquitto.port), 10, "told")
        rig.sink.reload(rig.configure(mosquitto.port, cluster="c2"))
        wait_until(
            lambda: (
                {topic.split("/")[2] for topic in retained(mosquitto.port)} == {"c2"}
            ),
            10,
            "only the new name is there",
        )

    def test_a_missing_device(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """While a finding says that it is missing, its port is down, not cleared."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port, gone_seconds=0).publish()
            listener.until("/port/mlx5_0/1")
            base = nodes.incident("device_missing")
            finding = replace(base.finding, subject=Subject("mlx5_0"), summary="gone")
            rig.publish(ports=(), incidents=(replace(base, finding=finding),))
            told = listener.until("/port/mlx5_0/1", 2)[-1].json
            assert (told["verdict"], told["reasons"]) == ("down", ["gone"])
            assert told["state"] is None
            assert told["pci_address"] == rig.shown.hcas[0].pci_address
            rig.publish(incidents=())
            assert listener.until("/port/mlx5_0/1", 3)[-1].payload == b""


class TestReload:
    def test_off_and_on(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """A reload turns it on and off; while off there is nothing to measure."""
        rig = make_rig(None).publish()
        assert rig.sink.delivery is None
        rig.sink.reload(rig.configure(mosquitto.port))
        rig.publish().until_connected()
        with Listener(mosquitto.port) as listener:
            rig.sink.reload(rig.configure(None))
            wait_until(lambda: listener.state() == "offline", 10, "it is offline")
        assert rig.sink.delivery is None

    def test_another_broker(
        self, start_mosquitto: StartServer, make_rig: MakeRig
    ) -> None:
        """What waits for one broker goes to the other; counts go on."""
        one, other = free_port(), start_mosquitto()
        rig = make_rig(one).publish()
        rig.tell(30)
        rig.until_spooled(30)
        wait_until(lambda: rig.delivery.failures > 0, 20, "the first one is away")
        with Listener(other.port) as listener:
            begun = time.perf_counter()
            rig.sink.reload(rig.configure(other.port))
            assert time.perf_counter() - begun < 0.1
            listener.until("/finding", 30)
        assert listener.seqs == list(range(1, 31))
        assert rig.delivery.failures > 0

    def test_no_goodbye_between(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """A reload that keeps the topics does not say that the node was offline."""
        with Listener(mosquitto.port) as listener:
            rig = make_rig(mosquitto.port).publish().until_connected()
            rig.sink.reload(rig.configure(mosquitto.port, keepalive_seconds=20))
            rig.until_connected(2)
            listener.until("/status", 2)
        assert {each.json["state"] for each in listener.of("/status")} == {"online"}


def _password_file(folder: Path, user: str, password: str) -> Path:
    """Return a file of mosquitto with one user."""
    file = folder / "passwords"
    command = [require("mosquitto_passwd"), "-c", "-b", str(file), user, password]
    subprocess.run(command, check=True, capture_output=True)
    return file


class TestSecrets:
    @pytest.fixture
    def guarded(self, start_mosquitto: StartServer, tmp_path: Path) -> Server:
        """Return a broker that wants a password."""
        file = _password_file(tmp_path, "node", "s3cret-word")
        return start_mosquitto(f"{OWN}allow_anonymous false\npassword_file {file}")

    def test_refused_then_mended(
        self, guarded: Server, make_rig: MakeRig, tmp_path: Path
    ) -> None:
        """A wrong password is said once; the file is read again at each try."""
        user, password = tmp_path / "user", tmp_path / "password"
        user.write_text("node\n")
        password.write_text("wr0ng-word\n")
        password.chmod(0o644)
        rig = make_rig(
            guarded.port, user_file=str(user), password_file=str(password)
        ).publish()
        wait_until(lambda: rig.delivery.failures >= 3, 10, "it is refused")
        (line,) = rig.lines("broker_unreachable")
        assert "Not authorized" in line["err"]
        assert len(rig.lines("secret_exposed")) == 1
        password.write_text("s3cret-word\n")
        rig.until_connected()
        assert b"-word" not in rig.log.getvalue()

    def test_a_file_that_vanishes(
        self, guarded: Server, make_rig: MakeRig, tmp_path: Path
    ) -> None:
        """It is named with its key, and tried again."""
        user = tmp_path / "user"
        rig = make_rig(guarded.port, user_file=str(user)).publish()
        wait_until(lambda: rig.delivery.failures >= 2, 10, "it fails")
        (line,) = rig.lines("broker_unreachable")
        assert line["err"].startswith(f"mqtt.user_file: {user}: No such file")


# paho leaves the socket of a handshake that failed to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
class TestTls:
    @pytest.fixture(autouse=True)
    def collect(self, make_rig: MakeRig) -> Iterator[None]:
        """Let such sockets go while it is known whose they are."""
        yield
        for rig in getattr(make_rig, "made", ()):
            rig.sink.close()
        gc.collect()

    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        """Return the site's authority."""
        return Authority(tmp_path, "site")

    def start(self, start: StartServer, authority: Authority, more: str = "") -> Server:
        """Start a broker that speaks TLS."""
        own = authority.sign("broker")
        return start(
            f"{OWN}cafile {authority.file}\ncertfile {own.certificate}\n"
            f"keyfile {own.key}\n{more}"
        )

    def test_right_authority(
        self, start_mosquitto: StartServer, make_rig: MakeRig, authority: Authority
    ) -> None:
        """A broker that the authority vouches for is spoken to."""
        broker = self.start(start_mosquitto, authority)
        rig = make_rig(broker.port, tls=True, tls_authority=str(authority.file))
        rig.publish().until_connected()

    def test_wrong_authority(
        self,
        start_mosquitto: StartServer,
        make_rig: MakeRig,
        authority: Authority,
        tmp_path: Path,
    ) -> None:
        """A broker that somebody else vouches for gets nothing; the reason is said."""
        broker = self.start(start_mosquitto, authority)
        other = Authority(tmp_path, "stranger")
        rig = make_rig(broker.port, tls=True, tls_authority=str(other.file)).publish()
        wait_until(lambda: rig.delivery.failures >= 2, 10, "it fails")
        (line,) = rig.lines("broker_unreachable")
        assert "certificate verify failed" in line["err"]
        assert rig.delivery.connects == 0

    def test_both_sides(
        self, start_mosquitto: StartServer, make_rig: MakeRig, authority: Authority
    ) -> None:
        """A broker that asks for a certificate gets it, and refuses who has none."""
        more = "require_certificate true\nuse_identity_as_username true"
        broker = self.start(start_mosquitto, authority, more)
        known = {"tls": True, "tls_authority": str(authority.file)}
        stranger = make_rig(broker.port, timeout_seconds=0.5, **known).publish()
        wait_until(lambda: stranger.delivery.failures >= 2, 10, "it is refused")
        assert stranger.delivery.connects == 0
        stranger.sink.close()
        own = authority.sign("n1")
        files = {"tls_certificate": str(own.certificate), "tls_key": str(own.key)}
        make_rig(broker.port, **known, **files).publish().until_connected()


class TestEnd:
    def test_with_a_dead_broker(self, make_rig: MakeRig) -> None:
        """Within a second, also while it is about to connect."""
        rig = make_rig(free_port()).publish()
        rig.tell(1)
        begun = time.perf_counter()
        rig.sink.close()
        assert time.perf_counter() - begun < SOON
        assert rig.lines("sink_abandoned") == []

    def test_with_a_broker_that_never_answers(
        self, mosquitto: Server, make_rig: MakeRig
    ) -> None:
        """A connection that is accepted and then ignored holds up nothing."""
        silent = SlowPath(mosquitto.port)
        silent.flows.clear()
        rig = make_rig(silent.port, timeout_seconds=60).publish()
        wait_until(lambda: silent.connections > 0, 10, "it connects")
        begun = time.perf_counter()
        rig.sink.close()
        assert time.perf_counter() - begun < SOON
        silent.close()

    def test_in_a_flood(
        self, mosquitto: Server, path: SlowPath, make_rig: MakeRig
    ) -> None:
        """With thousands on their way and a broker that stalls, what waits is kept."""
        rig = make_rig(path.port, timeout_seconds=60).publish().until_connected()
        rig.tell(500)
        path.flows.clear()
        rig.tell(500)
        begun = time.perf_counter()
        rig.sink.close()
        assert time.perf_counter() - begun < SOON + 0.1
        path.flows.set()
        with Listener(mosquitto.port) as listener:
            again = make_rig(mosquitto.port).publish()
            wait_until(
                lambda: 1000 in listener.seqs and not again.delivery.waiting, 30, "all"
            )
        # What was under way at the end is delivered again: at least once, in order.
        first_seen = list(dict.fromkeys(listener.seqs))
        assert first_seen == sorted(first_seen)


class TestDisk:
    def test_damaged(self, mosquitto: Server, make_rig: MakeRig) -> None:
        """A data base that is none is put aside, said once, and a new one begun."""
        rig = make_rig(mosquitto.port)
        rig.folder.mkdir()
        (rig.folder / FILE).write_bytes(b"not a data base" * 1000)
        with Listener(mosquitto.port) as listener:
            rig.publish()
            rig.tell(5)
            listener.until("/finding", 5)
        (line,) = rig.lines("spool_degraded")
        assert "put aside" in line["err"]
        assert (rig.folder / f"{FILE}.broken").exists()

    def test_a_folder_that_is_a_file(
        self, mosquitto: Server, make_rig: MakeRig
    ) -> None:
        """Without a disk findings wait in memory, bounded, and are delivered."""
        rig = make_rig(free_port(), memory_findings=10)
        rig.folder.write_text("in the way")
        rig.publish()
        rig.tell(25)
        wait_until(lambda: rig.delivery.dropped == 15, 10, "15 are dropped")
        (line,) = rig.lines("spool_degraded")
        assert "in memory only" in line["err"]
        assert rig.delivery.waiting == 10


def test_hidden_names(mosquitto: Server, make_rig: MakeRig) -> None:
    """What may not leave the node leaves on no topic."""
    base = nodes.incident("peer_suspect")
    finding = replace(
        base.finding,
        subject=Subject(peer="secret-node", job="secret-job"),
        summary="3 failed towards secret-node in secret-job of /home/alice/x",
    )
    incident = replace(base, finding=finding)
    redact = {"jobs": "pseudonym", "peers": "pseudonym"}
    with Listener(mosquitto.port) as listener:
        rig = make_rig(mosquitto.port, redact=redact)
        told = replace(rig.shown.ports[0], reasons=(finding.summary,))
        rig.shown = replace(rig.shown, ports=(told,), incidents=(incident,))
        rig.sink.publish(rig.shown, (incident,))
        (heard,) = listener.until("/finding")
        (port,) = listener.until("/port/mlx5_0/1")
    everything = b"".join(each.payload for each in listener.heard)
    assert not any(word in everything for word in (b"secret", b"alice"))
    peer = heard.json["subject"]["peer"]
    assert peer in heard.json["summary"]
    assert peer in port.json["reasons"][0]


def test_one_message_of_a_command(mosquitto: Server, make_rig: MakeRig) -> None:
    """A command publishes one retained message and clears it again."""
    config = make_rig(mosquitto.port).config
    publish_retained(config, "fabricmon/v1/c1/maintenance", b"{}")
    assert retained(mosquitto.port) == {"fabricmon/v1/c1/maintenance": b"{}"}
    publish_retained(config, "fabricmon/v1/c1/maintenance", b"")
    assert retained(mosquitto.port) == {}


def test_orders_are_not_taken(start_mosquitto: StartServer, make_rig: MakeRig) -> None:
    """The sink subscribes to nothing: what is sent to it reaches nobody."""
    mosquitto = start_mosquitto("log_type all")
    rig = make_rig(mosquitto.port).publish().until_connected()
    wait_until(lambda: rig.delivery.delivered > 0, 20, "it delivers")
    publish(mosquitto.port, f"{ROOT}command", b"drain", retain=False)
    mosquitto.stop()  # its log is whole then
    log = mosquitto.log.read_text()
    assert "PUBLISH from fabricmon-c1-n1" in log.replace("Received ", "")
    assert "SUBSCRIBE from fabricmon-c1-n1" not in log
