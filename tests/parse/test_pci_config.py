"""Access Control Services in PCI configuration space."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.pci_config import redirects_peers


def space(control: int, *, first: int = 0x0001, acs: int = 0x0D) -> bytes:
    """Return 4 KiB with two extended capabilities, the second at 0x140."""
    raw = bytearray(4096)
    struct.pack_into("<I", raw, 0x100, 0x140 << 20 | 1 << 16 | first)
    struct.pack_into("<I", raw, 0x140, 1 << 16 | acs)
    struct.pack_into("<H", raw, 0x146, control)
    return bytes(raw)


@pytest.mark.parametrize(
    ("control", "redirects"),
    [(0x00, False), (0x1D, True), (0x01, False), (0x04, True), (0x08, True)],
)
def test_the_control_register(control: int, *, redirects: bool) -> None:
    """Redirection of requests or completions counts, validation of sources does not."""
    assert redirects_peers(space(control)) is redirects


def test_a_port_without_the_capability() -> None:
    """What is not there redirects nothing."""
    assert redirects_peers(space(0x0C, acs=0x10)) is False


def test_without_rights() -> None:
    """Others than root are shown 64 bytes: nothing is known."""
    assert redirects_peers(space(0x0C)[:64]) is None


def test_a_list_in_a_circle() -> None:
    """Damage ends."""
    raw = bytearray(space(0x0C, acs=0x10))
    struct.pack_into("<I", raw, 0x140, 0x100 << 20 | 1 << 16 | 0x10)
    assert redirects_peers(bytes(raw)) is False


@given(st.binary(max_size=600))
def test_noise(raw: bytes) -> None:
    """Whatever a device answers is a verdict or none."""
    assert redirects_peers(bytes(0x100) + raw) in {True, False, None}
