"""Addresses in one form, so that what two nodes say of each other compares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.address import is_routable, plain_peer


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("10.0.0.1<45678>", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("FD00:0:0::2%eth0<4567>", "fd00::2"),
        ("[fd00::2]", "fd00::2"),
        ("0000:0000:0000:0000:0000:ffff:0a00:0001", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("Node-7.Example", "Node-7.Example"),
        ("::ffff:nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_plain_form(said: str, plain: str) -> None:
    """Port, zone, brackets and mapping go; a host name stays as it is."""
    assert plain_peer(said) == plain


@given(st.ip_addresses())
def test_addresses_stay_what_they_are(address: object) -> None:
    """The form is its own form, and that which Python and the kernel write."""
    plain = plain_peer(str(address))
    assert plain_peer(plain) == plain


@given(st.text())
def test_any_text_has_a_form(text: str) -> None:
    """Logs hold anything."""
    assert is_routable(plain_peer(text)) in {True, False}


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("10.0.0.1", True),
        ("fd00::2", True),
        ("127.0.0.1", False),
        ("169.254.20.10", False),
        ("fe80::1", False),
        ("::1", False),
        ("::", False),
        ("node-7", False),
    ],
)
def test_what_names_one_node(address: str, wanted: bool) -> None:  # noqa: FBT001
    """Loopback and link-local addresses are the same everywhere."""
    assert is_routable(address) is wanted
