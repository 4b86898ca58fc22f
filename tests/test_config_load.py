"""The configuration: what is refused, how it is said, and who set what."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config_load import Loaded, check_files, load
from fabricmon.errors import ConfigError
from fabricmon.yaml_text import parse


def _load(folder: Path, text: str, environment: dict[str, str] | None = None) -> Loaded:
    file = folder / "fabricmon.yaml"
    file.write_text(text, "utf-8")
    return load(file, environment or {})


def _refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        _load(folder, text)
    return str(refused.value).removeprefix(f"{folder}/")


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    """An empty file is a configuration: everything has a default."""
    assert _load(tmp_path, "").config.periods.errors_seconds == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "periods:\n  state_secs: 3\n",
            (
                "fabricmon.yaml:2: periods.state_secs: no such key "
                "(did you mean state_seconds?)"
            ),
        ),
        (
            "periods:\n  state_seconds: -1\n",
            "fabricmon.yaml:2: periods.state_seconds: expected `float` >= 0.05",
        ),
        (
            "log:\n  level: info\n  level: debug\n",
            (
                "fabricmon.yaml:3: log.level: key stands twice, first in line 2 "
                "(keep one of the two)"
            ),
        ),
        (
            "expect:\n- ports: [a]\n- prts: [b]\n",
            "fabricmon.yaml:3: expect[1].prts: no such key (did you mean ports?)",
        ),
        (
            "listen: {metrics: 9879}\n",
            "fabricmon.yaml:1: listen.metrics: expected `str | null`, got `int`",
        ),
        (
            "listen:\n  page: localhost\n",
            (
                "fabricmon.yaml:2: listen.page: 'localhost' is no address "
                "(write host:port or [ipv6]:port, as in 127.0.0.1:9879)"
            ),
        ),
        (
            "listen:\n  tls_key: k.pem\n",
            (
                "fabricmon.yaml:1: listen.tls_certificate: certificate and key go "
                "together (set both or none)"
            ),
        ),
        (
            "link_state:\n  flapping_reuse_penalty: 3000\n",
            (
                "fabricmon.yaml:2: link_state.flapping_reuse_penalty: must be below "
                "flapping_penalty, or an episode never ends"
            ),
        ),
        (
            'devices:\n  exclude: ["mlx5_[68"]\n',
            (
                "fabricmon.yaml:2: devices.exclude: 'mlx5_[68' is no pattern: its [ "
                "is not closed (write it as in mlx5_[0-3])"
            ),
        ),
        (
            'expect:\n- ports: ["mlx5_[!]"]\n',
            (
                "fabricmon.yaml:2: expect[0].ports: 'mlx5_[!]' is no pattern: its [ "
                "is not closed (write it as in mlx5_[0-3])"
            ),
        ),
        ("- a\n", "fabricmon.yaml:1: a configuration is a mapping of keys to values"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    """Each mistake is one line that says where it is and what to write instead."""
    assert _refusal(tmp_path, text) == said


@pytest.mark.parametrize("pattern", ["mlx5_[0-3]", "[]]x", "[!]]*[a]", "a]"])
def test_patterns_of_the_shell_are_taken(tmp_path: Path, pattern: str) -> None:
    """Only a set of characters that does not end is refused."""
    loaded = _load(tmp_path, f'devices: {{include: ["{pattern}"]}}\n')
    assert loaded.config.devices.include == (pattern,)


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """A mistyped kind would otherwise silence nothing."""
    said = _refusal(tmp_path, "kinds: {port_dwn: off}\n")
    assert said.startswith("fabricmon.yaml:1: kinds.port_dwn: no such kind (known: ")


def test_off_is_a_word(tmp_path: Path) -> None:
    """YAML 1.1 reads off as false; a mode must stay what was written."""
    assert _load(tmp_path, "kinds: {port_flap: off}\n").config.kinds == {
        "port_flap": "off"
    }


def test_an_exponent_makes_a_number(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-13 as text; error ratios are written so."""
    loaded = _load(tmp_path, "link_errors: {warning_bit_error_ratio: 1e-13}\n")
    assert loaded.config.link_errors.warning_bit_error_ratio == 1e-13


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A file that is asked for must exist."""
    with pytest.raises(ConfigError, match=r"absent\.yaml: No such file"):
        load(tmp_path / "absent.yaml", {})


def test_bytes_that_are_no_text_are_refused_by_line(tmp_path: Path) -> None:
    """A file of another encoding is refused, not guessed at."""
    file = tmp_path / "f.yaml"
    file.write_bytes(b"log:\n  level: \xff\n")
    with pytest.raises(ConfigError, match=r"f\.yaml:2: not UTF-8 text"):
        load(file, {})


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    """Aliases that expand to billions of values stop at a bound."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "more than 100000 values" in _refusal(tmp_path, "\n".join(lines))


class TestMerging:
    """Files of ``conf.d`` and the environment, in order, key by key."""

    def _write(self, folder: Path) -> Path:
        main = folder / "fabricmon.yaml"
        main.write_text("log: {level: info}\nperiods:\n  errors_seconds: 7\n", "utf-8")
        (folder / "conf.d").mkdir()
        (folder / "conf.d" / "10-a.yaml").write_text("log: {level: debug}\n", "utf-8")
        (folder / "conf.d" / "20-b.yml").write_text("log: {format: json}\n", "utf-8")
        (folder / "conf.d" / "ignored.yaml.bak").write_text("nonsense: 1\n", "utf-8")
        return main

    def test_later_files_win_key_by_key(self, tmp_path: Path) -> None:
        """A later file changes what it names and leaves the rest."""
        config = load(self._write(tmp_path), {}).config
        told = (config.log.level, config.log.format, config.periods.errors_seconds)
        assert told == ("debug", "json", 7)

    def test_each_key_knows_who_set_it(self, tmp_path: Path) -> None:
        """The origin is the last file that set the key, with its line."""
        loaded = load(self._write(tmp_path), {})
        shown = {key: str(loaded.origin(key)) for key in ("log.level", "node")}
        assert shown == {
            "log.level": f"{tmp_path}/conf.d/10-a.yaml:1",
            "node": "None",
        }

    def test_the_environment_wins(self, tmp_path: Path) -> None:
        """Two underscores make a dot; the value is YAML."""
        environment = {
            "FABRICMON_LOG__LEVEL": "error",
            "FABRICMON_DEVICES__EXCLUDE": "[mlx5_7]",
            "HOME": "/root",
        }
        config = load(self._write(tmp_path), environment).config
        assert (config.log.level, config.devices.exclude) == ("error", ("mlx5_7",))

    def test_links_of_a_kubernetes_service_are_no_keys(self, tmp_path: Path) -> None:
        """A Service named fabricmon must not break the agents beside it."""
        environment = {
            "FABRICMON_SERVICE_HOST": "10.0.0.1",
            "FABRICMON_SERVICE_PORT_METRICS": "9879",
            "FABRICMON_PORT": "tcp://10.0.0.1:9879",
            "FABRICMON_PORT_9879_TCP_ADDR": "10.0.0.1",
        }
        assert load(self._write(tmp_path), environment).config.log.level == "debug"

    def test_a_mistake_in_the_environment_names_the_variable(
        self, tmp_path: Path
    ) -> None:
        """A variable that sets nothing is a mistake like any other."""
        with pytest.raises(ConfigError) as refused:
            load(self._write(tmp_path), {"FABRICMON_LOG__LEVL": "error"})
        assert str(refused.value) == (
            "$FABRICMON_LOG__LEVL: log.levl: no such key (did you mean level?)"
        )

    def test_the_hash_follows_values_not_files(self, tmp_path: Path) -> None:
        """The same values from another place have the same hash."""
        from_files = load(self._write(tmp_path), {})
        other = tmp_path / "other"
        other.mkdir()
        same = "log: {level: debug, format: json}\nperiods: {errors_seconds: 7}\n"
        assert from_files.hash == _load(other, same).hash
        assert from_files.hash != _load(other, same.replace("7", "8")).hash


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_one_error(text: str) -> None:
    """Whatever a file holds, the answer is a document or a ConfigError."""
    with suppress(ConfigError):
        parse(text, "file")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: 2024-99-99\n", "fabricmon.yaml:1: cluster: not what its tag"),
        ("cluster: 0b_\n", "fabricmon.yaml:1: cluster: not what its tag"),
        ("cluster: 0x_\n", "fabricmon.yaml:1: cluster: not what its tag"),
        ("cluster: !!int x\n", "fabricmon.yaml:1: cluster: not what its tag"),
        ("cluster: !!timestamp x\n", "fabricmon.yaml:1: cluster: not what its tag"),
        (f"cluster: {'9' * 5000}\n", "fabricmon.yaml:1: cluster: not what its tag"),
        ('cluster: "\\ud800"\n', "fabricmon.yaml:1: cluster: half a character"),
        (f"cluster: {10**30}\n", "fabricmon.yaml:1: cluster: no number of a size"),
        (
            "periods: {errors_seconds: 1e400}\n",
            "fabricmon.yaml:1: periods.errors_seconds: no number of a size",
        ),
    ],
)
def test_a_scalar_that_is_none_is_refused_by_line(
    tmp_path: Path, text: str, said: str
) -> None:
    """What YAML cannot make of a word is one line, not a traceback."""
    assert _refusal(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "log: {level: loud}\n",
            (
                "log.level: 'loud' is none of its words "
                "(write debug or info or warning or error)"
            ),
        ),
        (
            "kinds: {port_flap: on, port_down: loud}\n",
            "kinds.port_down: 'loud' is none of its words (write off or shadow or on)",
        ),
        (
            "expect: [{ports: [a], role: x}]\n",
            (
                "expect[0].role: 'x' is none of its words "
                "(write compute or storage or management or unknown)"
            ),
        ),
        (
            "kinds: {port_flap: on, port_down: [on]}\n",
            "kinds.port_down: expected `str`, got `array`",
        ),
        (
            "expect: [{ports: mlx5_0/1}]\n",
            "expect[0].ports: expected `array`, got `str` (write [mlx5_0/1])",
        ),
        (
            "devices: {exclude: mlx5_6}\n",
            "devices.exclude: expected `array`, got `str` (write [mlx5_6])",
        ),
        (
            "devices: {exclude: [mlx5_6",
            (
                "not YAML: a bracket is not closed "
                "(put text with special characters in quotes)"
            ),
        ),
    ],
)
def test_a_refusal_says_what_to_write(tmp_path: Path, text: str, said: str) -> None:
    """The words that may stand there, and how a list is written."""
    assert _refusal(tmp_path, text).partition(": ")[2] == said


@pytest.mark.parametrize(
    "text",
    [
        "periods: {errors_seconds: 1e-300}\n",
        "periods: {errors_seconds: 1e-9}\n",
        "periods: {errors_seconds: 1e10}\n",
        "listen: {timeout_seconds: 1e10}\n",
        "link_state: {down_seconds: 1e300}\n",
        'root: "/a\\0b"\n',
        'state_folder: "/a\\0b"\n',
        'run_folder: "/a\\0b"\n',
        'listen: {tls_certificate: "/a\\0b", tls_key: k}\n',
    ],
)
def test_what_no_agent_survives_is_refused(tmp_path: Path, text: str) -> None:
    """Times that no clock counts and paths that no kernel takes are named by line."""
    assert _refusal(tmp_path, text).startswith("fabricmon.yaml:1: ")


def test_a_folder_that_cannot_be_entered_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may not look into the folder is told so."""

    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert "conf.d: Permission denied (the agent must" in _refusal(tmp_path, "")


def test_tls_files_must_be_readable(tmp_path: Path) -> None:
    """An agent that cannot read its certificate is refused with the key and line."""
    text = "listen: {tls_certificate: /nope, tls_key: /nope}\n"
    loaded = _load(tmp_path, text)
    with pytest.raises(ConfigError, match=r"yaml:1: listen\.tls_certificate: /nope: "):
        check_files(loaded)


@pytest.mark.parametrize("value", ["[", "2024-99-99"])
def test_a_variable_that_is_wrong_is_named_with_its_key(value: str) -> None:
    """There is no line to look at, but a name and the key that it sets."""
    with pytest.raises(ConfigError) as refused:
        load(None, {"FABRICMON_CLUSTER": value})
    said = str(refused.value)
    assert said.startswith("$FABRICMON_CLUSTER: cluster: not ")
