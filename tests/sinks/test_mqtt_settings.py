"""What a connection needs: ports, secrets out of files, pauses between tries, rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import demo
from fabricmon.config import Mqtt
from fabricmon.config_load import build, check_files
from fabricmon.errors import ConfigError
from fabricmon.host.trace import Header
from fabricmon.sinks.mqtt_client import Backoff
from fabricmon.sinks.mqtt_settings import (
    Access,
    broker_of,
    client_id_of,
    port_of,
    read_access,
)
from fabricmon.sinks.name_key import FILE, load_key


def refusal(**mqtt: Any) -> str:
    """Return why a section is refused."""
    with pytest.raises(ConfigError) as refused:
        build({"mqtt": mqtt}, (), ())
    return str(refused.value)


class TestRules:
    @pytest.mark.parametrize(
        ("mqtt", "said"),
        [
            ({"host": "mqtts://broker"}, "mqtt.host"),
            ({"host": "user@broker"}, "mqtt.host"),
            ({"host": ""}, "mqtt.host"),
            ({"topic_prefix": "a/+"}, "mqtt.topic_prefix"),
            ({"topic_prefix": "/a"}, "mqtt.topic_prefix"),
            ({"tls_authority": "/x"}, "mqtt.tls: true"),
            ({"tls": True, "tls_key": "/x"}, "mqtt.tls_certificate"),
            ({"password_file": "/x"}, "mqtt.user_file"),
            ({"retry_seconds": 9, "retry_cap_seconds": 8}, "mqtt.retry_cap_seconds"),
            ({"user_file": ""}, "mqtt.user_file"),
            ({"redact": {"jobs": "hide"}}, "keep or pseudonym or remove"),
            ({"redact": {"key_file": "\0"}}, "mqtt.redact.key_file"),
            ({"password": "x"}, "did you mean password_file?"),
            ({"port": 70000}, "mqtt.port"),
        ],
    )
    def test_refused(self, mqtt: dict[str, Any], said: str) -> None:
        """Each mistake names its key and what to write."""
        assert said in refusal(**mqtt)

    @pytest.mark.parametrize(
        "key", ["user_file", "password_file", "tls_authority", "tls_certificate"]
    )
    def test_files_must_be_readable(self, key: str) -> None:
        """An agent does not start with a file that it cannot read, if MQTT is on."""
        files = {"user_file": "/dev/null", "tls_key": "/dev/null"}
        files |= {"tls_certificate": "/dev/null", key: "/nowhere"}
        tree = {"host": "h", "tls": True, **files}
        with pytest.raises(ConfigError, match=f"mqtt.{key}: /nowhere: No such"):
            check_files(build({"mqtt": tree}, (), ()))
        check_files(build({"mqtt": tree | {"host": None}}, (), ()))


class TestNames:
    def test_ports(self) -> None:
        """The usual one, by whether there is TLS, or the one that is set."""
        assert port_of(Mqtt(host="h")) == 1883
        assert port_of(Mqtt(host="h", tls=True)) == 8883
        assert broker_of(Mqtt(host="h", port=99)) == "h:99"

    def test_clients(self) -> None:
        """Two nodes, and two clusters, have different names."""
        config = build({"cluster": "c"}, (), ()).config
        assert client_id_of(config, "n") == "fabricmon-c-n"
        named = build({"mqtt": {"client_id": "x"}}, (), ()).config
        assert client_id_of(named, "n") == "x"


class TestSecrets:
    def test_read(self, tmp_path: Path) -> None:
        """One line each, without its end; who can read them is noticed."""
        user, password = tmp_path / "user", tmp_path / "password"
        user.write_text("node\r\n")
        password.write_text(" with spaces ")
        password.chmod(0o644)
        mqtt = Mqtt(user_file=str(user), password_file=str(password))
        access = read_access(mqtt)
        assert (access.user, access.password) == ("node", " with spaces ")
        assert access.open_files == (str(password),)
        password.chmod(0o640)
        assert read_access(mqtt).open_files == ()

    def test_not_shown(self) -> None:
        """A password is in no text of what holds it."""
        assert "hunter2" not in repr(Access("u", "hunter2", None))

    @pytest.mark.parametrize("text", [b"", b"\n", b"a\nb\n", b"\xff", b"x" * 9000])
    def test_no_secret(self, tmp_path: Path, text: bytes) -> None:
        """What is not one line is refused with its key, and not shown."""
        file = tmp_path / "user"
        file.write_bytes(text)
        with pytest.raises(ConfigError) as refused:
            read_access(Mqtt(user_file=str(file)))
        assert str(refused.value).startswith(f"mqtt.user_file: {file}: ")
        assert "xxx" not in str(refused.value)

    @pytest.mark.parametrize("key", ["tls_authority", "tls_certificate"])
    def test_no_certificate(self, tmp_path: Path, key: str) -> None:
        """A file that is no PEM is named with its key."""
        file = tmp_path / "pem"
        file.write_text("nothing")
        tree = {"tls": True, key: str(file)}
        if key == "tls_certificate":
            tree["tls_key"] = str(file)
        mqtt = build({"mqtt": tree}, (), ()).config.mqtt
        with pytest.raises(ConfigError, match=f"mqtt.{key}: {file}"):
            read_access(mqtt)


class TestBackoff:
    def test_full_jitter(self) -> None:
        """Between zero and a limit that doubles up to the cap, then starts over."""
        limits: list[float] = []

        def draw(least: float, most: float) -> float:
            assert least == 0
            limits.append(most)
            return most / 2

        pauses = Backoff(1, 10, draw)
        assert [pauses.next() for _ in range(6)] == [0.5, 1, 2, 4, 5, 5]
        pauses.reset()
        assert pauses.next() == 0.5
        assert limits == [1, 2, 4, 8, 10, 10, 1]

    def test_for_years(self) -> None:
        """It neither overflows nor spins."""
        pauses = Backoff(1, 60, lambda least, most: least)
        assert {pauses.next() for _ in range(5000)} == {0.05}


class TestKey:
    def test_made_once(self, tmp_path: Path) -> None:
        """A node without a key makes its own and keeps it to itself."""
        config = build({"state_folder": str(tmp_path / "state")}, (), ()).config
        key = load_key(None, config, "k")
        assert load_key(None, config, "k") == key
        assert (tmp_path / "state" / FILE).stat().st_mode & 0o777 == 0o600

    def test_named(self, tmp_path: Path) -> None:
        """A file that is named is used; one that is too short is refused."""
        config = build({}, (), ()).config
        file = tmp_path / "key"
        file.write_bytes(b"0123456789abcdef\n")
        assert load_key(str(file), config, "k") == b"0123456789abcdef"
        file.write_bytes(b"short")
        with pytest.raises(ConfigError, match="too short"):
            load_key(str(file), config, "mqtt.redact.key_file")


def test_the_demo_tells_nobody() -> None:
    """An embedded node that breaks on purpose never reaches the site's broker."""
    loaded = build({"mqtt": {"host": "broker"}, "cluster": "c"}, (), ())
    header = Header(node="n")
    shown = demo._of_node(loaded, header, "/tmp/demo")
    assert shown.config.mqtt == Mqtt()
    assert shown.config.cluster == "c"
