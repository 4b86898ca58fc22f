"""The gate's configuration: what is right, and one clear error for what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabricmon.cli import main
from fabricmon.errors import ConfigError
from fabricmon.gate.settings import DEFAULT_KINDS, SURE_KINDS, GateConfig
from fabricmon.gate.settings_load import check_gate_files, load_gate, read_token

EXAMPLE = Path(__file__).parents[2] / "deploy" / "gate" / "gate.yaml"


def load(folder: Path, text: str) -> GateConfig:
    """Load a text as the configuration."""
    file = folder / "gate.yaml"
    file.write_text(text)
    return load_gate(file).config


def test_dry_run_is_the_default(tmp_path: Path) -> None:
    """An empty file only looks on, from the loopback interface."""
    config = load(tmp_path, "")

    assert config.act is False
    assert config.listen.address == "127.0.0.1:9881"
    assert config.script.path is None


def test_default_kinds_are_sure() -> None:
    """What is acted on unless told otherwise is what a node's end proves."""
    assert set(DEFAULT_KINDS) <= set(SURE_KINDS)
    assert "transport_retries" not in SURE_KINDS
    assert "nccl_error" not in SURE_KINDS


def test_the_example() -> None:
    """The example is right, acts on nothing, and differs from no default otherwise."""
    config = load_gate(EXAMPLE).config

    assert config == GateConfig()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acts: true", "1: acts: no such key (did you mean act?)"),
        ("script:\n  pth: /x", "2: script.pth: no such key (did you mean path?)"),
        ("act: yes", "act: expected `bool`, got `str`"),
        ("act: true", "script.path: there is nothing to act with"),
        ("script:\n  path: run.sh", "2: script.path: 'run.sh' is no absolute path"),
        ("listen:\n  address: 0.0.0.0:9881", "2: listen.address: whoever reaches"),
        ("listen:\n  address: '[::]:9881'", "listen.address: whoever reaches"),
        ("listen:\n  address: gate.example:9881", "listen.address: whoever reaches"),
        ("listen:\n  health: here", "2: listen.health: 'here' is no address"),
        ("listen:\n  address: null", "listen.address: nothing can come in"),
        ("listen:\n  address: here", "listen.address: 'here' is no address"),
        ("listen:\n  tls_key: /k", "listen.tls_certificate: certificate and key"),
        ("choice:\n  kinds: [congestion]", "2: choice.kinds: 'congestion' is no kind"),
        ("choice:\n  actions: [inspect]", "choice.actions[0]"),
        ("choice:\n  severities: [info]", "choice.severities[0]"),
        ("caution:\n  budget_nodes: 0", "2: caution.budget_nodes: expected"),
        ("caution:\n  common_nodes: 1", "2: caution.common_nodes: expected"),
        ("script:\n  environment: {LD_PRELOAD: /x}", "script.environment.LD_PRELOAD"),
        ("mqtt:\n  host: a/b", "2: mqtt.host: 'a/b' is no name of a host"),
        ("mqtt:\n  tls_key: /k", "mqtt.tls_key: is of no use without TLS"),
        ("maintenance_file: x.json", "maintenance_file: 'x.json' is no absolute"),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    """One line names the file, its line and the key, and says what to do."""
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)

    assert said in str(error.value).removeprefix(f"{tmp_path}/gate.yaml:")
    assert str(error.value).startswith(f"{tmp_path}/gate.yaml")
    assert "\n" not in str(error.value)


class TestToken:
    def test_read(self, tmp_path: Path) -> None:
        """The token is the one line of its file."""
        file = tmp_path / "token"
        file.write_text("0123456789abcdef\n")
        config = load(tmp_path, f"listen:\n  token_file: {file}")

        assert read_token(config) == b"0123456789abcdef"

    @pytest.mark.parametrize("text", ["", "short", "two words of a token", "ü" * 20])
    def test_no_token(self, tmp_path: Path, text: str) -> None:
        """What can be guessed, or cannot be sent, is none."""
        file = tmp_path / "token"
        file.write_text(text)
        config = load(tmp_path, f"listen:\n  token_file: {file}")

        with pytest.raises(ConfigError, match="holds no token"):
            read_token(config)

    def test_absent(self, tmp_path: Path) -> None:
        """A token that cannot be read is no open door."""
        config = load(tmp_path, "listen:\n  token_file: /nonexistent")

        with pytest.raises(ConfigError, match=r"listen\.token_file"):
            read_token(config)


class TestScript:
    def check(self, folder: Path, script: Path) -> None:
        """Check the files of a configuration with this script."""
        file = folder / "gate.yaml"
        file.write_text(f"script:\n  path: {script}\n")
        check_gate_files(load_gate(file))

    @pytest.mark.parametrize("mode", [0o755, 0o500])
    def test_right(self, tmp_path: Path, mode: int) -> None:
        """A program that only its owner can change is right."""
        script = tmp_path / "run"
        script.touch()
        script.chmod(mode)

        self.check(tmp_path, script)

    @pytest.mark.parametrize("mode", [0o775, 0o777, 0o757])
    def test_others_may_change_it(self, tmp_path: Path, mode: int) -> None:
        """Whoever can write the script would act with the gate's rights."""
        script = tmp_path / "run"
        script.touch()
        script.chmod(mode)

        with pytest.raises(ConfigError, match="may change it"):
            self.check(tmp_path, script)

    def test_not_executable(self, tmp_path: Path) -> None:
        """A file that cannot be run is none."""
        script = tmp_path / "run"
        script.touch(0o644)

        with pytest.raises(ConfigError, match="is no program"):
            self.check(tmp_path, script)

    def test_absent(self, tmp_path: Path) -> None:
        """It must be there when the gate starts, not when a node is broken."""
        with pytest.raises(ConfigError, match="No such file"):
            self.check(tmp_path, tmp_path / "run")


def test_check_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says that it is right and whether it acts; or status 78."""
    file = tmp_path / "gate.yaml"
    file.write_text("act: false\n")
    assert main(["gate", "check", "--config", os.fspath(file)]) == 0
    assert "dry run: nothing is called" in capsys.readouterr().out

    file.write_text("act: true\n")
    assert main(["gate", "check", "--config", os.fspath(file)]) == 78
    assert "script.path" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "told"), [(0o644, True), (0o640, False)])
def test_a_secret_that_all_can_read(tmp_path: Path, mode: int, told: bool) -> None:  # noqa: FBT001
    """It is said, with what to do, and ends nothing."""
    token, file = tmp_path / "token", tmp_path / "gate.yaml"
    token.touch(mode)
    token.chmod(mode)
    file.write_text(f"listen:\n  token_file: {token}\n")

    warnings = load_gate(file).warnings

    assert any("every user of this node can read" in each for each in warnings) is told
