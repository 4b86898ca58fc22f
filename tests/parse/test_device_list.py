"""Lists of devices and interfaces as NCCL reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.device_list import MAX_ENTRIES, parse_device_list

NAMES = st.sampled_from(["mlx5", "mlx5_0", "mlx5_1", "mlx5_10", "eth", "", "m"])
ENTRIES = st.tuples(NAMES, st.sampled_from(["", ":1", ":2", ":", ":1:0"])).map("".join)
LISTS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "="]),
    st.lists(ENTRIES, max_size=4).map(",".join),
)


def library(text: str, device: str, port: int) -> bool:
    """Choose as the C code of NCCL does: letter by letter (``misc/utils.cc``)."""
    search_not = text[:1] == "^"
    text = text[1:] if search_not else text
    exact = text[:1] == "="
    text = (text[1:] if exact else text) + "\0"
    found: list[tuple[str, int]] = []
    name, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter == ":":
            if name:
                digits = ""
                for each in text[at + 1 :]:
                    if not each.isdigit():
                        break
                    digits += each
                found.append((name, int(digits or "0")))
                name = ""
            while text[at] not in ",\0":
                at += 1
        elif letter in ",\0":
            if name:
                found.append((name, -1))
                name = ""
        else:
            name += letter
        at += 1
    matched = not found or any(
        (device == each if exact else device.startswith(each)) and number in {-1, port}
        for each, number in found
    )
    return matched != search_not


class TestChooses:
    @given(LISTS, NAMES.filter(bool), st.integers(1, 2))
    def test_as_the_library(self, text: str, device: str, port: int) -> None:
        """Every list chooses what NCCL's own code chooses."""
        assert parse_device_list(text).chooses(device, port) is library(
            text, device, port
        )

    @given(st.text(max_size=200))
    def test_anything(self, text: str) -> None:
        """Whatever is set is a list."""
        chosen = parse_device_list(text)
        assert len(chosen.entries) <= MAX_ENTRIES
        assert chosen.chooses("mlx5_0", 1) in {True, False}

    @pytest.mark.parametrize(
        ("text", "taken"),
        [
            ("mlx5_1", ["mlx5_1", "mlx5_10"]),
            ("=mlx5_1", ["mlx5_1"]),
            ("^mlx5_1", ["mlx5_0"]),
            ("^=mlx5_1,mlx5_10", ["mlx5_0"]),
            ("mlx5_0:1,mlx5_1:2", ["mlx5_0"]),
            ("", ["mlx5_0", "mlx5_1", "mlx5_10"]),
            ("^", []),
        ],
    )
    def test_the_grammar(self, text: str, taken: list[str]) -> None:
        """Beginnings, whole names, exclusion and ports, of port 1 of three devices."""
        chosen = parse_device_list(text)
        names = ["mlx5_0", "mlx5_1", "mlx5_10"]
        if text == "mlx5_0:1,mlx5_1:2":
            names.remove("mlx5_10")
        assert [name for name in names if chosen.chooses(name, 1)] == taken
