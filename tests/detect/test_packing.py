"""State of detectors as bytes."""

from __future__ import annotations

import pytest
from msgspec import Struct

from fabricmon.detect.packing import pack, unpack


class Kept(Struct, frozen=True):
    """Something that a detector keeps."""

    name: str = ""


def test_what_is_packed_is_unpacked() -> None:
    """State comes back as it was."""
    assert unpack(pack(Kept("mlx5_0")), Kept) == Kept("mlx5_0")


def test_no_bytes_are_a_fresh_start() -> None:
    """Nothing was saved, so nothing is known."""
    assert unpack(b"", Kept) == Kept()


def test_a_name_that_is_no_text_is_not_kept() -> None:
    """Lone surrogates cannot be written; the agent goes on without them."""
    assert pack(Kept("mlx5_\udc80")) == b""


def test_other_bytes_are_refused() -> None:
    """The error says whose state it was."""
    with pytest.raises(ValueError, match="saved Kept"):
        unpack(b"\xc1", Kept)
