"""Options of a site: whatever is written, it is read or refused with one error."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import ConfigError
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.options_load import load_options
from fabricmon.fleet.rules import groups

_KEYS = (
    "where.selector",
    "pace.keep_seconds",
    "severities.X",
    "agents",
    "x.y",
    "",
    "where",
)


def test_nothing_is_the_default() -> None:
    """Without a file and settings."""
    assert load_options(None) == FleetOptions()


@pytest.mark.parametrize("key", ["slow", "place", "rare"])
def test_no_recording_may_go_out_between_evaluations(key: str) -> None:
    """A sample stands for five minutes: a late evaluation must not leave a hole."""
    with pytest.raises(ConfigError, match=rf"pace\.{key}_seconds"):
        load_options(None, [f"pace.{key}_seconds=180"])


def test_a_time_of_nothing_is_none() -> None:
    """Every port was away for at least 0 s: an alert that never ends."""
    with pytest.raises(ConfigError, match=r"causes\.interrupted_seconds"):
        load_options(None, ["comparisons.causes.interrupted_seconds=0"])


def test_promql_is_taken_as_it_stands() -> None:
    """A setting of a text is no YAML: braces and colons are its own."""
    expr = 'a:b{c="d"} == 1 # not a comment'
    assert load_options(None, [f"where.cordoned={expr}"]).where.cordoned == expr
    assert load_options(None, ["where.cordoned="]).where.cordoned == ""


def test_off_is_a_word() -> None:
    """Also where YAML has it for false."""
    made = load_options(None, ["severities.FabricCongestion=off"])
    assert made.severities == {"FabricCongestion": "off"}


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.builds("{}={}".format, st.sampled_from(_KEYS), st.text(max_size=40)),
        ),
        max_size=3,
    )
)
def test_any_setting_is_read_or_refused(settings: list[str]) -> None:
    """No other error comes out."""
    with suppress(ConfigError):
        groups(load_options(None, settings))


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(data: bytes) -> None:
    """No other error comes out of a file either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", lambda *_: BytesIO(data))
        with suppress(ConfigError):
            load_options(Path("site.yaml"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Its name and what to do."""
    with pytest.raises(ConfigError, match=r"site\.yaml: No such file"):
        load_options(tmp_path / "site.yaml")
