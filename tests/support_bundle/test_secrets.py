"""Secrets in configurations and units: never told, wherever they stand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.support.secrets import HIDDEN, text_without_secrets, without_secrets

_secret = st.from_regex(r"[A-Za-z0-9]{12,24}", fullmatch=True)


class TestConfiguration:
    @given(
        _secret, st.sampled_from(["password", "api_token", "client_secret", "psk_key"])
    )
    def test_no_value_of_such_a_key_is_told(self, secret: str, key: str) -> None:
        """However deep, alone or in a list."""
        tree: Any = {"mqtt": [{key: secret}], key: [secret], "x": {key: {"y": 1}}}
        assert secret not in repr(without_secrets(tree))

    def test_a_path_stays(self) -> None:
        """It says where the secret lies, and not what it is."""
        tree = {"mqtt": {"password_file": "/etc/fabricmon/mqtt.password"}}
        assert without_secrets(tree) == tree

    def test_what_is_no_secret_stays(self) -> None:
        """Numbers, switches, nothing, and other words."""
        tree = {
            "token_seconds": 5,
            "key": None,
            "auth": False,
            "node": "n1",
            "k": ["a"],
        }
        assert without_secrets(tree) == tree

    def test_in_an_address(self) -> None:
        """A user and a password before the host."""
        tree = {"url": "mqtts://me:hunter2@broker:8883/x"}
        assert without_secrets(tree) == {"url": f"mqtts://{HIDDEN}@broker:8883/x"}


class TestText:
    @pytest.mark.parametrize(
        "line",
        [
            'Environment="FABRICMON_MQTT__PASSWORD=hunter2"',
            "Environment=API_TOKEN=hunter2",
            'password: "hunter2"',
            "secret = 'hunter2'",
            '{"client_secret": "hunter2"}',
            "https://me:hunter2@example.org/",
        ],
    )
    def test_assigned(self, line: str) -> None:
        """As in units, configurations and logs."""
        assert "hunter2" not in text_without_secrets(line)

    def test_the_rest_of_a_unit_stays(self) -> None:
        """It is what somebody wants to see."""
        unit = "[Service]\nExecStart=/usr/bin/fabricmon run\nKeyringMode=private\n"
        assert text_without_secrets(unit) == unit

    @given(st.text())
    def test_any_text_is_survived(self, text: str) -> None:
        """In time that grows with its length."""
        assert isinstance(text_without_secrets(text), str)
