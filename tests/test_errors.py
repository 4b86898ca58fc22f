"""Errors that fabricmon raises on purpose."""

import pickle

import pytest

from fabricmon.errors import (
    ConfigError,
    FabricmonError,
    HostError,
    ParseError,
    TraceError,
)


@pytest.mark.parametrize("kind", [ConfigError, ParseError, TraceError, HostError])
def test_all_are_of_one_family(kind: type[FabricmonError]) -> None:
    """One except clause catches everything that is meant."""
    assert issubclass(kind, FabricmonError)


def test_a_configuration_error_says_where_and_what_to_do() -> None:
    """File, line, key, message and remedy make one line."""
    error = ConfigError(
        "unknown key", file="a.yaml", line=3, key="ports.x", remedy="remove it"
    )
    assert str(error) == "a.yaml:3: ports.x: unknown key (remove it)"


def test_what_is_not_known_is_left_out() -> None:
    """No None shows up in the text."""
    assert str(ConfigError("broken")) == "broken"
    assert str(TraceError("no object", line=7)) == "line 7: no object"
    assert str(ParseError("no JSON", source="mlxlink")) == "mlxlink: no JSON"


def test_a_host_error_names_path_and_errno() -> None:
    """As the kernel said it."""
    error = HostError("cannot list", path="/sys/class/net", errno="EACCES")
    assert str(error) == "/sys/class/net: cannot list (EACCES)"


def test_the_parts_are_attributes() -> None:
    """A caller need not take the text apart."""
    error = TraceError("no object", path="t", line=7)
    assert (error.message, error.path, error.line) == ("no object", "t", 7)


def test_an_error_can_cross_processes() -> None:
    """Its message survives the way."""
    again = pickle.loads(pickle.dumps(ParseError("no JSON", source="x")))  # noqa: S301
    assert str(again) == "x: no JSON"
